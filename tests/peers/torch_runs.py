"""One problem, computed by PyTorch and by this package: two dictionaries of results.

On the CPU against the NumPy engine, or, with ``device="cuda"``, both on one GPU.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from cudnn_compat import v2
from cudnn_compat.arrays import numpy_dtype
from cudnn_compat.v2 import convert

__all__ = [
    "FORMS",
    "TOLERANCE",
    "Problem",
    "assert_equal_results",
    "our_results",
    "to_tensor",
    "torch_module",
    "torch_results",
]

TOLERANCE = {"float32": 2e-5, "float64": 1e-12}
"""Largest absolute difference between two right answers at the scale of these problems."""

FORMS = ("time_major", "batch_major", "unbatched", "padded", "packed")

_CLASSES = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU}


@dataclasses.dataclass(frozen=True)
class Problem:
    """A network and a batch, drawn from ``seed``.

    Attributes:
        form: one of FORMS; ``padded`` and ``packed`` have ``lengths`` and are PackedSequences in
            PyTorch.
        lengths: steps of each sequence, 1 or more, in any order.
        states: whether hx and cx are given.
        gradients: which of dy, dhy, dcy are given.
    """

    spec: v2.RNNSpec
    steps: int = 6
    batch: int = 4
    form: str = "time_major"
    lengths: tuple[int, ...] | None = None
    states: bool = True
    gradients: tuple[str, ...] = ("dy", "dhy", "dcy")
    seed: int = 0

    def arrays(self) -> dict[str, np.ndarray]:
        """x, hx, cx and dy, dhy, dcy in the layout of ``form``, padded also where it is packed."""
        spec = self.spec
        rng = np.random.default_rng(self.seed)
        shapes = {
            "x": (self.steps, self.batch, spec.input_size),
            "hx": spec.state_shape(self.batch),
            "cx": spec.cell_shape(self.batch),
            "dy": (self.steps, self.batch, spec.output_size),
            "dhy": spec.state_shape(self.batch),
            "dcy": spec.cell_shape(self.batch),
        }
        drawn = {name: rng.standard_normal(shape) for name, shape in shapes.items()}
        wanted = ("x", *(("hx", "cx") if self.states else ()), *self.gradients)
        kept = [n for n in shapes if n in wanted and (spec.has_cell or n not in ("cx", "dcy"))]
        arrays = {name: drawn[name].astype(numpy_dtype(spec.dtype)) for name in kept}
        for name, array in arrays.items():
            if self.form == "unbatched":
                arrays[name] = array[:, 0]
            elif self.form == "batch_major" and name in ("x", "dy"):
                arrays[name] = np.ascontiguousarray(array.swapaxes(0, 1))
        return arrays


def to_tensor(array: np.ndarray, device: str = "cpu") -> Any:
    """A tensor of the same numbers; on the CPU it shares the memory of the array."""
    if array.dtype.name == "bfloat16":  # which PyTorch does not take from NumPy
        return torch.from_numpy(array.view("int16")).view(torch.bfloat16).to(device)
    return torch.from_numpy(array).to(device)


def _to_array(tensor: Any) -> np.ndarray:
    tensor = tensor.detach().cpu()
    if tensor.dtype == torch.bfloat16:
        bits: np.ndarray = tensor.contiguous().view(torch.int16).numpy()
        return bits.view(numpy_dtype("bfloat16"))
    array: np.ndarray = tensor.numpy()
    return array


def torch_module(
    spec: v2.RNNSpec, w: np.ndarray, *, batch_first: bool = False, device: str = "cpu"
) -> Any:
    """PyTorch's module with the weights of ``w``."""
    options: dict[str, Any] = {"proj_size": spec.proj_size or 0} if spec.has_cell else {}
    if spec.num_gates == 1:
        options["nonlinearity"] = spec.cell
    module = _CLASSES.get(spec.cell, torch.nn.RNN)(
        spec.input_size,
        spec.hidden_size,
        spec.num_layers,
        bias=spec.bias != "none",
        batch_first=batch_first,
        dropout=spec.dropout,
        bidirectional=spec.bidirectional,
        dtype=getattr(torch, spec.dtype),
        device=device,
        **options,
    )
    arrays = convert.to_torch(spec, w)
    module.load_state_dict({name: to_tensor(array) for name, array in arrays.items()})
    return module


