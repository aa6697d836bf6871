"""One slow, plain evaluation in float64 of every network that an ``RNNSpec`` can describe.

It is made to be read, not to be fast: sequence by sequence, layer by layer, step by step, gate by
gate; ``equations.py`` has the cells. Tests and the matrix compare the engines with it, so it shares
nothing with them: it walks through the weight space and cuts batches into sequences on its own,
from the plain fields of the spec. Elsewhere a second derivation of a shape would be a defect; here
it is the point, because an offset that is wrong in ``weights.py`` cannot agree with itself.

Each step computes, for each gate k, u_k = W_k x + b_Wk and v_k = R_k h_prev + b_Rk (skip input:
u_k = x + b_Wk; a bias that the network does not have is 0), lets the cell make h and c of them, and
with a projection replaces h by W_hr h.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from cudnn_compat.errors import ArgumentError
from cudnn_compat.matrix.equations import GATES, GRADIENTS, STEPS
from cudnn_compat.matrix.layouts import join_rows, lengths_from_batch_sizes, split_rows
from cudnn_compat.spec import RNNSpec

__all__ = [
    "ReferenceGradients",
    "ReferenceOutput",
    "distance_to_kink",
    "join_rows",
    "lengths_from_batch_sizes",
    "reference_backward",
    "reference_forward",
    "split_rows",
]

Array: TypeAlias = Any
"""A NumPy array."""

Rows: TypeAlias = Sequence[Array]
"""One array ``(len_j, features)`` for each sequence j, in the caller's order."""


@dataclasses.dataclass
class _Gate:
    """The weights of one gate; None: the network has none (W: skip input)."""

    W: Array | None
    R: Array
    b_W: Array | None = None
    b_R: Array | None = None


@dataclasses.dataclass
class _Direction:
    """One direction of one layer: its gates, and the projection ``(P, H)`` or None."""

    gates: list[_Gate]
    W_hr: Array | None


@dataclasses.dataclass
class _Step:
    """What entered one step of one direction, and the h that left it before projection."""

    x: Array
    h_prev: Array
    c_prev: Array
    u: list[Array]
    v: list[Array]
    hidden: Array
    c: Array


@dataclasses.dataclass
class ReferenceOutput:
    """What the forward gives, all float64, and what it keeps for backward.

    Attributes:
        ys: outputs of the last layer, one ``(len_j, D·P)`` for each sequence.
        hy: final hidden states ``(L·D, B, P)``.
        cy: final cell states ``(L·D, B, H)``, or None where the cell has none.
    """

    ys: list[Array]
    hy: Array
    cy: Array | None
    spec: RNNSpec
    w: Array
    masks: Sequence[Rows] | None
    steps: dict[tuple[int, int, int], _Step]
    """By (sequence, pseudo-layer, time)."""


class ReferenceGradients(NamedTuple):
    """Gradients, all float64: of each sequence, of the states, and of the flat weight space."""

    dxs: list[Array]
    dhx: Array
    dcx: Array | None
    dw: Array


