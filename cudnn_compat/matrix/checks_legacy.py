"""How the old calls are compared with the reference.

Each function runs one row and yields what it compared. Arrays have features first here, as old
code has them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from cudnn_compat import legacy, v2
from cudnn_compat.arrays import Array, dtype_name
from cudnn_compat.matrix.comparing import Case, Comparison, Found, same
from cudnn_compat.matrix.equations import GATES
from cudnn_compat.matrix.old_step import MODES, Step, turned
from cudnn_compat.matrix.problems import problem
from cudnn_compat.matrix.reference import reference_forward
from cudnn_compat.matrix.shapes import HIDDEN, INPUT, SequenceShape
from cudnn_compat.spec import RNNSpec

__all__ = ["CHECKS"]


def constant(case: Case) -> Found:
    """The number that old code wrote down, and the cell that a descriptor of that mode has."""
    step, mode = Step(case), getattr(legacy, case.options["name"])
    yield Comparison("value", mode, case.options["value"], "exact")
    yield from step.compare(legacy.forward(step.ready(mode), step.x, *step.states()))


def descriptor(case: Case) -> Found:
    """Zeroed params with two biases; weights and bias are views of them; both spellings."""
    step = Step(case)
    parametric: Any = legacy.RNNDesc
    typed = parametric[case.row.dtype](MODES[step.cell], INPUT, HIDDEN, xp=case.xp)
    flat = np.concatenate([step.problem.w, np.zeros(step.gates)])
    for name, desc in (("RNNDesc", step.descriptor()), ("RNNDesc[dtype]", typed)):
        told = (desc.mode, desc.input, desc.hidden)
        given = (MODES[step.cell], INPUT, HIDDEN)
        yield Comparison(f"mode, input, hidden of {name}", told, given, "exact")
        right = dtype_name(desc.params) == case.row.dtype
        yield Comparison(f"whether {name} has the dtype", right, 1.0, "exact")
        yield Comparison(f"new params of {name}", desc.params, np.zeros_like(flat), "exact")
        (Wi, Wh), bias = desc.weights, desc.bias
        for view, values in zip((Wi.T, Wh.T, bias), step.weights(), strict=True):
            view[...] = values
        yield Comparison(f"params of {name} after writing to the views", desc.params, flat, "exact")
        result = legacy.forward(desc, step.x, *step.states())
        yield from step.compare(result, f" of {name}")


def descriptor_of_layers(case: Case) -> Found:
    """Two layers, whose weights are set by name."""
    step = Step(case)
    spec = RNNSpec(step.cell, INPUT, HIDDEN, num_layers=2)
    posed = problem(spec, SequenceShape(1, step.shape.columns))
    mode, dtype = MODES[step.cell], case.row.dtype
    desc = legacy.RNNDesc(mode, INPUT, HIDDEN, layers=2, dtype=dtype, xp=case.xp)
    right_weights = v2.named_weights(posed.spec, posed.w)
    for name, view in v2.named_weights(desc.spec, desc.params).items():
        view[...] = case.array(right_weights[name])
    x = step.features_first(np.concatenate(posed.xs), step.shape.x_shape)
    states = [case.array(s).T for s in (posed.hx, posed.cx) if s is not None]
    y, *outs = legacy.forward(desc, x, *states)
    yield Comparison("y", y, np.concatenate(posed.output.ys).T)
    finals = [s for s in (posed.output.hy, posed.output.cy) if s is not None]
    yield Comparison("number of final states", len(outs), len(finals), "exact")
    for name, out, final in zip(("ho", "co"), outs, finals, strict=False):
        yield Comparison(name, out, final.T)


def setweights(case: Case) -> Found:
    """Copies: what the caller does with his arrays later has no effect."""
    step = Step(case)
    desc, given = step.descriptor(), [values.copy() for values in step.weights()]
    legacy.setweights(desc, *given)
    for values in given:
        values[...] = 9
    flat = np.concatenate([step.problem.w, np.zeros(step.gates)])
    yield Comparison("params", desc.params, flat, "exact")
    yield from step.compare(legacy.forward(desc, step.x, *step.states()))


def setweights_before_back(case: Case) -> Found:
    """Weights set between forward and backward do not change that forward's gradients."""
    step = Step(case)
    desc = step.ready()
    _, back = legacy.pullback(desc, step.x, *step.states())
    legacy.setweights(desc, *(values + 1 for values in step.weights()))
    gradients = back(*step.output_gradients())
    yield from compare_pullback(step, gradients)


