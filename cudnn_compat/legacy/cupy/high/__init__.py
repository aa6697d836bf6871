"""The functions of :mod:`cudnn_compat.legacy.cupy.cudnn`, which take arrays.

* ``descriptors.py``  handles, descriptors, settings
* ``states.py``       generators of dropout, and dropout as an operation
* ``networks.py``     the basic calls of RNNs and those with ``_ex``
* ``weights.py``      views of one matrix or bias
* ``operations.py``   softmax and activations
"""
