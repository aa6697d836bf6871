"""The functions of :mod:`cudnn_compat.legacy.cupy.libcudnn`, which take plain integers.

* ``handles.py``      versions, handles, streams
* ``tensors.py``      tensor and filter descriptors
* ``networks.py``     RNN descriptors, sizes, persistent plans
* ``data.py``         RNN data descriptors
* ``weights.py``      addresses of one matrix or bias
* ``calls.py``        what the calls with and without Ex share
* ``basic.py``        the four calls without Ex
* ``padded.py``       the four calls with Ex
* ``operations.py``   dropout, softmax, activations
"""
