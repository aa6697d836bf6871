"""No frozen file is changed, added or missing."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest

HERE = Path(__file__).parent
FROZEN = ("flux_style", "cupy_style", "chainer_tagger")
"""The folders that hold frozen programs."""


def differences(folder: Path) -> list[str]:
    """How the frozen programs under ``folder`` differ from its manifest: one line per file."""
    lines = (folder / "MANIFEST.sha256").read_text(encoding="utf-8").splitlines()
    listed = {name: checksum for checksum, _, name in (line.partition("  ") for line in lines)}
    present = {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for program in FROZEN
        for path in (folder / program).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    found = [f"{name} is missing" for name in sorted(listed.keys() - present.keys())]
    found += [f"{name} is not in the manifest" for name in sorted(present.keys() - listed.keys())]
    both = sorted(listed.keys() & present.keys())
    return found + [f"{name} was changed" for name in both if listed[name] != present[name]]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the frozen programs and their manifest that a test may damage."""
    shutil.copy(HERE / "MANIFEST.sha256", tmp_path)
    for program in FROZEN:
        shutil.copytree(HERE / program, tmp_path / program)
    return tmp_path


def test_the_frozen_programs_are_as_they_were_frozen() -> None:
    assert not differences(HERE), "frozen programs are never edited: see tests/downstream/README.md"


def test_the_manifest_names_the_program_and_its_library() -> None:
    manifest = (HERE / "MANIFEST.sha256").read_text(encoding="utf-8")
    assert "  flux_style/train.py\n" in manifest
    assert "  flux_style/fluxlike/curnn.py\n" in manifest


def test_one_changed_character_is_noticed(copy: Path) -> None:
    program = copy / "flux_style" / "train.py"
    program.write_bytes(program.read_bytes().replace(b"0.2", b"0.3", 1))
    assert differences(copy) == ["flux_style/train.py was changed"]


def test_a_missing_and_an_added_file_are_noticed(copy: Path) -> None:
    library = copy / "flux_style" / "fluxlike"
    (library / "layers.py").rename(library / "layer.py")
    assert differences(copy) == [
        "flux_style/fluxlike/layers.py is missing",
        "flux_style/fluxlike/layer.py is not in the manifest",
    ]
