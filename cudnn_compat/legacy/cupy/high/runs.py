"""One forward and its backward: old arguments checked, brought to an engine, and back."""

from __future__ import annotations

from typing import Any

from cudnn_compat.arrays import Array, array_module, check_array, device_of, is_cupy, on_device_of
from cudnn_compat.dropout import DropoutState
from cudnn_compat.engines.choose import choose_engine
from cudnn_compat.errors import ArgumentError
from cudnn_compat.legacy.cupy import reserves
from cudnn_compat.legacy.cupy.high.states import dropout_of
from cudnn_compat.legacy.cupy.memory import pointer_to, reserve_array
from cudnn_compat.legacy.cupy.translate import (
    by_lengths,
    by_steps,
    flat_weights,
    float_name,
    network,
)
from cudnn_compat.spec import RNNSpec
from cudnn_compat.v2.checks import check_kinds

__all__ = ["Given", "backward_data", "backward_weights", "forward"]


class Given:
    """The arguments that every call takes, checked.

    Args:
        layout: ``"packed"``, where ``lengths`` are batch sizes, or ``"time_major"``, where they are
            lengths.
    """

    __slots__ = (
        "_network",
        "device",
        "dropout",
        "dtype",
        "engine",
        "flat",
        "hx",
        "pseudo_layers",
        "sequences",
        "w",
        "xs",
    )

    def __init__(
        self,
        states: Any,
        direction_mode: int,
        rnn_mode: int,
        hx: Array,
        w: Array,
        xs: Array,
        lengths: Any,
        layout: str,
    ) -> None:
        for name, array in (("hx", hx), ("w", w), ("xs", xs)):
            check_array(name, array)
        axes = 2 if layout == "packed" else 3
        if hx.ndim != 3:
            raise ArgumentError(
                f"hx has shape {hx.shape}; wanted (layers * directions, batch, hidden)"
            )
        if xs.ndim != axes:
            wanted = "(sum, input)" if layout == "packed" else "(steps, batch, input)"
            raise ArgumentError(f"xs has shape {xs.shape}; wanted {wanted}")
        self.dropout = dropout_of(states)
        self.hx, self.w, self.xs = hx, w, xs
        self.dtype, self.device = float_name(hx), device_of(w)
        directions = 2 if direction_mode == 1 else 1
        layers, odd = divmod(hx.shape[0], directions)
        if odd:
            raise ArgumentError(
                f"hx has shape {hx.shape}: {hx.shape[0]} is no number of layers of two directions"
            )
        self._network = (
            rnn_mode,
            xs.shape[-1],
            hx.shape[2],
            layers,
            direction_mode,
            self.dtype,
            is_cupy(w),
        )
        if layout == "packed":
            self.sequences = by_steps(lengths, xs.shape[0], hx.shape[1])
        else:
            self.sequences = by_lengths(lengths, xs.shape)
            if xs.shape[1] != hx.shape[1]:
                raise ArgumentError(
                    f"hx has a batch of {hx.shape[1]}, xs {xs.shape} has {xs.shape[1]}"
                )
        self.engine = choose_engine(None, w)

    def spec(self, ratio: float, **arrays: Array | None) -> RNNSpec:
        """The network with a dropout ratio; checks the kinds of all arrays.

        Raises:
            ArgumentError, DTypeError: devices or dtypes are mixed, or w has a wrong size.
        """
        spec = network(*self._network, dropout=ratio)
        check_kinds(spec, w=self.w, xs=self.xs, hx=self.hx, **arrays)
        self.flat = flat_weights(spec, self.w)
        return spec

    def cell(self, name: str, cell: Array | None, spec: RNNSpec) -> Array | None:
        """cx or dcy for the engine: None where there is none, or where the cell has no such state.

        Raises:
            ArgumentError: it has another shape than hx.
        """
        if cell is None or not spec.has_cell or not cell.size:
            return None
        self.like(name, cell, "hx", self.hx)
        return cell

    def like(self, name: str, array: Array | None, other: str, wanted: Array) -> None:
        """An array has the shape of another.

        Raises:
            ArgumentError: it has not.
        """
        self.shaped(name, array, wanted.shape, other)

    def shaped(self, name: str, array: Array | None, shape: tuple[int, ...], of: str) -> None:
        """An array has a shape.

        Raises:
            ArgumentError: it has not.
        """
        if array is not None and array.shape != shape:
            raise ArgumentError(f"{name} has shape {array.shape}; wanted {shape}, by {of}")

    def empty(self, shape: tuple[int, ...]) -> Array:
        """A new array of the network's dtype, uninitialised."""
        return self.engine.empty(shape, self.dtype, self.device)

    def absent_cell(self, cell: Array | None) -> Array:
        """What stands in the place of cy and dcx where there is no cell state to compute."""
        if cell is None:
            return self.empty((0,))
        with on_device_of(self.w):
            return array_module(self.w).zeros(cell.shape, self.w.dtype)


