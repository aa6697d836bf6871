"""In a capture of the caller's no lengths are sent to the GPU: the graph would send them later."""

from __future__ import annotations

import gc
import weakref
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cudnn_compat import v2
from cudnn_compat.engines.cudnn import device
from cudnn_compat.engines.cudnn.device import Session
from cudnn_compat.engines.cudnn.long_call import Call
from cudnn_compat.engines.cudnn.staging import moves_of
from cudnn_compat.sequences import make_sequences

LENGTHS = (2, 0, 3)


def session(*, capturing: bool) -> Session:
    """A session as far as these calls look at it; arrays of its device are NumPy's."""
    made = Session(0)
    runtime = SimpleNamespace(streamIsCapturing=lambda _: capturing)
    xp: Any = SimpleNamespace(asarray=np.array, cuda=SimpleNamespace(runtime=runtime))
    made.xp = xp
    made.stream = SimpleNamespace(cupy=SimpleNamespace(ptr=1))  # type: ignore[assignment]
    return made


@pytest.mark.parametrize("layout", ["packed", "time_major"])
def test_indices_of_a_ragged_batch_are_sent_outside_of_a_capture_only(layout: str) -> None:
    shape = (sum(LENGTHS), 4) if layout == "packed" else (3, 3, 4)
    sequences = make_sequences(layout, shape, lengths=LENGTHS)
    moves = moves_of(session(capturing=False), sequences)
    assert moves.empty is not None
    assert moves.empty.tolist() == [1]
    with pytest.raises(v2.UnsupportedError, match="once before the capture begins"):
        moves_of(session(capturing=True), sequences)


def test_packed_rows_are_sent_in_the_order_of_the_library() -> None:
    sequences = make_sequences("packed", (5, 4), lengths=LENGTHS)
    moves = moves_of(session(capturing=False), sequences)
    assert moves.rows is not None
    assert moves.kept is not None
    assert moves.rows.dtype == "int32"
    assert moves.rows.tolist() == sequences.rows.tolist()
    assert moves.kept.tolist() == [2, 0]


def test_batches_that_need_no_indices_may_be_captured() -> None:
    inside = session(capturing=True)
    for sequences in (
        make_sequences("time_major", (3, 3, 4)),
        make_sequences("time_major", (3, 3, 4), lengths=(3, 1, 2)),
        make_sequences("packed", (6, 4), lengths=(3, 2, 1)),
    ):
        assert moves_of(inside, sequences).nbytes == 0


@pytest.mark.parametrize("lengths", [(3, 3), (3, 1)])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_long_batches_that_send_indices_in_every_call_are_refused(
    bidirectional: bool, lengths: tuple[int, int]
) -> None:
    plan: Any = SimpleNamespace(spec=v2.RNNSpec("gru", 4, 4, bidirectional=bidirectional))
    sequences = make_sequences("time_major", (3, 2, 4), lengths=lengths)
    inside = session(capturing=True)
    if bidirectional or sequences.ragged:
        with pytest.raises(v2.UnsupportedError, match="in every call, which cannot be captured"):
            Call(inside, plan, sequences, None)
    else:
        plan.parts = lambda _: ()
        Call(inside, plan, sequences, None)


class Kept:
    """Something with memory on the device."""


def test_what_a_capture_has_the_address_of_is_never_let_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(device, "_in_graphs", set())
    for capturing in (False, True):
        kept = Kept()
        seen = weakref.ref(kept)
        session(capturing=capturing).outlive(kept)
        del kept
        gc.collect()
        assert (seen() is not None) is capturing
