"""Make `cudnn_compat/cudnn/symbols.json`: which released cuDNN has which C function.

    python scripts/symbol_manifest.py [--scratch DIR] [--only 9.12] [--compare PACKAGE==VERSION]

Of each minor version from 8.8 on, the newest patch that NVIDIA's wheels have is downloaded, one
wheel at a time (600 MB to 900 MB each, deleted at once; all of them take about a quarter of an
hour), and the dynamic symbol table of its main library is read: the functions that a program finds
when it loads `libcudnn.so`. The result is written after every wheel, and what is in it already is
not downloaded again: an interrupted run goes on where it was, and a later one adds what was
released since. Never run in CI.

`--compare` reads one more wheel, of another CUDA or an older patch, writes nothing, and tells what
is not as in the newest patch of its minor version. Needs pyelftools (group `cudnn`).
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from elftools.elf.elffile import ELFFile
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # the package need not be installed

from cudnn_compat.cudnn.symbols import FILE, Manifest, read_manifest  # noqa: E402

OLDEST = (8, 8)
PACKAGES = ("nvidia-cudnn-cu12", "nvidia-cudnn-cu13", "nvidia-cudnn-cu11")
"""In the order in which one is taken where several have the same version."""

PLATFORMS = ("manylinux_2_28", "manylinux_2_27", "manylinux_2_17", "manylinux2014", "manylinux1")

MAIN = re.compile(r"libcudnn\.so\.\d+")
PARTS = re.compile(r"libcudnn_(?!engines|heuristic)\w+\.so\.\d+")
"""Where the functions are; the other libraries hold kernels."""

FUNCTION = re.compile(r"cudnn[A-Z]\w*")


def newest_patches() -> dict[str, tuple[str, str]]:
    """Minor version to (package, version) of its newest patch, oldest minor first."""
    found: dict[tuple[int, ...], tuple[Version, int, str]] = {}
    for index, package in enumerate(PACKAGES):
        listed = json.loads(_pip("index", "versions", package, "--json"))["versions"]
        for text in listed:
            version = Version(text)
            minor = version.release[:2]
            # The fourth number is of the build: it differs between CUDAs and means nothing here.
            new = Version(".".join(map(str, version.release[:3])))
            if minor >= OLDEST and (minor not in found or (new, -index) > found[minor][:2]):
                found[minor] = (new, -index, text)
    return {
        ".".join(map(str, minor)): (PACKAGES[-index], text)
        for minor, (_, index, text) in sorted(found.items())
    }


def _pip(*arguments: str) -> str:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"pip {' '.join(arguments)} failed with exit status {done.returncode}")
    return done.stdout


def read_release(package: str, version: str, scratch: Path | None) -> dict[str, Any]:
    """Download a wheel, read it, delete it."""
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        options = [f"--platform={name}_x86_64" for name in PLATFORMS]
        _pip(
            *("download", "--quiet", "--no-deps", "--no-cache-dir", "--only-binary=:all:"),
            *(*options, f"--dest={folder}", f"{package}=={version}"),
        )
        (wheel,) = Path(folder).glob("*.whl")
        with wheel.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        main, parts, libraries = read_wheel(wheel, Path(folder))
        about = {
            "version": ".".join(map(str, Version(version).release[:3])),
            "wheel": wheel.name,
            "sha256": digest,
            "bytes": wheel.stat().st_size,
            "libraries": libraries,
            "read": datetime.datetime.now(datetime.UTC).date().isoformat(),
        }
    # The main library only hands calls on: it would have nothing to hand them to.
    if hollow := sorted(main - parts):
        sys.exit(f"{wheel.name}: the main library has what no part has: {', '.join(hollow)}")
    return {"about": about, "functions": sorted(main)}


def read_wheel(wheel: Path, folder: Path) -> tuple[set[str], set[str], list[str]]:
    """Functions of the main library, those of its parts, and the names of all libraries."""
    main: set[str] = set()
    parts: set[str] = set()
    libraries = []
    with zipfile.ZipFile(wheel) as packed:
        for member in packed.namelist():
            name = Path(member).name
            if not re.fullmatch(r"libcudnn\w*\.so\.\d+", name):
                continue
            libraries.append(name)
            functions = main if MAIN.fullmatch(name) else parts
            if MAIN.fullmatch(name) or PARTS.fullmatch(name):
                # ELF is read at places all over the file, which a packed one does not allow.
                file = Path(packed.extract(member, folder))
                functions.update(exported(file))
                file.unlink()
    return main, parts, sorted(libraries)


def exported(library: Path) -> Iterator[str]:
    """The C functions of cuDNN that a shared library has for others."""
    with library.open("rb") as file:
        table = ELFFile(file).get_section_by_name(".dynsym")
        for symbol in table.iter_symbols():
            defined = symbol["st_shndx"] != "SHN_UNDEF"
            called = symbol["st_info"]["type"] == "STT_FUNC" and FUNCTION.fullmatch(symbol.name)
            if defined and called:
                yield symbol.name


def render(manifest: Manifest) -> str:
    """The text of the file: a line for each release and for each function."""
    releases = [json.dumps(release) for release in manifest.releases.values()]
    functions = [
        f"{json.dumps(name)}: {json.dumps(manifest.spans(name))}" for name in sorted(manifest.names)
    ]
    return (
        '{\n "about": "Made by scripts/symbol_manifest.py, do not edit.",\n'
        f' "releases": [{_lines(releases)}],\n "functions": {{{_lines(functions)}}}\n}}\n'
    )


def _lines(entries: list[str]) -> str:
    return ",".join(f"\n  {entry}" for entry in entries) + "\n "


def main() -> int:
    """Download what is missing, or compare; the exit status."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scratch", type=Path, help="where to put a wheel while it is read")
    parser.add_argument("--only", help="read only this minor version, also if it is there")
    parser.add_argument(
        "--compare", metavar="PACKAGE==VERSION", help="read one wheel, write nothing"
    )
    given = parser.parse_args()
    manifest = read_manifest()
    if given.compare:
        package, equal, version = given.compare.partition("==")
        if not equal:
            parser.error(f"--compare is {given.compare!r}; wanted PACKAGE==VERSION")
        return compare(manifest, package, version, given.scratch)
    for minor, (package, version) in newest_patches().items():
        known = manifest.releases.get(minor, {}).get("wheel", "")
        wanted = given.only in (None, minor)
        if not wanted or (given.only is None and f"-{version}-" in known):
            continue
        read = read_release(package, version, given.scratch)
        manifest = manifest.with_release(minor, read["about"], read["functions"])
        FILE.write_text(render(manifest), encoding="utf-8")
        print(f"{read['about']['wheel']}: {len(read['functions'])} functions", flush=True)
    return 0


def compare(manifest: Manifest, package: str, version: str, scratch: Path | None) -> int:
    """Print how a wheel differs from the newest patch of its minor version."""
    minor = ".".join(map(str, Version(version).release[:2]))
    theirs = set(read_release(package, version, scratch)["functions"])
    ours = set(manifest.functions[minor])
    for name in sorted(theirs - ours):
        print(f"{package} {version} has {name}, cuDNN {minor} in the manifest has not")
    for name in sorted(ours - theirs):
        print(f"cuDNN {minor} in the manifest has {name}, {package} {version} has not")
    if ours == theirs:
        print(f"{package} {version}: the same {len(ours)} functions as in the manifest")
    return int(ours != theirs)


if __name__ == "__main__":
    sys.exit(main())