def forward(given: Given, cx: Array | None, *, training: bool) -> tuple[Any, Array, Array, Array]:
    """``(reserve_space, hy, cy, ys)``; the reserve is None in inference."""
    ratio = given.dropout.ratio if training else 0.0
    spec = given.spec(ratio, cx=cx)
    cell = given.cell("cx", cx, spec)
    engine, sequences, device = given.engine, given.sequences, given.device
    with engine.on(device):
        plan = engine.plan(spec, sequences, training=training, device=device)
        shape = (*given.xs.shape[:-1], spec.output_size)
        shapes = (shape, given.hx.shape, None if cell is None else cell.shape)
        arrays = (given.flat, given.xs, given.hx, cell)
        pointer = None
        if training:
            ys, hy, cy = engine.results(shapes, given.dtype, device)
            reserve = engine.reserve(plan, sequences, device)  # one that callers may hold
            pointer = pointer_to(reserve)
            dropout = _generator(given) if spec.drops else None
            engine.forward(
                plan, sequences, *arrays, y=ys, hy=hy, cy=cy, reserve=reserve, dropout=dropout
            )
            reserves.remember(device, pointer.ptr, ratio)
        else:
            ys, hy, cy, *_ = engine.outputs(plan, sequences, shapes, *arrays, dropout=None)
    return pointer, hy, given.absent_cell(cx) if cy is None else cy, ys


def backward_data(
    given: Given,
    cx: Array | None,
    ys: Array,
    reserve_space: Any,
    dhy: Array | None,
    dcy: Array | None,
    dys: Array | None,
) -> tuple[Array, Array, Array]:
    """``(dhx, dcx, dxs)``."""
    before = _forward_of(given, reserve_space)
    ratio = given.dropout.ratio if before is None else before.ratio
    spec = given.spec(ratio, cx=cx, ys=ys, dhy=dhy, dcy=dcy, dys=dys)
    cell = given.cell("cx", cx, spec)
    # Where no cell state came in, none came out whose gradient this could be.
    cell_gradient = None if cell is None else given.cell("dcy", dcy, spec)
    shape = (*given.xs.shape[:-1], spec.output_size)
    check_array("ys", ys)
    given.shaped("ys", ys, shape, "xs and hx")
    given.shaped("dys", dys, shape, "xs and hx")
    given.like("dhy", dhy, "hx", given.hx)
    engine, sequences = given.engine, given.sequences
    with engine.on(given.device):
        plan = engine.plan(spec, sequences, training=True, device=given.device, begins=False)
        reserve = reserve_array(reserve_space, plan.reserve_bytes(sequences), given.w)
        shapes = (given.xs.shape, given.hx.shape, None if cell is None else cell.shape)
        dxs, dhx, dcx = engine.results(shapes, given.dtype, given.device)
        reserves.begin_data(before)
        engine.backward_data(
            plan,
            sequences,
            given.flat,
            given.xs,
            given.hx,
            cell,
            ys,
            reserve,
            dy=dys,
            dhy=dhy,
            dcy=cell_gradient,
            dx=dxs,
            dhx=dhx,
            dcx=dcx,
        )
    return dhx, given.absent_cell(cx) if dcx is None else dcx, dxs


def backward_weights(given: Given, ys: Array, reserve_space: Any) -> Array:
    """Gradient of w, in its shape."""
    before = _forward_of(given, reserve_space)
    spec = given.spec(given.dropout.ratio if before is None else before.ratio, ys=ys)
    check_array("ys", ys)
    given.shaped("ys", ys, (*given.xs.shape[:-1], spec.output_size), "xs and hx")
    engine, sequences = given.engine, given.sequences
    with engine.on(given.device):
        plan = engine.plan(spec, sequences, training=True, device=given.device, begins=False)
        reserve = reserve_array(reserve_space, plan.reserve_bytes(sequences), given.w)
        reserves.begin_weights(before)
        dw = array_module(given.w).zeros(given.w.shape, given.w.dtype)
        engine.backward_weights(
            plan,
            sequences,
            given.flat,
            given.xs,
            given.hx,
            ys,
            reserve,
            dw=dw.reshape(-1),
        )
    return dw


def _forward_of(given: Given, reserve_space: Any) -> reserves.Forward | None:
    return reserves.recall(given.device, getattr(reserve_space, "ptr", 0))


def _generator(given: Given) -> DropoutState:
    state = given.dropout.state
    if state is None:
        raise ArgumentError(
            f"the dropout ratio is {given.dropout.ratio}, but the descriptor was made without "
            "states, so it has no generator"
        )
    return state
