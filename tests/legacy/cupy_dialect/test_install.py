"""Being found under the old names: install(), uninstall(), installed()."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.legacy.cupy_dialect.cupy_stubs import make_cupy

ROOT = Path(__file__).parents[3]

Run = Callable[..., str]

BEGIN = """
import importlib, importlib.util, sys
from cudnn_compat.legacy.cupy import install, installed, uninstall
from cudnn_compat.legacy.cupy.hook import MODULES, state

def there(name):
    "Whether a name is in sys.modules, and whether its package has the attribute."
    package, _, attribute = name.rpartition(".")
    return name in sys.modules, hasattr(sys.modules.get(package), attribute)
"""


@pytest.fixture
def python(tmp_path: Path) -> Run:
    """Runs a program after BEGIN where a folder is on the path; gives what it prints."""

    def run(program: str, cupy: Path | None = None, begin: str = BEGIN) -> str:
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONWARNINGS"}
        paths = [str(ROOT), *([] if cupy is None else [str(cupy)])]
        block = "" if cupy is not None else "sys.modules['cupy'] = None  # also a real one\n"
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", begin + block + textwrap.dedent(program)],
            cwd=tmp_path,
            env=kept | {"PYTHONPATH": os.pathsep.join(paths)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        return done.stdout.strip()

    return run


@pytest.fixture
def cupy14(tmp_path: Path) -> Path:
    """A CuPy without cuDNN modules."""
    return make_cupy(tmp_path / "site", "14.0.0")


@pytest.fixture
def cupy13(tmp_path: Path) -> Path:
    """A CuPy whose own cuDNN modules work."""
    return make_cupy(tmp_path / "site", "13.6.0", "working")


@pytest.fixture
def shell(tmp_path: Path) -> Path:
    """A CuPy 13 that does not find its libcudnn.so.8."""
    return make_cupy(tmp_path / "site", "13.6.0", "shell")


NAMES = (
    "cupy.cudnn",
    "cupyx.cudnn",
    "cupy.cuda.cudnn",
    "cupy_backends.cuda.libs.cudnn",
)

each_name = pytest.mark.parametrize("name", NAMES)


@each_name
def test_each_old_name_is_importable_and_an_attribute_of_its_package(
    name: str, cupy14: Path, python: Run
) -> None:
    package, _, attribute = name.rpartition(".")
    program = f"""
        install()
        import {name}
        from {package} import {attribute} as by_from
        assert {name} is by_from is sys.modules[{name!r}]
        print(by_from.__name__, state())
        """
    half = "libcudnn" if "cuda" in name else "cudnn"
    assert python(program, cupy14) == f"cudnn_compat.legacy.cupy.{half} installed"


def test_two_names_are_one_module_so_that_what_is_patched_in_one_is_in_both(
    cupy14: Path, python: Run
) -> None:
    program = """
        install()
        import cupy.cudnn, cupyx.cudnn, cupy.cuda.cudnn, cupy_backends.cuda.libs.cudnn as low
        print(cupy.cudnn is cupyx.cudnn, cupy.cuda.cudnn is low, cupy.cudnn is low)
        """
    assert python(program, cupy14) == "True True False"


def test_the_modules_have_what_old_code_reads_first(cupy14: Path, python: Run) -> None:
    program = """
        install()
        import cupy.cuda.cudnn as low, cupy.cudnn as high
        print(low.CUDNN_LSTM, callable(low.getVersion), low.available)
        print(callable(high.rnn_forward_training), callable(high.get_handle))
        """
    assert python(program, cupy14).split() == ["2", *["True"] * 4]


@each_name
def test_find_spec_finds_it_before_and_after_it_is_imported(
    name: str, cupy14: Path, python: Run
) -> None:
    program = f"""
        assert importlib.util.find_spec({name!r}) is None
        install()
        before = importlib.util.find_spec({name!r})
        module = importlib.import_module({name!r})
        after = importlib.util.find_spec({name!r})
        assert before is not None and after is not None and module.__spec__ is after
        assert before.loader is not None and before.origin == after.origin == module.__file__
        assert after.name == module.__name__
        assert importlib.reload(module) is module
        uninstall()
        assert module.__spec__.name == module.__name__
        print(importlib.util.find_spec({name!r}))
        """
    assert python(program, cupy14) == "None"


def test_nothing_is_installed_by_importing_this_package(cupy14: Path, python: Run) -> None:
    program = """
        import cudnn_compat.legacy.cupy, cudnn_compat.legacy.cupy.cudnn
        print(state(), [importlib.util.find_spec(name) for name in MODULES] == [None] * 4)
        try:
            import cupy.cudnn
        except ModuleNotFoundError as error:
            print(error.name)
        """
    assert python(program, cupy14).splitlines() == ["not installed True", "cupy.cudnn"]


def test_installing_twice_is_the_same_as_once(cupy14: Path, python: Run) -> None:
    program = """
        before = list(sys.meta_path)
        install()
        once = list(sys.meta_path)
        install()
        import cupy.cudnn
        install(at_first_use=True)
        assert sys.meta_path == once and once[1:] == before
        uninstall()
        assert sys.meta_path == before
        print(state())
        uninstall()
        print(sys.meta_path == before)
        """
    assert python(program, cupy14).splitlines() == ["not installed", "True"]


def test_uninstalling_leaves_no_trace_and_modules_in_use_go_on_working(
    cupy14: Path, python: Run
) -> None:
    program = """
        import cupy, cupyx, cupy_backends.cuda.libs
        modules, attributes = set(sys.modules), {m: set(vars(sys.modules[m])) for m in
            ("cupy", "cupyx", "cupy.cuda", "cupy_backends.cuda.libs")}
        install()
        import cupy.cudnn, cupy_backends.cuda.libs.cudnn
        assert [there(name)[1] for name in MODULES] == [True] * 4
        kept = cupy.cuda.cudnn
        uninstall()
        assert all(there(name) == (False, False) for name in MODULES)
        assert all(set(vars(sys.modules[m])) == names for m, names in attributes.items())
        print(kept.CUDNN_GRU, state())
        install()
        print(cupy.cuda.cudnn is kept)
        """
    assert python(program, cupy14).splitlines() == ["3 not installed", "True"]


def test_what_somebody_else_has_put_there_since_is_left_alone(cupy14: Path, python: Run) -> None:
    program = """
        install()
        import cupy.cudnn
        cupy.cudnn = sys.modules["cupy.cudnn"] = "theirs"
        uninstall()
        print(cupy.cudnn, sys.modules["cupy.cudnn"])
        """
    assert python(program, cupy14) == "theirs theirs"


def test_the_context_manager_uninstalls_also_after_an_error(cupy14: Path, python: Run) -> None:
    program = """
        with installed():
            import cupy.cudnn
        print(state(), there("cupy.cudnn"))
        try:
            with installed():
                raise KeyError
        except KeyError:
            print(state())
        """
    assert python(program, cupy14).splitlines() == ["not installed (False, False)", "not installed"]


def test_the_context_manager_leaves_what_was_installed_before_it(cupy14: Path, python: Run) -> None:
    program = """
        install()
        with installed():
            with installed():
                pass
        import cupy.cudnn
        print(state())
        """
    assert python(program, cupy14) == "installed"


def test_blocks_of_threads_may_overlap_and_the_last_one_takes_the_names_away(
    cupy14: Path, python: Run
) -> None:
    program = """
        import threading
        first_is_in, second_is_in, first_is_out = (threading.Event() for _ in range(3))

        def first():
            with installed():
                first_is_in.set()
                second_is_in.wait(30)
            first_is_out.set()

        def second():
            first_is_in.wait(30)
            with installed():
                second_is_in.set()
                first_is_out.wait(30)
                import cupy.cudnn
                print(state())

        threads = [threading.Thread(target=work) for work in (first, second)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print(state(), there("cupy.cudnn"))
        """
    assert python(program, cupy14).splitlines() == ["installed", "not installed (False, False)"]


def test_a_cupy_that_is_imported_already_has_the_attributes_at_once(
    cupy14: Path, python: Run
) -> None:
    program = """
        import cupy, cupyx
        install()
        print(cupy.cuda.cudnn.CUDNN_LSTM, cupy.cudnn is cupyx.cudnn)
        """
    assert python(program, cupy14) == "2 True"


@pytest.mark.parametrize("how", ["", "at_first_use=True"])
def test_a_cupy_may_be_imported_later_and_one_name_brings_the_others(
    how: str, cupy14: Path, python: Run
) -> None:
    program = f"""
        install({how})
        print("cupy" in sys.modules)
        import cupy
        import cupy.cudnn
        print(cupy.cuda.cudnn.CUDNN_LSTM, state())
        """
    assert python(program, cupy14).splitlines() == ["False", "2 installed"]


def test_a_cupy_with_modules_of_its_own_that_work_is_not_covered(cupy13: Path, python: Run) -> None:
    program = """
        before = list(sys.meta_path)
        try:
            install()
        except NotImplementedError as error:
            print(type(error).__name__, error)
        assert sys.meta_path == before and state() == "not installed"
        import cupy.cudnn, cupy.cuda.cudnn
        print(cupy.cudnn.get_handle(), cupy.cuda.cudnn.getVersion())
        """
    said, found = python(program, cupy13).splitlines()
    assert said.startswith("UnsupportedError CuPy 13.6.0 has a cupy.cudnn of its own that works")
    assert "use it as it is" in said
    assert found == "CuPy's own 8907"


@each_name
def test_at_first_use_a_cupy_keeps_its_own_modules_whichever_is_asked_for_first(
    name: str, cupy13: Path, python: Run
) -> None:
    program = f"""
        with installed(at_first_use=True):
            first = state()
            import {name}
            print(first, "|", state())
            import cupy.cudnn, cupyx.cudnn, cupy.cuda.cudnn, cupy_backends.cuda.libs.cudnn as low
            print(cupyx.cudnn.get_handle(), cupy.cuda.cudnn.getVersion(), low.getVersion())
            assert {name}.__spec__.name == {name}.__name__ == {name!r}
        assert all(there(each) == (True, True) for each in MODULES)
        """
    assert python(program, cupy13).splitlines() == [
        "waiting | cupy has its own",
        "CuPy's own 8907 8907",
    ]


def test_its_own_modules_are_not_covered_either_when_they_are_in_use(
    cupy13: Path, python: Run
) -> None:
    program = """
        import cupy.cudnn
        try:
            install()
        except NotImplementedError:
            print(cupy.cudnn.get_handle())
        """
    assert python(program, cupy13) == "CuPy's own"


@pytest.mark.parametrize("before", ["pass", "import cupy", "import cupy.cuda.cudnn"])
def test_the_empty_shell_of_a_cupy_13_without_its_library_is_replaced_and_put_back(
    before: str, shell: Path, python: Run
) -> None:
    program = f"""
        import warnings; warnings.simplefilter("ignore", UserWarning)
        {before}
        empty = sys.modules.get("cupy.cuda.cudnn")
        warnings.simplefilter("error")
        install()
        import cupy.cudnn, cupy.cuda.cudnn, cupy_backends.cuda.libs.cudnn, cupyx.cudnn
        print(state(), cupy.cuda.cudnn.CUDNN_LSTM, cupy.cuda.cudnn.available)
        assert cupy.cuda.cudnn is cupy_backends.cuda.libs.cudnn
        uninstall()
        if empty is not None:
            assert cupy.cuda.cudnn is sys.modules["cupy.cuda.cudnn"] is empty
        warnings.simplefilter("ignore")
        import cupy.cuda.cudnn
        print(cupy.cuda.cudnn.available)
        """
    assert python(program, shell).splitlines() == ["installed 2 True", "False"]


def test_the_shell_is_replaced_at_first_use_too(shell: Path, python: Run) -> None:
    program = """
        install(at_first_use=True)
        import cupy.cuda.cudnn
        print(state(), cupy.cuda.cudnn.CUDNN_LSTM)
        """
    assert python(program, shell) == "installed 2"


def test_without_cupy_the_error_says_what_to_install_and_what_works_without_it(
    python: Run,
) -> None:
    program = """
        try:
            install()
        except ImportError as error:
            print(type(error).__name__, error)
        print(state())
        """
    said, after = python(program).splitlines()
    assert said.startswith("LibraryNotFound")
    assert "pip install 'cudnn-compat[cuda13]'" in said
    assert "cudnn_compat.legacy.cupy.cudnn itself" in said
    assert after == "not installed"


def test_at_first_use_no_cupy_is_no_error_until_the_name_is_used(python: Run) -> None:
    program = """
        with installed(at_first_use=True):
            try:
                import cupy.cudnn
            except ImportError as error:
                print(error.name)
        """
    assert python(program) in ("cupy", "cupy.cudnn")


@pytest.mark.parametrize("how", ["", "at_first_use=True"])
def test_installing_loads_neither_numpy_nor_cupy(how: str, cupy14: Path, python: Run) -> None:
    program = f"install({how})\nprint(sorted({{'numpy', 'cupy'}} & set(sys.modules)))"
    begin = "import sys\nfrom cudnn_compat.legacy.cupy import install\n"
    assert python(program, cupy14, begin) == "[]"


def test_threads_that_import_at_the_same_time_get_the_same_modules(
    cupy14: Path, python: Run
) -> None:
    program = """
        import threading
        install(at_first_use=True)
        import cupy, cupyx, cupy_backends.cuda.libs  # Python itself may hang where threads do this
        barrier, found = threading.Barrier(8), []
        def work(name):
            barrier.wait()
            found.append((name in ("cupy.cudnn", "cupyx.cudnn"), importlib.import_module(name)))
        threads = [threading.Thread(target=work, args=(name,)) for name in (*MODULES, *MODULES)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        print(len(found), len({id(module) for _, module in found}), len(set(found)))
        """
    assert python(program, cupy14) == "8 2 2"


@pytest.mark.gpu
def test_a_real_cupy_finds_them_and_they_compute() -> None:
    import cupy

    from cudnn_compat.legacy.cupy import installed
    from cudnn_compat.legacy.cupy.hook import state

    with installed():
        assert state() == "installed"
        from cupy import cudnn
        from cupy.cuda import cudnn as libcudnn

        x = cupy.asarray([[-1.0, 2.0]], "float32")
        y = cudnn.activation_forward(x, libcudnn.CUDNN_ACTIVATION_RELU)
        assert y.tolist() == [[0.0, 2.0]]
        assert libcudnn.getVersion() >= 8900
    assert not hasattr(cupy, "cudnn")
