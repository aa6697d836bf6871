"""What the matrix is made of: every old call and every feature of v2, as data.

A feature names a small function in one of the modules ``checks_…`` and gives it options; a row is
one combination of feature, cell, dtype, shape and engine. To add a feature, add an entry here, and
a function there if none of them compares what has to be compared.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from cudnn_compat.matrix.shapes import PROJECTION, SequenceShape, Shape, StepShape
from cudnn_compat.spec import CELLS, DTYPES

__all__ = ["FEATURES", "Feature", "Row", "all_rows"]


@dataclasses.dataclass(frozen=True)
class Feature:
    """One line of the matrix.

    Attributes:
        api: ``"v2"`` or ``"legacy"``.
        name: of the feature; for an old call, its name.
        check: the function that runs it, in one of the modules ``checks_…``.
        shapes, cells, dtypes: what it is run with.
        spec: options of the :class:`~cudnn_compat.spec.RNNSpec`.
        options: of the function.
    """

    api: str
    name: str
    check: str
    shapes: tuple[Shape, ...]
    cells: tuple[str, ...] = CELLS
    dtypes: tuple[str, ...] = DTYPES
    spec: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Row:
    """One thing to be measured. Its :attr:`id` is stable."""

    feature: Feature
    cell: str
    dtype: str
    shape: Shape
    engine: str

    @property
    def id(self) -> str:
        """``"v2/forward/lstm/float32/5x3/numpy"``."""
        feature = self.feature
        parts = (feature.api, feature.name, self.cell, self.dtype, self.shape.label, self.engine)
        return "/".join(parts)


def all_rows(engines: Iterable[str], features: Iterable[Feature] | None = None) -> Iterator[Row]:
    """All rows of the engines named, feature by feature.

    Args:
        engines: names of engines that can compute here.
        features: None is :data:`FEATURES`.
    """
    for engine in engines:
        for feature in FEATURES if features is None else features:
            # dtypes innermost: they share one evaluation of the reference.
            for cell, shape, dtype in itertools.product(
                feature.cells, feature.shapes, feature.dtypes
            ):
                yield Row(feature, cell, dtype, shape, engine)


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
OLD_DTYPES = ("float16", "float32", "float64")
CLIP = (-115 / 256, 141 / 256)
"""Bounds that are exact in every dtype and that no value drawn for a state is equal to."""


def _v2(
    name: str, check: str = "network", shapes: tuple[Shape, ...] = (PLAIN,), **rest: Any
) -> Feature:
    return Feature("v2", name, check, shapes, **rest)


def _network(name: str, *, cells: tuple[str, ...] = CELLS, **spec: Any) -> Feature:
    """Forward and backward with some options of the spec, with equal and with ragged lengths."""
    return _v2(name, shapes=BATCHES, cells=cells, spec=spec)


def _form(name: str, form: str, shapes: tuple[Shape, ...] = BATCHES, **spec: Any) -> Feature:
    return _v2(name, shapes=shapes, spec=spec, options={"form": form})


_V2 = (
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
    _form("packed_object", "packed_object"),
    _form("unbatched", "unbatched", (SINGLE, SequenceShape(5, 1, states=False))),
    _form("one_step", "one_step", (ONE, SequenceShape(1, 1, states=False))),
    _v2("pack_and_unpack", "pack_and_unpack", BATCHES, cells=LSTM),
    _v2("strided_arrays", "strided"),
    _v2("padding_is_not_read", "padding", (RAGGED, WITH_EMPTY)),
    # 1/(1 - 0.5) is exact in every dtype, whatever a library computes it in.
    _v2("dropout", "dropout", spec={"num_layers": 2, "dropout": 0.5}),
    _v2(
        "dropout_statistics",
        "dropout_statistics",
        (SequenceShape(40, 25),),
        cells=("relu",),
        spec={"num_layers": 2, "dropout": 0.25},
    ),
    _v2("dropout_from_a_seed", "dropout_from_a_seed", spec={"num_layers": 2, "dropout": 0.5}),
    _v2("dropout_in_inference", "forward", spec={"num_layers": 2, "dropout": 0.5}),
    _network("math_full", math="full"),
    _v2("math_half", dtypes=("float16", "float32"), spec={"math": "half"}),
    _v2("algo_standard", spec={"algo": "standard"}),
    _v2("algo_persist_static", spec={"algo": "persist_static"}),
    _v2("algo_persist_dynamic", spec={"algo": "persist_dynamic"}),
    _v2("algo_persist_small_h", spec={"algo": "persist_small_h"}),
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
)

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


def _legacy(name: str, check: str, shapes: tuple[Shape, ...] = FULL, **rest: Any) -> Feature:
    return Feature("legacy", name, check, shapes, **({"dtypes": OLD_DTYPES} | rest))


_LEGACY = (
    *(
        _legacy(name, "constant", cells=(cell,), options={"name": name, "value": value})
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
    _legacy("RNNDesc_of_2_layers", "descriptor_of_layers"),
    _legacy("setweights", "setweights"),
    _legacy("setweights_before_back", "setweights_before_back", dtypes=FLOATS),
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
)

FEATURES: Final[tuple[Feature, ...]] = (*_V2, *_LEGACY)
"""All features, v2 first."""
