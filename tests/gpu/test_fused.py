"""The package's own recurrence kernels, on a GPU, against the slow reference in float64."""

from __future__ import annotations

import dataclasses
import threading
from typing import Any

import numpy as np
import pytest

from cudnn_compat import v2
from cudnn_compat.engines.cudnn.fused import FusedNetwork
from cudnn_compat.matrix.tolerances import kink_distance, tolerance
from cudnn_compat.sequences import make_sequences
from tests.engine import Engine
from tests.engines.networks import (
    GRADIENTS,
    LAYOUTS,
    OUTPUTS,
    Arrays,
    Data,
    draw,
    draw_away_from_kinks,
    expected,
    largest,
    scale,
)

pytestmark = pytest.mark.gpu

EQUAL = (6, 6, 6)
RAGGED = (5, 0, 7, 1, 3)


def spec_of(cell: str, hidden: int = 20, **options: Any) -> v2.RNNSpec:
    return v2.RNNSpec(cell, 3, hidden, **{"dtype": "float32", "math": "full", **options})


class Run:
    """One forward and backward of the kernels on given data."""

    def __init__(self, cupy: Any, spec: v2.RNNSpec, data: Data, lengths: Any, layout: str) -> None:
        self.xp, self.spec, self.lengths = cupy, spec, lengths
        self.data = Data(**{name: self._put(array) for name, array in vars(data).items()})
        self.sequences = make_sequences(layout, data.x.shape, lengths=lengths)

    def _put(self, array: Any) -> Any:
        return None if array is None else self.xp.asarray(array)

    def _like(self, shape: Any) -> Any:
        """Memory in which everything that is not written is seen."""
        return self.xp.full(shape, self.xp.nan, self.spec.dtype)

    def forward(self, *, training: bool) -> Arrays:
        spec, data, batch = self.spec, self.data, self.sequences.batch
        self.network = FusedNetwork(self.xp, 0, spec, batch, training=training)
        self.rows = self.network.rows(self.sequences)
        self.reserve = None
        if training:
            self.reserve = self.xp.full(self.network.reserve_bytes(self.sequences), 255, "uint8")
        y = self._like((*data.x.shape[:-1], spec.output_size))
        hy = self._like(spec.state_shape(batch))
        cy = self._like(spec.cell_shape(batch)) if spec.has_cell else None
        self.network.forward(
            self.rows, data.w, data.x, data.hx, data.cx, y=y, hy=hy, cy=cy, reserve=self.reserve
        )
        return dict(zip(OUTPUTS, (y, hy, cy), strict=True))

    def backward(self) -> Arrays:
        data, rows = self.data, self.rows
        dx, dhx = self._like(data.x.shape), self._like(self.spec.state_shape(rows.sequences.batch))
        dcx = self._like(dhx.shape) if self.spec.has_cell else None
        dw = self.xp.zeros_like(data.w)
        gradients = {"dy": data.dy, "dhy": data.dhy, "dcy": data.dcy}
        self.network.backward_data(
            rows, data.w, data.cx, self.reserve, **gradients, dx=dx, dhx=dhx, dcx=dcx
        )
        self.network.backward_weights(rows, data.x, self.reserve, dw=dw)
        return dict(zip(GRADIENTS, (dx, dhx, dcx, dw), strict=True))


def check(spec: v2.RNNSpec, got: Arrays, wanted: Arrays) -> None:
    for name, value in got.items():
        right = wanted[name]
        if right is None:
            assert value is None, name
            continue
        what = "output" if name in OUTPUTS else "gradient"
        bound = tolerance(spec.dtype, spec.math, engine="cudnn", what=what) * scale(right)
        assert largest(value.get(), right) <= bound, name


def check_all(
    cupy: Any,
    spec: v2.RNNSpec,
    lengths: Any,
    layout: str = "time_major",
    *,
    training: bool = True,
) -> None:
    distance = kink_distance(spec.dtype, spec.math, engine="cudnn", clip=spec.clip is not None)
    if spec.cell == "relu" or spec.clip is not None:
        data = draw_away_from_kinks(spec, lengths, distance, layout=layout)
    else:
        data = draw(spec, lengths, layout=layout)
    data = data.replace(w=(data.w / np.sqrt(spec.hidden_size / 4)).astype(data.w.dtype))
    wanted = expected(spec, data, lengths, layout=layout)
    run = Run(cupy, spec, data, lengths, layout)
    check(spec, run.forward(training=False), wanted)
    if training:
        check(spec, run.forward(training=True), wanted)
        check(spec, run.backward(), wanted)


