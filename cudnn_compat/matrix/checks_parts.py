"""How the parts of v2 around the calls are compared: dropout, weights, packing, layers."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from cudnn_compat import v2
from cudnn_compat.arrays import Array, dtype_name, numpy_dtype
from cudnn_compat.matrix.checks_v2 import (
    arguments,
    compare_gradients,
    compare_output,
    run_forward,
)
from cudnn_compat.matrix.comparing import Case, Comparison, Found, to_host
from cudnn_compat.matrix.equations import GATES
from cudnn_compat.matrix.layouts import split_rows
from cudnn_compat.matrix.problems import ATTEMPTS, AWAY_FROM_KINKS
from cudnn_compat.matrix.reference import distance_to_kink, reference_forward

__all__ = ["CHECKS"]

SEED: Final = 1234


def passed_on(case: Case, seed: int) -> Array:
    """y of a network whose second layer shows what of the first one's output came through.

    The first layer gives about 1 everywhere, the second about 0 where it receives 0 and more than
    a half where not: its gates are open, and next to nothing comes from the step before. The
    network has the cell of the row, because a library may draw in another order for another cell.

    Returns:
        ``(T, B, H)``, float64, on the host; of a relu network exactly what came through.
    """
    spec = case.spec
    hidden, gates = spec.hidden_size, GATES[spec.cell]
    w = np.zeros(v2.weight_size(spec), numpy_dtype(spec.dtype))
    named = v2.named_weights(spec, w)
    # The gate that carries what enters, and the biases that open and close the others.
    carries, biases = {"lstm": (2, [20, -20, 0, 20]), "gru": (2, [0, -20, 0])}.get(
        spec.cell, (0, [0])
    )
    for layer in range(2):
        named[f"bias_ih_l{layer}"].reshape(gates, hidden)[...] = np.reshape(biases, (gates, 1))
    named["bias_ih_l0"].reshape(gates, hidden)[carries] = 1
    named["weight_ih_l1"].reshape(gates, hidden, hidden)[carries] = np.eye(hidden)
    x = case.array(np.zeros((case.shape.steps, case.shape.batch, spec.input_size)))
    out = v2.rnn_forward(spec, case.array(w), x, training=True, seed=seed, engine=case.engine)
    return to_host(out.y)


def dropout_mask(case: Case, seed: int) -> Array:
    """The mask between two layers, ``(T, B, H)``, as float64 on the host."""
    return (np.abs(passed_on(case, seed)) > 0.1) / (1 - case.spec.dropout)


def dropout(case: Case) -> Found:
    """Outputs and gradients are those of a network with the mask between its layers."""
    call, problem = arguments(case, "time_major"), case.problem
    for seed in range(SEED, SEED + ATTEMPTS):
        masks = [split_rows(dropout_mask(case, seed))]
        right = reference_forward(
            problem.spec, problem.w, problem.xs, problem.hx, problem.cx, masks
        )
        if distance_to_kink(right) > AWAY_FROM_KINKS:
            break
    out = run_forward(case, call, training=True, seed=seed)
    yield Comparison("y", out.y, case.join(right.ys, case.spec.output_size))
    yield Comparison("hy", out.hy, right.hy)
    yield Comparison("cy", out.cy, right.cy)
    found = v2.rnn_backward(out, call.dy, call.dhy, call.dcy)
    wanted = problem.gradients_of(("dy", "dhy", "dcy"), right)
    yield from compare_gradients(case, call, found, wanted)


def dropout_statistics(case: Case) -> Found:
    """As many elements are dropped as asked for, everywhere, and what is kept is scaled.

    A relu network hands on what it receives, scale and all.
    """
    passed, ratio = passed_on(case, SEED), case.spec.dropout
    dropped = passed == 0
    kept = np.full((~dropped).sum(), 1 / (1 - ratio))
    scale = Comparison("scale of what is kept", passed[~dropped], kept)
    if case.engine == "cudnn":
        # The library takes the ratio as float32.
        scale = dataclasses.replace(scale, allowed=max(case.tolerance(scale), 1e-6))
    yield scale
    for name, axes in (("all", (0, 1, 2)), ("a step", (1, 2)), ("a sequence", (0, 2))):
        part = dropped.mean(axis=axes)
        count = dropped.size / max(part.size, 1)
        # 5 standard deviations: once in a million.
        allowed = 5 * (ratio * (1 - ratio) / count) ** 0.5
        wanted = np.full(part.shape, ratio)
        yield Comparison(f"share dropped of {name}", part, wanted, allowed=allowed)


def dropout_from_a_seed(case: Case) -> Found:
    """One seed gives one result; a state goes on from call to call and can be restarted."""
    call = arguments(case, "time_major")

    def y(seed: Any) -> Array:
        return to_host(run_forward(case, call, training=True, seed=seed).y)

    first = y(SEED)
    yield Comparison("y of the same seed", y(SEED), first, "exact")
    state = v2.DropoutState(SEED)
    of_state = y(state)
    going_on = y(state)
    state.restart()
    yield Comparison("y of a restarted state", y(state), of_state, "exact")
    yield Comparison("y of its second call", y(state), going_on, "exact")
    for name, other in (("another seed", y(SEED + 1)), ("a state's second call", going_on)):
        same = float(np.array_equal(other, of_state))
        yield Comparison(f"whether {name} gives the same mask", same, 0.0, "exact")


def weight_order(case: Case) -> Found:
    """The names, put together in cuDNN's order, are the weight space; ids are parts of them."""
    spec, w = case.spec, case.array(case.problem.w)
    named, gates, hidden = v2.named_weights(spec, w), GATES[spec.cell], spec.hidden_size
    suffixes = ["", "_reverse"] if spec.bidirectional else [""]
    places = [f"_l{layer}{suffix}" for layer in range(spec.num_layers) for suffix in suffixes]
    matrices = ["weight_ih", "weight_hh"] + ["weight_hr"] * (spec.proj_size is not None)
    names = [name + place for place in places for name in matrices]
    names += [name + place for place in places for name in ("bias_ih", "bias_hh")]
    together = np.concatenate([to_host(named[name]).ravel() for name in names])
    yield Comparison("the names together", together, case.problem.w, "exact")
    yield Comparison("number of names", len(named), len(names), "exact")
    yield Comparison("weight_size", v2.weight_size(spec), len(together), "exact")
    for index, place in enumerate(places):
        for linear_id in range(2 * gates):
            side, gate = ("hh", linear_id - gates) if linear_id >= gates else ("ih", linear_id)
            rows = slice(gate * hidden, (gate + 1) * hidden)
            for part, stem in zip(named[index, linear_id], ("weight", "bias"), strict=True):
                wanted = to_host(named[f"{stem}_{side}{place}"])[rows]
                yield Comparison(f"{stem} of id {index, linear_id}", part, wanted, "exact")
        if spec.proj_size is not None:
            wanted = to_host(named[f"weight_hr{place}"])
            yield Comparison(f"matrix of id {index, 8}", named[index, 8].matrix, wanted, "exact")