def reference_forward(
    spec: RNNSpec,
    w: Array,
    sequences: Rows,
    hx: Array | None = None,
    cx: Array | None = None,
    masks: Sequence[Rows] | None = None,
) -> ReferenceOutput:
    """Run the network over each sequence.

    Args:
        spec: read by its plain fields only; ``dtype``, ``math``, ``algo`` and ``dropout`` are not.
        w: weight space with ``weight_size(spec)`` elements, of any shape and dtype.
        sequences: ``(len_j, I)`` for each of B sequences; a length may be 0.
        hx: initial hidden states ``(L·D, B, P)``; None is zeros.
        cx: initial cell states ``(L·D, B, H)``; None is zeros.
        masks: what dropout multiplies the output of each layer but the last with, before the next
            layer reads it: L - 1 lists of one ``(len_j, D·P)`` for each sequence. None: no dropout.

    Raises:
        ArgumentError: ``w`` has a wrong number of elements.
    """
    w = _exact(w).ravel()
    network = _cut_weights(spec, w)
    directions, hidden, size = _directions(spec), spec.hidden_size, spec.proj_size
    batch, count = len(sequences), len(network)
    hy = np.zeros((count, batch, size or hidden)) if hx is None else _exact(hx).copy()
    cy = np.zeros((count, batch, hidden)) if cx is None else _exact(cx).copy()
    out = ReferenceOutput([], hy, cy if spec.cell == "lstm" else None, spec, w, masks, {})
    for j, xs in enumerate(sequences):
        rows = _exact(xs)
        for layer in range(spec.num_layers):
            if layer and masks is not None:
                rows = rows * _exact(masks[layer - 1][j])
            outputs = np.zeros((len(rows), directions, hy.shape[2]))  # (len_j, D, P)
            for direction in range(directions):
                index = directions * layer + direction
                h, c = hy[index, j].copy(), cy[index, j].copy()
                for t in _times(len(rows), direction):
                    step = _step(spec, network[index], rows[t], h, c)
                    out.steps[j, index, t] = step
                    W_hr, h, c = network[index].W_hr, step.hidden, step.c
                    h = h if W_hr is None else W_hr @ h
                    outputs[t, direction] = h
                hy[index, j], cy[index, j] = h, c
            rows = outputs.reshape(len(rows), directions * hy.shape[2])
        out.ys.append(rows)
    return out


def reference_backward(
    out: ReferenceOutput,
    dys: Rows | None = None,
    dhy: Array | None = None,
    dcy: Array | None = None,
) -> ReferenceGradients:
    """Gradients of sum(ys * dys) + sum(hy * dhy) + sum(cy * dcy); None is zeros.

    Args:
        out: what :func:`reference_forward` returned; it can be used again.
        dys: one ``(len_j, D·P)`` for each sequence.
        dhy: ``(L·D, B, P)``.
        dcy: ``(L·D, B, H)``.
    """
    spec, directions = out.spec, _directions(out.spec)
    dw = np.zeros_like(out.w)
    network, gradient = _cut_weights(spec, out.w), _cut_weights(spec, dw)
    dhx = np.zeros_like(out.hy) if dhy is None else _exact(dhy).copy()
    dcx = np.zeros((*dhx.shape[:2], spec.hidden_size)) if dcy is None else _exact(dcy).copy()
    dxs = []
    for j, ys in enumerate(out.ys):
        d_rows = np.zeros_like(ys) if dys is None else _exact(dys[j])
        for layer in reversed(range(spec.num_layers)):
            d_outputs = d_rows.reshape(len(ys), directions, dhx.shape[2])
            width = spec.input_size if layer == 0 else ys.shape[1]
            d_rows = np.zeros((len(ys), width))
            for direction in range(directions):
                index = directions * layer + direction
                dh, dc = dhx[index, j], dcx[index, j]
                for t in _times(len(ys), not direction):
                    dh = dh + d_outputs[t, direction]
                    dx, dh, dc = _step_gradient(
                        spec, network[index], gradient[index], out.steps[j, index, t], dh, dc
                    )
                    d_rows[t] += dx
                dhx[index, j], dcx[index, j] = dh, dc
            if layer and out.masks is not None:
                d_rows = d_rows * _exact(out.masks[layer - 1][j])
        dxs.append(d_rows)
    return ReferenceGradients(dxs, dhx, dcx if spec.cell == "lstm" else None, dw)


def distance_to_kink(out: ReferenceOutput) -> float:
    """How far the nearest value that a relu or a clip acts on is from where its slope jumps.

    Closer than a difference (of rounding, or of a finite-difference step), gradients can rightly
    differ. Infinite for smooth networks.
    """
    distances = [math.inf]
    for step in out.steps.values():
        if out.spec.cell == "relu":
            distances.append(float(np.abs(step.u[0] + step.v[0]).min()))
        for bound in out.spec.clip or ():
            distances.append(float(np.abs(step.c_prev - bound).min()))
            distances.append(float(np.abs(step.c - bound).min()))
    return min(distances)