def torch_results(
    problem: Problem, w: np.ndarray, *, device: str = "cpu", **gradients: np.ndarray
) -> dict[str, np.ndarray]:
    """Outputs by name, gradients by d and the name of what they are of: ``dx``, ``dweight_ih_l0``.

    Args:
        gradients: dy, dhy or dcy to use instead of the problem's.
    """
    spec, form = problem.spec, problem.form
    module = torch_module(spec, w, batch_first=form == "batch_major", device=device)
    arrays = {**problem.arrays(), **gradients}
    tensors = {name: to_tensor(array, device) for name, array in arrays.items()}
    given = {name: tensors[name].requires_grad_() for name in ("x", "hx", "cx") if name in tensors}
    x, states = given["x"], [given[name] for name in ("hx", "cx") if name in given]
    lengths = problem.lengths
    if lengths is not None:
        ordered = all(a >= b for a, b in itertools.pairwise(lengths))
        x = pack_padded_sequence(x, torch.tensor(lengths), enforce_sorted=ordered)
    hx = (tuple(states) if spec.has_cell else states[0]) if states else None
    y, last = module(x, hx)
    if lengths is not None:
        y, _ = pad_packed_sequence(y, total_length=problem.steps)
    outputs = {"y": y, **dict(zip(("hy", "cy"), last if spec.has_cell else (last,), strict=False))}
    pairs = [(outputs[name[1:]], tensors[name]) for name in problem.gradients if name in tensors]
    torch.autograd.backward(*zip(*pairs, strict=True))
    sources = {**given, **dict(module.named_parameters())}
    found = {
        f"d{name}": torch.zeros_like(source) if source.grad is None else source.grad
        for name, source in sources.items()
    }
    return {name: _to_array(value) for name, value in {**outputs, **found}.items()}


def our_results(
    problem: Problem, w: np.ndarray, **gradients: np.ndarray
) -> dict[str, np.ndarray | None]:
    """The same of this package; also checks that inference and training agree exactly."""
    spec, form, lengths = problem.spec, problem.form, problem.lengths
    arrays: dict[str, Any] = {**problem.arrays(), **gradients}
    options: dict[str, Any] = {"layout": "batch_major"} if form == "batch_major" else {}
    if form == "padded":
        options["lengths"] = lengths
    elif form == "packed":
        packed = {name: v2.pack(arrays[name], lengths) for name in ("x", "dy") if name in arrays}
        arrays.update(packed)
    states = arrays.get("hx"), arrays.get("cx")
    out = v2.rnn_forward(spec, w, arrays["x"], *states, training=True, **options)
    inference = v2.rnn_forward(spec, w, arrays["x"], *states, **options)
    gradient = v2.rnn_backward(out, *(arrays.get(name) for name in ("dy", "dhy", "dcy")))
    named = v2.named_weights(spec, gradient.dw)
    results = {
        **{name: _padded(getattr(out, name), problem) for name in ("y", "hy", "cy")},
        **{name: _padded(getattr(gradient, name), problem) for name in ("dx", "dhx", "dcx")},
        **{f"d{name}": view for name, view in named.items()},
    }
    for name, again in zip(("y", "hy", "cy"), inference, strict=True):
        np.testing.assert_array_equal(_padded(again, problem), results[name])
    return results


def _padded(value: Any, problem: Problem) -> Any:
    return v2.unpack(value, steps=problem.steps) if isinstance(value, v2.Packed) else value


def assert_equal_results(problem: Problem, **gradients: np.ndarray) -> None:
    """y, hy, cy, dx, dhx, dcx and every weight gradient agree within the dtype's tolerance.

    Args:
        gradients: dy, dhy or dcy to use instead of the problem's; PyTorch gets contiguous copies.
    """
    w = v2.init_weights(problem.spec, seed=problem.seed)
    copies = {name: np.array(gradient, order="C") for name, gradient in gradients.items()}
    theirs, ours = torch_results(problem, w, **copies), our_results(problem, w, **gradients)
    weights = {f"d{name}" for name in v2.named_weights(problem.spec, w)}
    assert theirs.keys() >= {"y", "hy", "dx"} | weights
    for name, expected in theirs.items():
        got = ours[name]
        assert got is not None, name
        assert got.dtype == expected.dtype, name
        tolerance = TOLERANCE[problem.spec.dtype]
        np.testing.assert_allclose(got, expected, rtol=0, atol=tolerance, err_msg=name)
