"""Make `cudnn_compat/cudnn/prototypes.py` and `constants.py` from cuDNN's own headers.

    python scripts/generate_prototypes.py --headers-8 DIR [--headers-9 DIR] [--cuda DIR] [--check]

The headers come out of NVIDIA's wheels (`make test` installs those of major 9 and of CUDA):

    pip download --no-deps nvidia-cudnn-cu12==8.9.7.29     # unpack it: nvidia/cudnn/include
    pip install --no-deps nvidia-cudnn-cu12==9.19.0.56 nvidia-cuda-runtime nvidia-cuda-crt libclang

Without `--headers-8` the part of major 8 is taken from the committed files, so that only major 9 is
made anew. `--check` writes nothing, prints what would change and exits with 1 if anything would.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import importlib.metadata
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from cudnn_headers import FUNCTIONS, Headers, read_headers

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "cudnn_compat" / "cudnn"
MAJORS = (8, 9)

# -- what is written -------------------------------------------------------------------------------

MARK = "Generated, do not edit; made from the headers of cuDNN {versions} by\n{script}."

PROTOTYPES = '''\
"""Name, parameters and types of every function of cuDNN that is called.

{mark}

Enums are ``c_int``. Handles, descriptors, streams and addresses of device memory are ``c_void_p``,
which takes an integer, None, ``byref(…)`` and ctypes arrays. What the library writes to the host or
reads from arrays there is ``POINTER(…)``, which takes ``byref(…)`` and ctypes arrays of that type,
and None.
"""

# fmt: off
# ruff: noqa: C408, I001

from __future__ import annotations

from ctypes import (
    POINTER, c_char_p, c_double, c_float, c_int, c_int32, c_size_t, c_uint32, c_ulonglong, c_void_p,
)
from typing import Any, NamedTuple

__all__ = ["MADE_FROM", "PROTOTYPES", "Prototype"]


class Prototype(NamedTuple):
    """How a function is called."""

    parameters: tuple[str, ...]
    argtypes: tuple[Any, ...]
    restype: Any
    returns_status: bool


def _status(**parameters: Any) -> Prototype:
    return Prototype(tuple(parameters), tuple(parameters.values()), c_int, True)


def _returns(restype: Any, **parameters: Any) -> Prototype:
    return Prototype(tuple(parameters), tuple(parameters.values()), restype, False)


MADE_FROM = {made_from}
"""Major to the version whose headers were read."""

_BOTH = dict(
{both}
)

_ONLY_8 = dict(
{only_8}
)
_ONLY_9 = dict(
{only_9}
)

PROTOTYPES = {{8: _BOTH | _ONLY_8, 9: _BOTH | _ONLY_9}}
"""Major to name to prototype."""
'''

CONSTANTS = '''\
"""Values of the enums that the functions of :mod:`~cudnn_compat.cudnn.prototypes` take.

{mark}

