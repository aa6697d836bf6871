"""The converter for PyTorch on PyTorch's own modules and state dicts, and the page's examples."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cudnn_compat import v2
from cudnn_compat.v2 import convert

torch = pytest.importorskip(
    "torch", reason="compares with PyTorch, which is not installed: extra 'peers'"
)

pytestmark = [
    pytest.mark.peers,
    pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN"),
]

DOCS = Path(__file__).parents[2] / "docs" / "convert.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```", DOCS.read_text("utf-8"), re.M | re.S)

MODULES: dict[str, Any] = {
    "tanh": lambda **options: torch.nn.RNN(3, 5, **options),
    "relu": lambda **options: torch.nn.RNN(3, 5, nonlinearity="relu", **options),
    "lstm": lambda **options: torch.nn.LSTM(3, 5, **options),
    "projected lstm": lambda **options: torch.nn.LSTM(3, 5, proj_size=2, **options),
    "gru": lambda **options: torch.nn.GRU(3, 5, **options),
}
OPTIONS = [
    {"num_layers": layers, "bidirectional": bidirectional, "bias": bias}
    for layers in (1, 2)
    for bidirectional in (False, True)
    for bias in (False, True)
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("kind", MODULES)
def test_a_module_is_taken_over_whole_and_given_back(kind: str, options: dict[str, Any]) -> None:
    module = MODULES[kind](**options, dtype=torch.float64)
    spec, w = convert.from_torch(module)
    assert spec == v2.RNNSpec(
        kind.split()[-1],
        3,
        5,
        num_layers=options["num_layers"],
        bidirectional=options["bidirectional"],
        bias="double" if options["bias"] else "none",
        proj_size=2 if "projected" in kind else None,
        dtype="float64",
    )
    x = torch.randn(6, 4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    expected = module(x)[0].detach().numpy()
    np.testing.assert_allclose(v2.rnn_forward(spec, w, x.numpy()).y, expected, rtol=0, atol=1e-12)
    arrays = convert.to_torch(spec, w)
    assert arrays.keys() == module.state_dict().keys()
    for name, tensor in module.state_dict().items():
        np.testing.assert_array_equal(arrays[name], tensor.numpy())


@pytest.mark.parametrize("kind", ["lstm", "projected lstm", "gru"])
def test_a_state_dict_describes_its_network_alone(kind: str) -> None:
    module = MODULES[kind](num_layers=2, bidirectional=True)
    by_module, by_state_dict = convert.from_torch(module), convert.from_torch(module.state_dict())
    assert by_module[0] == by_state_dict[0]
    np.testing.assert_array_equal(by_module[1], by_state_dict[1])


@pytest.mark.parametrize("kind", MODULES)
def test_two_biases_become_one_where_the_spec_says_so_and_the_cell_allows(kind: str) -> None:
    module = MODULES[kind](dtype=torch.float64)
    spec, w = convert.from_torch(module)
    wanted = spec.replace(bias="recurrent", math="full")
    if kind == "gru":
        with pytest.raises(v2.UnsupportedError, match="scaled by r"):
            convert.from_torch(module, wanted)
        return
    found, one = convert.from_torch(module, wanted)
    assert found is wanted
    x = np.random.default_rng(0).standard_normal((6, 4, 3))
    np.testing.assert_allclose(
        v2.rnn_forward(found, one, x).y, v2.rnn_forward(spec, w, x).y, rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_the_dtype_of_the_tensors_becomes_that_of_the_spec(dtype: str) -> None:
    module = torch.nn.GRU(3, 5).to(getattr(torch, dtype))
    spec, w = convert.from_torch(module)
    assert spec.dtype == dtype
    stored = v2.named_weights(spec, w)["weight_ih_l0"].astype("float64")
    np.testing.assert_array_equal(stored, module.weight_ih_l0.detach().double().numpy())


def test_the_dropout_of_a_module_comes_with_it() -> None:
    module = torch.nn.LSTM(3, 5, num_layers=2, dropout=0.25)
    assert convert.from_torch(module)[0].dropout == 0.25
    assert convert.from_torch(module.state_dict())[0].dropout == 0.0


def test_training_the_module_on_does_not_touch_what_was_taken() -> None:
    module = torch.nn.LSTM(3, 5)
    _, w = convert.from_torch(module)
    before = w.copy()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.zero_()
    np.testing.assert_array_equal(w, before)


@pytest.mark.parametrize("module", [torch.nn.Linear(3, 5), torch.nn.LSTMCell(3, 5)])
def test_another_module_is_refused_by_its_name(module: Any) -> None:
    with pytest.raises(v2.DTypeError, match=type(module).__name__):
        convert.from_torch(module)


@pytest.mark.parametrize("example", [e for e in EXAMPLES if "import torch" in e])
def test_the_examples_with_torch_run(example: str) -> None:
    exec(compile(example, str(DOCS), "exec"), {})