def forward(case: Case) -> Found:
    """One step of inference."""
    step = Step(case)
    yield from step.compare(legacy.forward(step.ready(), step.x, *step.states()))


def forward_without_c(case: Case) -> Found:
    """An LSTM called without c starts from a zero cell and returns two things."""
    step = Step(case)
    posed = step.problem
    right = reference_forward(posed.spec, posed.w, posed.xs, posed.hx)
    result = legacy.forward(step.ready(), step.x, *step.states()[:1])
    yield Comparison("number of results", len(result), 2, "exact")
    yield Comparison("y", result[0], turned(np.concatenate(right.ys), step.y_shape))
    yield Comparison("ho", result[1], turned(right.hy[0], step.out_shape))


def forward_train(case: Case) -> Found:
    """A step that keeps a reserve, in both spellings; its results are those of inference."""
    step = Step(case)
    desc = step.ready()
    reserve, result = legacy.forwardTrain(desc, step.x, *step.states())
    yield from step.compare(result)
    c = step.c if step.has_cell else None
    other, again = legacy.forward(desc, step.x, step.h, c, True)
    yield from step.compare(again, " of forward(…, train=True)")
    for name, kept in (("forwardTrain", reserve), ("forward", other)):
        found = run_backward_data(step, desc, result, kept)
        yield Comparison(f"dx of the reserve of {name}", found[0], step.right_dx(), "gradient")


def run_backward_data(
    step: Step, desc: Any, result: tuple[Array, ...], reserve: Any, **other: Any
) -> Any:
    """backwardData in the form that the cell takes, with ``other`` gradients than the row's."""
    given = {"dy": step.dy, "dho": step.dho, "dco": step.dco} | other
    y, dy, dho = result[0], given["dy"], given["dho"]
    if step.has_cell:
        return legacy.backwardData(desc, y, dy, dho, given["dco"], step.h, step.c, reserve)
    return legacy.backwardData(desc, y, dy, dho, step.h, reserve)


def backward_data(case: Case) -> Found:
    """dx, dh and dc; with None or 0 in place of gradients that are zeros."""
    step = Step(case)
    desc = step.ready()
    reserve, result = legacy.forwardTrain(desc, step.x, *step.states())
    yield from step.compare_data(run_backward_data(step, desc, result, reserve))
    right = step.problem.gradients_of(("dhy",))
    for nothing in (None, 0):
        reserve, result = legacy.forwardTrain(desc, step.x, *step.states())
        dx, dh, *_ = run_backward_data(step, desc, result, reserve, dy=nothing, dco=nothing)
        wanted = step.right_dx(right)
        yield Comparison(f"dx with dy={nothing}", dx, wanted, "gradient")
        wanted = turned(right.dhx[0], step.out_shape)
        yield Comparison(f"dh with dy={nothing}", dh, wanted, "gradient")


def backward_weights(case: Case) -> Found:
    """dWi, dWh, db: fresh each time."""
    step = Step(case)
    desc = step.ready()
    for _ in range(2):
        reserve, result = legacy.forwardTrain(desc, step.x, *step.states())
        run_backward_data(step, desc, result, reserve)
        (d_wi, d_wh), d_b = legacy.backwardWeights(desc, step.x, step.h, result[0], reserve)
        yield from step.compare_weights(d_wi, d_wh, d_b)


