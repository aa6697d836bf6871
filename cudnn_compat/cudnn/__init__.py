"""The C library cuDNN: found, loaded and called through ctypes, without a Python package for it.

Read in this order:

``find``          where a cuDNN may lie, in the order in which the places are tried
``library``       the one that is loaded: its version, its functions with types and checked status
``status``        status codes of both majors as one set of exceptions
``prototypes``    generated from the headers: every function that is called
``constants``     generated from the headers: enum values and status codes
``handles``       handles, one for each thread and device
``descriptors``   descriptors as Python objects

Nothing is loaded by importing any of them; :func:`cudnn_compat.cudnn.library.load` does.
"""
