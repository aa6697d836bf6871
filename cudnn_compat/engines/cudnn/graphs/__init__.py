"""Calls of the library recorded as CUDA graphs, and replayed.

STANDARD launches some kernels for each step, so that its time is the host's; a graph launches them
all at once. ``stages`` names the calls, ``replays`` decides, ``again`` is the short way to what has
been decided, ``slots`` keeps memory, ``recycling`` results that may come again, ``recording``
captures and launches, ``copies`` brings arrays in and out, ``driver`` is what CuPy lacks.
"""

from cudnn_compat.engines.cudnn.graphs.again import Again
from cudnn_compat.engines.cudnn.graphs.replays import Replays, graphs
from cudnn_compat.engines.cudnn.graphs.slots import Lease, Store
from cudnn_compat.engines.cudnn.graphs.stages import (
    BACKWARD,
    DATA,
    FORWARD,
    WEIGHTS,
    Arrays,
    Stage,
    addresses,
)

__all__ = [
    "BACKWARD",
    "DATA",
    "FORWARD",
    "WEIGHTS",
    "Again",
    "Arrays",
    "Lease",
    "Replays",
    "Stage",
    "Store",
    "addresses",
    "graphs",
]
