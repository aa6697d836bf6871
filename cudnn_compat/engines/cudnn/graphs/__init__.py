"""Calls of the library recorded as CUDA graphs, and replayed.

STANDARD launches some kernels for each step, so that its time is the host's; a graph launches them
all at once. ``replays`` decides, ``slots`` keeps memory, ``recording`` captures and launches,
``copies`` brings arrays in and out, ``driver`` is what CuPy lacks.
"""

from cudnn_compat.engines.cudnn.graphs.replays import (
    DATA,
    FORWARD,
    WEIGHTS,
    Arrays,
    Replays,
    Stage,
    addresses,
    graphs,
)
from cudnn_compat.engines.cudnn.graphs.slots import Store

__all__ = [
    "DATA",
    "FORWARD",
    "WEIGHTS",
    "Arrays",
    "Replays",
    "Stage",
    "Store",
    "addresses",
    "graphs",
]
