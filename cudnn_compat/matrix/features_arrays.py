"""The features of ``cupy.cudnn``, which takes arrays: ``cudnn_compat.legacy.cupy.cudnn``."""

from __future__ import annotations

from typing import Any, Final

from cudnn_compat.matrix.features import OLD_DTYPES, Feature
from cudnn_compat.matrix.features_v2 import LSTM, PLAIN, RAGGED
from cudnn_compat.matrix.shapes import ArrayShape, SequenceShape, Shape

__all__ = ["ARRAYS", "BASIC", "BIG", "NETWORKS", "NOTHING", "PADDED"]

BASIC: Final[tuple[Shape, ...]] = (
    SequenceShape(1, 1),
    PLAIN,
    SequenceShape(5, 4, (5, 3, 3, 1)),
)
"""Longest first, as the calls take them that are told the batch size of each step."""

PADDED: Final[tuple[Shape, ...]] = (PLAIN, RAGGED)
"""In any order, as the calls take them that are told lengths."""

NETWORKS: Final[dict[str, dict[str, Any]]] = {
    "": {},
    "_layers_2": {"num_layers": 2},
    "_bidirectional_layers_2": {"num_layers": 2, "bidirectional": True},
}
"""Endings of names, and options of the spec."""

AXES: Final = (ArrayShape((4, 6), 1), ArrayShape((2, 5, 3), 1), ArrayShape((3, 4), 0))
ARRAY: Final = (ArrayShape((4, 6)), ArrayShape((2, 5, 3)))
BIG: Final = (ArrayShape((40, 50)),)
"""Enough elements to count how many of them are dropped."""

NOTHING: Final[dict[str, Any]] = {"cells": (None,), "dtypes": (None,), "engines": (None,)}
"""Of rows that are neither of a cell nor a dtype, and that no engine computes."""

_STATES = "DropoutStates"
_TRAINING = "rnn_forward_training"


def _high(name: str, check: str, shapes: tuple[Shape | None, ...], **rest: Any) -> Feature:
    api = "legacy.cupy.cudnn"
    calls = tuple(f"cudnn_compat.{api}.{each}" for each in rest.pop("calls", name).split())
    return Feature(api, name, check, shapes, calls=calls, **({"dtypes": OLD_DTYPES} | rest))


def _networks() -> list[Feature]:
    """The eight calls, each with every network, and with no cx."""
    found = []
    for ending, form, shapes in (("", "packed", BASIC), ("_ex", "padded", PADDED)):
        for call, also in (
            ("rnn_forward_inference", ()),
            ("rnn_forward_training", ()),
            ("rnn_backward_data", (_TRAINING,)),
            ("rnn_backward_weights", (_TRAINING, "rnn_backward_data")),
        ):
            calls = " ".join([call + ending, *(each + ending for each in also), _STATES])
            found += [
                _high(
                    f"{call}{ending}{network}",
                    call,
                    shapes,
                    spec=spec,
                    options={"form": form},
                    calls=calls,
                )
                for network, spec in NETWORKS.items()
            ]
            options = {"form": form, "cx": False}
            name = f"{call}{ending}_without_cx"
            found.append(_high(name, call, (PLAIN,), cells=LSTM, options=options, calls=calls))
    return found


ARRAYS: Final[tuple[Feature, ...]] = (
    *_networks(),
    _high(
        "DropoutStates",
        "dropout_states",
        BIG,
        cells=(None,),
        calls="DropoutStates DropoutStates.set_dropout_ratio DropoutStates.forward "
        "DropoutStates.backward",
        differs="the masks are not those that cuDNN draws from the same seed",
        differs_on=("numpy",),
    ),
    _high(
        "dropout_between_layers",
        "dropout_between_layers",
        (PLAIN,),
        spec={"num_layers": 2},
        options={"form": "packed"},
        calls=f"{_STATES} DropoutStates.set_dropout_ratio rnn_forward_inference {_TRAINING}",
    ),
    _high("softmax_forward", "softmax_forward", AXES, cells=(None,)),
    _high("softmax_backward", "softmax_backward", AXES, cells=(None,)),
    _high("activation_forward", "activation_forward", ARRAY, cells=(None,)),
    _high("activation_backward", "activation_backward", ARRAY, cells=(None,)),
    _high(
        "activation_identity",
        "activation_identity",
        ARRAY[:1],
        cells=(None,),
        calls="activation_forward",
    ),
    *(
        _high(
            f"get_rnn_lin_layer_{kind}_params",
            "lin_layer_params",
            (None,),
            spec={"num_layers": 2},
            options={"kind": kind},
            calls=f"get_rnn_lin_layer_{kind}_params create_rnn_descriptor "
            "create_filter_descriptor create_tensor_nd_descriptor",
        )
        for kind in ("matrix", "bias")
    ),
    _high(
        "create_descriptors",
        "create_descriptors",
        (None,),
        cells=(None,),
        calls="create_tensor_descriptor create_tensor_nd_descriptor create_filter_descriptor "
        "get_data_type",
    ),
    _high(
        "create_dropout_descriptor",
        "dropout_descriptor",
        (None,),
        **NOTHING,
        calls="create_dropout_descriptor set_dropout_descriptor create_dropout_states "
        "create_rnn_descriptor get_handle",
        differs="the memory for the generator's states stays unused: engines keep their own",
    ),
    _high(
        "settings",
        "settings",
        (None,),
        **NOTHING,
        calls="get_handle get_max_workspace_size set_max_workspace_size is_tensor_core_available",
        differs="the limit of the workspace is only remembered: RNNs take what they need",
    ),
    _high("Descriptor", "descriptor", (None,), **NOTHING),
)
"""All of them, with what their rows are run with."""
