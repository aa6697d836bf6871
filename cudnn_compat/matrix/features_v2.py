"""The features of v2: its calls, the options of a spec, and what stands around the calls."""

from __future__ import annotations

from typing import Any, Final

from cudnn_compat.matrix.features import OLD_DTYPES, Feature
from cudnn_compat.matrix.shapes import PROJECTION, SequenceShape, Shape
from cudnn_compat.spec import ALGOS, CELLS

__all__ = ["FLOATS", "V2"]

ONE = SequenceShape(1, 1)
PLAIN = SequenceShape(5, 3)
RAGGED = SequenceShape(5, 4, (3, 5, 1, 4))
WITH_EMPTY = SequenceShape(5, 4, (0, 4, 0, 2))
SINGLE = SequenceShape(5, 1)

SIZES = (
    ONE,
    SequenceShape(1, 5),
    SINGLE,
    PLAIN,
    SequenceShape(1, 5, states=False),
    SequenceShape(5, 3, states=False),
    SequenceShape(0, 3),
    SequenceShape(5, 0),
)
EMPTIES = (
    SequenceShape(5, 3, (0, 5, 2)),
    SequenceShape(5, 3, (5, 0, 2)),
    SequenceShape(5, 3, (5, 2, 0)),
    SequenceShape(5, 3, (5, 3, 0), states=False),
    SequenceShape(5, 3, (0, 0, 0)),
)
BATCHES = (PLAIN, RAGGED, WITH_EMPTY)

LSTM = ("lstm",)
FLOATS = ("float32", "float64")
CLIP = (-115 / 256, 141 / 256)
"""Bounds that are exact in every dtype and that no value drawn for a state is equal to."""


_BOTH = "RNNSpec rnn_forward RNNOutput rnn_backward RNNGradients"
_CALLS = {
    "forward": "RNNSpec rnn_forward RNNOutput",
    "backward": _BOTH,
    "network": _BOTH,
    "backward_in_two": "rnn_forward rnn_backward_data rnn_backward_weights RNNGradients",
    "accumulate": "rnn_forward rnn_backward_data rnn_backward_weights",
    "strided": _BOTH,
    "padding": _BOTH,
    "dropout": f"{_BOTH} weight_size named_weights",
    "dropout_statistics": "rnn_forward weight_size named_weights",
    "dropout_from_a_seed": "rnn_forward DropoutState",
    "weight_order": "named_weights NamedWeights LinearParams weight_size",
    "init_weights": "init_weights rnn_forward",
    "pack_and_unpack": "pack unpack Packed",
    "layer": "RNN LSTM GRU",
    "layer_copied": "RNN LSTM GRU rnn_backward",
    "plans": "plans PlanInfo clear_plans rnn_forward",
    "ineffective_option": "IneffectiveOptionWarning rnn_forward",
    "torch": "convert convert.to_torch convert.from_torch rnn_forward",
    "onnx": "convert convert.to_onnx convert.from_onnx convert.OnnxNodes rnn_forward",
    "keras": "convert convert.to_keras convert.from_keras rnn_forward",
    "change_bias": "convert convert.change_bias rnn_forward",
}
"""What the rows of a check call."""


_OWN_MASKS: Final[dict[str, Any]] = {
    "differs": "the masks are not those that cuDNN draws from the same seed",
    "differs_on": ("numpy",),
}
_ANY_ALGO: Final[dict[str, Any]] = {
    "differs": "any algorithm is accepted; the NumPy engine computes in its own way and says so "
    "on the result",
    "differs_on": ("numpy",),
}


def _v2(
    name: str, check: str = "network", shapes: tuple[Shape, ...] = (PLAIN,), **rest: Any
) -> Feature:
    names = [*_CALLS[check].split(), *rest.pop("also", ())]
    calls = tuple(f"cudnn_compat.v2.{call}" for call in names)
    return Feature("v2", name, check, shapes, calls=calls, **rest)


def _network(name: str, *, cells: tuple[str, ...] = CELLS, **spec: Any) -> Feature:
    """Forward and backward with some options of the spec, with equal and with ragged lengths."""
    return _v2(name, shapes=BATCHES, cells=cells, spec=spec)


def _form(name: str, form: str, shapes: tuple[Shape, ...] = BATCHES, **spec: Any) -> Feature:
    return _v2(name, shapes=shapes, spec=spec, options={"form": form})


