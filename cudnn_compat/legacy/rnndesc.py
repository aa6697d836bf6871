"""`RNNDesc`, the old descriptor: a spec, its flat weight space, and views into that."""

from __future__ import annotations

import threading
from types import ModuleType
from typing import Any, ClassVar, Final

import numpy as np

from cudnn_compat.arrays import Array, is_cupy, kind_of, numpy_dtype
from cudnn_compat.checking import check_integer
from cudnn_compat.errors import ArgumentError, DTypeError
from cudnn_compat.legacy.deprecations import warner
from cudnn_compat.legacy.divide import divider
from cudnn_compat.legacy.live import LiveOutputs
from cudnn_compat.legacy.modes import (
    CELLS,
    CUDNN_GRU,
    CUDNN_LSTM,
    CUDNN_RNN_RELU,
    CUDNN_RNN_TANH,
    cell_of,
)
from cudnn_compat.v2 import RNNSpec, named_weights, weight_size
from cudnn_compat.weights import check_weights

__all__ = ["CUDNN_GRU", "CUDNN_LSTM", "CUDNN_RNN_RELU", "CUDNN_RNN_TANH", "RNNDesc"]

_DTYPES: Final = ("float32", "float64", "float16")

_warn_desc = warner("cudnn_compat.legacy.RNNDesc")


