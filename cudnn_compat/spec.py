"""`RNNSpec`: the one frozen, hashable description of a network.

Whatever ``cudnnSetRNNDescriptor_v8`` can say can be said here. Every gate count and state size is
derived in this file; the places of the weights are derived from it in ``weights.py``.
"""

from __future__ import annotations

import dataclasses
import numbers
from functools import cached_property
from typing import Any, Final

import numpy as np

from cudnn_compat.checking import check_flag, check_integer, check_name, warn_caller
from cudnn_compat.errors import ArgumentError, DTypeError, IneffectiveOptionWarning

__all__ = [
    "ALGOS",
    "BIAS_MODES",
    "CELLS",
    "DTYPES",
    "INPUT_MODES",
    "MATHS",
    "RNNSpec",
    "check_spec",
]

CELLS: Final = ("relu", "tanh", "lstm", "gru")
BIAS_MODES: Final = ("double", "none", "input", "recurrent")
INPUT_MODES: Final = ("linear", "skip")
DTYPES: Final = ("float16", "bfloat16", "float32", "float64")
MATHS: Final = ("default", "full", "half")
ALGOS: Final = (
    "auto",
    "standard",
    "persist_static",
    "persist_dynamic",
    "persist_small_h",
    "fused",
)

_GATES: Final = {"relu": 1, "tanh": 1, "lstm": 4, "gru": 3}
_HALF_MATH_DTYPES: Final = ("float16", "float32")