A value that only one major has says so; no value differs between the majors, but for the status
codes, which changed altogether: ``STATUS_8`` and ``STATUS_9``, name to code in the order of the
header, where a name that is only another one's alias comes last.
"""

# fmt: off

from __future__ import annotations

{enums}
# cudnnStatus_t
STATUS_8 = {{
{status_8}
}}
STATUS_9 = {{
{status_9}
}}
'''


def render(majors: Mapping[int, Headers]) -> dict[str, str]:
    """Name of a file to its text."""
    mark = MARK.format(
        versions=" and ".join(majors[major].version for major in MAJORS),
        script=Path(__file__).resolve().relative_to(ROOT).as_posix(),
    )
    eight, nine = (majors[major].functions for major in MAJORS)
    both = {name: entry for name, entry in nine.items() if eight.get(name) == entry}
    missing = {f"cudnn{name}" for name in FUNCTIONS.split()} - set(eight) - set(nine)
    if missing:
        sys.exit(f"no header has {', '.join(sorted(missing))}")
    prototypes = PROTOTYPES.format(
        mark=mark,
        made_from=str({major: majors[major].version for major in MAJORS}).replace("'", '"'),
        both=_functions(both),
        only_8=_functions({name: eight[name] for name in eight if name not in both}),
        only_9=_functions({name: nine[name] for name in nine if name not in both}),
    )
    status = {major: majors[major].enums["cudnnStatus_t"] for major in MAJORS}
    constants = CONSTANTS.format(
        mark=mark,
        enums="\n".join(_enums(majors[8].enums, majors[9].enums)),
        status_8=_dictionary(status[8]),
        status_9=_dictionary(status[9]),
    )
    return {"prototypes.py": prototypes, "constants.py": constants}


def _functions(functions: Mapping[str, str]) -> str:
    lines: list[str] = []
    for name, entry in sorted(functions.items()):
        lines += textwrap.wrap(
            f"{entry}),",
            width=100,
            initial_indent=f"    {name}=",
            subsequent_indent=" " * 8,
            break_long_words=False,
        )
    return "\n".join(lines)


def _enums(
    eight: Mapping[str, Mapping[str, int]], nine: Mapping[str, Mapping[str, int]]
) -> Iterator[str]:
    for enum in sorted({*eight, *nine} - {"cudnnStatus_t"}):
        yield f"# {enum}"
        old, new = eight.get(enum, {}), nine.get(enum, {})
        for name in {**new, **old}:
            if name in old and name in new and old[name] != new[name]:
                sys.exit(f"{name} is {old[name]} in major 8 and {new[name]} in major 9")
            only = "" if name in old and name in new else f"  # only {8 if name in old else 9}.x"
            yield f"{name} = {new.get(name, old.get(name))}{only}"
        yield ""


def _dictionary(values: Mapping[str, int]) -> str:
    return "\n".join(f'    "{name}": {code},' for name, code in values.items())


# -- the command -----------------------------------------------------------------------------------


def committed(major: int) -> Headers:
    """What the committed files say of one major, as if its headers had been read."""
    (other,) = set(MAJORS) - {major}
    values = {
        ast.unparse(statement.targets[0]): statement.value
        for name in ("prototypes.py", "constants.py")
        for statement in ast.parse((TARGET / name).read_text(encoding="utf-8")).body
        if isinstance(statement, ast.Assign)
    }
    headers = Headers(ast.literal_eval(values["MADE_FROM"])[major])
    for functions in (values["_BOTH"], values[f"_ONLY_{major}"]):
        assert isinstance(functions, ast.Call)
        for each in functions.keywords:
            headers.functions[str(each.arg)] = ast.unparse(each.value).removesuffix(")")
    enum = ""
    for line in (TARGET / "constants.py").read_text(encoding="utf-8").splitlines():
        if named := re.match(r"# (\w+)$", line):
            enum = named[1]
        elif (found := re.match(r"(\w+) = (-?\d+)", line)) and f"# only {other}.x" not in line:
            headers.enums.setdefault(enum, {})[found[1]] = int(found[2])
    headers.enums["cudnnStatus_t"] = ast.literal_eval(values[f"STATUS_{major}"])
    return headers


def _installed(distributions: Iterable[str], header: str) -> Path | None:
    """The folder of a header inside an installed wheel."""
    for name in distributions:
        try:
            files = importlib.metadata.files(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        for file in files:
            path = Path(str(file.locate()))
            if path.name == header and path.exists():
                return path.parent
    return None


def main(arguments: list[str] | None = None) -> int:
    """Write or compare; the exit status."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--headers-8", type=Path, help="folder of cudnn.h of 8.9")
    parser.add_argument("--headers-9", type=Path, help="folder of cudnn.h of 9.x; else the wheel's")
    parser.add_argument("--cuda", type=Path, help="folder of cuda_runtime_api.h; else the wheel's")
    parser.add_argument("--check", action="store_true", help="compare only")
    given = parser.parse_args(arguments)
    nine = given.headers_9 or _installed(("nvidia-cudnn-cu12", "nvidia-cudnn-cu13"), "cudnn.h")
    cuda = given.cuda or _installed(("nvidia-cuda-runtime",), "cuda_runtime_api.h")
    if nine is None or cuda is None:
        parser.error("no headers: name their folders, or install the wheels (see --help)")
    eight = read_headers(given.headers_8, cuda) if given.headers_8 else committed(8)
    changed = False
    for name, text in render({8: eight, 9: read_headers(nine, cuda)}).items():
        path = TARGET / name
        old = path.read_text(encoding="utf-8") if path.exists() else ""
        changed |= old != text
        if given.check:
            labels = (f"{path} (committed)", f"{path} (from the headers)")
            sys.stdout.writelines(
                difflib.unified_diff(old.splitlines(True), text.splitlines(True), *labels)
            )
        else:
            path.write_text(text, encoding="utf-8")
    return int(changed and given.check)


if __name__ == "__main__":
    sys.exit(main())
