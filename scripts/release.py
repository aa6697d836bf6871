"""Make a release: its wheel, the snapshot of its public API, its pickles.

    make release VERSION=2.0.0rc1         (python scripts/release.py 2.0.0rc1)

Nothing is written unless everything is right: the version is later than every release, it may make
the changes that were made since (docs/compatibility.md), no old name is overdue, and CHANGELOG.md
has a section ``## VERSION (YYYY-MM-DD)``. Then the version stands in ``cudnn_compat/_version.py``
and three files in ``tests/semver``, which later versions are held against. A release is never made
twice. docs/releasing.md tells what comes before and after.

The wheel is made of its files and that date alone, so another machine with the same hatchling makes
the same bytes.
"""

from __future__ import annotations

import argparse
import datetime
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Final

from api_rules import baselines, changes, overdue, problems, section
from api_snapshot import snapshots
from api_text import parse, render
from packaging.version import InvalidVersion, Version

__all__ = ["Refused", "build_wheel", "files_of", "release", "released", "tree_version"]

ROOT: Final = Path(__file__).parents[1]
INPUTS: Final = ("pyproject.toml", "README.md", "LICENSE", "cudnn_compat")
"""What a wheel is made of."""

HEADING: Final = """\
The public API of cudnn_compat {version}, as its wheel has it. Made by scripts/release.py and never
edited: later versions are held against it. docs/compatibility.md says what may change when."""


class Refused(Exception):
    """This release must not be made; the text says why and what to do."""


def files_of(root: Path, version: Version) -> dict[str, Path]:
    """The three files of a release, by what they are."""
    folder = root / "tests" / "semver"
    return {
        "snapshot": folder / "api" / f"{version}.txt",
        "wheel": folder / "wheels" / f"cudnn_compat-{version}-py3-none-any.whl",
        "pickles": folder / "pickles" / f"{version}.pickle",
    }


def released(root: Path) -> list[Version]:
    """All releases, oldest first: those that have a snapshot."""
    folder = root / "tests" / "semver" / "api"
    return sorted(Version(file.stem) for file in folder.glob("*.txt"))


def tree_version(root: Path) -> Version:
    """The version that the tree says it is."""
    text = (root / "cudnn_compat" / "_version.py").read_text(encoding="utf-8")
    return Version(text.partition('"')[2].partition('"')[0])


def build_wheel(root: Path, into: Path, date: datetime.date) -> Path:
    """The wheel of the package under ``root``, dated ``date``."""
    midnight = datetime.datetime.combine(date, datetime.time(), datetime.UTC)
    environment = os.environ | {"SOURCE_DATE_EPOCH": str(int(midnight.timestamp()))}
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(into)]
    done = subprocess.run(
        build, cwd=root, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise Refused(f"the wheel cannot be built:\n{done.stderr}")
    (wheel,) = into.glob("*.whl")
    return wheel


def release(root: Path, version: Version) -> dict[str, Path]:
    """Make the release of the tree under ``root``.

    Returns:
        Its three files.

    Raises:
        Refused: nothing was written.
    """
    before, made = released(root), files_of(root, version)
    for file in made.values():
        if file.exists():
            raise Refused(f"{version} is released already ({file}): a release is never made twice")
    if version.is_devrelease or version.local is not None or version.post is not None:
        raise Refused(f"{version} is no version to release: wanted X.Y.Z or X.Y.ZrcN")
    if before and version < before[-1]:
        raise Refused(f"{version} is earlier than {before[-1]}, which is released")
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    date = _date(changelog, version)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tree = _copy(root, folder / "tree", version)
        wheel = build_wheel(tree, folder / "wheel", date)
        unpacked = folder / "unpacked"
        zipfile.ZipFile(wheel).extractall(unpacked)
        # Of the wheel, not of the tree: this is what people get.
        (snapshot,) = snapshots([unpacked])
        wrong = overdue(snapshot, version)
        for old in baselines(before, version):
            text = files_of(root, old)["snapshot"].read_text(encoding="utf-8")
            wrong += problems(
                parse(text), old, snapshot, version, section(changelog, version) or ""
            )
        if wrong:
            raise Refused(f"this cannot be {version}:\n- " + "\n- ".join(wrong))
        pickles = _pickle(unpacked, folder / "pickles")
        texts = {"snapshot": render(snapshot, HEADING.format(version=version)).encode()}
        for what, content in (
            texts | {"wheel": wheel.read_bytes(), "pickles": pickles.read_bytes()}
        ).items():
            made[what].parent.mkdir(parents=True, exist_ok=True)
            made[what].write_bytes(content)
        shutil.copy(tree / "cudnn_compat" / "_version.py", root / "cudnn_compat")
    return made


def _date(changelog: str, version: Version) -> datetime.date:
    """The date of the version's section, which must have something to say."""
    text = section(changelog, version)
    wanted = f"wanted '## {version} (YYYY-MM-DD)' and what changed under it"
    if text is None:
        raise Refused(f"CHANGELOG.md has no section for {version}: {wanted}")
    heading, _, body = text.partition("\n")
    date = re.fullmatch(r"## \S+ \((\d{4}-\d\d-\d\d)\)", heading.strip())
    if date is None or not body.strip():
        raise Refused(f"CHANGELOG.md has {heading.strip()!r}, without a date or text: {wanted}")
    return datetime.date.fromisoformat(date[1])


def _copy(root: Path, to: Path, version: Version) -> Path:
    """What the wheel is made of, with the version in it."""
    ignore = shutil.ignore_patterns("__pycache__")
    to.mkdir()
    for name in INPUTS:
        if (root / name).is_dir():
            shutil.copytree(root / name, to / name, ignore=ignore)
        else:
            shutil.copy(root / name, to)
    (to / "cudnn_compat" / "_version.py").write_text(
        f'__version__ = "{version}"\n', encoding="utf-8"
    )
    return to


def _pickle(package: Path, file: Path) -> Path:
    script = str(Path(__file__).with_name("api_pickles.py"))
    done = subprocess.run(
        [sys.executable, script, str(file)],
        env=os.environ | {"PYTHONPATH": str(package)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise Refused(f"the pickles cannot be made:\n{done.stderr}")
    return file


def main(arguments: list[str] | None = None) -> None:
    """Make a release, or say why not and exit with 1."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("version", help="as it will be called: 2.0.0rc1, 2.0.0, 2.1.0")
    parser.add_argument("--root", type=Path, default=ROOT, help="the tree (this one)")
    options = parser.parse_args(arguments)
    root: Path = options.root.resolve()
    before = released(root)
    try:
        version = Version(options.version)
        made = release(root, version)
    except (InvalidVersion, Refused) as error:
        raise SystemExit(f"release.py: {error}") from None
    for file in made.values():
        print(f"{file.relative_to(root)}  {file.stat().st_size:,} bytes")
    if before:
        old, new = (
            parse(files_of(root, each)["snapshot"].read_text(encoding="utf-8"))
            for each in (before[-1], version)
        )
        print(f"\nSince {before[-1]}:")
        for change in changes(old, new):
            print(f"  {change.level.name.lower():7} {change.text}")
    print("\nNow: make test, commit these files, tag the commit (docs/releasing.md).")


if __name__ == "__main__":
    main()
