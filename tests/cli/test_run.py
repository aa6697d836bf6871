"""``cudnn-compat run``: what a program sees while it runs, and how it ends."""

from __future__ import annotations

import json
import os
import py_compile
import signal
import subprocess
import sys
import textwrap
import threading
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from cudnn_compat.cli.app import app

Run = Callable[..., subprocess.CompletedProcess[str]]

WHAT_IT_SEES = """\
import json, sys
import __main__
print(json.dumps({
    "argv": sys.argv,
    "path": sys.path[0],
    "name": __name__,
    "file": __file__,
    "main": __main__.__dict__ is globals(),
    "spec": __spec__ and __spec__.name,
}))
"""


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return path


@pytest.mark.parametrize("arguments", [(), ("--quiet", "--report", "x", "-m", "--help", "--", "a")])
def test_a_program_sees_what_it_sees_under_python(
    tmp_path: Path, python: Run, command: Run, arguments: tuple[str, ...]
) -> None:
    program = str(write(tmp_path / "folder" / "program.py", WHAT_IT_SEES))
    alone = python(program, *arguments)
    assert json.loads(alone.stdout)["argv"][1:] == list(arguments)
    assert command("run", program, *arguments).stdout == alone.stdout


def test_a_relative_path_gives_an_absolute_file_as_under_python(
    tmp_path: Path, python: Run, command: Run
) -> None:
    write(tmp_path / "folder" / "program.py", WHAT_IT_SEES)
    alone = json.loads(python("folder/program.py").stdout)
    under = json.loads(command("run", "folder/program.py").stdout)
    assert under == alone
    assert Path(under["file"]).is_absolute()


LEFT_BEHIND = """\
import atexit, pickle, threading, time

class Checkpoint:
    pass

def save(where):
    pickle.dumps(Checkpoint())
    print("saved", where)

def later():
    time.sleep(0.3)
    save("in a thread")

threading.Thread(target=later).start()
atexit.register(save, "at exit")
"""


def test_what_a_program_leaves_behind_still_finds_its_main(
    tmp_path: Path, python: Run, command: Run
) -> None:
    program = str(write(tmp_path / "program.py", LEFT_BEHIND))
    under = command("run", program)
    assert under.stdout == python(program).stdout == "saved in a thread\nsaved at exit\n"
    assert under.returncode == 0, under.stderr


def test_byte_code_is_a_program(tmp_path: Path, python: Run, command: Run) -> None:
    source = write(tmp_path / "program.py", "print(__name__, 1 + 1)")
    compiled = str(tmp_path / "program.pyc")
    py_compile.compile(str(source), compiled)
    assert command("run", compiled).stdout == python(compiled).stdout == "__main__ 2\n"


def test_a_program_may_close_its_streams(tmp_path: Path, python: Run, command: Run) -> None:
    program = str(
        write(tmp_path / "program.py", "import sys; sys.stdout.close(); sys.stderr.close()")
    )
    assert python(program).returncode == 0
    assert command("run", program).returncode == 0


def test_a_module_sees_what_it_sees_under_python(tmp_path: Path, python: Run, command: Run) -> None:
    write(tmp_path / "package" / "__init__.py", "")
    write(tmp_path / "package" / "neighbour.py", "")
    write(tmp_path / "package" / "tool.py", "from . import neighbour\n" + WHAT_IT_SEES)
    alone = python("-m", "package.tool", "-m", "x")
    assert alone.returncode == 0, alone.stderr
    under = command("run", "-m", "package.tool", "-m", "x")
    assert under.stdout == alone.stdout


@pytest.mark.parametrize("packed", [False, True])
def test_a_folder_or_zip_file_with_a_main_is_a_program(
    tmp_path: Path, python: Run, command: Run, packed: bool
) -> None:
    if packed:
        with zipfile.ZipFile(tmp_path / "app", "w") as archive:
            archive.writestr("__main__.py", "import other")
            archive.writestr("other.py", "import sys; print(sys.path[0])")
    else:
        write(tmp_path / "app" / "__main__.py", "import other")
        write(tmp_path / "app" / "other.py", "import sys; print(sys.path[0])")
    program = str(tmp_path / "app")
    alone = python(program)
    assert alone.returncode == 0, alone.stderr
    assert command("run", program).stdout == alone.stdout == f"{program}\n"


def test_a_program_imports_its_neighbours(tmp_path: Path, command: Run) -> None:
    write(tmp_path / "there" / "neighbour.py", "word = 'found'")
    write(tmp_path / "there" / "program.py", "from neighbour import word; print(word)")
    assert command("run", "there/program.py").stdout == "found\n"


@pytest.mark.parametrize(
    ("before", "behind", "seen"),
    [
        ((), ("--", "--steps", "5"), ["--steps", "5"]),
        (("--",), ("--steps", "5"), ["--steps", "5"]),
        ((), ("a", "--", "b"), ["a", "--", "b"]),
        ((), ("--", "--", "b"), ["--", "b"]),
    ],
)
def test_one_double_dash_before_or_behind_the_program_is_dropped(
    tmp_path: Path,
    command: Run,
    before: tuple[str, ...],
    behind: tuple[str, ...],
    seen: list[str],
) -> None:
    program = write(tmp_path / "program.py", "import sys; print(sys.argv[1:])")
    assert command("run", *before, str(program), *behind).stdout == f"{seen}\n"


