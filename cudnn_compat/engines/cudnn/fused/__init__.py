"""Own kernels: the whole recurrence of a layer in one launch, its weights kept on the chip.

For networks whose recurrent weights fit into the registers and the shared memory of a cluster of
thread blocks. The library launches kernels step by step, or shares h through device memory; here
the blocks of a cluster exchange h through each other's shared memory, every cluster serves a few
sequences, and nothing else synchronises. Lengths stay on the device, so that ragged batches cost
what others cost.

* ``network.py``   ``FusedNetwork``: the calls, and :func:`serves`: which networks and shapes
* ``blocks.py``    how a recurrence is cut into blocks
* ``forward.py``, ``backward.py``  the layers one after the other; ``call.py`` has what they share
* ``forward.cu``, ``backward.cu``  one layer's recurrence, with what they share in ``common.cu``
* ``rows.py``, ``rows.cu``         ragged batches without their padding; sums over rows
* ``products.py``  matrix products whose precision the spec alone decides
* ``memory.py``    what training keeps; ``scratch.py`` what recorded calls work in
* ``kernels.py``   compilation
"""

from cudnn_compat.engines.cudnn.fused.network import Chip, FusedNetwork, chip, serves

__all__ = ["Chip", "FusedNetwork", "chip", "serves"]
