"""What a shape needs: the network in the library, and the description of a batch of lengths."""

from __future__ import annotations

import ctypes
import dataclasses
import functools
from typing import Any, Final

import numpy as np

from cudnn_compat.arrays import Array, load_cupy, numpy_dtype
from cudnn_compat.cudnn import constants as c
from cudnn_compat.cudnn.descriptors import Descriptor, rnn_data_descriptor, tensor_descriptor
from cudnn_compat.engines.cache import BoundedCache
from cudnn_compat.engines.cudnn.device import Session, device_index
from cudnn_compat.engines.cudnn.graphs import Again, Replays
from cudnn_compat.engines.cudnn.network import Network
from cudnn_compat.engines.cudnn.settings import DTYPE_CODES, LAYOUT_CODES
from cudnn_compat.engines.cudnn.staging import Moves, moves_of
from cudnn_compat.engines.cudnn.trial import Trial
from cudnn_compat.sequences import Sequences
from cudnn_compat.spec import RNNSpec
from cudnn_compat.weights import weight_layout

__all__ = [
    "MAX_STEPS",
    "CudnnPlan",
    "EmptyPlan",
    "Geometry",
    "Shape",
    "ShapedPlan",
    "geometry_cache",
]

MAX_STEPS: Final = 65_535
"""The most steps that one call of the library takes (measured on 9.19; more is refused)."""

_KEPT_GEOMETRIES = 64
_KEPT_BYTES = 64 << 20


@dataclasses.dataclass(frozen=True, eq=False)
class Geometry:
    """A batch of lengths as the library has it, and how much memory it takes.

    Attributes:
        moves: the way between the caller's order of rows and sequences and the library's.
        x, y, h, c: descriptors; c None where the cell has none.
        lengths: int32 on the device, where the library (8.x) reads them from there; else None.
        clear: whether y and dx have padding, which is zero.
        workspace, reserve: bytes.
    """

    moves: Moves
    x: Descriptor
    y: Descriptor
    h: Descriptor
    c: Descriptor | None
    lengths: Array | None
    clear: bool
    workspace: int
    reserve: int

    def clear_padding(self, session: Session, target: Array) -> None:
        """Make the padding of y or dx, which the library does not write, zero."""
        if self.clear:
            target.data.memset_async(0, target.nbytes, session.stream.cupy)


def geometry_cache() -> BoundedCache[Geometry]:
    """A store for the descriptions of the last lengths; of those that are large, few or none."""
    return BoundedCache(
        _KEPT_GEOMETRIES, most=_KEPT_BYTES, weigh=lambda geometry: geometry.moves.nbytes
    )


@dataclasses.dataclass(frozen=True)
class Shape:
    """What a plan is made for."""

    spec: RNNSpec
    layout: str
    steps: int
    batch: int
    ragged: bool
    training: bool
    device: str

    @property
    def index(self) -> int:
        """N of its device ``"cuda:N"``."""
        return device_index(self.device)


class ShapedPlan:
    """The fields that every plan shows.

    Attributes:
        again: the short way to its graphs; None where it has none, or dropout acts.
        trial: who takes the times of its calls, if anybody does.
    """

    again: Again | None = None
    trial: Trial | None = None

    def __init__(self, shape: Shape, algo: str) -> None:
        self.shape = shape
        self.spec = shape.spec
        self.layout = shape.layout
        self.steps = shape.steps
        self.batch = shape.batch
        self.ragged = shape.ragged
        self.training = shape.training
        self.device = shape.device
        self.algo = algo
        self.index = shape.index

    def current(self) -> Any:
        """The plan that serves the next call: itself, unless there is a choice."""
        return self


class EmptyPlan(ShapedPlan):
    """For batches without a step or without a sequence, which the library must not see."""

    settled = True

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape, "standard" if shape.spec.algo == "auto" else shape.spec.algo)

    def workspace_bytes(self, sequences: Sequences) -> int:
        """0."""
        return 0

    def reserve_bytes(self, sequences: Sequences) -> int:
        """0."""
        return 0


