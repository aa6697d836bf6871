"""The flat weight space: offsets worked out by hand, views, names, linear ids."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cudnn_compat import v2
from cudnn_compat.v2 import ArgumentError, RNNSpec

# Each row is (name, offset, shape), added up by hand from cuDNN's rule: all matrices of all
# pseudo-layers, then all biases.
HAND_COMPUTED: dict[str, tuple[RNNSpec, list[tuple[str, int, tuple[int, ...]]], int]] = {
    "tanh": (
        RNNSpec("tanh", 3, 2),
        [
            ("weight_ih_l0", 0, (2, 3)),
            ("weight_hh_l0", 6, (2, 2)),
            ("bias_ih_l0", 10, (2,)),
            ("bias_hh_l0", 12, (2,)),
        ],
        14,
    ),
    "lstm, 2 layers": (
        RNNSpec("lstm", 3, 2, num_layers=2),
        [
            ("weight_ih_l0", 0, (8, 3)),
            ("weight_hh_l0", 24, (8, 2)),
            ("weight_ih_l1", 40, (8, 2)),
            ("weight_hh_l1", 56, (8, 2)),
            ("bias_ih_l0", 72, (8,)),
            ("bias_hh_l0", 80, (8,)),
            ("bias_ih_l1", 88, (8,)),
            ("bias_hh_l1", 96, (8,)),
        ],
        104,
    ),
    "gru, bidirectional, recurrent bias": (
        RNNSpec("gru", 5, 2, bidirectional=True, bias="recurrent"),
        [
            ("weight_ih_l0", 0, (6, 5)),
            ("weight_hh_l0", 30, (6, 2)),
            ("weight_ih_l0_reverse", 42, (6, 5)),
            ("weight_hh_l0_reverse", 72, (6, 2)),
            ("bias_hh_l0", 84, (6,)),
            ("bias_hh_l0_reverse", 90, (6,)),
        ],
        96,
    ),
    "lstm, 2 layers, bidirectional, projected, input bias": (
        RNNSpec("lstm", 5, 3, num_layers=2, bidirectional=True, proj_size=2, bias="input"),
        [
            ("weight_ih_l0", 0, (12, 5)),
            ("weight_hh_l0", 60, (12, 2)),
            ("weight_hr_l0", 84, (2, 3)),
            ("weight_ih_l0_reverse", 90, (12, 5)),
            ("weight_hh_l0_reverse", 150, (12, 2)),
            ("weight_hr_l0_reverse", 174, (2, 3)),
            ("weight_ih_l1", 180, (12, 4)),
            ("weight_hh_l1", 228, (12, 2)),
            ("weight_hr_l1", 252, (2, 3)),
            ("weight_ih_l1_reverse", 258, (12, 4)),
            ("weight_hh_l1_reverse", 306, (12, 2)),
            ("weight_hr_l1_reverse", 330, (2, 3)),
            ("bias_ih_l0", 336, (12,)),
            ("bias_ih_l0_reverse", 348, (12,)),
            ("bias_ih_l1", 360, (12,)),
            ("bias_ih_l1_reverse", 372, (12,)),
        ],
        384,
    ),
    "relu, 2 layers, skip, no bias": (
        RNNSpec("relu", 3, 3, num_layers=2, input_mode="skip", bias="none"),
        [
            ("weight_hh_l0", 0, (3, 3)),
            ("weight_ih_l1", 9, (3, 3)),
            ("weight_hh_l1", 18, (3, 3)),
        ],
        27,
    ),
    "gru, bidirectional, skip": (
        RNNSpec("gru", 2, 2, bidirectional=True, input_mode="skip"),
        [
            ("weight_hh_l0", 0, (6, 2)),
            ("weight_hh_l0_reverse", 12, (6, 2)),
            ("bias_ih_l0", 24, (6,)),
            ("bias_hh_l0", 30, (6,)),
            ("bias_ih_l0_reverse", 36, (6,)),
            ("bias_hh_l0_reverse", 42, (6,)),
        ],
        48,
    ),
}

each_layout = pytest.mark.parametrize(
    ("spec", "rows", "size"), HAND_COMPUTED.values(), ids=HAND_COMPUTED
)


def numbered(spec: RNNSpec) -> Any:
    """A weight space whose elements are their own offsets (small enough for float32)."""
    return np.arange(v2.weight_size(spec), dtype=spec.dtype)


@each_layout
def test_the_size_is_the_sum_of_all_pieces(spec: RNNSpec, rows: Any, size: int) -> None:
    assert v2.weight_size(spec) == size == sum(int(np.prod(shape)) for _, _, shape in rows)
    assert type(v2.weight_size(spec)) is int


@each_layout
def test_every_piece_lies_where_it_was_worked_out_to_lie(
    spec: RNNSpec, rows: Any, size: int
) -> None:
    names = v2.named_weights(spec, numbered(spec))
    assert set(names) == {name for name, _, _ in rows}
    for name, offset, shape in rows:
        wanted = np.arange(offset, offset + np.prod(shape), dtype=spec.dtype).reshape(shape)
        assert np.array_equal(names[name], wanted), name


@each_layout
def test_the_pieces_cover_the_weight_space_without_gap_or_overlap(
    spec: RNNSpec, rows: Any, size: int
) -> None:
    w = np.zeros(size, spec.dtype)
    for view in v2.named_weights(spec, w).values():
        view += 1
    assert np.array_equal(w, np.ones(size))


@each_layout
def test_every_piece_is_a_view_that_writes_to_the_weight_space(
    spec: RNNSpec, rows: Any, size: int
) -> None:
    w = numbered(spec)
    names = v2.named_weights(spec, w)
    for name, offset, _ in rows:
        assert names[name].base is not None
        names[name][...] = -1
        assert w[offset] == -1
    w[...] = 7
    assert all((view == 7).all() for view in names.values())


@each_layout
def test_names_come_in_the_order_of_pseudo_layers_and_are_a_mapping(
    spec: RNNSpec, rows: Any, size: int
) -> None:
    names = v2.named_weights(spec, numbered(spec))
    assert len(names) == len(list(names)) == len(rows)
    assert dict(names.items()).keys() == set(names)
    assert "weight_hh_l0" in names
    assert "weight_hh_l7" not in names
    assert "nothing" not in names
    assert names.get("nothing") is None
    with pytest.raises(KeyError, match="weight_hh_l7"):
        names["weight_hh_l7"]


def test_the_text_of_named_weights_lists_names_and_shapes() -> None:
    spec = HAND_COMPUTED["tanh"][0]
    text = repr(v2.named_weights(spec, numbered(spec)))
    assert "weight_ih_l0 (2, 3)" in text
    assert "bias_hh_l0 (2,)" in text


@each_layout
def test_linear_ids_are_the_gates_of_the_named_pieces(spec: RNNSpec, rows: Any, size: int) -> None:
    names, gates = v2.named_weights(spec, numbered(spec)), spec.num_gates
    for pseudo_layer in range(spec.num_pseudo_layers):
        layer, reverse = divmod(pseudo_layer, spec.num_directions)
        end = f"_l{layer}" + ("_reverse" if reverse else "")
        for linear_id in range(2 * gates):
            side, gate = ("ih", linear_id) if linear_id < gates else ("hh", linear_id - gates)
            part = slice(gate * spec.hidden_size, (gate + 1) * spec.hidden_size)
            params = names[pseudo_layer, linear_id]
            for kind, view in (("weight", params.matrix), ("bias", params.bias)):
                whole = names.get(f"{kind}_{side}{end}")
                assert (view is None) == (whole is None)
                if whole is not None:
                    assert np.array_equal(view, whole[part])
                    assert np.shares_memory(view, whole)


@pytest.mark.parametrize(
    ("pseudo_layer", "linear_id", "matrix", "bias"),
    [
        (0, 0, (0, (2, 3)), (72, (2,))),
        (0, 3, (18, (2, 3)), (78, (2,))),
        (0, 4, (24, (2, 2)), (80, (2,))),
        (1, 2, (48, (2, 2)), (92, (2,))),
        (1, 7, (68, (2, 2)), (102, (2,))),
    ],
)
def test_linear_ids_of_a_two_layer_lstm_lie_where_cudnn_says(
    pseudo_layer: int, linear_id: int, matrix: Any, bias: Any
) -> None:
    spec = HAND_COMPUTED["lstm, 2 layers"][0]
    params = v2.named_weights(spec, numbered(spec))[pseudo_layer, linear_id]
    for view, (offset, shape) in ((params.matrix, matrix), (params.bias, bias)):
        assert view.shape == shape
        assert view.flat[0] == offset


def test_linear_id_8_is_the_projection_which_has_no_bias() -> None:
    spec = HAND_COMPUTED["lstm, 2 layers, bidirectional, projected, input bias"][0]
    names = v2.named_weights(spec, numbered(spec))
    assert np.array_equal(names[3, 8].matrix, names["weight_hr_l1_reverse"])
    assert names[3, 8].bias is None
    assert names.linear_ids() == (0, 1, 2, 3, 4, 5, 6, 7, 8)


@pytest.mark.parametrize(
    ("cell", "ids"), [("relu", range(2)), ("tanh", range(2)), ("gru", range(6)), ("lstm", range(8))]
)
def test_without_projection_there_are_two_linear_ids_for_each_gate(cell: str, ids: Any) -> None:
    spec = RNNSpec(cell, 2, 2)
    names = v2.named_weights(spec, numbered(spec))
    assert names.linear_ids() == tuple(ids)
    with pytest.raises(ArgumentError, match="linear_id is 9; wanted one of 0, 1"):
        names[0, 9]


@pytest.mark.parametrize("cell", ["relu", "tanh", "gru"])
def test_only_an_lstm_has_linear_id_8(cell: str) -> None:
    spec = RNNSpec(cell, 2, 2)
    with pytest.raises(ArgumentError, match="linear_id is 8; wanted one of 0, 1"):
        v2.named_weights(spec, numbered(spec))[0, 8]


def test_linear_id_8_of_an_lstm_without_projection_is_empty() -> None:
    spec = RNNSpec("lstm", 2, 2)
    assert v2.named_weights(spec, numbered(spec))[0, 8] == (None, None)


def test_linear_gives_what_indexing_with_a_pair_gives() -> None:
    spec = HAND_COMPUTED["tanh"][0]
    names = v2.named_weights(spec, numbered(spec))
    assert np.array_equal(names.linear(0, 1).matrix, names[0, 1].matrix)
    matrix, bias = names[np.int64(0), np.int32(1)]
    assert np.array_equal(matrix, names["weight_hh_l0"])
    assert np.array_equal(bias, names["bias_hh_l0"])


@pytest.mark.parametrize(
    ("pseudo_layer", "linear_id", "named"),
    [
        (1, 0, "pseudo_layer"),
        (-1, 0, "pseudo_layer"),
        ("a", 0, "pseudo_layer"),
        (None, 0, "pseudo_layer"),
        (0.0, 0, "pseudo_layer"),
        (0, 2, "linear_id"),
        (0, -1, "linear_id"),
        (0, "W", "linear_id"),
        (0, None, "linear_id"),
        (0, 1.0, "linear_id"),
    ],
)
def test_a_pair_that_does_not_exist_is_refused_by_name(
    pseudo_layer: Any, linear_id: Any, named: str
) -> None:
    spec = HAND_COMPUTED["tanh"][0]
    names = v2.named_weights(spec, numbered(spec))
    with pytest.raises(v2.CompatError, match=named):
        names[pseudo_layer, linear_id]


@pytest.mark.parametrize("key", [(), (0,), (0, 1, 2)])
def test_a_tuple_that_is_no_pair_is_refused_in_words(key: Any) -> None:
    spec = HAND_COMPUTED["tanh"][0]
    with pytest.raises(v2.CompatError, match=r"pseudo.?layer"):
        v2.named_weights(spec, numbered(spec))[key]


@pytest.mark.parametrize("key", [(0, 1), (0, 99), (9, 0), (0, 1, 2), 5, None])
def test_as_a_mapping_it_holds_the_names_only(key: Any) -> None:
    spec = HAND_COMPUTED["tanh"][0]
    assert key not in v2.named_weights(spec, numbered(spec))
