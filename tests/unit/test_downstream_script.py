"""`nox -s downstream`: its table, its judges, and what it tells of what is not there."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "scripts"
VARIABLES = ("CHAINER_SRC", "CHAINERRL_SRC", "CHAINER_CHEMISTRY_SRC", "THINC_SRC", "CUPY_SRC")


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Imports a script by its name."""
    monkeypatch.syspath_prepend(SCRIPTS)
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    return importlib.import_module


@pytest.fixture
def programs(script: Any) -> Any:
    return script("downstream_table").PROGRAMS


def a_program(script: Any, **changes: Any) -> Any:
    """A row of the table that needs nothing: it prints what is 2 + 2."""
    rows, judge = script("downstream_program"), script("downstream_judge")
    given = {
        "name": "sum",
        "calls": "nothing",
        "packages": rows.Packages("none"),
        "commands": {"numpy": ("python", "-c", "print('sum:', 2 + 2)")},
        "judges": {
            "numpy": lambda work, output: judge.printed(
                work, output, pattern=r"^sum: (\S+)$", at_most=4
            )
        },
    }
    return rows.Program(**given | changes)


def test_every_row_says_what_is_run_and_what_has_to_come_out(programs: Any) -> None:
    names = [each.name for each in programs]
    assert len(set(names)) == len(names) >= 10
    for each in programs:
        assert each.calls
        assert set(each.commands) == set(each.judges) <= {"numpy", "gpu"}
        assert "gpu" in each.commands
        assert set(each.old_calls) <= set(each.commands)
        places = set(re.findall(r"{(\w+)}", " ".join(sum(each.commands.values(), ()))))
        assert places <= {"checkout", "scripts", "work"}
        assert ("checkout" in places) <= (each.checkout is not None)


def test_scripts_of_our_own_that_rows_name_are_there(programs: Any) -> None:
    given = [argument for each in programs for line in each.commands.values() for argument in line]
    named = [each for each in given if each.startswith("{scripts}/")]
    assert named
    for each in named:
        assert (SCRIPTS / each.removeprefix("{scripts}/")).is_file()


def test_everything_installed_has_a_version(programs: Any, script: Any) -> None:
    environment = script("downstream_environment")
    for packages in {each.packages for each in programs}:
        pinned = environment.constraints_for(packages)
        for name in (*packages.with_dependencies, *packages.alone):
            # What constraints.txt does not pin is pinned in the row.
            assert "==" in name or re.search(rf"^{name}==", pinned, re.MULTILINE), name
        assert (packages.numpy is None) == ("\nnumpy==" in pinned)


def test_programs_that_share_an_environment_ask_for_the_same(programs: Any) -> None:
    by_name: dict[str, Any] = {}
    for each in programs:
        assert by_name.setdefault(each.packages.name, each.packages) == each.packages


def test_old_names_that_have_to_be_called_are_names_of_the_dialect(programs: Any) -> None:
    from cudnn_compat.legacy.table import TABLE

    known = {row.old.rpartition(".")[2] for row in TABLE}
    wanted = {name for each in programs for names in each.old_calls.values() for name in names}
    assert wanted
    assert wanted <= known


def test_the_page_names_every_program(programs: Any) -> None:
    page = (ROOT / "docs" / "downstream.md").read_text(encoding="utf-8")
    for each in programs:
        assert f"| {each.name} |" in page


def test_a_missing_checkout_is_told_with_the_way_to_get_it(script: Any, programs: Any) -> None:
    downstream = script("downstream")
    for each in programs:
        if each.checkout is None:
            continue
        device = next(iter(each.commands))
        row = downstream.run(each, device, None, None)
        assert row["status"] == "not run here"
        assert f"{each.checkout.variable} names no checkout" in row["reason"]
        assert "git clone" in row["reason"]


