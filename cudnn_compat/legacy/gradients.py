"""`backwardData`, `backwardWeights` and `pullback`: the way back through a step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, NoReturn, overload

from cudnn_compat import v2
from cudnn_compat.arrays import Array
from cudnn_compat.errors import ArgumentError, DTypeError, TapeError
from cudnn_compat.legacy.deprecations import warner
from cudnn_compat.legacy.rnndesc import RNNDesc
from cudnn_compat.legacy.steps import Reserve, run_step
from cudnn_compat.legacy.translate import (
    check_arrays,
    check_desc,
    check_state,
    fits,
    is_zero,
    state_from_v2,
    type_name,
)

__all__ = [
    "CellGradients",
    "Gradients",
    "WeightGradients",
    "backwardData",
    "backwardWeights",
    "pullback",
]

_warn_backward_data = warner("cudnn_compat.legacy.backwardData")
_warn_backward_weights = warner("cudnn_compat.legacy.backwardWeights")
_warn_pullback = warner("cudnn_compat.legacy.pullback")

_SPENT: Final = "a reserve serves one backward, and this one has had it: run forwardTrain again"


class _Gradients(NamedTuple):
    x: Array
    h: Array
    Wi: Array
    Wh: Array
    b: Array


class _CellGradients(NamedTuple):
    x: Array
    h: Array
    c: Array
    Wi: Array
    Wh: Array
    b: Array


class Gradients(_Gradients):
    """Gradients of a step, the named tuple ``x, h, Wi, Wh, b``.

    Attributes:
        x: in the shape of x.
        h: in the shape of ho, also where h was broadcast over the batch: sum it yourself.
        Wi: ``(input, G·hidden)``; Wh: ``(hidden, G·hidden)``; b: ``(G·hidden,)``: of the first
            layer, views of ``dw``.
        dw: the flat gradient of all weights, as :func:`v2.rnn_backward` gives it.
    """

    dw: Array


class CellGradients(_CellGradients):
    """As :class:`Gradients`, with c: the named tuple ``x, h, c, Wi, Wh, b``."""

    dw: Array


class WeightGradients(tuple[tuple[Array, Array], Array]):
    """``((dWi, dWh), db)`` of the first layer; ``dw`` is the flat gradient of all weights."""

    dw: Array


@overload
def backwardData(
    desc: RNNDesc, y: Array, dy: Any, dho: Any, h: Array, reserve: Reserve
) -> tuple[Array, ...]: ...
@overload
def backwardData(
    desc: RNNDesc,
    y: Array,
    dy: Any,
    dho: Any,
    dco: Any,
    h: Array,
    c: Array | None,
    reserve: Reserve,
) -> tuple[Array, ...]: ...
def backwardData(desc: RNNDesc, y: Array, dy: Any, dho: Any, *rest: Any, **named: Any) -> Any:
    """Gradients of x and the states: ``backwardData(desc, y, dy, dho, [dco,] h, [c,] reserve)``.

    Args:
        desc: the descriptor of the forward.
        y: its y. This, h and c must have the shapes of the forward, whose own values are used.
        dy: gradient of y, in its shape; None or 0: zeros.
        dho, dco: gradients of ho and co, likewise.
        h, c: its states, as they were passed or broadcast; c may be None.
        reserve: what the forward kept. It serves one backward.

    Returns:
        ``(dx, dh)``, or ``(dx, dh, dc)`` where c was given: dx in the shape of x, dh and dc in the
        shape of ho, also where the states were broadcast.

    Raises:
        TapeError: the reserve has had its backward.
        ArgumentError: a shape is wrong, an integer other than 0, a reserve of another descriptor.
        DTypeError: no array, mixed dtypes, no reserve; a wrong number of arguments.
    """
    _warn_backward_data()
    if len(rest) == 4 and not named:
        dco, h, c, reserve = rest
    elif len(rest) == 2 and not named:
        dco = c = None
        h, reserve = rest
    else:
        dco, h, c, reserve = _bind(rest, named)
    if type(reserve) is not Reserve or reserve._desc is not desc:
        _refuse_reserve(desc, reserve)
    if y is None or h is None or not fits(desc, y, h, c):
        check_arrays(desc, {"y": y, "h": h} if c is None else {"y": y, "h": h, "c": c})
    if y.shape != reserve._y_shape:
        _refuse_shape("y", y, "the forward's y", reserve._y_shape)
    if h.shape != reserve._state_shape:
        _check_state_again(reserve, "h", h)
    if c is not None:
        if not desc._spec.has_cell:
            raise ArgumentError(
                f"c was given, but a {desc._spec.cell} descriptor has no cell state"
            )
        if c.shape != reserve._state_shape:
            _check_state_again(reserve, "c", c)
    out = reserve._out
    if not out.can_backward:
        raise TapeError(_SPENT)
    gradients = v2.rnn_backward_data(out, *_gradients_to_v2(reserve, dy, dho, dco))
    dx, dh, dc = _data_from_v2(reserve, gradients)
    return (dx, dh) if c is None else (dx, dh, dc)


def backwardWeights(
    desc: RNNDesc, x: Array, h: Array, y: Array, reserve: Reserve
) -> WeightGradients:
    """Gradients of the weights, after :func:`backwardData` on the same reserve.

    Args:
        desc, x, h, y: as in the forward, whose own values are used.
        reserve: what the forward kept.

    Returns:
        ``((dWi (input, G·hidden), dWh (hidden, G·hidden)), db (G·hidden,))``, in memory of their
        own: transposed against what :func:`setweights` takes. They are the first layer's; with
        several, ``v2.named_weights(desc.spec, result.dw)`` gives all.

    Raises:
        TapeError: data has not run, or the weights have.
        ArgumentError, DTypeError: as :func:`backwardData`.
    """
    _warn_backward_weights()
    if type(reserve) is not Reserve or reserve._desc is not desc:
        _refuse_reserve(desc, reserve)
    if x is None or h is None or y is None or not fits(desc, x, h, y):
        check_arrays(desc, {"x": x, "h": h, "y": y})
    if x.shape != reserve._x_shape:
        _refuse_shape("x", x, "the forward's x", reserve._x_shape)
    if y.shape != reserve._y_shape:
        _refuse_shape("y", y, "the forward's y", reserve._y_shape)
    if h.shape != reserve._state_shape:
        _check_state_again(reserve, "h", h)
    out = reserve._out
    if out.can_backward:
        raise TapeError("backwardWeights comes after backwardData: call that on this reserve first")
    if out.weights is None:
        raise TapeError(_SPENT)
    dw = v2.rnn_backward_weights(out)
    result = WeightGradients(desc._divide(dw))
    result.dw = dw
    return result


def pullback(
    desc: RNNDesc, x: Array, h: Array, c: Array | None = None
) -> tuple[tuple[Array, ...], Callable[..., Gradients | CellGradients]]:
    """One step, and the function that takes gradients back through it. float32 and float64.

    Args:
        desc, x, h, c: as for :func:`forward`.

    Returns:
        ``((y, ho[, co]), back)``. ``back(dy, dho[, dco])`` takes gradients in the shapes of y, ho
        and co, None or 0 for zeros, and gives :class:`Gradients` (fields ``x, h[, c], Wi, Wh, b``).
        It can be called once. Weights that are set by :func:`setweights` in between do not matter.

    Raises:
        ArgumentError, DTypeError: as :func:`forward`; a float16 descriptor. ``back`` also raises
            TapeError where it was called before.
    """
    _warn_pullback()
    check_desc(desc)
    if desc._spec.dtype == "float16":
        raise DTypeError(
            "pullback is for float32 and float64, the descriptor has dtype='float16'; "
            "use forwardTrain, backwardData and backwardWeights"
        )
    result, reserve = run_step(desc, x, h, c, True)
    has_c = c is not None

    def back(dy: Any = None, dho: Any = None, dco: Any = None) -> Gradients | CellGradients:
        if not has_c and not is_zero("dco", dco):
            raise ArgumentError("dco was given, but this pullback was not given c: there is no co")
        out = reserve._out
        if not out.can_backward:
            raise TapeError(_SPENT)
        gradients = v2.rnn_backward(out, *_gradients_to_v2(reserve, dy, dho, dco))
        dx, dh, dc = _data_from_v2(reserve, gradients)
        dw = gradients.dw
        assert dw is not None
        (d_wi, d_wh), d_b = desc._divide(dw)
        answer: Gradients | CellGradients
        if has_c:
            answer = CellGradients(dx, dh, dc, d_wi, d_wh, d_b)
        else:
            answer = Gradients(dx, dh, d_wi, d_wh, d_b)
        answer.dw = dw
        return answer

    return result, back


def _bind(rest: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, Any, Any, Any]:
    """dco, h, c, reserve from positional and named arguments, in either form."""
    for names in (("h", "reserve"), ("dco", "h", "c", "reserve")):
        if len(rest) + len(named) == len(names) and set(named) == set(names[len(rest) :]):
            bound = dict(zip(names, rest, strict=False)) | named
            return bound.get("dco"), bound["h"], bound.get("c"), bound["reserve"]
    raise DTypeError(
        "backwardData takes (desc, y, dy, dho, dco, h, c, reserve) or "
        f"(desc, y, dy, dho, h, reserve); got 4 and {len(rest)} more"
        + (f" and {', '.join(named)}" if named else "")
    )


def _refuse_reserve(desc: Any, reserve: Any) -> NoReturn:
    check_desc(desc)
    if not isinstance(reserve, Reserve):
        raise DTypeError(
            f"reserve is a {type_name(reserve)}; wanted the one that forwardTrain returned"
        )
    raise ArgumentError(
        f"reserve belongs to another descriptor, {reserve._desc!r}; desc is {desc!r}"
    )


def _refuse_shape(name: str, array: Array, of: str, wanted: tuple[int, ...]) -> NoReturn:
    raise ArgumentError(f"{name} has shape {array.shape}; wanted the shape of {of}, {wanted}")


def _check_state_again(reserve: Reserve, name: str, state: Array) -> None:
    """A state that the caller passes again: as it was, or broadcast over the batch."""
    x_shape = reserve._x_shape
    check_state(reserve._desc, name, state, x_shape[1] if len(x_shape) == 2 else 1, x_shape)


def _gradients_to_v2(
    reserve: Reserve, dy: Any, dho: Any, dco: Any
) -> tuple[Array | None, Array | None, Array | None]:
    desc, state_shape = reserve._desc, reserve._state_shape
    if not fits(desc, dy, dho, dco):
        asked = {"dy": dy, "dho": dho, "dco": dco}
        given = {name: value for name, value in asked.items() if not is_zero(name, value)}
        given = check_arrays(desc, given)
        dy, dho, dco = (given.get(name) for name in asked)
    if dco is not None and not desc._spec.has_cell:
        raise ArgumentError(f"dco was given, but a {desc._spec.cell} descriptor has no cell state")
    return (
        None if dy is None else _gradient_to_v2("dy", dy, reserve._y_shape),
        None if dho is None else _gradient_to_v2("dho", dho, state_shape),
        None if dco is None else _gradient_to_v2("dco", dco, state_shape),
    )


def _gradient_to_v2(name: str, gradient: Array, wanted: tuple[int, ...]) -> Array:
    if gradient.shape != wanted:
        _refuse_shape(name, gradient, name[1:], wanted)
    if len(wanted) == 2:
        return gradient.T[None]
    return gradient[None, None] if len(wanted) == 1 else gradient.T


def _data_from_v2(reserve: Reserve, gradients: v2.RNNGradients) -> tuple[Array, Array, Any]:
    vector, ndim = len(reserve._x_shape) == 1, len(reserve._state_shape)
    dx: Array = gradients.dx
    dc = gradients.dcx
    return (
        dx[0, 0] if vector else dx[0].T,
        state_from_v2(gradients.dhx, ndim),
        None if dc is None else state_from_v2(dc, ndim),
    )