@dataclasses.dataclass(frozen=True)
class RNNSpec:
    """Description of a recurrent network.

    Args:
        cell: ``"relu"``, ``"tanh"``, ``"lstm"`` or ``"gru"`` (the reset-after form:
            ``n = tanh(W x + b_W + r * (R h + b_R))``).
        input_size: I, features of one row of x.
        hidden_size: H, features of the cell.
        num_layers: L.
        bidirectional: a second direction that starts at each sequence's own last step.
        bias: ``"double"`` (input and recurrent biases), ``"input"``, ``"recurrent"``, ``"none"``.
            The two single ones are the same function for every cell but GRU.
        input_mode: ``"linear"``, or ``"skip"``: the first layer has no input matrices, x is added
            to every gate; needs ``input_size == hidden_size``.
        proj_size: P, features of the projected hidden state (LSTM only, ``0 < P < H``), or None.
        dropout: probability of dropping an element between layers, in training only.
        dtype: ``"float16"``, ``"bfloat16"``, ``"float32"``, ``"float64"`` (or a NumPy dtype).
        math: ``"default"`` (what the library does: TF32 for float32 where the GPU has it),
            ``"full"`` (no TF32, no reduced precision), ``"half"`` (float16 arithmetic).
        algo: ``"auto"``, one of the library's algorithms by name, or ``"fused"``: this package's
            own kernels.
        deterministic: ``algo="auto"`` goes by rule and never by measuring, so that the algorithm,
            and with it every bit of the result, is the same from run to run.
        clip: ``(low, high)``: bounds of the LSTM cell state as cuDNN applies them:
            ``c = f * clip(c_prev) + i * g``, ``h = o * tanh(clip(c))``; the c that is returned is
            not clipped.

    Raises:
        ArgumentError: a value is out of range or the combination does not exist.
        DTypeError: an argument has the wrong type.
    """

    cell: str
    input_size: int
    hidden_size: int
    _: dataclasses.KW_ONLY
    num_layers: int = 1
    bidirectional: bool = False
    bias: str = "double"
    input_mode: str = "linear"
    proj_size: int | None = None
    dropout: float = 0.0
    dtype: str = "float32"
    math: str = "default"
    algo: str = "auto"
    clip: tuple[float, float] | None = None
    deterministic: bool = False

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "dtype", _dtype_name(self.dtype))
        for name, allowed in (
            ("cell", CELLS),
            ("bias", BIAS_MODES),
            ("input_mode", INPUT_MODES),
            ("dtype", DTYPES),
            ("math", MATHS),
            ("algo", ALGOS),
        ):
            check_name(name, getattr(self, name), allowed)
        for name in ("input_size", "hidden_size", "num_layers"):
            put(self, name, check_integer(name, getattr(self, name), 1))
        for name in ("bidirectional", "deterministic"):
            put(self, name, check_flag(name, getattr(self, name)))
        put(self, "dropout", _real("dropout", self.dropout))
        if not 0 <= self.dropout <= 1:
            raise ArgumentError(f"dropout is {self.dropout}; wanted a number from 0 to 1")
        if self.proj_size is not None:
            put(self, "proj_size", self._checked_projection())
        if self.clip is not None:
            put(self, "clip", self._checked_clip())
        if self.input_mode == "skip" and self.input_size != self.hidden_size:
            raise ArgumentError(
                f"input_mode='skip' adds x to the gates, so input_size must equal hidden_size; "
                f"got input_size={self.input_size}, hidden_size={self.hidden_size}"
            )
        if self.math == "half" and self.dtype not in _HALF_MATH_DTYPES:
            raise ArgumentError(
                f"math='half' is for {' and '.join(_HALF_MATH_DTYPES)}; got dtype='{self.dtype}'"
            )
        if self.dropout > 0 and self.num_layers == 1:
            warn_caller(
                "dropout acts between layers, so with num_layers=1 it does nothing",
                IneffectiveOptionWarning,
            )

    def _checked_projection(self) -> int:
        size = check_integer("proj_size", self.proj_size, 1)
        if self.cell != "lstm":
            raise ArgumentError(f"proj_size is for cell='lstm'; got cell='{self.cell}'")
        if size >= self.hidden_size:
            raise ArgumentError(
                f"proj_size must be below hidden_size={self.hidden_size} "
                f"(None for no projection); got {size}"
            )
        return size

    def _checked_clip(self) -> tuple[float, float]:
        if self.cell != "lstm":
            raise ArgumentError(f"clip is for cell='lstm'; got cell='{self.cell}'")
        bounds: Any = self.clip
        if not isinstance(bounds, (tuple, list, np.ndarray)) or len(bounds) != 2:
            raise ArgumentError(f"clip is {bounds!r}; wanted (low, high)")
        try:
            low, high = (_real("a bound of clip", bound) for bound in bounds)
        except DTypeError:
            raise ArgumentError(f"clip is {bounds!r}; wanted (low, high), two numbers") from None
        if not low <= high:  # NaN included
            raise ArgumentError(f"clip is {bounds!r}; wanted (low, high) with low <= high")
        return low, high

    def replace(self, **changes: Any) -> RNNSpec:
        """The same description with some fields changed; checked like a new one."""
        return dataclasses.replace(self, **changes)

    @cached_property
    def _hash(self) -> int:
        fields = dataclasses.fields(self)
        return hash(tuple(getattr(self, field.name) for field in fields))

    def __hash__(self) -> int:
        # A spec is a cache key on every call; its fields never change.
        return self._hash

    def __getstate__(self) -> dict[str, Any]:
        # String hashes differ between processes: what was derived is not pickled.
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for field in dataclasses.fields(self):
            if field.name in state:
                value = state[field.name]
            elif field.default is not dataclasses.MISSING:
                value = field.default
            else:
                raise ArgumentError(f"the pickled RNNSpec has no {field.name!r}")
            object.__setattr__(self, field.name, value)

    @cached_property
    def num_directions(self) -> int:
        """D: 2 when bidirectional, else 1."""
        return 2 if self.bidirectional else 1

    @cached_property
    def num_pseudo_layers(self) -> int:
        """L·D; pseudo-layer ``D * layer + direction``."""
        return self.num_layers * self.num_directions

    @cached_property
    def num_gates(self) -> int:
        """G: relu, tanh 1; gru 3 (r z n); lstm 4 (i f g o)."""
        return _GATES[self.cell]

    @property
    def has_cell(self) -> bool:
        """Whether there is a cell state c beside h (LSTM)."""
        return self.cell == "lstm"

    @property
    def drops(self) -> bool:
        """Whether dropout acts in training: it does so between layers."""
        return self.dropout > 0 and self.num_layers > 1

    @cached_property
    def state_size(self) -> int:
        """P, or H without projection: features of h in one direction."""
        return self.hidden_size if self.proj_size is None else self.proj_size

    @cached_property
    def output_size(self) -> int:
        """D·P: features of one row of y."""
        return self.num_directions * self.state_size

    def layer_input_size(self, layer: int) -> int:
        """Features of a row that enters ``layer``: I for the first, D·P for the others."""
        return self.input_size if layer == 0 else self.output_size

    def state_shape(self, batch: int) -> tuple[int, int, int]:
        """Shape of hx, hy, dhx, dhy: ``(L·D, B, P)``."""
        return (self.num_pseudo_layers, batch, self.state_size)

    def cell_shape(self, batch: int) -> tuple[int, int, int]:
        """Shape of cx, cy, dcx, dcy: ``(L·D, B, H)``."""
        return (self.num_pseudo_layers, batch, self.hidden_size)


def check_spec(spec: object) -> None:
    """Refuse what is not a spec.

    Raises:
        DTypeError: in words.
    """
    if not isinstance(spec, RNNSpec):
        raise DTypeError(f"spec is a {type(spec).__name__}; wanted a v2.RNNSpec")


def _dtype_name(dtype: Any) -> Any:
    if isinstance(dtype, str) and dtype in DTYPES:
        return dtype
    try:
        if dtype is None:  # which NumPy takes for float64
            raise TypeError
        return np.dtype(dtype).name
    except (TypeError, ValueError, SyntaxError):
        raise DTypeError(f"dtype is {dtype!r}; wanted one of {', '.join(DTYPES)}") from None


def _real(name: str, value: Any) -> float:
    if not isinstance(value, numbers.Real) or isinstance(value, (bool, np.bool_)):
        raise DTypeError(f"{name} is {value!r}; wanted a number")
    try:
        return float(value)
    except OverflowError:
        raise ArgumentError(f"{name} is {value!r}; wanted a number that a float can hold") from None
