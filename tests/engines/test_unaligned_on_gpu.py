"""Views that begin in the middle of an element, on a GPU."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PROGRAM = """\
import cupy
import numpy as np
from tests.engine import Engine
from tests.engines.networks import LAYOUTS, NETWORKS, draw, largest, run

engine = Engine("cudnn", cupy)


def unaligned(a):
    if a is None:
        return None
    buffer = cupy.empty(a.nbytes + 16, "uint8")
    buffer[1 : 1 + a.nbytes] = cupy.ascontiguousarray(a).ravel().view("uint8")
    view = buffer[1 : 1 + a.nbytes].view(a.dtype).reshape(a.shape)
    assert view.data.ptr % a.itemsize
    return view


for name in ("lstm 2 layers bi", "gru", "tanh"):
    for layout in LAYOUTS:
        for lengths in ((4, 4), (2, 4, 0)):
            spec = NETWORKS[name]
            data = draw(spec, lengths, steps=4, layout=layout).on(engine)
            wanted = run(engine, spec, data, layout=layout, lengths=lengths)
            moved = type(data)(*(unaligned(getattr(data, n)) for n in vars(data)))
            results = run(engine, spec, moved, layout=layout, lengths=lengths)
            for key, value in wanted.items():
                assert value is None or largest(results[key], value) <= 1e-12, (name, layout, key)
            for n in vars(data):
                a, b = (engine.get(getattr(d, n)) for d in (data, moved))
                assert a is None or np.array_equal(a, b), n
print("right")
"""


@pytest.mark.gpu
def test_unaligned_views_are_read_right_and_left_alone() -> None:
    """In a process of its own: a kernel that reads at a wrong address ends all work of its own."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout == "right\n"
