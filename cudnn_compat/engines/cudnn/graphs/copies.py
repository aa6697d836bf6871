"""Copies as one kernel inside of a graph, told before each launch from where to where.

The addresses in a captured graph stand; so a graph works on memory of its own, and begins and ends
with a kernel that copies from and to the caller's arrays. Its parameters are all that changes from
launch to launch, and only where an array is elsewhere than the last time.
"""

from __future__ import annotations

import ctypes
import functools
from types import ModuleType
from typing import Any, Final

from cudnn_compat.engines.cudnn.graphs.driver import (
    KernelNode,
    captured_node,
    launch,
    set_parameters,
)

__all__ = ["MOST", "Copies"]

MOST: Final = 9
"""Arrays that one kernel copies."""

_THREADS: Final = 256
_BLOCKS: Final = 1024
_SOURCE: Final = r"""
struct Copies {
    const char* from[MOST];
    char* to[MOST];
    unsigned long long bytes[MOST];
};

// Every array begins at a multiple of 16 bytes; the last bytes are copied one by one.
extern "C" __global__ void copy_arrays(const Copies copies) {
    const unsigned long long first = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    const unsigned long long stride = (unsigned long long)gridDim.x * blockDim.x;
#pragma unroll
    for (int k = 0; k < MOST; ++k) {
        const unsigned long long bytes = copies.bytes[k];
        const uint4* from = reinterpret_cast<const uint4*>(copies.from[k]);
        uint4* to = reinterpret_cast<uint4*>(copies.to[k]);
        const unsigned long long whole = bytes / sizeof(uint4);
        for (unsigned long long i = first; i < whole; i += stride) to[i] = from[i];
        for (unsigned long long i = whole * sizeof(uint4) + first; i < bytes; i += stride)
            copies.to[k][i] = copies.from[k][i];
    }
}
"""


_Column = ctypes.c_uint64 * MOST


class _Table(ctypes.Structure):
    """``Copies`` of the kernel."""

    _fields_ = (("sources", _Column), ("targets", _Column), ("bytes", _Column))


@functools.cache
def _kernel(xp: ModuleType, device: int) -> Any:
    """The kernel, compiled once (CuPy keeps it on disk) and loaded once for each device."""
    return xp.RawKernel(_SOURCE.replace("MOST", str(MOST)), "copy_arrays").kernel


class Copies:
    """A kernel that copies arrays between the caller and a graph.

    Args:
        own: addresses of the graph's arrays.
        sizes: their bytes.
        inward: whether it copies into the graph's arrays or out of them.
    """

    def __init__(
        self,
        xp: ModuleType,
        device: int,
        own: tuple[int, ...],
        sizes: tuple[int, ...],
        inward: bool,
    ) -> None:
        self.own = own
        self.sizes = sizes
        self._table = _Table()
        columns = self._table.sources, self._table.targets
        theirs, mine = columns if inward else columns[::-1]
        mine[: len(own)] = own
        self._theirs = theirs
        self._bytes = self._table.bytes
        self._last: tuple[int, ...] | None = None
        self._kernel = _kernel(xp, device)  # whose module must stay loaded
        blocks = min(_BLOCKS, max(1, -(-sum(sizes) // (16 * _THREADS))))
        self._address = (ctypes.c_void_p * 1)(ctypes.addressof(self._table))
        self._node = KernelNode(
            self._kernel.ptr, blocks, 1, 1, _THREADS, 1, 1, 0, self._address, None
        )
        self._captured = 0

    def capture(self, stream: int, theirs: tuple[int, ...]) -> None:
        """Put the kernel into the graph that the stream captures.

        Args:
            theirs: addresses of the caller's arrays; an array at 0, or at the graph's own address,
                is not copied.
        """
        self._fill(theirs)
        launch(self._node, stream)
        self._captured = captured_node(stream)

    def tell(self, executable: int, theirs: tuple[int, ...]) -> None:
        """Where the caller's arrays are in the next launch."""
        if theirs == self._last:
            return
        self._last = None  # until the graph has taken it
        self._fill(theirs)
        set_parameters(executable, self._captured, self._node)
        self._last = theirs

    def _fill(self, theirs: tuple[int, ...]) -> None:
        self._theirs[: len(theirs)] = theirs
        self._bytes[: len(theirs)] = [
            size if their and their != mine else 0
            for size, their, mine in zip(self.sizes, theirs, self.own, strict=True)
        ]
