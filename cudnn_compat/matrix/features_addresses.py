"""The features of ``cupy.cuda.cudnn``: ``cudnn_compat.legacy.cupy.libcudnn``."""

from __future__ import annotations

from typing import Any, Final

from cudnn_compat.matrix.features import OLD_DTYPES, Feature
from cudnn_compat.matrix.features_arrays import BASIC, BIG, NETWORKS, NOTHING, PADDED
from cudnn_compat.matrix.features_v2 import LSTM, PLAIN
from cudnn_compat.matrix.shapes import ArrayShape, Shape

__all__ = ["ADDRESSES"]

ARRAY: Final = (ArrayShape((4, 6, 1)), ArrayShape((2, 5, 3)))

_NETWORK = (
    "createRNNDescriptor setRNNDescriptor_v6 setRNNPaddingMode createDropoutDescriptor "
    "dropoutGetStatesSize setDropoutDescriptor createTensorDescriptor setTensorNdDescriptor "
    "createFilterDescriptor setFilterNdDescriptor_v4"
)
"""What describes a network before it is run."""

_DATA = "createRNNDataDescriptor setRNNDataDescriptor"
_TRAINING = "getRNNTrainingReserveSize"


def _low(name: str, check: str, shapes: tuple[Shape | None, ...], **rest: Any) -> Feature:
    api = "legacy.cupy.libcudnn"
    calls = tuple(f"cudnn_compat.{api}.{each}" for each in rest.pop("calls", name).split())
    return Feature(api, name, check, shapes, calls=calls, **({"dtypes": OLD_DTYPES} | rest))


def _networks() -> list[Feature]:
    """The eight calls, each with every network, and with no cx."""
    found = []
    for ending, form, shapes in (("", "packed", BASIC), ("Ex", "padded", PADDED)):
        for call, check, also in (
            ("RNNForwardInference", "rnn_inference", ""),
            ("RNNForwardTraining", "rnn_training", _TRAINING),
            ("RNNBackwardData", "rnn_backward_data", f"RNNForwardTraining{ending}"),
            (
                "RNNBackwardWeights",
                "rnn_backward_weights",
                f"RNNForwardTraining{ending} RNNBackwardData{ending}",
            ),
        ):
            calls = " ".join([f"{call}{ending}", also, _NETWORK, _DATA * (ending == "Ex")])
            rest: dict[str, Any] = {"calls": calls, "options": {"form": form}}
            found += [
                _low(f"{call}{ending}{network}", check, shapes, spec=spec, **rest)
                for network, spec in NETWORKS.items()
            ]
            rest["options"] = {"form": form, "cx": False}
            name = f"{call}{ending}_without_cx"
            found.append(_low(name, check, (PLAIN,), cells=LSTM, **rest))
    return found


def _operation(name: str, check: str, also: str = "") -> Feature:
    backward = {"backward": "Backward" in name}
    calls = f"{name} createTensorDescriptor setTensorNdDescriptor {also}"
    return _low(name, check, ARRAY, cells=(None,), calls=calls, options=backward)


_ACTIVATION = "createActivationDescriptor setActivationDescriptor destroyActivationDescriptor"

ADDRESSES: Final[tuple[Feature, ...]] = (
    *_networks(),
    _low(
        "setRNNDescriptor_v5",
        "rnn_inference",
        (PLAIN,),
        options={"form": "packed", "version": "v5"},
        calls=f"setRNNDescriptor_v5 RNNForwardInference {_NETWORK}".replace("_v6", "_v5"),
    ),
    _low(
        "skip_input",
        "rnn_inference",
        (PLAIN,),
        spec={"input_mode": "skip"},
        options={"form": "packed"},
        calls=f"RNNForwardInference {_NETWORK}",
    ),
    _low(
        "getRNNParamsSize",
        "params_size",
        (PLAIN,),
        spec={"num_layers": 2},
        options={"form": "packed"},
        calls=f"getRNNParamsSize getRNNWorkspaceSize {_NETWORK}",
        differs="no workspace is needed (0 bytes): engines bring their own",
    ),
    *(
        _low(
            f"getRNNLinLayer{name}Params",
            "lin_layer_params",
            (PLAIN,),
            spec={"num_layers": 2},
            options={"form": "packed", "kind": kind},
            calls=f"getRNNLinLayer{name}Params getFilterNdDescriptor {_NETWORK}",
        )
        for name, kind in (("Matrix", "matrix"), ("Bias", "bias"))
    ),
    _operation("softmaxForward", "softmax_addresses"),
    _operation("softmaxBackward", "softmax_addresses"),
    _operation("activationForward_v4", "activation_addresses", _ACTIVATION),
    _operation("activationBackward_v4", "activation_addresses", _ACTIVATION),
    _low(
        "factors_of_results",
        "factors",
        ARRAY[:1],
        cells=(None,),
        dtypes=("float64",),
        calls=f"activationForward_v4 {_ACTIVATION.rsplit(' ', 1)[0]}",
    ),
    _low(
        "dropoutForward",
        "dropout_addresses",
        BIG,
        cells=(None,),
        calls="dropoutForward dropoutBackward createDropoutDescriptor setDropoutDescriptor "
        "dropoutGetStatesSize getDropoutReserveSpaceSize destroyDropoutDescriptor",
        differs="the masks are not those that cuDNN draws from the same seed",
        differs_on=("numpy",),
    ),
    *(
        _low(name, check, (None,), cells=(None,), engines=(None,), calls=calls)
        for name, check, calls in (
            (
                "tensor_descriptors",
                "tensors",
                "createTensorDescriptor setTensor4dDescriptor setTensor4dDescriptorEx "
                "setTensorNdDescriptor getTensor4dDescriptor destroyTensorDescriptor",
            ),
            (
                "filter_descriptors",
                "filters",
                "createFilterDescriptor setFilter4dDescriptor_v4 setFilterNdDescriptor_v4 "
                "getFilterNdDescriptor destroyFilterDescriptor",
            ),
            (
                "RNN_data_descriptors",
                "data_descriptors",
                f"{_DATA} getRNNDataDescriptor destroyRNNDataDescriptor",
            ),
        )
    ),
    _low(
        "padding_that_is_not_zero",
        "padding_fill",
        (None,),
        cells=(None,),
        dtypes=("float64",),
        engines=(None,),
        calls=_DATA,
    ),
    _low(
        "getVersion",
        "version",
        (None,),
        **NOTHING,
        calls="getVersion available",
        differs="the number of today's library, and 8907 (8.9.7) where none can be loaded",
    ),
    _low(
        "handles",
        "handles",
        (None,),
        **NOTHING,
        calls="create destroy setStream getStream",
        differs="calls go to CuPy's current stream, as in CuPy; setStream is only noted",
    ),
    _low(
        "RNN_descriptors",
        "networks",
        (None,),
        **NOTHING,
        calls="createRNNDescriptor setRNNDescriptor_v5 setRNNPaddingMode getRNNPaddingMode "
        "destroyRNNDescriptor",
    ),
    _low(
        "persistent_plans",
        "persistent_plan",
        (None,),
        **NOTHING,
        calls="createPersistentRNNPlan setPersistentRNNPlan destroyPersistentRNNPlan",
        differs="a plan is only held: engines make their own for every batch size",
    ),
    _low("CuDNNError", "error", (None,), **NOTHING),
)
"""All of them, with what their rows are run with."""
