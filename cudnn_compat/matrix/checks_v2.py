"""How features of v2 that compute y and gradients are compared with the reference.

Each function runs one row and yields what it compared. Calls go through the module ``v2``, as a
user's do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from cudnn_compat import v2
from cudnn_compat.arrays import Array
from cudnn_compat.matrix.comparing import Case, Comparison, Found

__all__ = [
    "CHECKS",
    "arguments",
    "compare_gradients",
    "compare_output",
    "run_forward",
]

ALL: Final = ("dy", "dhy", "dcy")


class Call(NamedTuple):
    """Arguments of ``rnn_forward`` and ``rnn_backward`` in one form, and the way back."""

    x: Any
    hx: Array | None
    cx: Array | None
    dy: Any
    dhy: Array | None
    dcy: Array | None
    named: dict[str, Any]
    right: Callable[[list[Array], int], Array]
    """Right rows of each sequence, and their features, as this form gives them."""
    batched: bool = True

    def state(self, right: Array | None) -> Array | None:
        """A right state as this form gives it."""
        return right if right is None or self.batched else right[:, 0]


def arguments(case: Case, form: str) -> Call:
    """The row's data in a form of x that v2 takes."""
    lengths = case.shape.lengths
    hx, cx = case.states()
    dhy, dcy = case.state_gradients()
    if form in ("unbatched", "one_step"):
        states = [None if state is None else state[:, 0] for state in (hx, cx, dhy, dcy)]
        at: Any = (slice(None), 0) if form == "unbatched" else (0, 0)
        return Call(
            case.x()[at],
            states[0],
            states[1],
            case.dy()[at],
            states[2],
            states[3],
            {},
            lambda rows, features: case.join(rows, features)[at],
            batched=False,
        )
    packed = form in ("packed", "batch_sizes", "packed_object")
    layout = "packed" if packed else form
    x, dy = case.x(layout), case.dy(layout)
    named: dict[str, Any] = {"layout": layout}
    if form == "batch_sizes":
        known = case.shape.known_lengths
        named["batch_sizes"] = [sum(n > t for n in known) for t in range(max(known))]
    elif packed:
        named["lengths"] = case.shape.known_lengths
    elif lengths is not None:
        named["lengths"] = lengths
    if form == "packed_object":
        x, dy = (v2.Packed(data, case.shape.known_lengths) for data in (x, dy))
        named = {}
    return Call(
        x, hx, cx, dy, dhy, dcy, named, lambda rows, features: case.join(rows, features, layout)
    )


def run_forward(case: Case, call: Call, **named: Any) -> v2.RNNOutput:
    """``rnn_forward`` on the row's engine."""
    w = case.array(case.problem.w)
    return v2.rnn_forward(
        case.spec, w, call.x, call.hx, call.cx, engine=case.engine, **call.named, **named
    )


def compare_output(case: Case, call: Call, out: v2.RNNOutput, where: str = "") -> Found:
    """y, hy, cy."""
    right = case.problem.output
    y, hy, cy = out
    yield Comparison("y" + where, data(y), call.right(right.ys, case.spec.output_size))
    yield Comparison("hy" + where, hy, call.state(right.hy))
    yield Comparison("cy" + where, cy, call.state(right.cy))


def compare_gradients(
    case: Case, call: Call, found: v2.RNNGradients, right: Any, where: str = ""
) -> Found:
    """dx, dhx, dcx, dw."""
    dx, dhx, dcx, dw = found
    wanted = call.right(right.dxs, case.spec.input_size)
    yield Comparison("dx" + where, data(dx), wanted, "gradient")
    yield Comparison("dhx" + where, dhx, call.state(right.dhx), "gradient")
    yield Comparison("dcx" + where, dcx, call.state(right.dcx), "gradient")
    yield Comparison("dw" + where, dw, right.dw, "gradient")


def data(value: Any) -> Any:
    """The array of a Packed, or what else came."""
    return value.data if isinstance(value, v2.Packed) else value