def test_a_folder_that_is_another_one_is_told(
    script: Any, programs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHAINER_SRC", str(tmp_path))
    (row,) = (
        script("downstream").run(each, "numpy", None, None)
        for each in programs
        if each.name.endswith("seq2seq")
    )
    assert row["status"] == "not run here"
    assert row["reason"].startswith("there is no examples/seq2seq/seq2seq.py in the folder")


def test_without_a_gpu_the_reason_is_told_and_nothing_is_run(script: Any, programs: Any) -> None:
    for each in programs:
        row = script("downstream").run(each, "gpu", "no GPU in this box", None)
        assert (row["status"], row["reason"]) == ("not run here", "no GPU in this box")


def test_a_package_that_is_not_there_is_told(script: Any) -> None:
    packages = script("downstream_program").Packages("none", modules=("no_such_module",))
    row = script("downstream").run(a_program(script, packages=packages), "numpy", None, None)
    assert row["status"] == "not run here"
    assert "no_such_module" in row["reason"]


def test_a_program_that_does_what_it_has_to_passes(script: Any) -> None:
    row = script("downstream").run(a_program(script), "numpy", None, None)
    assert row["status"] == "passed", row
    assert row["found"] == {"sum": 4.0}


@pytest.mark.parametrize(
    ("program", "limit", "words"),
    [
        ("print('sum:', 5)", 60, "sum is 5, wanted: at most 4"),
        ("print('sum:', float('nan'))", 60, "sum is nan"),
        ("print('other')", 60, "nothing like"),
        ("import time; print('slow', flush=True); time.sleep(60)", 2, "not done after 2 s"),
    ],
)
def test_a_program_that_does_not_is_failed_with_the_reason(
    script: Any, program: str, limit: float, words: str
) -> None:
    each = a_program(script, commands={"numpy": ("python", "-c", program)}, limit=limit)
    row = script("downstream").run(each, "numpy", None, None)
    assert row["status"] == "failed"
    assert words in row["wrong"][0]


def test_a_program_that_runs_through_the_command_has_to_make_its_old_calls(
    script: Any, tmp_path: Path
) -> None:
    file = tmp_path / "program.py"
    file.write_text(
        "from cudnn_compat.legacy.cupy import libcudnn\nprint('sum:', 0 * libcudnn.getVersion())\n"
    )
    run = script("downstream").run
    commands = {"numpy": (str(file),)}
    good = run(
        a_program(script, commands=commands, old_calls={"numpy": ("getVersion",)}),
        "numpy", None, None,
    )  # fmt: skip
    assert good["status"] == "passed", good
    assert good["found"]["old_calls"] == {"getVersion": 1}
    bad = run(
        a_program(script, commands=commands, old_calls={"numpy": ("rnn_backward_data",)}),
        "numpy", None, None,
    )  # fmt: skip
    assert bad["status"] == "failed"
    assert bad["wrong"][0] == "rnn_backward_data was never called"


def test_a_program_that_ends_badly_is_failed_whatever_it_printed(
    script: Any, tmp_path: Path
) -> None:
    file = tmp_path / "program.py"
    file.write_text("print('sum: 4')\nraise SystemExit(3)\n")
    each = a_program(script, commands={"numpy": (str(file),)})
    row = script("downstream").run(each, "numpy", None, None)
    assert row["status"] == "failed"
    assert row["wrong"][0] == "exit status 3"


def junit(*cases: str) -> str:
    return f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>"


GOOD, BAD, SKIPPED = (
    f'<testcase classname="a" name="{name}">{inside}</testcase>'
    for name, inside in (
        ("good", ""),
        ("bad", '<failure message="1 != 2"/>'),
        ("skipped", '<skipped message="no GPU"/>'),
    )
)


@pytest.mark.parametrize(
    ("report", "wrong"),
    [
        (junit(GOOD), []),
        (junit(GOOD, BAD), ["a::bad: 1 != 2"]),
        (junit(SKIPPED), ["0 tests passed, at least 1 have to"]),
        ("<cut", None),
        (None, None),
    ],
)
def test_tests_of_others_have_to_pass_and_to_be_run(
    script: Any, tmp_path: Path, report: str | None, wrong: list[str] | None
) -> None:
    if report is not None:
        (tmp_path / "junit.xml").write_text(report)
    found, said = script("downstream_judge").tests(tmp_path, "", at_least=1)
    if wrong is None:
        assert found == {}
        assert said[0].startswith("pytest left no report")
    else:
        assert said == wrong


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ([{"loss": 9.0}, {"other": 1}, {"loss": 3.0}], ""),
        ([{"loss": 3.0}, {"loss": 9.0}], "loss is 9, wanted: at most 4"),
        ([{"other": 1.0}], "log has no loss"),
        (None, "there is no log"),
    ],
)
def test_the_last_number_of_chainer_s_log_counts(
    script: Any, tmp_path: Path, entries: Any, words: str
) -> None:
    if entries is not None:
        (tmp_path / "log").write_text(json.dumps(entries))
    _, wrong = script("downstream_judge").log(tmp_path, "", file="log", key="loss", at_most=4)
    assert len(wrong) == bool(words)
    assert words in "".join(wrong)


