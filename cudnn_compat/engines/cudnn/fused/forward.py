"""Forward: for each layer one product for what x gives to all gates, then one recurrence."""

from __future__ import annotations

from cudnn_compat.arrays import Array, numpy_dtype
from cudnn_compat.engines.cudnn.fused import kernels
from cudnn_compat.engines.cudnn.fused.blocks import Blocks
from cudnn_compat.engines.cudnn.fused.call import Call, address
from cudnn_compat.engines.cudnn.fused.memory import kept, places
from cudnn_compat.engines.cudnn.fused.products import Matrix

__all__ = ["run"]


def run(
    call: Call,
    cut: Blocks,
    w: Array,
    x: Array,
    hx: Array | None,
    cx: Array | None,
    y: Array,
    hy: Array | None,
    cy: Array | None,
    reserve: Array | None,
) -> None:
    """Fill y, hy, cy and, in training, the reserve. Arrays are contiguous; there are rows."""
    spec, rows = call.spec, call.rows
    training, total, last = reserve is not None, rows.total, spec.num_layers - 1
    gate_row = places(spec, training=training) * spec.hidden_size
    args = call.arguments(kernels.FORWARD, gate_row)
    args["y_row"] = call.width
    given = rows.compact(call, x)
    result = y if rows.lengths is None else call.xp.empty((total, call.width), y.dtype)
    inputs = Matrix(address(given), spec.input_size, spec.dtype)

    # Where gates and the outputs of inner layers go: into the reserve, or to memory that is
    # used again by the next layer but one.
    if training:
        start, pieces = address(reserve), kept(spec, total)
        gates = [start + piece.offset for piece in pieces.gates]
        outputs = [start + piece.offset for piece in pieces.outputs]
    else:
        scratch = call.floats(spec.num_directions * total * gate_row)
        gates = [address(scratch)] * spec.num_layers
        dtype = numpy_dtype(spec.dtype)
        inner = [call.xp.empty((total, call.width), dtype) for _ in range(min(last, 2))]
        outputs = [address(inner[layer % 2]) for layer in range(last)]
    outputs.append(address(result))

    with call.products() as product:
        for layer in range(spec.num_layers):
            for direction, part in enumerate(call.layer(layer)):
                weight = Matrix(
                    call.in_weights(w, part.weight_ih), inputs.row, spec.dtype, transposed=True
                )
                out = Matrix(gates[layer] + 4 * direction * total * gate_row, gate_row)
                columns = spec.num_gates * spec.hidden_size
                product(inputs, weight, out, total, columns, inputs.row, add=False)
            first, final = call.layer(layer)[0], call.layer(layer)[-1]
            call.put_matrices(args, w, layer)
            args["bias_x"] = call.in_weights(w, first.bias_ih)
            args["bias_h"] = call.in_weights(w, first.bias_hh)
            bias = "bias_ih" if first.bias_ih is not None else "bias_hh"
            if first.bias_ih is not None or first.bias_hh is not None:
                args["next_bias"] = getattr(final, bias).offset - getattr(first, bias).offset
            if training:
                args["before"] = start + pieces.before[layer].offset
                args["cells"] = start + pieces.cells[layer].offset if spec.has_cell else 0
            for name, array in (("hx", hx), ("cx", cx), ("hy", hy), ("cy", cy)):
                args[name] = 0 if array is None else address(array) + call.state(layer)
            args["gates"], args["y"] = gates[layer], outputs[layer]
            call.launch("forward", cut, args, training=training)
            inputs = Matrix(outputs[layer], call.width, spec.dtype)
    if result is not y:
        rows.spread(call, result, y)
