"""The command itself: how it is started, its help, and what it says where it cannot start."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest
from click.testing import CliRunner

import cudnn_compat
from cudnn_compat.cli.app import app

Run = Callable[..., subprocess.CompletedProcess[str]]

OPTIONS = {
    "run": {"-m", "--report", "--quiet"},
    "info": {"--json"},
    "matrix": {"--json", "--only", "--brief", "--failed", "--merge", "--html"},
    "bench": {
        "--only",
        "--quick",
        "--rounds",
        "--engine",
        "--parts",
        "--threads",
        "--budget",
        "--json",
        "--plot",
        "--from",
        "--markdown",
    },
    "explain": {"--all"},
    "tuning": {"--json", "--clear", "--add"},
    "migrate": {"--diff", "--check", "--write", "--quiet"},
}


def test_the_version_is_the_package_s(command: Run) -> None:
    assert command("--version").stdout == f"cudnn-compat {cudnn_compat.__version__}\n"


def test_both_ways_to_start_it_are_the_same(python: Run, command: Run) -> None:
    script = "import sys; from cudnn_compat.cli import main; sys.exit(main())"
    assert python("-c", script, "--help").stdout == command("--help").stdout


def test_main_takes_arguments_and_exits(capsys: pytest.CaptureFixture[str]) -> None:
    from cudnn_compat.cli import main

    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
    assert cudnn_compat.__version__ in capsys.readouterr().out


def test_the_help_names_every_command_with_an_example() -> None:
    done = CliRunner().invoke(app, ["--help"])
    assert done.exit_code == 0
    for name in OPTIONS:
        assert f"\n  cudnn-compat {name}" in done.output
        assert f"\n  {name} " in done.output
    assert set(app.commands) == set(OPTIONS)


@pytest.mark.parametrize("name", OPTIONS)
def test_the_help_of_a_command_explains_each_option(name: str) -> None:
    done = CliRunner().invoke(app, [name, "--help"])
    assert done.exit_code == 0
    declared = {option for each in app.commands[name].params for option in each.opts}
    assert declared >= OPTIONS[name]
    for option in OPTIONS[name]:
        assert option in done.output
    for parameter in app.commands[name].params:
        assert parameter.param_type_name == "argument" or parameter.help  # type: ignore[attr-defined]


def test_an_unknown_command_is_wrong_usage() -> None:
    assert CliRunner().invoke(app, ["nonsense"]).exit_code == 2


@pytest.mark.parametrize("missing", ["click", "rich"])
@pytest.mark.parametrize("arguments", [(), ("info",), ("run", "old.py")])
def test_without_click_or_rich_it_says_what_to_install(
    python: Run, missing: str, arguments: tuple[str, ...]
) -> None:
    program = (
        f"import sys; sys.modules[{missing!r}] = None; from cudnn_compat.cli import main; main()"
    )
    done = python("-c", program, *arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "pip install 'cudnn-compat[cli]'" in done.stderr
    assert missing in done.stderr
    assert "Traceback" not in done.stderr


def test_the_help_loads_neither_numpy_nor_cupy(python: Run) -> None:
    program = (
        "import sys\n"
        "from cudnn_compat.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: print({'numpy', 'cupy'} & set(sys.modules))\n"
    )
    assert python("-c", program).stdout.endswith("\nset()\n")
