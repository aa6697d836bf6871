"""How the frozen program runs: importing, warnings, descriptors."""

from __future__ import annotations

import gc
import re
import subprocess
import sys
import warnings
import weakref
from collections import Counter
from pathlib import Path

import fluxlike
import numpy as np
import pytest
import train
from fluxlike import curnn

from cudnn_compat.legacy import LegacyAPIWarning, RNNDesc

PROGRAM = Path(train.__file__)
CURNN = Path(curnn.__file__)

OLD_CALLS = {
    "RNNDesc": ["return cls[cell.Wi.dtype.name](MODES[cell.kind], n_in, hidden, xp=xp)"],
    "setweights": ["setweights(d, cell.Wi, cell.Wh, cell.b)"],
    "forward": ["y, h = forward(desc(cell), x, h)", "y, h, c = forward(desc(cell), x, h, c)"],
    "pullback": [
        "(y, ho), back = pullback(desc(cell), x, h)",
        "(y, ho, co), back = pullback(desc(cell), x, h, c)",
    ],
}
"""Every line of the frozen program that calls an old name; all stand in fluxlike/curnn.py."""

WARNING = re.compile(r"^(.+?):(\d+): (\w+): \[(CC\d+)\] cudnn_compat\.legacy\.(\w+) ", re.MULTILINE)

quiet = pytest.mark.filterwarnings("ignore::cudnn_compat.legacy.LegacyAPIWarning")


def run_program(*options: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """``python OPTIONS``, one epoch of the program, in a fresh interpreter."""
    return subprocess.run(
        [sys.executable, *options, "float32", "1"],
        env=environment,
        cwd=PROGRAM.parent,
        capture_output=True,
        text=True,
        check=False,
    )


def test_importing_the_library_gives_rnndesc_a_constructor(environment: dict[str, str]) -> None:
    program = (
        "from cudnn_compat.legacy import RNNDesc\n"
        "assert not hasattr(RNNDesc, 'from_cell')\n"
        "import fluxlike\n"
        "print(hasattr(RNNDesc, 'from_cell'), hasattr(RNNDesc['float64'], 'from_cell'))"
    )
    done = run_program("-W", "error", "-c", program, environment=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["True", "True"]


def test_the_program_runs_where_cupy_is_absent(environment: dict[str, str]) -> None:
    program = (
        "import runpy, sys\n"
        "for name in ('cupy', 'cupyx', 'cupy_backends'): sys.modules[name] = None\n"
        "sys.path.insert(0, '.')\n"
        "sys.argv[0] = 'train.py'\n"
        "runpy.run_path('train.py', run_name='__main__')\n"
    )
    without = run_program("-c", program, environment=environment)
    assert without.returncode == 0, without.stderr
    assert without.stdout == run_program("train.py", environment=environment).stdout
    assert without.stdout.count("\n") == len(train.MODELS) * len(train.SHAPES)


def test_each_old_call_warns_once_at_its_own_line(environment: dict[str, str]) -> None:
    done = run_program("-W", "default", "train.py", environment=environment)
    assert done.returncode == 0, done.stderr
    found = WARNING.findall(done.stderr)
    assert done.stderr.count("Warning: ") == len(found)
    source = CURNN.read_text(encoding="utf-8").splitlines()
    places: dict[str, list[str]] = {}
    for path, line, _, _, name in found:
        assert Path(path).resolve() == CURNN.resolve()
        places.setdefault(name, []).append(source[int(line) - 1].strip())
    assert {name: sorted(lines) for name, lines in places.items()} == OLD_CALLS
    assert max(Counter((code, line) for _, line, _, code, _ in found).values()) == 1


def test_legacy_warnings_do_not_reach_users_who_did_not_ask(environment: dict[str, str]) -> None:
    """Python shows a DeprecationWarning only where __main__ itself makes the call."""
    done = run_program("train.py", environment=environment)
    assert done.returncode == 0
    assert done.stderr == ""


def test_warnings_as_errors_stop_the_program_at_its_first_old_call(
    environment: dict[str, str],
) -> None:
    done = run_program("-W", "error", "train.py", environment=environment)
    assert done.returncode == 1
    assert done.stdout == ""
    *_, last = done.stderr.splitlines()
    assert re.search(r"Warning: \[CC\d+\] cudnn_compat\.legacy\.RNNDesc is deprecated", last)
    assert OLD_CALLS["RNNDesc"][0] in done.stderr


def test_the_error_is_a_legacyapiwarning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", LegacyAPIWarning)
        with pytest.raises(LegacyAPIWarning):
            train.run("gru", "batch5", epochs=1)


@quiet
def test_a_descriptor_goes_with_its_cell() -> None:
    before = fluxlike.descriptor_count()
    model = train.make_model("lstm")
    model.pullback(np.ones((train.N_IN, 5), np.float32))
    assert fluxlike.descriptor_count() == before + 1
    descriptor = weakref.ref(fluxlike.desc(model.layers[0].cell))
    del model
    gc.collect()
    assert fluxlike.descriptor_count() == before
    assert descriptor() is None


@quiet
def test_a_descriptor_is_made_once_for_all_steps_of_a_cell() -> None:
    cell = train.make_model("gru").layers[0].cell
    descriptor = fluxlike.desc(cell)
    assert isinstance(descriptor, RNNDesc)
    assert fluxlike.desc(cell) is descriptor
    assert fluxlike.steps_run(cell) == 2
    assert (descriptor.mode, descriptor.input, descriptor.hidden) == (3, train.N_IN, train.N_HIDDEN)


@quiet
@pytest.mark.parametrize("name", train.MODELS)
def test_a_reset_goes_back_to_the_beginning(name: str) -> None:
    model = train.make_model(name)
    x = np.ones((train.N_IN, 5), np.float32)
    first, second = model(x), model(x)
    assert not np.array_equal(first, second)
    assert np.shape(model.layers[0].cell.initial())[-1:] == (train.N_HIDDEN,)
    assert np.shape(model.layers[0].state)[-2:] == (train.N_HIDDEN, 5)
    model.reset()
    assert np.array_equal(model(x), first)
    model.reset()
    assert model(x[:, 0]).shape == (train.N_OUT,)  # and to any batch size


@quiet
@pytest.mark.parametrize("name", train.MODELS)
def test_weights_changed_in_place_act_from_the_next_call_on(name: str) -> None:
    model = train.make_model(name, "float64")
    x = np.ones((train.N_IN, 5))
    before = model(x)
    for p in model.params():
        p *= 2
    model.reset()
    after = model(x)
    assert not np.allclose(before, after)
    other = train.make_model(name, "float64")
    other.convert(lambda p: 2 * p)
    assert np.array_equal(other(x), after)


@quiet
def test_no_call_changes_the_arrays_it_is_given() -> None:
    model = train.make_model("lstm", "float64")
    xs, targets = train.make_data(train.SHAPES["batch5"], "float64")[0]
    given = [*model.params(), *xs, *targets]
    copies = [a.copy() for a in given]
    fluxlike.gradient(model, fluxlike.mse, xs, targets)
    assert all(np.array_equal(a, b) for a, b in zip(given, copies, strict=True))
