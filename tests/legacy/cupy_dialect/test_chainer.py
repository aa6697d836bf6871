"""prepare_chainer(): what is missing is put back, what is there is left alone."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

from tests.chainer_python import chainer_python

ROOT = Path(__file__).parents[3]

BEGIN = """
import importlib, sys
import numpy as np
from cudnn_compat.legacy.cupy import prepare_chainer

class Gone:
    "As on a newer Python: the named modules, and what is below them, are not found."
    def __init__(self, *names): self.names = names
    def find_spec(self, name, path=None, target=None):
        if any(f"{name}.".startswith(f"{gone}.") for gone in self.names):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.modules.pop("pkg_resources", None)
sys.meta_path.insert(0, Gone("numpy.distutils", "pkg_resources"))
vars(np).pop("sctypes", None)
"""


def run(program: str, begin: str = BEGIN, python: str = sys.executable) -> str:
    """What a fresh interpreter prints for ``program`` after ``begin``."""
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [python, "-c", begin + textwrap.dedent(program)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_each_missing_thing_is_put_back_once_and_told_about_in_a_sentence() -> None:
    program = """
        said = prepare_chainer()
        for sentence in said: print(sentence)
        print(prepare_chainer())
        """
    *said, again = run(program).splitlines()
    names = ("numpy.sctypes", "numpy.distutils.system_info", "pkg_resources")
    assert [line.partition(":")[0] for line in said] == list(names)
    assert all(line.endswith(".") for line in said)
    assert again == "()"


def test_nothing_is_put_back_unless_it_is_called() -> None:
    program = """
        import cudnn_compat.legacy.cupy.chainer, cudnn_compat.legacy.cupy.cudnn
        print("sctypes" in vars(np), "pkg_resources" in sys.modules)
        """
    assert run(program) == "False False"


def test_what_is_there_already_is_left_as_it_is() -> None:
    program = """
        sys.meta_path.pop(0)
        for name in ("numpy.distutils", "numpy.distutils.system_info", "pkg_resources"):
            sys.modules[name] = type(sys)(name)
        np.sctypes = before = {}
        mine = sys.modules["pkg_resources"]
        print(prepare_chainer(), np.sctypes is before, sys.modules["pkg_resources"] is mine)
        """
    assert run(program) == "() True True"


def test_sctypes_has_one_type_of_each_size_as_numpy_1_had() -> None:
    program = """
        prepare_chainer()
        for kind in ("int", "uint", "float", "complex"):
            print(kind, *(each.__name__ for each in np.sctypes[kind]))
        """
    lines = run(program).splitlines()
    assert lines[0] == "int int8 int16 int32 int64"
    assert lines[1] == "uint uint8 uint16 uint32 uint64"
    assert lines[2].startswith("float float16 float32 float64")
    assert lines[3].startswith("complex complex64 complex128")


def test_the_stand_in_of_distutils_knows_of_no_library() -> None:
    program = """
        prepare_chainer()
        import numpy.distutils.system_info
        print(numpy.distutils.system_info.get_info("blas_opt"))
        """
    assert run(program) == "{}"


def test_the_stand_in_of_pkg_resources_tells_what_is_installed() -> None:
    program = """
        prepare_chainer()
        import importlib.metadata, pkg_resources
        found = pkg_resources.get_distribution("numpy")
        print(found.version == importlib.metadata.version("numpy"))
        print(pkg_resources.require("numpy>=1.9,<99")[0].project_name)
        pkg_resources.WorkingSet().require("numpy>=1.9", "numpy")
        for wanted in ("numpy<1.0", "no-such-package-here>=1"):
            try:
                pkg_resources.WorkingSet().require(wanted)
            except pkg_resources.ResolutionError as error:
                print(type(error).__mro__[1] is pkg_resources.ResolutionError, error)
        try:
            pkg_resources.require("numpy==0.1")
        except pkg_resources.DistributionNotFound:
            print("wrong")
        except pkg_resources.VersionConflict:
            print("conflict")
        """
    lines = run(program).splitlines()
    assert lines[:2] == ["True", "numpy"]
    assert lines[2].startswith("True numpy ")
    assert lines[2].endswith(" is installed, not numpy<1.0")
    assert lines[3] == "True the package 'no-such-package-here' is not installed"
    assert lines[4] == "conflict"


CHAINER = """
prepare_chainer()
import chainer
import chainer.functions as F, chainer.links as L, chainer.testing
"""


def test_chainer_itself_imports_and_computes_where_all_three_are_missing() -> None:
    program = """
        print(chainer.__version__)
        lstm = L.NStepLSTM(2, 3, 4, 0.0)
        xs = [np.ones((n, 3), "f") for n in (4, 2)]
        hy, cy, ys = lstm(None, None, [chainer.Variable(x) for x in xs])
        F.sum(hy).backward()
        print(hy.shape, [y.shape for y in ys], lstm[0].w0.grad is not None)
        print(F.as_strided(chainer.Variable(np.ones(4, "f")), (2, 2), (2, 1)).shape)
        """
    done = run(program, BEGIN + CHAINER, chainer_python())
    assert done.splitlines() == ["7.8.1", "(2, 2, 4) [(4, 4), (2, 4)] True", "(2, 2)"]
