"""`CuDNNError`: old status numbers, new ones beside them, and words."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from cudnn_compat.cudnn.constants import STATUS_8, STATUS_9
from cudnn_compat.cudnn.status import library_error
from cudnn_compat.errors import CompatError
from cudnn_compat.legacy.cupy import CuDNNError, constants, cudnn, libcudnn
from cudnn_compat.legacy.cupy.errors import from_error
from cudnn_compat.legacy.cupy.handles import make_handle


def test_it_is_made_from_an_old_status_as_old_code_made_it() -> None:
    error = CuDNNError(3)
    assert str(error) == "cuDNN Error: CUDNN_STATUS_BAD_PARAM"
    assert (error.status, error.new_status) == (3, 2000)
    assert isinstance(error, RuntimeError)
    assert isinstance(error, CompatError)
    assert CuDNNError(status=9).new_status == 3000
    assert libcudnn.CuDNNError is CuDNNError


def test_lines_can_be_added_and_survive_pickling() -> None:
    error = CuDNNError(9, 3004, "no")
    error.add_info("one")
    error.add_infos(["two", "three"])
    assert str(error).splitlines() == [
        "cuDNN Error: CUDNN_STATUS_NOT_SUPPORTED: no",
        "  one",
        "  two",
        "  three",
    ]
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(twin) is CuDNNError
        assert (str(twin), twin.status, twin.new_status) == (str(error), 9, 3004)


@pytest.mark.parametrize("name", STATUS_8)
def test_a_status_of_either_library_has_the_old_number(name: str) -> None:
    if name == "CUDNN_STATUS_SUCCESS":
        return
    assert getattr(constants, name) == STATUS_8[name]
    of_8 = from_error(library_error("f", 8, STATUS_8[name]))
    of_9 = from_error(library_error("f", 9, STATUS_9[name]))
    assert of_8.status == of_9.status == STATUS_8[name]
    assert of_8.new_status == of_9.new_status == STATUS_9[name]


@pytest.mark.parametrize(
    ("code", "old"),
    [(2005, 3), (3004, 9), (4002, 4), (4004, 2), (5003, 8), (1008, 1), (3999, 9), (9999, 4)],
)
def test_finer_and_unknown_numbers_of_9_have_the_old_number_of_their_kind(
    code: int, old: int
) -> None:
    error = from_error(library_error("f", 9, code, reason="why"))
    assert (error.status, error.new_status) == (old, code)
    assert "why" in str(error)


def arguments(**changes: Any) -> dict[str, Any]:
    given = {
        "states": cudnn.DropoutStates(None, 0),
        "direction_mode": 0,
        "rnn_mode": 3,
        "hx": np.zeros((1, 2, 4), "float32"),
        "cx": None,
        "w": np.zeros((3 * 4 * (3 + 4 + 2), 1, 1), "float32"),
        "xs": np.zeros((4, 3), "float32"),
        "lengths": [2, 2],
    }
    return given | changes


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lengths": [2, 3]}, "batch_sizes"),
        ({"lengths": [3, 1]}, "batch"),
        ({"lengths": [2]}, "add up to 2"),
        ({"w": np.zeros(5, "float32")}, "w has 5 elements"),
        ({"hx": np.zeros((2, 4), "float32")}, "hx has shape"),
        ({"xs": np.zeros((2, 2, 3), "float32")}, r"wanted \(sum, input\)"),
        ({"rnn_mode": 7}, "the RNN mode is 7"),
        ({"direction_mode": 2}, "the direction is 2"),
        ({"direction_mode": 1}, "two directions"),
    ],
)
def test_what_does_not_fit_is_a_bad_parameter_that_says_which(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(CuDNNError, match=message) as caught:
        cudnn.rnn_forward_training(**arguments(**changes))
    assert caught.value.status == 3
    assert caught.value.__cause__ is not None


@pytest.mark.parametrize(
    "changes",
    [
        {"xs": np.zeros((4, 3), "float64")},
        {"xs": [[0.0] * 3] * 4},
        {"hx": None},
        {"hx": np.zeros((1, 2, 4), "int32")},
        {"states": None},
        {"lengths": [2.0, 2.0]},
    ],
)
def test_wrong_types_are_type_errors(changes: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        cudnn.rnn_forward_training(**arguments(**changes))


def test_backward_checks_its_arrays_and_its_reserve() -> None:
    given = arguments()
    reserve, _, _, ys = cudnn.rnn_forward_training(**given)
    data = given | {"ys": ys, "reserve_space": reserve, "dhy": None, "dcy": None, "dys": ys}
    for name, wrong in (("ys", ys[:3]), ("dys", ys[:, :3]), ("dhy", ys)):
        with pytest.raises(CuDNNError, match=name):
            cudnn.rnn_backward_data(**(data | {name: wrong}))
    with pytest.raises(TypeError, match="reserve_space is a numpy.ndarray"):
        cudnn.rnn_backward_data(**(data | {"reserve_space": ys}))
    small, _, _, _ = cudnn.rnn_forward_training(
        **arguments(lengths=[2], xs=np.zeros((2, 3), "float32"))
    )
    with pytest.raises(CuDNNError, match="reserve_space has"):
        cudnn.rnn_backward_data(**(data | {"reserve_space": small}))
    cudnn.rnn_backward_data(**data)  # and none of that has spent it


def test_descriptors_that_were_never_made_or_are_gone_are_bad_parameters() -> None:
    rnn = libcudnn.createRNNDescriptor()
    libcudnn.destroyRNNDescriptor(rnn)
    for call in (
        lambda: libcudnn.destroyRNNDescriptor(rnn),
        lambda: libcudnn.setRNNPaddingMode(0, 1),
        lambda: libcudnn.getRNNPaddingMode(12345),
        lambda: libcudnn.destroyTensorDescriptor(libcudnn.createRNNDescriptor()),
        lambda: libcudnn.getStream(rnn),
    ):
        with pytest.raises(CuDNNError) as caught:
            call()
        assert caught.value.status == 3


def test_what_old_rnns_could_not_do_is_not_supported() -> None:
    rnn, handle = libcudnn.createRNNDescriptor(), make_handle(None)
    with pytest.raises(CuDNNError) as caught:
        libcudnn.setRNNDescriptor_v6(handle, rnn, 4, 1, 0, 0, 0, 2, 0, libcudnn.CUDNN_DATA_INT8)
    assert (caught.value.status, caught.value.new_status) == (9, 3000)
    with pytest.raises(CuDNNError, match="only inside a convolution"):
        cudnn.activation_forward(np.ones(3), libcudnn.CUDNN_ACTIVATION_IDENTITY)


def test_a_reserve_that_is_too_small_is_refused_before_anything_is_written() -> None:
    from tests.engine import Engine
    from tests.legacy.cupy_dialect.dialect import CASES, Low

    network = Low(Engine("numpy", np), CASES[0])
    network.training()
    with pytest.raises(CuDNNError, match="reserveSpaceSizeInBytes is 8"):
        network.forward("RNNForwardTraining", network.reserve.ctypes.data, 8)
    assert np.isnan(network.hy.astype("float32")).all()