V2: Final[tuple[Feature, ...]] = (
    _v2("forward", "forward", SIZES),
    _v2("backward", "backward", SIZES),
    _v2("backward_data_then_weights", "backward_in_two"),
    _v2("accumulate_weight_gradients", "accumulate"),
    _v2("gradient_of_y_only", "backward", BATCHES, options={"given": ("dy",)}),
    _v2("gradient_of_hy_only", "backward", BATCHES, options={"given": ("dhy",)}),
    _v2("gradient_of_cy_only", "backward", BATCHES, cells=LSTM, options={"given": ("dcy",)}),
    _network("layers_2", num_layers=2),
    _network("layers_3", num_layers=3),
    _network("bidirectional", bidirectional=True),
    _network("bidirectional_layers_2", bidirectional=True, num_layers=2),
    _network("bias_none", bias="none"),
    _network("bias_input", bias="input"),
    _network("bias_recurrent", bias="recurrent"),
    _network("bias_recurrent_layers_2", bias="recurrent", num_layers=2),
    _network("skip_input", input_mode="skip"),
    _network(
        "skip_input_bidirectional_layers_2", input_mode="skip", bidirectional=True, num_layers=2
    ),
    _network("projection", cells=LSTM, proj_size=PROJECTION),
    _network(
        "projection_bidirectional_layers_2",
        cells=LSTM,
        proj_size=PROJECTION,
        bidirectional=True,
        num_layers=2,
    ),
    _network("clip", cells=LSTM, clip=CLIP),
    _network("clip_projection_layers_2", cells=LSTM, clip=CLIP, proj_size=PROJECTION, num_layers=2),
    _v2("lengths", shapes=(RAGGED, SequenceShape(5, 3, (5, 5, 5)), SequenceShape(5, 3, (2, 2, 2)))),
    _v2("empty_sequences", shapes=EMPTIES),
    _v2("empty_sequences_bidirectional", shapes=EMPTIES, spec={"bidirectional": True}),
    _form("batch_major", "batch_major"),
    _form("batch_major_bidirectional", "batch_major", bidirectional=True),
    _form("packed_lengths", "packed"),
    _form("packed_bidirectional_layers_2", "packed", bidirectional=True, num_layers=2),
    _form(
        "packed_batch_sizes",
        "batch_sizes",
        (PLAIN, SequenceShape(5, 4, (5, 3, 3, 1)), SequenceShape(4, 4, (4, 2, 0, 0))),
    ),
    _v2("packed_object", shapes=BATCHES, options={"form": "packed_object"}, also=("Packed",)),
    _form("unbatched", "unbatched", (SINGLE, SequenceShape(5, 1, states=False))),
    _form("one_step", "one_step", (ONE, SequenceShape(1, 1, states=False))),
    _v2("pack_and_unpack", "pack_and_unpack", BATCHES, cells=LSTM),
    _v2("strided_arrays", "strided"),
    _v2("padding_is_not_read", "padding", (RAGGED, WITH_EMPTY)),
    # 1/(1 - 0.5) is exact in every dtype, whatever a library computes it in.
    _v2("dropout", "dropout", spec={"num_layers": 2, "dropout": 0.5}, **_OWN_MASKS),
    _v2(
        "dropout_statistics",
        "dropout_statistics",
        (SequenceShape(40, 25),),
        cells=("relu",),
        spec={"num_layers": 2, "dropout": 0.25},
        **_OWN_MASKS,
    ),
    _v2(
        "dropout_from_a_seed",
        "dropout_from_a_seed",
        spec={"num_layers": 2, "dropout": 0.5},
        **_OWN_MASKS,
    ),
    _v2("dropout_in_inference", "forward", spec={"num_layers": 2, "dropout": 0.5}),
    _network("math_full", math="full"),
    _v2("math_half", dtypes=("float16", "float32"), spec={"math": "half"}),
    *(_v2(f"algo_{algo}", spec={"algo": algo}, **_ANY_ALGO) for algo in ALGOS if algo != "auto"),
    _v2("weight_order", "weight_order", (ONE,)),
    _v2(
        "weight_order_of_everything",
        "weight_order",
        (ONE,),
        cells=LSTM,
        spec={"num_layers": 2, "bidirectional": True, "proj_size": PROJECTION},
    ),
    _v2("init_weights", "init_weights", (ONE,)),
    _v2("layer", "layer", (PLAIN, SINGLE)),
    _v2("layer_keeps_its_state", "layer", options={"keep_state": True}),
    _v2("layer_copied_and_pickled", "layer_copied"),
    _v2("plans", "plans"),
    _v2("option_without_effect", "ineffective_option", (ONE,)),
    *(
        _v2(
            f"weights_of_{name}",
            name,
            dtypes=OLD_DTYPES,
            spec={"num_layers": 2, "bidirectional": True},
        )
        for name in ("torch", "onnx", "keras")
    ),
    _v2("change_bias", "change_bias", dtypes=OLD_DTYPES, spec={"bias": "input", "num_layers": 2}),
)
"""All of them, with what their rows are run with."""
