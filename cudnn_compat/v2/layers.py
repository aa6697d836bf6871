"""Layers: a spec, its weights, and a way to keep the state."""

from __future__ import annotations

from types import ModuleType
from typing import Any, ClassVar

import numpy as np

from cudnn_compat.arrays import Array, check_array, on_device_of
from cudnn_compat.checking import check_flag, check_name
from cudnn_compat.dropout import DropoutState, check_seed
from cudnn_compat.engines.choose import check_engine
from cudnn_compat.errors import ArgumentError, DTypeError
from cudnn_compat.packed import Packed
from cudnn_compat.sequences import LAYOUTS
from cudnn_compat.spec import RNNSpec
from cudnn_compat.v2.forward import rnn_forward
from cudnn_compat.v2.results import RNNOutput
from cudnn_compat.weights import NamedWeights, check_weights, init_weights, named_weights

__all__ = ["GRU", "LSTM", "RNN"]

_AS_KEPT: Any = type("_AsKept", (), {"__repr__": lambda self: "as kept"})()

State = Any
"""h, or (h, c) for an LSTM."""


class _Layer:
    """What the three layers share. See :class:`LSTM`."""

    _defaults: ClassVar[dict[str, Any]] = {
        "layout": "time_major",
        "engine": None,
        "keep_state": False,
        "state": None,
        "dropout_state": None,
    }

    def __init__(
        self,
        spec: RNNSpec,
        *,
        w: Array | None,
        seed: int | None,
        xp: ModuleType,
        layout: str,
        engine: str | None,
        keep_state: bool,
    ) -> None:
        check_name("layout", layout, LAYOUTS)
        check_engine(engine)
        check_seed(seed)
        if isinstance(seed, DropoutState):
            raise DTypeError("seed is a DropoutState; a layer takes an integer or None")
        if w is None:
            w = init_weights(spec, seed=seed, xp=xp)
        else:
            check_weights(spec, w, strided=False)
        self.spec = spec
        self.w = w
        self.layout = layout
        self.engine = engine
        self.keep_state = check_flag("keep_state", keep_state)
        self.state: State = 0 if self.keep_state else None
        self.dropout_state = DropoutState(seed) if spec.drops and seed is not None else None

    def named_weights(self) -> NamedWeights:
        """Views into the layer's weights: ``layer.named_weights()["weight_ih_l0"]``."""
        return named_weights(self.spec, self.w)

    def forward(
        self,
        x: Array | Packed,
        state: State = _AS_KEPT,
        *,
        lengths: Any = None,
        batch_sizes: Any = None,
        training: bool = False,
    ) -> RNNOutput:
        """Run the layer; with ``training=True`` the result goes to :func:`v2.rnn_backward`.

        Args:
            x, lengths, batch_sizes, training: as for :func:`v2.rnn_forward`.
            state: h, or (h, c) for an LSTM. With ``keep_state``: None starts from zeros and
                forgets, 0 starts from zeros and keeps, an array is used and replaced; left out,
                :attr:`state` (what was kept) is taken, by the same rule.

        Raises:
            ArgumentError, DTypeError: as :func:`v2.rnn_forward`; a state that does not fit.
        """
        if state is _AS_KEPT:
            state = self.state if self.keep_state else None
        starts_anew = isinstance(state, int) and not isinstance(state, bool) and state == 0
        if starts_anew and not self.keep_state:
            raise ArgumentError(
                "a state of 0 means 'start from zeros and keep', which needs keep_state=True; "
                "pass None for zeros"
            )
        keeps = self.keep_state and state is not None
        hx, cx = (None, None) if state is None or starts_anew else self._split_state(state)
        out = rnn_forward(
            self.spec,
            self.w,
            x,
            hx,
            cx,
            lengths=lengths,
            batch_sizes=batch_sizes,
            layout="time_major" if isinstance(x, Packed) else self.layout,
            training=training,
            seed=self.dropout_state,
            engine=self.engine,
        )
        if self.keep_state:
            # A copy, so that the caller may write to what he was given.
            with on_device_of(out.hy):
                kept = (out.hy.copy(), None if out.cy is None else out.cy.copy())
            self.state = None if not keeps else kept if self.spec.has_cell else kept[0]
        return out

    def __call__(
        self,
        x: Array | Packed,
        state: State = _AS_KEPT,
        *,
        lengths: Any = None,
        batch_sizes: Any = None,
    ) -> tuple[Array | Packed, State]:
        """Inference: ``y, state = layer(x, state)``. Parameters as for :meth:`forward`."""
        out = self.forward(x, state, lengths=lengths, batch_sizes=batch_sizes)
        return out.y, self._join_state(out)

    def _split_state(self, state: State) -> tuple[Array, Array | None]:
        pair = isinstance(state, (tuple, list))
        if not self.spec.has_cell:
            if pair:
                raise ArgumentError(
                    f"state is a {type(state).__name__}; a {self.spec.cell} takes h"
                )
            check_array("state", state)
            return state, None
        if not pair or len(state) != 2:
            got = f"{len(state)} parts" if pair else "one object"
            raise ArgumentError(f"state has {got}; an LSTM takes the pair (h, c)")
        return state[0], state[1]

    def _join_state(self, out: RNNOutput) -> State:
        return (out.hy, out.cy) if self.spec.has_cell else out.hy

    def __setstate__(self, state: dict[str, Any]) -> None:
        # A layer pickled by an older release may lack newer fields.
        if "spec" not in state or "w" not in state:
            raise DTypeError(f"this is not the pickle of a {type(self).__name__}")
        self.__dict__.update(self._defaults | state)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.spec})"