def compare_pullback(step: Step, gradients: Any) -> Found:
    """The named gradients of a pullback."""
    data = (gradients.x, gradients.h, gradients.c) if step.has_cell else gradients[:2]
    yield from step.compare_data(data)
    yield from step.compare_weights(gradients.Wi, gradients.Wh, gradients.b)


def pullback(case: Case) -> Found:
    """A step and all its gradients."""
    step = Step(case)
    result, back = legacy.pullback(step.ready(), step.x, *step.states())
    yield from step.compare(result)
    yield from compare_pullback(step, back(*step.output_gradients()))


def ngates(case: Case) -> Found:
    """Of a descriptor and of a mode."""
    step = Step(case)
    for given in (step.descriptor(), MODES[step.cell]):
        yield Comparison("gates", legacy.ngates(given), GATES[step.cell], "exact")


def params(case: Case) -> Found:
    """Views of a flat weight space, with one and with two biases."""
    step = Step(case)
    one = step.problem.w
    two = np.concatenate([one, np.ones(step.gates)])
    Wi, Wh, b = step.parts(one)
    for name, flat in (("one bias", one), ("two biases", two)):
        w = case.array(flat).copy()
        (got_wi, got_wh), got_b = legacy.params(w, INPUT, HIDDEN, GATES[step.cell])
        pairs = (("Wi", got_wi, Wi.T), ("Wh", got_wh, Wh.T), ("b", got_b, b))
        for part, got, wanted in pairs:
            yield Comparison(f"{part} of {name}", got, wanted, "exact")
            got[...] = 0
        yield Comparison(f"w of {name} after writing to the views", w[: one.size], 0 * one, "exact")


def h_batch(case: Case) -> Found:
    """h over the batch of x."""
    step = Step(case)
    assert step.problem.hx is not None
    right = step.problem.hx[0]
    wanted = turned(right, (HIDDEN, step.shape.columns))
    if step.shape.batch is None:
        wanted = turned(right, step.shape.state_shape)
    yield Comparison("h", legacy.hBatch(step.x, step.h), wanted, "exact")


def h_desc(case: Case) -> Found:
    """The dims that the library was told, slowest first, and h itself; no state gives nothing."""
    step = Step(case)
    description, h = legacy.hDesc(step.h)
    columns = (*step.shape.state_shape, 1)[1]
    assert description is not None
    yield Comparison("dims", description.dims, (1, columns, HIDDEN), "exact")
    yield Comparison("whether h is the same", h is step.h, 1.0, "exact")
    yield Comparison("h of no state", legacy.hDesc(None)[1], None, "exact")


def x_desc(case: Case) -> Found:
    """One step: a list of one."""
    step = Step(case)
    descriptions = legacy.xDesc(step.x)
    yield Comparison("number of steps", len(descriptions), 1, "exact")
    yield Comparison("dims", descriptions[0].dims, (step.shape.columns, INPUT, 1), "exact")


def warning(case: Case) -> Found:
    """An old call warns, with its code and the class of the version that removes it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gates = legacy.ngates(MODES["gru"])
    yield Comparison("gates", gates, 3, "exact")
    yield same("warnings", [each.category for each in caught], [legacy.RemovedIn3Warning])
    yield same("code", str(caught[0].message)[:7], "[CC020]")
    old = issubclass(legacy.RemovedIn3Warning, legacy.LegacyAPIWarning)
    yield same("whether it is a LegacyAPIWarning", old, True)


CHECKS: Final[dict[str, Callable[[Case], Found]]] = {
    function.__name__: function
    for function in (
        constant,
        descriptor,
        descriptor_of_layers,
        setweights,
        setweights_before_back,
        forward,
        forward_without_c,
        forward_train,
        backward_data,
        backward_weights,
        pullback,
        ngates,
        params,
        h_batch,
        h_desc,
        x_desc,
        warning,
    )
}