def test_nothing_is_loaded_that_a_program_may_want_to_prepare_for(
    tmp_path: Path, command: Run
) -> None:
    program = write(
        tmp_path / "program.py", "import sys; print({'numpy', 'cupy'} & set(sys.modules))"
    )
    assert command("run", str(program)).stdout == "set()\n"


def test_standard_input_is_the_program_s(tmp_path: Path, environment: dict[str, str]) -> None:
    program = write(tmp_path / "program.py", "print(input().upper())")
    done = subprocess.run(
        [sys.executable, "-m", "cudnn_compat", "run", str(program)],
        env=environment,
        input="word\n",
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "WORD\n"


@pytest.mark.parametrize(
    "ending", ["", "sys.exit()", "sys.exit(3)", "sys.exit('words')", "sys.exit(True)", "exit(300)"]
)
def test_the_exit_status_is_the_program_s(
    tmp_path: Path, python: Run, command: Run, ending: str
) -> None:
    program = str(write(tmp_path / "program.py", f"import sys\n{ending}\n"))
    alone, under = python(program), command("run", "--quiet", program)
    assert (under.returncode, under.stderr) == (alone.returncode, alone.stderr)


@pytest.mark.parametrize(
    "text",
    [
        """
        def divide():
            try:
                {}["key"]
            except KeyError as error:
                raise ValueError("what it says") from error
        divide()
        """,
        "x = (\ny = 2\n",
        "import no_such_module\n",
        "raise ImportError('by hand')\n",
        """
        import sys
        sys.excepthook = lambda kind, error, trace: print(kind, error, trace.tb_lineno)
        raise ValueError("hooked")
        """,
    ],
    ids=["chained", "syntax", "import", "raised", "hook"],
)
def test_an_exception_is_shown_as_python_shows_it(
    tmp_path: Path, python: Run, command: Run, text: str
) -> None:
    program = str(write(tmp_path / "program.py", text))
    alone, under = python(program), command("run", "--quiet", program)
    assert alone.returncode == under.returncode == 1
    assert (under.stdout, under.stderr) == (alone.stdout, alone.stderr)


def test_a_failing_program_still_gets_its_report(
    legacy_program: Path, command: Run, tmp_path: Path
) -> None:
    text = legacy_program.read_text(encoding="utf-8")
    program = write(tmp_path / "failing.py", text + "raise RuntimeError('late')\n")
    done = command("run", str(program))
    assert done.returncode == 1
    assert done.stderr.index("RuntimeError: late") < done.stderr.index("made 8 old calls")


def test_ctrl_c_ends_with_130_and_a_report(tmp_path: Path, command: Run) -> None:
    program = write(tmp_path / "program.py", "print('begun')\nraise KeyboardInterrupt\n")
    done = command("run", str(program))
    assert done.returncode == 130
    assert done.stdout == "begun\n"
    assert "KeyboardInterrupt" in done.stderr
    assert done.stderr.endswith(f"cudnn-compat: {program} made no old calls\n")


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT")
def test_a_signal_ends_with_130_too(tmp_path: Path, environment: dict[str, str]) -> None:
    program = write(tmp_path / "program.py", "import time\nprint('on', flush=True)\ntime.sleep(60)")
    process = subprocess.Popen(
        [sys.executable, "-m", "cudnn_compat", "run", str(program)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        # What runs in the background of a shell inherits that the signal is ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == "on\n"
        time.sleep(0.1)
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(timeout=20) == 130


def test_a_program_that_is_not_there_is_wrong_usage() -> None:
    done = CliRunner().invoke(app, ["run", "no_such_file.py"])
    assert done.exit_code == 2
    assert "there is no file 'no_such_file.py'; use -m for a module" in done.stderr


def test_an_unknown_option_before_the_program_is_wrong_usage(legacy_program: Path) -> None:
    done = CliRunner().invoke(app, ["run", "--reprot", "x", str(legacy_program)])
    assert done.exit_code == 2
    assert "--reprot" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("-m", "no_such_module"), "No module named no_such_module"),
        (("empty",), "can't find '__main__' module in"),
    ],
)
def test_nothing_to_run_is_said_in_one_line(
    tmp_path: Path, command: Run, arguments: tuple[str, ...], words: str
) -> None:
    (tmp_path / "empty").mkdir()
    done = command("run", *arguments)
    assert done.returncode == 1
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_threads_that_the_caller_had_before_are_not_waited_for(tmp_path: Path) -> None:
    end = threading.Event()
    waiting = threading.Thread(target=end.wait, args=(60,))
    waiting.start()
    try:
        program = write(tmp_path / "program.py", "print('done')")
        assert CliRunner().invoke(app, ["run", "-q", str(program)]).exit_code == 0
        assert waiting.is_alive()
    finally:
        end.set()
        waiting.join()


def test_the_caller_s_own_main_comes_back(tmp_path: Path) -> None:
    own = sys.modules["__main__"]
    program = write(tmp_path / "program.py", "raise ValueError")
    assert CliRunner().invoke(app, ["run", "-q", str(program)]).exit_code == 1
    assert sys.modules["__main__"] is own


def test_a_program_may_put_an_object_of_its_own_in_place_of_stderr(
    tmp_path: Path, command: Run
) -> None:
    program = write(
        tmp_path / "program.py",
        """
        import sys

        class Tee:
            write, flush = sys.stderr.write, sys.stderr.flush

        sys.stderr = Tee()
        sys.exit(7)
        """,
    )
    done = command("run", "--report", "r.json", str(program))
    assert done.returncode == 7, done.stderr
    assert "made no old calls" in done.stderr
    assert json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["status"] == 7
