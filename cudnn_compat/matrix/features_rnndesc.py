"""The features of the RNNDesc dialect, ``cudnn_compat.legacy``."""

from __future__ import annotations

from typing import Any, Final

from cudnn_compat.matrix.features import OLD_DTYPES, Feature
from cudnn_compat.matrix.features_v2 import FLOATS, LSTM
from cudnn_compat.matrix.shapes import Shape, StepShape

__all__ = ["RNNDESC"]

STEPS = (
    StepShape(None, "vector"),
    StepShape(None, "column"),
    StepShape(1, "vector"),
    StepShape(1, "full"),
    StepShape(5, "vector"),
    StepShape(5, "column"),
    StepShape(5, "full"),
)
FULL = (StepShape(5, "full"),)


_USES = {
    "constant": "forward setweights RNNDesc",
    "descriptor": "RNNDesc forward",
    "descriptor_of_layers": "RNNDesc forward",
    "setweights": "RNNDesc setweights forward",
    "setweights_before_back": "RNNDesc setweights pullback",
    "forward_train": "RNNDesc setweights forward forwardTrain backwardData",
    "backward_data": "RNNDesc setweights forwardTrain backwardData",
    "backward_weights": "RNNDesc setweights forwardTrain backwardData backwardWeights",
    "pullback": "RNNDesc setweights pullback",
    "ngates": "RNNDesc ngates",
    "params": "params",
    "h_batch": "hBatch",
    "h_desc": "hDesc",
    "x_desc": "xDesc",
    "warning": "LegacyAPIWarning RemovedIn3Warning ngates",
}
"""What the rows of a check call, where it is not :data:`_NETWORK`."""

_NETWORK = "RNNDesc setweights forward"


def _legacy(name: str, check: str, shapes: tuple[Shape | None, ...] = FULL, **rest: Any) -> Feature:
    names = [*_USES.get(check, _NETWORK).split(), *rest.pop("also", ())]
    calls = tuple(f"cudnn_compat.legacy.{each}" for each in names)
    return Feature("legacy", name, check, shapes, **({"dtypes": OLD_DTYPES, "calls": calls} | rest))


RNNDESC: Final[tuple[Feature, ...]] = (
    *(
        _legacy(
            name, "constant", cells=(cell,), options={"name": name, "value": value}, also=(name,)
        )
        for value, (name, cell) in enumerate(
            {
                "CUDNN_RNN_RELU": "relu",
                "CUDNN_RNN_TANH": "tanh",
                "CUDNN_LSTM": "lstm",
                "CUDNN_GRU": "gru",
            }.items()
        )
    ),
    _legacy("RNNDesc", "descriptor"),
    _legacy(
        "RNNDesc_of_2_layers",
        "descriptor_of_layers",
        differs="setweights refuses it and names v2.named_weights; the old code left the upper "
        "layers at zero in silence",
    ),
    _legacy("setweights", "setweights"),
    _legacy(
        "setweights_before_back",
        "setweights_before_back",
        dtypes=FLOATS,
        differs="weights that are set between forward and back do not change the gradients of that "
        "forward; the old code read them late",
    ),
    _legacy("forward", "forward", STEPS),
    _legacy("forward_without_c", "forward_without_c", STEPS, cells=LSTM),
    _legacy("forwardTrain", "forward_train", STEPS),
    _legacy("backwardData", "backward_data", STEPS),
    _legacy("backwardWeights", "backward_weights", STEPS),
    _legacy("pullback", "pullback", STEPS, dtypes=FLOATS),
    _legacy("ngates", "ngates"),
    _legacy("params", "params"),
    _legacy("hBatch", "h_batch", STEPS),
    _legacy("hDesc", "h_desc", STEPS),
    _legacy("xDesc", "x_desc", STEPS),
    _legacy("warning", "warning", (None,), cells=(None,), dtypes=(None,), engines=(None,)),
)
"""All of them, with what their rows are run with."""