class CudnnPlan(ShapedPlan):
    """One call of the library. Lengths are not part of it.

    Args:
        geometries: where the descriptions of unequal lengths are kept.
        replays: its calls as graphs; None where it runs plainly.
    """

    ready = settled = True

    def __init__(
        self,
        shape: Shape,
        network: Network,
        geometries: BoundedCache[Geometry],
        replays: Replays | None = None,
    ) -> None:
        super().__init__(shape, network.algo)
        self.replays = replays
        self.network = network
        self.mode = c.CUDNN_FWD_MODE_TRAINING if shape.training else c.CUDNN_FWD_MODE_INFERENCE
        self._geometries = geometries
        self._equal: Geometry | None = None
        if replays is not None and not self.drops:
            self.again = Again(
                load_cupy(),
                replays,
                shape.index,
                numpy_dtype(shape.spec.dtype),
                training=shape.training,
            )

    def release(self) -> None:
        """Let go of its graphs: it will not be called again."""
        if self.replays is not None:
            self.replays.release()

    @property
    def drops(self) -> bool:
        """Whether dropout acts."""
        return self.training and self.spec.drops

    @functools.cached_property
    def weight_bytes(self) -> int:
        """Bytes of the weight space, as the library counts them."""
        return weight_layout(self.spec).size * numpy_dtype(self.spec.dtype).itemsize

    def workspace_bytes(self, sequences: Sequences) -> int:
        """Bytes of scratch that a call takes."""
        return self._bytes(sequences).workspace if sequences.total else 0

    def reserve_bytes(self, sequences: Sequences) -> int:
        """Bytes of the flat reserve; 0 in inference, and where there is nothing to compute."""
        return self._bytes(sequences).reserve if self.training and sequences.total else 0

    def _bytes(self, sequences: Sequences) -> Geometry:
        """What knows how much memory a call takes."""
        if self._equal is not None:
            return self._equal
        with Session(self.index) as session:
            return self.geometry(session, sequences)

    def geometry(self, session: Session, sequences: Sequences) -> Geometry:
        """The description of these lengths, from the last few or made now."""
        if self.ragged or session.library.major < 9:
            # What it has on the device belongs to one stream.
            key = (self.shape, self.algo, sequences.lengths, session.stream)
            found = self._geometries.get(key, lambda: self._describe(session, sequences))
            if found.moves.nbytes or found.lengths is not None:
                session.outlive(found)
            return found
        if self._equal is None:
            self._equal = self._describe(session, sequences)
        return self._equal

    def _describe(self, session: Session, sequences: Sequences) -> Geometry:
        spec, library = self.spec, session.library
        moves = moves_of(session, sequences)
        lengths: tuple[int, ...] = sequences.lengths
        if self.layout == "packed" and self.ragged:
            lengths = tuple(sorted(filter(None, lengths), reverse=True))
        dtype, batch = DTYPE_CODES[spec.dtype], len(lengths)
        x, y = (
            rnn_data_descriptor(
                library,
                dtype=dtype,
                layout=LAYOUT_CODES[self.layout],
                steps=sequences.steps,
                features=features,
                lengths=lengths,
            )
            for features in (spec.input_size, spec.output_size)
        )
        h = tensor_descriptor(library, dtype, spec.state_shape(batch))
        cell = tensor_descriptor(library, dtype, spec.cell_shape(batch)) if spec.has_cell else None
        workspace, reserve = ctypes.c_size_t(), ctypes.c_size_t()
        library.cudnnGetRNNTempSpaceSizes(
            session.handle,
            self.network.descriptor,
            self.mode,
            x,
            ctypes.byref(workspace),
            ctypes.byref(reserve),
        )
        on_device = None
        if library.major < 9:
            on_device = session.sent(np.asarray(lengths, "int32"))
        return Geometry(
            moves,
            x,
            y,
            h,
            cell,
            on_device,
            self.ragged and self.layout != "packed",
            workspace.value,
            reserve.value,
        )
