"""Calls into fresh arrays, from the parts that every engine has."""

from __future__ import annotations

from typing import Any

from cudnn_compat.arrays import Array
from cudnn_compat.dropout import DropoutState
from cudnn_compat.engines.interface import (
    AnyEngine,
    Gradients,
    GradientShapes,
    NotBegun,
    Outputs,
    Shapes,
)
from cudnn_compat.sequences import Sequences

__all__ = ["fresh_gradients", "fresh_outputs"]


def fresh_outputs(
    engine: AnyEngine,
    plan: Any,
    sequences: Sequences,
    shapes: Shapes,
    w: Array,
    x: Array,
    hx: Array | None,
    cx: Array | None,
    dropout: DropoutState | None,
) -> Outputs:
    """See :meth:`cudnn_compat.engines.interface.Engine.outputs`."""
    device = plan.device
    y, hy, cy = engine.results(shapes, plan.spec.dtype, device)
    reserve = None
    stream: Any = None
    if plan.training:
        reserve = engine.reserve(plan, sequences, device)
        stream = engine.stream(device)
    engine.forward(
        plan,
        sequences,
        w,
        x,
        hx,
        cx,
        y=y,
        hy=hy,
        cy=cy,
        reserve=reserve,
        dropout=dropout,
    )
    return y, hy, cy, reserve, stream


def fresh_gradients(
    engine: AnyEngine,
    plan: Any,
    sequences: Sequences,
    shapes: GradientShapes,
    w: Array,
    x: Array,
    hx: Array | None,
    cx: Array | None,
    y: Array,
    reserve: Any,
    dy: Array | None,
    dhy: Array | None,
    dcy: Array | None,
) -> Gradients:
    """See :meth:`cudnn_compat.engines.interface.Engine.gradients`."""
    try:
        dx, dhx, dcx, dw = engine.results(shapes, plan.spec.dtype, plan.device)
    except BaseException as error:
        raise NotBegun from error
    engine.backward(
        *(plan, sequences, w, x, hx, cx, y, reserve),
        dy=dy,
        dhy=dhy,
        dcy=dcy,
        dx=dx,
        dhx=dhx,
        dcx=dcx,
        dw=dw,
    )
    return dx, dhx, dcx, dw
