"""`FusedNetwork`: the kernels as one more way to run a network."""

from __future__ import annotations

import functools
from types import ModuleType

from cudnn_compat.arrays import Array
from cudnn_compat.engines.cudnn.fused import backward, forward
from cudnn_compat.engines.cudnn.fused.blocks import Blocks, Chip, Problem, choose
from cudnn_compat.engines.cudnn.fused.call import Call
from cudnn_compat.engines.cudnn.fused.memory import kept, places
from cudnn_compat.engines.cudnn.fused.rows import Rows
from cudnn_compat.engines.cudnn.fused.scratch import blas_bytes
from cudnn_compat.errors import UnsupportedError
from cudnn_compat.sequences import Sequences
from cudnn_compat.spec import RNNSpec

__all__ = ["Chip", "FusedNetwork", "chip", "serves"]


_MOST_SEQUENCES = 65_535
"""What a launch takes along the second axis of its grid."""


@functools.lru_cache(maxsize=64)
def chip(xp: ModuleType, device: int) -> Chip:
    """What a device is."""
    properties = xp.cuda.runtime.getDeviceProperties(device)
    capability = 10 * properties["major"] + properties["minor"]
    return Chip(capability, properties["multiProcessorCount"])


def serves(spec: RNNSpec, steps: int, batch: int, chip: Chip, *, training: bool) -> str | None:
    """Why the kernels do not serve a network and shape; None where they do.

    They serve every layout and any lengths; ``steps`` is the most that a sequence has.
    """
    if chip.capability < 80:
        return "needs a GPU of compute capability 8.0 or later"
    if spec.dtype == "float64":
        return "has no float64"
    if spec.math == "half" and spec.dtype == "float16":
        return "has no float16 arithmetic (math='half')"
    if spec.proj_size is not None:
        return "has no projection"
    if spec.input_mode == "skip":
        return "has no input_mode='skip'"
    if training and spec.drops:
        return "has no dropout"
    if not steps or not batch:
        return "needs a step and a sequence"
    if batch > _MOST_SEQUENCES:
        return f"takes at most {_MOST_SEQUENCES} sequences"
    if None in _cuts(spec, batch, chip, training=training):
        return f"has no room on the chip for the weights of hidden_size={spec.hidden_size}"
    return None


def _cuts(spec: RNNSpec, batch: int, chip: Chip, *, training: bool) -> tuple[Blocks | None, ...]:
    """How forward and, in training, backward are cut."""
    shape = (spec.cell, spec.dtype, spec.hidden_size, batch, spec.num_directions)
    return tuple(choose(Problem(*shape, back), chip) for back in (False, True)[: 1 + training])


class FusedNetwork:
    """A network for batches of one size on one device: any layout, steps and lengths.

    Arrays are contiguous and begin at multiples of 16 bytes. Calls go to CuPy's current stream on
    the current device, which must be ``device``, and are not waited for. Safe to use from many
    threads. With ragged batches ``rows`` sends lengths to the device; all else can be captured in a
    graph, once the kernels have run. Scratch comes from CuPy's allocator: a graph needs one of its
    own, kept as long as it is (``scratch.py``), and ``blas_bytes`` of scratch for cuBLAS, whose
    address the calls take as ``blas``.

    Raises:
        UnsupportedError: see :func:`serves`.
    """

    def __init__(
        self, xp: ModuleType, device: int, spec: RNNSpec, batch: int, *, training: bool
    ) -> None:
        self.xp, self.device, self.spec, self.training = xp, device, spec, training
        found = chip(xp, device)
        reason = serves(spec, 1, batch, found, training=training)
        if reason is not None:
            raise UnsupportedError(f"algo='fused' {reason}; use algo='auto' or algo='standard'")
        self.cuts = _cuts(spec, batch, found, training=training)
        self.blas_bytes = blas_bytes(found.capability)

    def reserve_bytes(self, sequences: Sequences) -> int:
        """Bytes of the flat reserve; 0 in inference."""
        return kept(self.spec, sequences.total).nbytes if self.training else 0

    def workspace_bytes(self, sequences: Sequences) -> int:
        """About how much memory a forward call takes beside what is given to it."""
        spec, total = self.spec, sequences.total
        size = 4 if spec.dtype == "float32" else 2
        nbytes = 0
        if not self.training:
            gates = places(spec, training=False) * spec.hidden_size
            nbytes += total * spec.num_directions * gates * 4
            nbytes += min(spec.num_layers - 1, 2) * total * spec.output_size * size
        if sequences.ragged:
            nbytes += total * (spec.input_size + spec.output_size) * size
        return nbytes

    def rows(self, sequences: Sequences) -> Rows:
        """Where the rows of a batch are; to be used on the current stream, and by many calls."""
        return Rows.of(self.xp, sequences)

    def forward(
        self,
        rows: Rows,
        w: Array,
        x: Array,
        hx: Array | None,
        cx: Array | None,
        *,
        y: Array,
        hy: Array | None,
        cy: Array | None,
        reserve: Array | None,
        blas: int = 0,
    ) -> None:
        """See :meth:`cudnn_compat.engines.interface.Engine.forward`; ``blas``: see the class."""
        cut = self.cuts[0]
        assert cut is not None
        forward.run(self._call(rows, blas), cut, w, x, hx, cx, y, hy, cy, reserve)

    def backward_data(
        self,
        rows: Rows,
        w: Array,
        cx: Array | None,
        reserve: Array,
        *,
        dy: Array | None,
        dhy: Array | None,
        dcy: Array | None,
        dx: Array,
        dhx: Array,
        dcx: Array | None,
        blas: int = 0,
    ) -> None:
        """See :meth:`cudnn_compat.engines.interface.Engine.backward_data`."""
        cut = self.cuts[1]
        assert cut is not None
        call = self._call(rows, blas)
        backward.run_data(call, cut, w, cx, reserve, dy, dhy, dcy, dx, dhx, dcx)

    def backward_weights(
        self, rows: Rows, x: Array, reserve: Array, *, dw: Array, blas: int = 0
    ) -> None:
        """See :meth:`cudnn_compat.engines.interface.Engine.backward_weights`."""
        backward.run_weights(self._call(rows, blas), x, reserve, dw)

    def _call(self, rows: Rows, blas: int) -> Call:
        return Call(self.xp, self.device, self.spec, rows, (blas, self.blas_bytes))