class RNN(_Layer):
    """A plain recurrent layer, ``h = f(W x + R h_prev + b)``.

    Args:
        cell: ``"tanh"`` or ``"relu"``.
        input_size, hidden_size, **options and the rest: as for :class:`LSTM`.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        cell: str = "tanh",
        w: Array | None = None,
        seed: int | None = None,
        xp: ModuleType = np,
        layout: str = "time_major",
        engine: str | None = None,
        keep_state: bool = False,
        **options: Any,
    ) -> None:
        if cell not in ("tanh", "relu"):
            raise ArgumentError(f"cell is {cell!r}; an RNN layer takes 'tanh' or 'relu'")
        spec = RNNSpec(cell, input_size, hidden_size, **options)
        super().__init__(
            spec, w=w, seed=seed, xp=xp, layout=layout, engine=engine, keep_state=keep_state
        )


class LSTM(_Layer):
    """A long short-term memory layer.

    Args:
        input_size: I.
        hidden_size: H.
        w: weights to use, not copied; None draws them.
        seed: seed of the weights and of the layer's own dropout generator. None draws weights
            afresh and takes the thread's dropout generator.
        xp: array module that holds drawn weights.
        layout: layout of x and y (see :func:`v2.rnn_forward`).
        engine: None, ``"numpy"`` or ``"cudnn"``.
        keep_state: keep the state in :attr:`state` from call to call.
        **options: of :class:`v2.RNNSpec`: num_layers, bidirectional, bias, proj_size, dropout, …

    Attributes:
        spec: the :class:`v2.RNNSpec`.
        w: the flat weight space; :meth:`named_weights` gives views.
        state: with ``keep_state``, what the next call starts from: 0 (the start: zeros), an array
            or pair of arrays, or None (zeros, and do not keep).
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        w: Array | None = None,
        seed: int | None = None,
        xp: ModuleType = np,
        layout: str = "time_major",
        engine: str | None = None,
        keep_state: bool = False,
        **options: Any,
    ) -> None:
        spec = RNNSpec("lstm", input_size, hidden_size, **options)
        super().__init__(
            spec, w=w, seed=seed, xp=xp, layout=layout, engine=engine, keep_state=keep_state
        )


class GRU(_Layer):
    """A gated recurrent unit layer, the reset-after form. Parameters as for :class:`LSTM`."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        w: Array | None = None,
        seed: int | None = None,
        xp: ModuleType = np,
        layout: str = "time_major",
        engine: str | None = None,
        keep_state: bool = False,
        **options: Any,
    ) -> None:
        spec = RNNSpec("gru", input_size, hidden_size, **options)
        super().__init__(
            spec, w=w, seed=seed, xp=xp, layout=layout, engine=engine, keep_state=keep_state
        )