@pytest.mark.parametrize(
    ("on_cudnn", "record", "wrong"),
    [
        (False, {"result": {"passed": 5}, "failed": {}}, []),
        (False, {"result": {"passed": 4}, "failed": {}}, ["4 tests passed, at least 5 have to"]),
        (False, {"result": {"passed": 5}, "failed": {"a": "why"}}, ["a: why"]),
        (True, {"result": {"passed": 5}, "old_calls": {}, "verdict": []}, []),
        (True, {"result": {"passed": 5}, "old_calls": {}, "verdict": ["no RNN"]}, ["no RNN"]),
    ],
)
def test_chainer_s_tests_are_judged_by_their_own_script_only_on_cudnn(
    script: Any, tmp_path: Path, on_cudnn: bool, record: Any, wrong: list[str]
) -> None:
    (tmp_path / "tests.json").write_text(json.dumps(record))
    judge = script("downstream_judge").chainer_tests
    assert judge(tmp_path, "", at_least=5, on_cudnn=on_cudnn)[1] == wrong


@pytest.mark.parametrize(
    ("passed", "failed", "not_run", "status"), [(2, 0, 3, 0), (2, 1, 0, 1), (0, 0, 5, 1)]
)
def test_what_was_not_run_is_no_success(
    script: Any, passed: int, failed: int, not_run: int, status: int
) -> None:
    summary = {"passed": passed, "failed": failed, "not run here": not_run}
    assert script("downstream").exit_status(summary) == status


def test_the_command_writes_what_it_found_and_names_no_folder_of_this_machine(
    tmp_path: Path, script: Any
) -> None:
    file = tmp_path / "found.json"
    command = [sys.executable, str(SCRIPTS / "downstream.py"), "--here", "--json", str(file)]
    # Without the environment variables that the fixture has taken away.
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    record = json.loads(file.read_text(encoding="utf-8"))
    assert record["summary"]["passed"] == record["summary"]["failed"] == 0
    assert len(record["programs"]) == record["summary"]["not run here"] >= 15
    assert all(row["reason"] for row in record["programs"])
    assert str(ROOT) not in file.read_text(encoding="utf-8")
    assert "0 passed, 0 failed" in done.stdout


def test_a_pattern_that_fits_no_program_is_refused() -> None:
    command = [sys.executable, str(SCRIPTS / "downstream.py"), "no such program"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "no program fits" in done.stderr


@pytest.mark.parametrize("maker", ["make_pairs", "make_reviews", "make_sentences"])
def test_made_up_data_is_the_same_each_time(script: Any, tmp_path: Path, maker: str) -> None:
    made = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        getattr(script("downstream_data"), maker)(tmp_path / name)
        files = [each for each in sorted((tmp_path / name).rglob("*")) if each.is_file()]
        assert files
        made.append([(each.name, each.read_text()) for each in files])
    assert made[0] == made[1]


def test_the_equations_beside_thinc_s_notes_are_those_of_an_lstm(script: Any) -> None:
    import numpy as np

    from tests.downstream.plain_equations import cell_step

    rng = np.random.default_rng(3)
    ws = [rng.standard_normal((2, 3 if n < 4 else 2)) for n in range(8)]
    bs = [rng.standard_normal(2) for _ in range(8)]
    x, h, c = rng.standard_normal((3, 1, 3)), rng.standard_normal((1, 2)), np.ones((1, 2))
    found = script("downstream_thinc").equations(ws, bs, x, h, c)
    weights = [np.concatenate(each) for each in (ws[:4], ws[4:])]
    bias = (np.concatenate(bs[:4]) + np.concatenate(bs[4:]))[:, None]
    state = [h.T, c.T]
    for step, y in zip(x, found, strict=True):
        state = cell_step("lstm", (*weights, bias), step.T, state)
        np.testing.assert_allclose(y.T, state[0], rtol=1e-12)
