"""The NumPy engine: reference and embedded default. Reads like the equations.

* ``engine.py``   the calls of the engine interface
* ``plan.py``     what a shape needs: the compute dtype and the reserve
* ``forward.py``  layers and directions, forward
* ``backward.py`` layers and directions, gradients
* ``cells.py``    one direction of one layer: the step loops of each cell
* ``dropout.py``  masks
* ``operations.py`` dropout, softmax and activations as plain operations
"""

from cudnn_compat.engines.numpy.engine import NumpyEngine

__all__ = ["NumpyEngine"]