def long_batch(spec: v2.RNNSpec, lengths: tuple[int, ...]) -> tuple[Data, Arrays]:
    """Data without initial states, and its outputs in float64, not from the slow reference."""
    data = draw(spec, lengths).without("hx", "cx")
    data = data.replace(w=(data.w / np.sqrt(spec.hidden_size / 4)).astype(data.w.dtype))
    exact = dataclasses.replace(spec, dtype="float64")
    w, x = (array.astype("float64") for array in (data.w, data.x))
    out = v2.rnn_forward(exact, w, x, training=False, engine="numpy")
    return data, dict(zip(OUTPUTS, out, strict=True))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("lengths", [EQUAL, RAGGED], ids=["equal", "ragged"])
@pytest.mark.parametrize("cell", ["tanh", "lstm", "gru"])
def test_two_layers_of_two_directions_are_right_in_every_layout(
    cupy: Any, cell: str, lengths: Any, layout: str
) -> None:
    check_all(cupy, spec_of(cell, num_layers=2, bidirectional=True), lengths, layout)


@pytest.mark.parametrize("hidden", [1, 7, 64, 100, 128, 200, 256])
@pytest.mark.parametrize("cell", ["tanh", "lstm", "gru"])
def test_hidden_sizes_of_one_block_and_of_clusters_are_right(
    cupy: Any, cell: str, hidden: int
) -> None:
    check_all(cupy, spec_of(cell, hidden), EQUAL)


@pytest.mark.parametrize("batch", [1, 2, 13, 33, 70])
def test_batches_of_few_and_of_many_sequences_are_right(cupy: Any, batch: int) -> None:
    lengths = tuple(np.random.default_rng(batch).integers(0, 5, batch).tolist())
    check_all(cupy, spec_of("lstm", 96, bidirectional=True), (*lengths, 4))


@pytest.mark.parametrize(
    ("cell", "hidden", "batch"),
    [
        *(("tanh", 256, 70), ("lstm", 200, 16), ("lstm", 256, 16), ("lstm", 288, 3)),
        *(("lstm", 320, 33), ("lstm", 384, 16), ("lstm", 384, 70), ("gru", 300, 9)),
        *(("gru", 416, 1), ("gru", 416, 40), ("lstm", 400, 5), ("lstm", 448, 64)),
        *(("lstm", 512, 1), ("lstm", 512, 16), ("lstm", 512, 70), ("gru", 512, 33)),
        *(("gru", 450, 3), ("tanh", 512, 70)),
    ],
)
def test_large_networks_whose_clusters_serve_four_sequences_are_right(
    cupy: Any, cell: str, hidden: int, batch: int
) -> None:
    check_all(cupy, spec_of(cell, hidden, bidirectional=True), (4,) * batch)


@pytest.mark.parametrize(
    ("cell", "hidden", "batch"), [("lstm", 544, 8), ("gru", 700, 16), ("tanh", 1100, 9)]
)
def test_networks_too_large_for_backward_are_right_in_inference_and_refused_in_training(
    cupy: Any, cell: str, hidden: int, batch: int
) -> None:
    spec = spec_of(cell, hidden, bidirectional=True)
    check_all(cupy, spec, (4,) * batch, training=False)
    with pytest.raises(v2.UnsupportedError, match=f"no room.*hidden_size={hidden}"):
        FusedNetwork(cupy, 0, spec, batch, training=True)


def test_a_long_batch_of_two_layers_of_two_directions_is_right(cupy: Any) -> None:
    spec, lengths = spec_of("lstm", 256, num_layers=2, bidirectional=True), (512,) * 16
    data, wanted = long_batch(spec, lengths)
    for training in (False, True):
        run = Run(cupy, spec, data, lengths, "time_major")
        check(spec, run.forward(training=training), wanted)


@pytest.mark.parametrize("bias", ["none", "input", "recurrent"])
@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_fewer_biases_are_right(cupy: Any, cell: str, bias: str) -> None:
    check_all(cupy, spec_of(cell, bias=bias, num_layers=2), EQUAL)


def test_relu_is_right(cupy: Any) -> None:
    check_all(cupy, spec_of("relu", 6), (4, 4))


def test_a_clip_is_right(cupy: Any) -> None:
    check_all(cupy, spec_of("lstm", 5, clip=(-0.3, 0.2)), (3, 2))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_short_dtypes_are_right(cupy: Any, cell: str, dtype: str) -> None:
    Engine("cudnn", cupy).needs(dtype)
    check_all(cupy, spec_of(cell, 64, dtype=dtype, num_layers=2, math="default"), RAGGED)


def test_states_and_gradients_that_are_missing_are_zeros(cupy: Any) -> None:
    spec, lengths = spec_of("lstm", 20), EQUAL
    data = draw(spec, lengths).without("hx", "cx", "dhy", "dcy")
    wanted = expected(spec, data, lengths)
    run = Run(cupy, spec, data, lengths, "time_major")
    check(spec, run.forward(training=True), wanted)
    check(spec, run.backward(), wanted)


