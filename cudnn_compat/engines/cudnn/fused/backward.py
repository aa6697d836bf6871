"""Backward: the recurrence from the last layer to the first, then products for dx and dw."""

from __future__ import annotations

import numpy as np

from cudnn_compat.arrays import Array
from cudnn_compat.engines.cudnn.fused import kernels
from cudnn_compat.engines.cudnn.fused.blocks import Blocks
from cudnn_compat.engines.cudnn.fused.call import Call, address
from cudnn_compat.engines.cudnn.fused.memory import kept, places
from cudnn_compat.engines.cudnn.fused.products import Matrix, Products
from cudnn_compat.weights import PseudoLayer, Slot

__all__ = ["run_data", "run_weights"]

_STAGES = 32
"""Parts in which the rows are summed for the gradients of biases."""


def run_data(
    call: Call,
    cut: Blocks,
    w: Array,
    cx: Array | None,
    reserve: Array,
    dy: Array | None,
    dhy: Array | None,
    dcy: Array | None,
    dx: Array,
    dhx: Array,
    dcx: Array | None,
) -> None:
    """Fill dx, dhx, dcx; the gates in the reserve become their gradients."""
    spec, rows, total = call.spec, call.rows, call.rows.total
    pieces, start = kept(spec, total), address(reserve)
    gate_row = places(spec, training=True) * spec.hidden_size
    args = call.arguments(kernels.BACKWARD, gate_row)
    args["dy_row"] = call.width
    # Gradients of outputs are float32 on the way down, whatever the dtype.
    d_rows = None if dy is None else rows.compact(call, dy).astype("float32", copy=False)
    in_place = rows.lengths is None and spec.dtype == "float32"
    with call.products() as product:
        for layer in reversed(range(spec.num_layers)):
            call.put_matrices(args, w, layer)
            args["gates"] = start + pieces.gates[layer].offset
            args["before"] = start + pieces.before[layer].offset
            args["cells"] = start + pieces.cells[layer].offset if spec.has_cell else 0
            args["dy"] = address(d_rows)
            for name, array in (
                *(("cx", cx), ("dhy", dhy), ("dcy", dcy)),
                *(("dhx", dhx), ("dcx", dcx)),
            ):
                args[name] = 0 if array is None else address(array) + call.state(layer)
            call.launch("backward", cut, args, training=True)
            features = spec.layer_input_size(layer)
            d_rows = dx if layer == 0 and in_place else call.floats(total, features)
            for direction, part in enumerate(call.layer(layer)):
                weight = _as_floats(call, w, part.weight_ih)
                gates = int(args["gates"]) + 4 * direction * total * gate_row
                product(
                    Matrix(gates, gate_row),
                    Matrix(address(weight), features),
                    Matrix(address(d_rows), features),
                    *(total, features, spec.num_gates * spec.hidden_size),
                    add=direction > 0,
                )
    assert d_rows is not None  # there is a layer
    if rows.lengths is not None:
        rows.spread(call, d_rows.astype(dx.dtype, copy=False), dx)
    elif d_rows is not dx:
        dx[...] = d_rows.reshape(dx.shape)


def run_weights(call: Call, x: Array, reserve: Array, dw: Array) -> None:
    """Add the weight gradients into dw, from what :func:`run_data` left in the reserve."""
    spec, total = call.spec, call.rows.total
    pieces, start = kept(spec, total), address(reserve)
    hidden, gate_row = spec.hidden_size, places(spec, training=True) * spec.hidden_size
    inputs = call.rows.compact(call, x).astype("float32", copy=False)
    with call.products() as product:
        for layer in range(spec.num_layers):
            features = inputs.shape[1]
            for direction, part in enumerate(call.layer(layer)):
                gates = start + pieces.gates[layer].offset + 4 * direction * total * gate_row
                before = start + pieces.before[layer].offset + 4 * direction * total * hidden
                d_input = Matrix(gates, gate_row, transposed=True)
                given = Matrix(address(inputs), features)
                _add_product(call, product, d_input, given, dw, part.weight_ih)
                h, slot = Matrix(before, hidden), part.weight_hh
                if spec.cell != "gru":
                    _add_product(call, product, d_input, h, dw, slot)
                    continue
                new = Slot(slot.offset + 2 * hidden * hidden, (hidden, hidden))
                both = Slot(slot.offset, (2 * hidden, hidden))
                of_new = d_input._replace(address=gates + 4 * 3 * hidden)
                _add_product(call, product, d_input, h, dw, both)
                _add_product(call, product, of_new, h, dw, new)
            _add_biases(call, start + pieces.gates[layer].offset, dw, call.layer(layer))
            if layer < spec.num_layers - 1:
                piece = pieces.outputs[layer]
                outputs = reserve[piece.offset : piece.offset + piece.nbytes].view(x.dtype)
                inputs = outputs.reshape(total, call.width).astype("float32", copy=False)


def _as_floats(call: Call, w: Array, slot: Slot | None) -> Array:
    assert slot is not None  # networks with skip input are not served
    return slot.view(w).astype("float32", copy=False)


def _add_product(
    call: Call, product: Products, a: Matrix, b: Matrix, dw: Array, slot: Slot | None
) -> None:
    """Add ``a @ b``, a sum over rows, into a piece of dw."""
    assert slot is not None
    into, (rows, columns) = slot.view(dw), slot.shape
    direct = dw.dtype == np.float32
    out = into if direct else call.floats(rows, columns)
    product(a, b, Matrix(address(out), columns), rows, columns, call.rows.total, add=direct)
    if not direct:
        into += out


def _add_biases(call: Call, gates: int, dw: Array, parts: tuple[PseudoLayer, ...]) -> None:
    """Add the sums of gate gradients over all rows into the biases."""
    first, last = parts[0], parts[-1]
    if first.bias_ih is None and first.bias_hh is None:
        return
    spec, total, directions = call.spec, call.rows.total, len(parts)
    per_row = places(spec, training=True)
    columns = per_row * spec.hidden_size
    stages = min(_STAGES, -(-total // 8))
    sums = call.floats(directions, stages, columns)
    known = (call.xp, call.device)
    kernels.helpers(*known, "sum_columns", spec.cell, spec.dtype)(
        (-(-columns // 32), stages, directions),
        (32, 8),
        (
            *(np.uint64(gates), sums, np.uint64(total * columns), np.uint64(total)),
            np.int32(columns),
        ),
    )
    one = first.bias_ih or first.bias_hh
    other = last.bias_ih if first.bias_ih is not None else last.bias_hh
    assert one is not None and other is not None
    kernels.helpers(*known, "add_biases", spec.cell, spec.dtype)(
        (-(-columns // 128), directions),
        (128,),
        (
            sums,
            np.uint64(call.in_weights(dw, first.bias_ih)),
            np.uint64(call.in_weights(dw, first.bias_hh)),
            np.uint64(other.offset - one.offset),
            *(np.int32(n) for n in (stages, spec.hidden_size, per_row)),
        ),
    )
