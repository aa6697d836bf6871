"""What later versions are held against: releases as they were made."""

from __future__ import annotations

import dataclasses
import importlib.util
import shutil
import subprocess
import sys
import zipfile
from functools import cached_property
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from api_rules import baselines  # noqa: E402
from api_snapshot import snapshots  # noqa: E402
from api_text import Snapshot, parse  # noqa: E402
from packaging.version import Version  # noqa: E402
from release import INPUTS, files_of, released, tree_version  # noqa: E402

from tests.semver.programs import Outcome, run_all  # noqa: E402

TRIAL = Version("2.0.0rc0")
"""What the tree is released as where nothing is released yet, and to try releasing."""


@dataclasses.dataclass(frozen=True)
class Oracle:
    """A release, and where its wheel was unpacked."""

    version: Version
    files: dict[str, Path]
    package: Path

    @cached_property
    def snapshot(self) -> Snapshot:
        return parse(self.files["snapshot"].read_text(encoding="utf-8"))


def copy_of_tree(folder: Path, section: str) -> Path:
    """What a release is made of, without the releases, and a changelog with one section."""
    for name in INPUTS:
        if (ROOT / name).is_dir():
            ignore = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, folder / name, ignore=ignore)
        else:
            shutil.copy(ROOT / name, folder)
    (folder / "CHANGELOG.md").write_text(f"# Changelog\n\n{section}\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of this tree that was released as TRIAL, and nothing before."""
    if importlib.util.find_spec("hatchling") is None:
        pytest.skip("making a release needs hatchling (group dev)")
    root = copy_of_tree(tmp_path_factory.mktemp("trial"), f"## {TRIAL} (2026-01-02)\n\n- A trial.")
    command = [sys.executable, str(ROOT / "scripts" / "release.py"), str(TRIAL)]
    done = subprocess.run(
        [*command, "--root", str(root)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return root


HELD_AGAINST = [*map(str, baselines(released(ROOT), tree_version(ROOT)))] or ["this tree"]


@pytest.fixture(scope="session", params=HELD_AGAINST)
def oracle(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Oracle:
    """The newest release, and the newest final one. Before the first there is this tree itself."""
    root, version = ROOT, TRIAL
    if request.param == "this tree":
        root = request.getfixturevalue("trial")
    else:
        version = Version(request.param)
    files = files_of(root, version)
    package = tmp_path_factory.mktemp("unpacked")
    zipfile.ZipFile(files["wheel"]).extractall(package)
    return Oracle(version, files, package)


@pytest.fixture(scope="session")
def tree() -> Snapshot:
    """The snapshot of this tree."""
    (snapshot,) = snapshots([ROOT])
    return snapshot


@pytest.fixture(scope="session")
def on_tree(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    """What each frozen program does on this tree."""
    return run_all(ROOT, tmp_path_factory.mktemp("on_tree"))
