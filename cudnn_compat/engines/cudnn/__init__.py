"""The cuDNN engine: the library's calls on CuPy arrays, and right where the library is not.

* ``engine.py``      the calls of the engine interface
* ``plan.py``        what a shape needs: the algorithm, descriptors, sizes
* ``settings.py``    a spec in the library's constants
* ``algorithms.py``  which algorithm runs
* ``forward.py``     one library call, forward
* ``backward.py``    the two library calls backward
* ``long.py``        more steps than the library takes: parts that carry the states, planned in
                     ``long_plan.py``, with their rows and states in ``long_call.py``
* ``staging.py``     arrays as the library takes them, and the way back
* ``network.py``     a network in the library, whatever the steps
* ``dropout.py``     generators on a device
* ``operations.py``  dropout, softmax and activations as plain operations
* ``weights.py``     the library's weight space against ours
* ``device.py``      CuPy, handles and streams
"""

from cudnn_compat.engines.cudnn.engine import CudnnEngine

__all__ = ["CudnnEngine"]
