"""Where each matrix and bias lies in the flat weight space.

The order is cuDNN's: all matrices of all pseudo-layers, then all biases, every matrix row-major,
nothing between them. Within a pseudo-layer the input matrices come first (linear ids 0…G-1, shape
``(H, in)``; none in the first layer of a skip network), then the recurrent ones (G…2G-1,
``(H, P)``), then the projection (id 8, ``(P, H)``). The gates of one matrix are therefore
contiguous and PyTorch's stacked matrices (``weight_ih_l0`` of shape ``(G·H, in)``) are views.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType
from typing import NamedTuple

import numpy as np

from cudnn_compat.arrays import Array, check_array, dtype_name, numpy_dtype
from cudnn_compat.checking import INT_MAX, check_integer
from cudnn_compat.dropout import MAX_SEED
from cudnn_compat.errors import ArgumentError, DTypeError, UnsupportedError
from cudnn_compat.spec import RNNSpec, check_spec

__all__ = [
    "PROJECTION_ID",
    "LinearParams",
    "NamedWeights",
    "PseudoLayer",
    "Slot",
    "WeightLayout",
    "check_weights",
    "init_weights",
    "linear_slots",
    "named_weights",
    "weight_layout",
    "weight_size",
]

PROJECTION_ID = 8
"""The linear id of the projection matrix, whatever the number of gates."""


@dataclasses.dataclass(frozen=True)
class Slot:
    """One contiguous piece of the weight space: ``offset`` and ``shape`` in elements."""

    offset: int
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    def view(self, w: Array) -> Array:
        """This piece of the flat array ``w``, without a copy."""
        return w[self.offset : self.offset + self.size].reshape(self.shape)

    def gate(self, index: int, gates: int) -> Slot:
        """The part that belongs to one gate, of ``gates`` stacked along the first axis."""
        rows = self.shape[0] // gates
        part = (rows, *self.shape[1:])
        return Slot(self.offset + index * math.prod(part), part)


@dataclasses.dataclass(frozen=True)
class PseudoLayer:
    """The pieces of one direction of one layer, gates stacked; None where the network has none."""

    weight_ih: Slot | None
    weight_hh: Slot
    weight_hr: Slot | None
    bias_ih: Slot | None
    bias_hh: Slot | None


@dataclasses.dataclass(frozen=True)
class WeightLayout:
    """The whole weight space of one spec: its size in elements and the pieces in it."""

    size: int
    pseudo_layers: tuple[PseudoLayer, ...]
    names: dict[str, Slot]


class LinearParams(NamedTuple):
    """Views of the matrix and the bias of one linear id; None where the network has none."""

    matrix: Array | None
    bias: Array | None


@functools.lru_cache(maxsize=256)
def weight_layout(spec: RNNSpec) -> WeightLayout:
    """Derive the places of all weights of ``spec`` (cached)."""
    offset = 0

    def take(*shape: int) -> Slot:
        nonlocal offset
        slot = Slot(offset, shape)
        offset += slot.size
        return slot

    rows = spec.num_gates * spec.hidden_size
    matrices = []
    for index in range(spec.num_pseudo_layers):
        layer = index // spec.num_directions
        skipped = layer == 0 and spec.input_mode == "skip"
        weight_ih = None if skipped else take(rows, spec.layer_input_size(layer))
        weight_hh = take(rows, spec.state_size)
        weight_hr = None if spec.proj_size is None else take(spec.proj_size, spec.hidden_size)
        matrices.append((weight_ih, weight_hh, weight_hr))
    biases = []
    for _ in range(spec.num_pseudo_layers):
        bias_ih = take(rows) if spec.bias in ("double", "input") else None
        bias_hh = take(rows) if spec.bias in ("double", "recurrent") else None
        biases.append((bias_ih, bias_hh))
    parts = tuple(PseudoLayer(*m, *b) for m, b in zip(matrices, biases, strict=True))
    names = {}
    for index, part in enumerate(parts):
        layer, direction = divmod(index, spec.num_directions)
        suffix = f"_l{layer}" + ("_reverse" if direction else "")
        for field in dataclasses.fields(PseudoLayer):
            slot = getattr(part, field.name)
            if slot is not None:
                names[field.name + suffix] = slot
    return WeightLayout(offset, parts, names)


def weight_size(spec: RNNSpec) -> int:
    """Number of elements of the flat weight space of ``spec``."""
    check_spec(spec)
    return weight_layout(spec).size


class NamedWeights(Mapping[str, Array]):
    """Views into a weight space, by name or by (pseudo-layer, linear id).

    ``nw["weight_ih_l0"]`` is a view of shape ``(G·H, in)``; ``nw[0, 3]`` is
    ``LinearParams(matrix, bias)`` of linear id 3 in pseudo-layer 0 with shapes ``(H, in)`` and
    ``(H,)``. Writing to a view writes to the weight space. As a mapping it has the names only.
    """

    def __init__(self, spec: RNNSpec, w: Array) -> None:
        check_weights(spec, w, strided=False)
        self.spec = spec
        self.w = w
        self._layout = weight_layout(spec)

    def __getitem__(self, key: str | tuple[int, int]) -> Array:
        if not isinstance(key, tuple):
            return self._layout.names[key].view(self.w)
        if len(key) != 2:
            raise ArgumentError(f"the key is {key!r}; wanted a name or (pseudo_layer, linear_id)")
        return self.linear(*key)

    def __contains__(self, key: object) -> bool:
        return key in self._layout.names

    def __iter__(self) -> Iterator[str]:
        return iter(self._layout.names)

    def __len__(self) -> int:
        return len(self._layout.names)

    def __repr__(self) -> str:
        inside = ", ".join(f"{name} {slot.shape}" for name, slot in self._layout.names.items())
        return f"NamedWeights({inside})"

    def linear_ids(self) -> tuple[int, ...]:
        """The linear ids of this network: 0…2G-1, and 8 with projection."""
        ids = tuple(range(2 * self.spec.num_gates))
        return ids if self.spec.proj_size is None else (*ids, PROJECTION_ID)

    def linear(self, pseudo_layer: int, linear_id: int) -> LinearParams:
        """Views of one matrix and its bias, None where this network has none.

        An LSTM has the projection's id 8 always, as in cuDNN; without projection it is empty.

        Raises:
            ArgumentError, DTypeError: there is no such pseudo-layer or linear id.
        """
        slots = linear_slots(self.spec, pseudo_layer, linear_id)
        return LinearParams(*(None if slot is None else slot.view(self.w) for slot in slots))


def linear_slots(
    spec: RNNSpec, pseudo_layer: int, linear_id: int
) -> tuple[Slot | None, Slot | None]:
    """Where the matrix and the bias of one linear id lie; None where this network has none.

    Raises:
        ArgumentError, DTypeError: there is no such pseudo-layer or linear id.
    """
    gates = spec.num_gates
    layers = range(spec.num_pseudo_layers)
    ids = (*range(2 * gates), PROJECTION_ID) if spec.has_cell else tuple(range(2 * gates))
    pseudo_layer = _choice("pseudo_layer", pseudo_layer, layers)
    linear_id = _choice("linear_id", linear_id, ids)
    part = weight_layout(spec).pseudo_layers[pseudo_layer]
    if linear_id == PROJECTION_ID:
        return part.weight_hr, None
    side, gate = divmod(linear_id, gates)
    matrix, bias = (part.weight_hh, part.bias_hh) if side else (part.weight_ih, part.bias_ih)
    return (
        None if matrix is None else matrix.gate(gate, gates),
        None if bias is None else bias.gate(gate, gates),
    )


def _choice(name: str, value: object, known: Sequence[int]) -> int:
    number = check_integer(name, value, -INT_MAX)
    if number not in known:
        raise ArgumentError(f"{name} is {number}; wanted one of {', '.join(map(str, known))}")
    return number


def named_weights(spec: RNNSpec, w: Array) -> NamedWeights:
    """Views into the weight space ``w`` (shape ``(weight_size(spec),)``) by readable names.

    Raises:
        ArgumentError, DTypeError: ``w`` is not a contiguous weight space of ``spec``.
    """
    return NamedWeights(spec, w)


def check_weights(spec: RNNSpec, w: Array, *, name: str = "w", strided: bool = True) -> None:
    """Refuse an array that is not a weight space of ``spec``.

    Args:
        strided: whether an array that is not contiguous is accepted (views into one would be
            copies, so the named views refuse it).
    """
    size = weight_size(spec)
    check_array(name, w)
    if w.shape != (size,):
        raise ArgumentError(f"{name} has shape {w.shape}; wanted ({size},): v2.weight_size(spec)")
    if w.dtype != numpy_dtype(spec.dtype):
        raise DTypeError(f"{name} is {dtype_name(w)}; the spec says dtype='{spec.dtype}'")
    if not strided and not w.flags.c_contiguous:
        raise ArgumentError(f"{name} is not contiguous, so it has no flat views; pass a copy of it")


def init_weights(spec: RNNSpec, seed: int | None = None, xp: ModuleType = np) -> Array:
    """A new weight space, drawn uniformly from ±1/√H as PyTorch does.

    Args:
        seed: seed of the draw; the same numbers for every ``xp`` and dtype (rounded). None draws
            fresh ones.
        xp: the array module that shall hold it (``numpy`` or ``cupy``).

    Returns:
        Array of shape ``(weight_size(spec),)`` and ``spec.dtype``.

    Raises:
        UnsupportedError: ``xp`` has no bfloat16 (CuPy before 14).
    """
    size = weight_size(spec)
    if seed is not None:
        seed = check_integer("seed", seed, 0, MAX_SEED)
    if not callable(getattr(xp, "asarray", None)):
        raise DTypeError(f"xp is {xp!r}; wanted the module numpy or cupy")
    bound = 1.0 / math.sqrt(spec.hidden_size)
    values = np.random.default_rng(seed).uniform(-bound, bound, size)
    rounded = values.astype(numpy_dtype(spec.dtype))
    try:
        return xp.asarray(rounded)
    except (TypeError, ValueError) as error:
        if spec.dtype != "bfloat16":
            raise
        raise UnsupportedError(
            f"{xp.__name__} {getattr(xp, '__version__', '')} has no bfloat16 arrays ({error}); "
            "CuPy 14 with NumPy 2.1.2 has"
        ) from error
