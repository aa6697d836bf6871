"""The tests on other Pythons and NumPys than CI's: `nox`, or `nox -s 'tests(python="3.13")'`.

Unlike CI it takes the newest of everything that is not named here, so it also tells what a new
release of another project breaks. Pythons that are not installed are skipped.
"""

import sys

import nox

nox.options.default_venv_backend = "venv"
nox.options.error_on_missing_interpreters = False

# NumPy 1.26 and 2.0 have no wheels for Python 3.13 and later.
COMBINATIONS = [
    ("3.11", "1.26"),
    ("3.11", "2.4"),
    ("3.12", "1.26"),
    ("3.12", "2.0"),
    ("3.12", "2"),
    ("3.13", "2.1"),
    ("3.13", "2"),
    ("3.14", "2"),
]


@nox.session
@nox.parametrize("python,numpy", COMBINATIONS)
def tests(session: nox.Session, numpy: str) -> None:
    session.install(".[test,cli,migrate]", f"numpy=={numpy}.*")
    # Not the pages: some of their examples use PyTorch and ONNX.
    session.run("pytest", *(session.posargs or ["tests"]))


@nox.session(python="3.11")
def peers(session: nox.Session) -> None:
    """What uses other libraries, at their newest releases."""
    session.install(".[test,cli,peers]")
    session.run("pytest", *(session.posargs or ["tests/peers", "docs", "README.md"]))


@nox.session(python=False)
def matrix(session: nox.Session) -> None:
    """The compatibility matrix in the environments of cudnn_compat/matrix/environments.py.

    The script makes the environments itself, because those that cannot be made are told as well:
    `nox -s matrix`, `nox -s matrix -- --ci`, `nox -s matrix -- 'python-3.12-*'`.
    """
    session.run(sys.executable, "scripts/matrix_environments.py", *session.posargs)


@nox.session(python=False)
def downstream(session: nox.Session) -> None:
    """What other people wrote against the old APIs: scripts/downstream_table.py.

    The script makes an environment for each, and tells what cannot be had here:
    `nox -s downstream`, `nox -s downstream -- --json FILE 'Chainer*'`. docs/downstream.md says
    where the checkouts come from.
    """
    session.run(sys.executable, "scripts/downstream.py", *session.posargs)