def init_weights(case: Case) -> Found:
    """Drawn from ±1/√H, by the seed, in the spec's dtype."""
    spec = case.spec
    w = v2.init_weights(spec, seed=SEED, xp=case.xp)
    values = to_host(w)
    bound = spec.hidden_size**-0.5
    again = v2.init_weights(spec, seed=SEED, xp=case.xp)
    yield Comparison("w of the same seed", again, values, "exact")
    yield Comparison("number of weights", values.size, case.problem.w.size, "exact")
    yield Comparison("whether the dtype is right", dtype_name(w) == spec.dtype, 1.0, "exact")
    yield Comparison("largest weight", np.abs(values).max(), bound, allowed=bound / 4)
    deviation = bound / 3**0.5
    allowed = 5 * deviation / values.size**0.5
    yield Comparison("mean weight", values.mean(), 0.0, allowed=allowed)
    out = v2.rnn_forward(spec, w, case.x(), engine=case.engine)
    right = reference_forward(case.problem.spec, values, case.problem.xs)
    yield Comparison("y", out.y, case.join(right.ys, spec.output_size))


def pack_and_unpack(case: Case) -> Found:
    """Padding taken out and put back, in both padded layouts."""
    rows, size, lengths = case.problem.xs, case.spec.input_size, case.shape.known_lengths
    for layout in ("time_major", "batch_major"):
        packed = v2.pack(case.x(layout, padding=7.0), lengths, layout=layout)
        yield Comparison("packed", packed.data, case.join(rows, size, "packed"), "exact")
        back = v2.unpack(packed, steps=case.shape.steps, layout=layout)
        yield Comparison(f"unpacked ({layout})", back, case.join(rows, size, layout), "exact")


def make_layer(case: Case, **options: Any) -> Any:
    """A layer of the row's cell with the problem's weights."""
    w = case.array(case.problem.w)
    sizes = (case.spec.input_size, case.spec.hidden_size)
    options |= {"w": w, "engine": case.engine, "dtype": case.spec.dtype}
    if case.spec.cell in ("relu", "tanh"):
        return v2.RNN(*sizes, cell=case.spec.cell, **options)
    return {"lstm": v2.LSTM, "gru": v2.GRU}[case.spec.cell](*sizes, **options)


def layer_state(case: Case) -> Any:
    """The state that the problem starts from, as a layer takes it."""
    hx, cx = case.states()
    return (hx, cx) if case.spec.has_cell else hx


def layer(case: Case) -> Found:
    """A sequence given in two parts, the state handed on by the caller or kept by the layer."""
    keeps = case.options.get("keep_state", False)
    made, x, state = make_layer(case, keep_state=keeps), case.x(), layer_state(case)
    y_1, state = made(x[:2], state)
    y_2, state = made(x[2:]) if keeps else made(x[2:], state)
    right = case.problem.output
    y = np.concatenate([to_host(y_1), to_host(y_2)])
    hy, cy = state if case.spec.has_cell else (state, None)
    yield Comparison("y", y, case.join(right.ys, case.spec.output_size))
    yield Comparison("hy", hy, right.hy)
    yield Comparison("cy", cy, right.cy)
    if keeps:
        kept = made.state[0] if case.spec.has_cell else made.state
        yield Comparison("the state kept", kept, right.hy)


def layer_copied(case: Case) -> Found:
    """Copies and pickles compute the same, training included, and own what they should."""
    original, call = make_layer(case), arguments(case, "time_major")
    twins = {
        "copied": copy.copy(original),
        "copied deeply": copy.deepcopy(original),
        "pickled": pickle.loads(pickle.dumps(original)),
    }
    for name, twin in twins.items():
        out = twin.forward(call.x, layer_state(case), training=True)
        yield from compare_output(case, call, out, f" ({name})")
        found = v2.rnn_backward(out, call.dy, call.dhy, call.dcy)
        yield from compare_gradients(case, call, found, case.problem.gradients, f" ({name})")


CHECKS: Final[dict[str, Callable[[Case], Found]]] = {
    function.__name__: function
    for function in (
        dropout,
        dropout_statistics,
        dropout_from_a_seed,
        weight_order,
        init_weights,
        pack_and_unpack,
        layer,
        layer_copied,
    )
}
