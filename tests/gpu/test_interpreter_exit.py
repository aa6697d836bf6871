"""A program that used the GPU ends as it would have without this package: code 0, nothing said."""

from __future__ import annotations

import functools
import os

import pytest

from tests.gpu.work import run_python

pytestmark = pytest.mark.gpu

COMPUTE = """
import sys, threading
import cupy
from cudnn_compat import v2

spec = v2.RNNSpec("lstm", 4, 8, num_layers=2, bidirectional=True, dropout=0.5)
w = v2.init_weights(spec, seed=0, xp=cupy)
x = cupy.ones((5, 3, 4), "float32")

def forward(lengths=None):
    return v2.rnn_forward(spec, w, x, training=True, lengths=lengths)

def step():
    out = forward([5, 0, 2])
    return v2.rnn_backward(out, out.y)

step()
"""

PROGRAMS = {
    "nothing else": "",
    "live results and tapes": "kept = [forward() for _ in range(5)]; gradients = step()",
    "tapes whose backward is half done": (
        "kept = [forward() for _ in range(3)]; half = v2.rnn_backward_data(kept[0], kept[0].y)"
    ),
    "work that is still pending": "for _ in range(50): kept = step()",
    "a stream that is gone": """
stream = cupy.cuda.Stream(non_blocking=True)
with stream:
    kept = forward()
del stream
""",
    "threads that have ended": """
threads = [threading.Thread(target=step) for _ in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
""",
    "threads that end after the main one": """
import time
def later():
    time.sleep(0.5)
    step()
for _ in range(4):
    threading.Thread(target=later).start()
""",
    "threads that wait for ever": """
ready, never = threading.Barrier(4), threading.Event()
def hold():
    kept = forward()
    ready.wait()
    never.wait()
for _ in range(3):
    threading.Thread(target=hold, daemon=True).start()
ready.wait()
""",
    "sys.exit in a thread": """
def leave():
    kept = step()
    sys.exit(3)
thread = threading.Thread(target=leave)
thread.start()
thread.join()
""",
    "descriptors in cycles": """
class Node: pass
for _ in range(3):
    node = Node()
    node.self, node.out, node.layer = node, forward(), v2.LSTM(4, 8)
    node.state = v2.DropoutState(1)
    node.y = v2.rnn_forward(spec, w, x, training=True, seed=node.state)
kept = node
""",
    "layers that keep their state": """
layer = v2.LSTM(4, 8, keep_state=True, xp=cupy)
layer(x)
""",
    "an emptied pool": """
cupy.get_default_memory_pool().free_all_blocks()
cupy.get_default_pinned_memory_pool().free_all_blocks()
""",
    "an emptied cache of plans": "v2.clear_plans()",
    "a call at exit": """
import atexit
atexit.register(step)
""",
    "results in a module that goes last": "sys.kept = [forward(), step(), spec]",
    "deleted modules": """
for name in [n for n in sys.modules if n.startswith("cudnn_compat")]:
    del sys.modules[name]
""",
}


@functools.cache
def said_by_cupy_alone() -> str:
    """What CuPy itself says on this machine, of its own set-up."""
    done = run_python("import cupy; print(cupy.arange(3).sum())")
    assert done.returncode == 0
    return done.stderr


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_a_program_that_computed_ends_quietly(program: str) -> None:
    done = run_python(COMPUTE + program)
    assert done.stderr == said_by_cupy_alone()
    assert done.returncode == 0


def test_a_program_that_fails_says_its_own_error_only() -> None:
    done = run_python(COMPUTE + "kept = forward()\nraise SystemExit('the end')")
    assert done.stderr == said_by_cupy_alone() + "the end\n"
    assert done.returncode == 1


FORK = (
    COMPUTE
    + """
import os, warnings
warnings.simplefilter("ignore")  # threads and fork: CuPy's and Python's affair
kept = forward()
child = os.fork()
if not child:
    try:
        print("child:", float(step().dw.sum()), flush=True)
    except BaseException as error:
        print("child:", type(error).__name__, error, flush=True)
    os._exit(0)
_, status = os.waitpid(child, 0)
print("status:", status)
v2.rnn_backward(kept, kept.y).dw.get()
print("parent: well")
"""
)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_child_gets_an_exception_and_the_parent_goes_on() -> None:
    # CUDA itself does not work in a forked child: no result, but no crash and no silence either.
    done = run_python(FORK)
    said = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert said[-2:] == ["status: 0", "parent: well"]
    (child,) = (line for line in said if line.startswith("child: "))
    assert "Error" in child