class RNNDesc:
    """Description and weights of a network, as CUDA.jl 2.x had it.

    ``RNNDesc[dtype](mode, input, hidden)`` is the same with the dtype as a type parameter, as in
    ``RNNDesc{T}``: a subclass, made once per dtype.

    Args:
        mode: one of the four constants ``CUDNN_RNN_RELU, CUDNN_RNN_TANH, CUDNN_LSTM, CUDNN_GRU``.
        input: features of x.
        hidden: features of h.
        layers: layers of the network. Above 1, :func:`setweights` cannot reach all weights; set
            them through ``v2.named_weights(desc.spec, desc.params)``.
        dtype: ``"float32"``, ``"float64"`` or ``"float16"``; a name, a type or a NumPy dtype. None
            is the type parameter, or ``"float32"`` where there is none.
        xp: array module that holds the weights (``numpy`` or ``cupy``).

    Attributes:
        mode, input, hidden, layers, dtype: as given, ``dtype`` as a name.
        params: flat weight space with two biases per gate, zeroed at first. Keeps its identity.
        weights: ``(Wi, Wh)`` of the first layer, ``(input, G·hidden)`` and ``(hidden, G·hidden)``:
            views of ``params``, Fortran-ordered. Gates: LSTM i f g o, GRU r z n.
        bias: ``(G·hidden,)``, the input half of the first layer's biases: a view of ``params``. The
            recurrent half is never written to.
        spec: the :class:`v2.RNNSpec`, always ``math="full", algo="standard"``, as the old calls
            computed.

    Writing to ``params`` or its views between a forward and its backward changes the gradients of
    that forward; :func:`setweights` does not.

    Raises:
        ArgumentError: a mode or size that does not exist, or two dtypes.
        DTypeError: an argument of the wrong type.
    """

    _dtype: ClassVar[str | None] = None
    """The type parameter."""

    def __init__(
        self,
        mode: int,
        input: int,
        hidden: int,
        *,
        layers: int = 1,
        dtype: Any = None,
        xp: ModuleType = np,
    ) -> None:
        _warn_desc()
        parameter = type(self)._dtype
        name = (parameter or "float32") if dtype is None else _dtype_name(dtype)
        if parameter is not None and name != parameter:
            raise ArgumentError(
                f"dtype is {name}, but {type(self).__name__} has a dtype already: leave it out"
            )
        spec = RNNSpec(
            cell_of(mode),
            check_integer("input", input, 1),
            check_integer("hidden", hidden, 1),
            num_layers=check_integer("layers", layers, 1),
            dtype=name,
            math="full",
            algo="standard",
        )
        self._set_up(spec, _zeros(spec, xp))

    def __class_getitem__(cls, dtype: Any) -> type[RNNDesc]:
        """The subclass with this dtype."""
        if cls._dtype is not None:
            raise ArgumentError(f"{cls.__name__} has a dtype already")
        name = _dtype_name(dtype)
        known: dict[str, type[RNNDesc]]
        with _classes_lock:
            known = cls.__dict__.get("_known") or {}
            if name not in known:
                names = {"_dtype": name, "__module__": cls.__module__, "__doc__": cls.__doc__}
                known = known | {name: type(f"{cls.__name__}[{name}]", (cls,), names)}
                known[name].__qualname__ = f"{cls.__qualname__}[{name}]"
                # On the class itself: one that is dropped takes its subclasses with it.
                cls._known = known  # type: ignore[attr-defined]
        return known[name]

    @classmethod
    def from_v2(cls, spec: RNNSpec, w: Array) -> RNNDesc:
        """A descriptor on the weights of a v2 program, which both then share.

        Args:
            spec: a network that the old API can describe: one direction, ``bias="double"`` or
                ``"input"``, no projection, dropout or clip. Whatever it says about ``math`` and
                ``algo``, old calls compute with ``math="full"`` and ``algo="standard"``.
            w: its flat weights, contiguous; not copied: :attr:`params` is this array.

        Raises:
            ArgumentError: the old API cannot describe the network, the class has another dtype, or
                w does not fit.
            DTypeError: w has another dtype than the spec.
        """
        _warn_desc()
        check_weights(spec, w, strided=False)
        plain = RNNSpec(
            spec.cell,
            spec.input_size,
            spec.hidden_size,
            num_layers=spec.num_layers,
            bias="input" if spec.bias == "input" else "double",
            dtype=spec.dtype,
            math="full",
            algo="standard",
        )
        if (
            spec.dtype not in _DTYPES
            or spec.replace(math="full", algo="standard", deterministic=False) != plain
        ):
            raise ArgumentError(
                f"spec is {spec}; a descriptor has one direction, one or two biases per gate, "
                f"linear input, no projection, dropout or clip, and one of {', '.join(_DTYPES)}"
            )
        if cls._dtype is not None and cls._dtype != spec.dtype:
            raise ArgumentError(f"spec has dtype='{spec.dtype}', but the class is {cls.__name__}")
        desc = cls.__new__(cls)
        desc._set_up(plain, w)
        return desc

    def to_v2(self) -> tuple[RNNSpec, Array]:
        """What v2 calls take, ``(spec, w)``; ``w`` is :attr:`params` itself, so both share it.

        A later :func:`setweights` or a write to ``w`` is seen by both. Only training forwards of
        the old API are protected from a later :func:`setweights`; those of v2 have
        ``out.own_weights()``.
        """
        return self._spec, self._params

    @property
    def mode(self) -> int:
        """0 to 3, as the constants."""
        return CELLS.index(self._spec.cell)

    @property
    def input(self) -> int:
        """Features of x."""
        return self._spec.input_size

    @property
    def hidden(self) -> int:
        """Features of h."""
        return self._spec.hidden_size

    @property
    def layers(self) -> int:
        """Layers of the network."""
        return self._spec.num_layers

    @property
    def dtype(self) -> str:
        """Name of the dtype of weights and data."""
        return self._spec.dtype

    @property
    def spec(self) -> RNNSpec:
        """What ``v2`` calls take instead of a descriptor, beside ``params``."""
        return self._spec

    @property
    def params(self) -> Array:
        """The flat weight space ``(v2.weight_size(spec),)``."""
        return self._params

    @property
    def weights(self) -> tuple[Array, Array]:
        """``(Wi (input, G·hidden), Wh (hidden, G·hidden))``, views of ``params``."""
        return self._weights

    @property
    def bias(self) -> Array:
        """``(G·hidden,)``, a view of ``params``."""
        return self._bias

    def __repr__(self) -> str:
        layers = "" if self.layers == 1 else f", layers={self.layers}"
        name = type(self).__name__.partition("[")[0]
        return f"{name}[{self.dtype}]({self.mode}, {self.input}, {self.hidden}{layers})"

    def _set_up(self, spec: RNNSpec, params: Array) -> None:
        self._spec = spec
        self._params = params
        self._divide = divider(spec)
        self._weights, self._bias = self._divide(params)
        self._live = LiveOutputs()
        # What each call would otherwise ask again.
        self._targets = (*(matrix.T for matrix in self._weights), self._bias)
        self._kind = kind_of(params)
        self._complete = spec.num_layers == 1

    def _check_complete(self) -> None:
        """Refuse a network whose upper layers were never set. Asked once: it stays complete."""
        named = named_weights(self._spec, self._params)
        for layer in range(self._spec.num_layers):
            matrices = (named[f"weight_ih_l{layer}"], named[f"weight_hh_l{layer}"])
            if not all(bool(matrix.any()) for matrix in matrices):
                raise ArgumentError(
                    f"weights of layer {layer} (of {self.layers}) are all zero, so not "
                    "set; setweights cannot reach all layers: write to both matrices in "
                    "v2.named_weights(desc.spec, desc.params), "
                    f'"weight_ih_l{layer}" and "weight_hh_l{layer}"'
                )
        self._complete = True

    def __copy__(self) -> RNNDesc:
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    def __reduce__(self) -> tuple[Any, ...]:
        # Classes with a type parameter are made at run time: pickle finds the one they stand on.
        cls = type(self)
        base = cls if cls.__dict__.get("_dtype") is None else cls.__bases__[0]
        return _blank, (base, cls._dtype if base is not cls else None), self.__getstate__()

    def __getstate__(self) -> dict[str, Any]:
        # Views would not be views of the copy: they are made again.
        extra = {name: value for name, value in self.__dict__.items() if name not in _DERIVED}
        return extra | {"spec": self._spec, "params": self._params}

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        if "spec" not in state or "params" not in state:
            raise DTypeError(f"this is not the pickle of a {type(self).__name__}")
        self._set_up(state.pop("spec"), state.pop("params"))
        self.__dict__.update(state)


_DERIVED: Final = frozenset(
    f"_{name}"
    for name in (
        "spec",
        "params",
        "divide",
        "weights",
        "bias",
        "live",
        "targets",
        "dtype_if_host",
        "complete",
    )
)


def _blank(base: type[RNNDesc], dtype: str | None) -> RNNDesc:
    """An instance without contents, for pickle and deepcopy."""
    cls: type[RNNDesc] = base if dtype is None else base[dtype]  # type: ignore[index]
    return cls.__new__(cls)


def _dtype_name(dtype: Any) -> str:
    try:
        name = str(np.dtype(dtype).name)
    except TypeError:
        name = ""
    # np.dtype(None) is float64.
    if name not in _DTYPES or dtype is None:
        raise DTypeError(f"dtype is {dtype!r}; wanted one of {', '.join(_DTYPES)}")
    return name


def _zeros(spec: RNNSpec, xp: Any) -> Array:
    zeros = getattr(xp, "zeros", None)
    params = zeros(weight_size(spec), numpy_dtype(spec.dtype)) if callable(zeros) else None
    if not isinstance(params, np.ndarray) and not is_cupy(params):
        raise DTypeError(f"xp is {xp!r}; wanted the module numpy or cupy")
    return params


_classes_lock = threading.Lock()