def _exact(values: Array) -> Array:
    return np.asarray(values).astype(np.float64)


def _directions(spec: RNNSpec) -> int:
    return 2 if spec.bidirectional else 1


def _times(length: int, reverse: bool | int) -> Iterator[int]:
    return reversed(range(length)) if reverse else iter(range(length))


def _cut_weights(spec: RNNSpec, w: Array) -> list[_Direction]:
    """Views of the flat ``w`` for each pseudo-layer: first come all matrices, then all biases."""
    gates, hidden, directions = GATES[spec.cell], spec.hidden_size, _directions(spec)
    size = spec.proj_size or hidden
    position = 0

    def take(*shape: int) -> Array:
        nonlocal position
        start, position = position, position + math.prod(shape)
        if position > w.size:
            raise ArgumentError(f"w has {w.size} elements, too few for {spec}")
        return w[start:position].reshape(shape)

    network = []
    for layer in range(spec.num_layers):
        width = spec.input_size if layer == 0 else directions * size
        skips = layer == 0 and spec.input_mode == "skip"
        for _ in range(directions):
            W = [None if skips else take(hidden, width) for _ in range(gates)]
            R = [take(hidden, size) for _ in range(gates)]
            W_hr = take(size, hidden) if spec.proj_size else None
            pairs = zip(W, R, strict=True)
            network.append(_Direction([_Gate(W_k, R_k) for W_k, R_k in pairs], W_hr))
    for part in network:
        if spec.bias in ("double", "input"):
            for gate in part.gates:
                gate.b_W = take(hidden)
        if spec.bias in ("double", "recurrent"):
            for gate in part.gates:
                gate.b_R = take(hidden)
    if position != w.size:
        raise ArgumentError(f"w has {w.size} elements; wanted {position}")
    return network


def _step(spec: RNNSpec, part: _Direction, x: Array, h: Array, c: Array) -> _Step:
    u, v = [], []
    for gate in part.gates:
        of_x = x if gate.W is None else gate.W @ x
        of_h = gate.R @ h
        u.append(of_x if gate.b_W is None else of_x + gate.b_W)
        v.append(of_h if gate.b_R is None else of_h + gate.b_R)
    hidden, c_new = STEPS[spec.cell](u, v, h, c, spec.clip)
    return _Step(x, h, c, u, v, hidden, c_new)


def _step_gradient(
    spec: RNNSpec, part: _Direction, gradient: _Direction, step: _Step, dh: Array, dc: Array
) -> tuple[Array, Array, Array]:
    """dx, dh_prev, dc_prev; adds to the weight gradients in ``gradient``."""
    if part.W_hr is not None and gradient.W_hr is not None:
        gradient.W_hr += np.outer(dh, step.hidden)
        dh = part.W_hr.T @ dh
    du, dv, dh_prev, dc_prev = GRADIENTS[spec.cell](
        step.u, step.v, step.h_prev, step.c_prev, spec.clip, dh, dc
    )
    dx = np.zeros_like(step.x)
    for gate, d_gate, du_k, dv_k in zip(part.gates, gradient.gates, du, dv, strict=True):
        if gate.W is None or d_gate.W is None:
            dx += du_k
        else:
            d_gate.W += np.outer(du_k, step.x)
            dx += gate.W.T @ du_k
        d_gate.R += np.outer(dv_k, step.h_prev)
        dh_prev = dh_prev + gate.R.T @ dv_k
        if d_gate.b_W is not None:
            d_gate.b_W += du_k
        if d_gate.b_R is not None:
            d_gate.b_R += dv_k
    return dx, dh_prev, dc_prev