def forward(case: Case) -> Found:
    """Inference."""
    call = arguments(case, "time_major")
    yield from compare_output(case, call, run_forward(case, call))


def backward(case: Case) -> Found:
    """All gradients of a training forward, of those of dy, dhy, dcy that are given."""
    call = arguments(case, "time_major")
    given = case.options.get("given", ALL)
    out = run_forward(case, call, training=True)
    pairs = zip(ALL, (call.dy, call.dhy, call.dcy), strict=True)
    found = v2.rnn_backward(out, **{name: value for name, value in pairs if name in given})
    yield from compare_gradients(case, call, found, case.problem.gradients_of(given))


def network(case: Case) -> Found:
    """Inference, training and all gradients, in the form of x that the row asks for."""
    call = arguments(case, case.options.get("form", "time_major"))
    yield from compare_output(case, call, run_forward(case, call))
    out = run_forward(case, call, training=True)
    yield from compare_output(case, call, out, " of training")
    found = v2.rnn_backward(out, call.dy, call.dhy, call.dcy)
    yield from compare_gradients(case, call, found, case.problem.gradients)


def backward_in_two(case: Case) -> Found:
    """Data, then weights into an array of the caller's, whatever that held."""
    call = arguments(case, "time_major")
    out = run_forward(case, call, training=True)
    found = v2.rnn_backward_data(out, call.dy, call.dhy, call.dcy)
    dw = case.xp.full_like(case.array(case.problem.w), float("nan"))
    returned = v2.rnn_backward_weights(out, dw=dw)
    found.dw = dw
    yield from compare_gradients(case, call, found, case.problem.gradients)
    yield Comparison("returned dw", returned, case.problem.gradients.dw, "gradient")


def accumulate(case: Case) -> Found:
    """Weight gradients added to those of an earlier backward."""
    call = arguments(case, "time_major")
    dw = case.xp.array(case.array(case.problem.w), copy=True)
    out = run_forward(case, call, training=True)
    v2.rnn_backward_data(out, call.dy, call.dhy, call.dcy)
    v2.rnn_backward_weights(out, dw=dw, accumulate=True)
    yield Comparison("dw", dw, case.problem.w + case.problem.gradients.dw, "gradient")


def strided(case: Case) -> Found:
    """Arguments that are views: transposed, reversed, spread out."""
    call = arguments(case, "time_major")
    xp, w = case.xp, case.array(case.problem.w)

    def transposed(a: Array | None) -> Array | None:
        return None if a is None else xp.ascontiguousarray(a.T).T

    def spread(a: Array) -> Array:
        twice = xp.zeros((2 * len(a), *a.shape[1:]), a.dtype)
        twice[::2] = a
        return twice[::2]

    x = xp.ascontiguousarray(call.x[::-1])[::-1]
    out = v2.rnn_forward(
        case.spec,
        spread(w),
        x,
        transposed(call.hx),
        transposed(call.cx),
        engine=case.engine,
        training=True,
    )
    yield from compare_output(case, call, out)
    found = v2.rnn_backward(out, transposed(call.dy), transposed(call.dhy), transposed(call.dcy))
    yield from compare_gradients(case, call, found, case.problem.gradients)


def padding(case: Case) -> Found:
    """Padding of x and dy that is not a number, in both padded layouts."""
    for layout in ("time_major", "batch_major"):
        call = arguments(case, layout)
        nan = float("nan")
        call = call._replace(x=case.x(layout, padding=nan), dy=case.dy(layout, padding=nan))
        out = run_forward(case, call, training=True)
        yield from compare_output(case, call, out, f" ({layout})")
        found = v2.rnn_backward(out, call.dy, call.dhy, call.dcy)
        yield from compare_gradients(case, call, found, case.problem.gradients, f" ({layout})")


CHECKS: Final[dict[str, Callable[[Case], Found]]] = {
    function.__name__: function
    for function in (
        forward,
        backward,
        network,
        backward_in_two,
        accumulate,
        strided,
        padding,
    )
}