@pytest.mark.parametrize("layout", ["time_major", "batch_major"])
def test_padding_is_not_read_and_becomes_zero(cupy: Any, layout: str) -> None:
    spec = spec_of("gru", 20)
    data = draw(spec, RAGGED, layout=layout)
    padding = ~(np.arange(7)[:, None] < np.asarray(RAGGED))
    if layout == "batch_major":
        padding = padding.T
    wanted = expected(spec, data, RAGGED, layout=layout)
    poisoned_x, poisoned_dy = data.x.copy(), data.dy.copy()
    poisoned_x[padding] = poisoned_dy[padding] = np.nan
    run = Run(cupy, spec, data.replace(x=poisoned_x, dy=poisoned_dy), RAGGED, layout)
    outputs = run.forward(training=True)
    check(spec, outputs, wanted)
    gradients = run.backward()
    check(spec, gradients, wanted)
    assert not outputs["y"].get()[padding].any()
    assert not gradients["dx"].get()[padding].any()


def test_full_precision_does_not_depend_on_what_is_set_on_the_handle(cupy: Any) -> None:
    spec = v2.RNNSpec("lstm", 64, 64, math="full")
    data = draw(spec, EQUAL)
    run = Run(cupy, spec, data, EQUAL, "time_major")
    wanted = run.forward(training=False)["y"].get()
    blas, handle = cupy.cuda.cublas, cupy.cuda.device.get_cublas_handle()
    before = blas.getMathMode(handle)
    allowed = 3  # CUBLAS_TF32_TENSOR_OP_MATH
    blas.setMathMode(handle, allowed)
    try:
        got = run.forward(training=False)["y"].get()
        assert blas.getMathMode(handle) == allowed
    finally:
        blas.setMathMode(handle, before)
    np.testing.assert_array_equal(got, wanted)


def test_results_repeat_bit_for_bit(cupy: Any) -> None:
    spec = spec_of("gru", 128, num_layers=2, bidirectional=True)
    run = Run(cupy, spec, draw(spec, RAGGED), RAGGED, "time_major")
    first = {**run.forward(training=True), **run.backward()}
    again = {**run.forward(training=True), **run.backward()}
    for name, value in first.items():
        if value is not None:
            np.testing.assert_array_equal(value.get(), again[name].get(), err_msg=name)


def test_a_graph_of_a_training_step_gives_what_plain_calls_give(cupy: Any) -> None:
    spec = spec_of("lstm", 128)
    run = Run(cupy, spec, draw(spec, EQUAL), EQUAL, "time_major")
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        wanted = {**run.forward(training=True), **run.backward()}
        stream.synchronize()
        stream.begin_capture()
        captured = {**run.forward(training=True), **run.backward()}
        graph = stream.end_capture()
        graph.launch(stream)
        stream.synchronize()
        for name, value in wanted.items():
            np.testing.assert_array_equal(captured[name].get(), value.get(), err_msg=name)


def test_threads_on_streams_of_their_own_do_not_disturb_each_other(cupy: Any) -> None:
    spec = spec_of("lstm", 100)
    data = draw(spec, EQUAL)
    wanted = Run(cupy, spec, data, EQUAL, "time_major").forward(training=False)["y"].get()
    failures: list[BaseException] = []

    def work() -> None:
        try:
            with cupy.cuda.Device(0), cupy.cuda.Stream(non_blocking=True):
                for _ in range(10):
                    run = Run(cupy, spec, data, EQUAL, "time_major")
                    got = run.forward(training=False)["y"].get()
                    np.testing.assert_array_equal(got, wanted)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_a_network_in_the_background_does_not_disturb_a_long_batch(cupy: Any) -> None:
    spec, lengths = spec_of("lstm", 256, num_layers=2, bidirectional=True), (64,) * 16
    other = spec_of("lstm", 128, num_layers=2)
    data, wanted = long_batch(spec, lengths)
    begun, enough = threading.Event(), threading.Event()
    failures: list[BaseException] = []

    def work() -> None:
        try:
            with cupy.cuda.Device(0), cupy.cuda.Stream(non_blocking=True) as stream:
                small = draw(other, EQUAL)
                while not enough.is_set():
                    run = Run(cupy, other, small, EQUAL, "time_major")
                    run.forward(training=True)
                    run.backward()
                    stream.synchronize()
                    begun.set()
        except BaseException as error:
            failures.append(error)
            begun.set()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        assert begun.wait(300)
        run = Run(cupy, spec, data, lengths, "time_major")
        for _ in range(20):
            check(spec, run.forward(training=False), wanted)
    finally:
        enough.set()
        thread.join()
    assert not failures
