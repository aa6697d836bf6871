"""The manifest of functions against the real libraries, the prototypes and what NVIDIA wrote."""

from __future__ import annotations

import ctypes
import importlib.util
import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from packaging.version import Version

from cudnn_compat.cudnn.library import Library
from cudnn_compat.cudnn.prototypes import PROTOTYPES
from cudnn_compat.cudnn.symbols import FILE, Manifest, read_manifest
from cudnn_compat.errors import UnsupportedError

SCRIPT = Path(__file__).parents[2] / "scripts" / "symbol_manifest.py"

REMOVED_IN_9 = (
    *("cudnnRNNForwardInference", "cudnnRNNForwardTraining", "cudnnRNNBackwardData"),
    *("cudnnRNNBackwardWeights", "cudnnRNNForwardInferenceEx", "cudnnRNNForwardTrainingEx"),
    *("cudnnRNNBackwardDataEx", "cudnnRNNBackwardWeightsEx", "cudnnSetRNNDescriptor_v6"),
    *("cudnnGetRNNParamsSize", "cudnnGetRNNWorkspaceSize", "cudnnGetRNNTrainingReserveSize"),
    *("cudnnGetRNNLinLayerMatrixParams", "cudnnGetRNNLinLayerBiasParams"),
    *("cudnnCreatePersistentRNNPlan", "cudnnSetPersistentRNNPlan", "cudnnSetRNNPaddingMode"),
    *("cudnnSetRNNProjectionLayers", "cudnnSetRNNBiasMode", "cudnnSetRNNMatrixMathType"),
)
"""What programs written for cuDNN 7 call; the headers of 9 do not declare them any more."""

NEVER_DECLARED = {
    *("cudnnGetBackdoor", "cudnnSetBackdoor", "cudnnSetBackdoorEx"),
    "cudnnGetRNNDropoutLocationsInternal",
}
"""What the libraries have for NVIDIA's own use."""


@pytest.fixture(scope="module")
def script() -> ModuleType:
    pytest.importorskip("elftools", reason="reading ELF needs pyelftools (group cudnn)")
    spec = importlib.util.spec_from_file_location("symbol_manifest", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def same_minor(library: Library) -> str:
    minor = f"{library.version.major}.{library.version.minor}"
    if minor not in read_manifest().releases:
        pytest.skip(f"cuDNN {library.version} was released after the manifest was made")
    return minor


def test_the_library_has_exactly_what_the_manifest_says(each_library: Library) -> None:
    same_minor(each_library)
    manifest = read_manifest()
    asked = ctypes.CDLL(each_library.path)  # the loader of the system, which knows no manifest
    has = {name for name in manifest.names if hasattr(asked, name)}
    assert len(has) > 200
    assert has == {name for name in manifest.names if manifest.has(name, each_library.version)}


def test_the_library_has_no_function_that_the_manifest_does_not_know(
    each_library: Library, script: ModuleType
) -> None:
    minor = same_minor(each_library)
    assert set(script.exported(Path(each_library.path))) == read_manifest().functions[minor]


def test_the_manifest_has_what_the_headers_beside_the_library_declare(
    each_library: Library,
) -> None:
    minor = same_minor(each_library)
    include = Path(each_library.path).parents[1] / "include"
    texts = [path.read_text(encoding="utf-8") for path in include.glob("cudnn*.h")]
    if not texts:
        pytest.skip(f"there are no headers in {include}")
    code = re.sub(r"/\*.*?\*/", "", "".join(texts), flags=re.DOTALL)
    declared = set(re.findall(r"CUDNNWINAPI\s+(cudnn\w+)\s*\(", code))
    assert len(declared) > 200
    assert read_manifest().functions[minor] == declared | NEVER_DECLARED


@pytest.mark.parametrize("major", [8, 9])
def test_every_served_release_of_a_major_has_every_prototype(major: int) -> None:
    manifest = read_manifest()
    served = [minor for minor in manifest.releases if Version(minor).major == major]
    if major == 8:
        served.remove("8.8")
    assert served
    for minor in served:
        assert set(PROTOTYPES[major]) <= manifest.functions[minor], minor


def test_a_prototype_of_one_major_only_is_in_no_release_of_the_other() -> None:
    for mine, other in ((8, 9), (9, 8)):
        for name in set(PROTOTYPES[mine]) - set(PROTOTYPES[other]):
            spans = read_manifest().spans(name)
            assert all(span.startswith(f"{mine}.") for span in spans), name


def test_the_releases_are_every_minor_from_8_8_on_without_a_hole() -> None:
    releases = read_manifest().releases
    assert list(releases)[:3] == ["8.8", "8.9", "9.0"]
    assert list(releases)[2:] == [f"9.{minor}" for minor in range(len(releases) - 2)]
    for minor, facts in releases.items():
        assert facts["version"].startswith(f"{minor}.")
        assert f"-{facts['version']}." in facts["wheel"]
        assert f"libcudnn.so.{minor[0]}" in facts["libraries"]
        assert len(facts["sha256"]) == 64


@pytest.mark.parametrize("name", REMOVED_IN_9)
def test_the_old_calls_ended_with_8_9(name: str) -> None:
    assert read_manifest().history(name) == "it ended with cuDNN 8.9"
    assert read_manifest().in_words(name) == "8.8 to 8.9"
    assert read_manifest().has(name, Version("8.9.2")) is True
    assert read_manifest().has(name, Version("9.0.0")) is False


def test_after_9_0_no_function_of_rnns_came_or_went() -> None:
    manifest = read_manifest()
    newest = list(manifest.releases)[-1]
    names = [name for name in manifest.names if "RNN" in name]
    counts = Counter(span for name in names for span in manifest.spans(name))
    assert counts == {"8.8-8.9": 37, f"8.8-{newest}": 18, f"9.0-{newest}": 2}


@pytest.mark.parametrize(
    ("spans", "history", "words"),
    [
        ("abcd", "every released cuDNN from 9.1 to 9.4 has it", "9.1 to 9.4"),
        ("ab", "it ended with cuDNN 9.2", "9.1 to 9.2"),
        ("cd", "it exists from cuDNN 9.3 on", "9.3 to 9.4"),
        ("b", "it exists from cuDNN 9.2 on and it ended with cuDNN 9.2", "9.2"),
        ("ad", "it was away between 9.1 and 9.4", "9.1, 9.4"),
        ("", "no released cuDNN from 9.1 to 9.4 has it", ""),
    ],
)
def test_since_when_until_when_and_away_in_between(spans: str, history: str, words: str) -> None:
    minors = dict(zip("abcd", ("9.1", "9.2", "9.3", "9.4"), strict=True))
    manifest = Manifest(
        {minor: {} for minor in minors.values()},
        {minor: frozenset({"f"} if letter in spans else ()) for letter, minor in minors.items()},
    )
    assert manifest.history("f") == history
    assert manifest.in_words("f") == words


def test_of_a_release_that_was_not_read_nothing_is_claimed() -> None:
    assert read_manifest().has("cudnnRNNForward", Version("9.999.0")) is None
    assert read_manifest().has("cudnnRNNForward", Version("8.7.0")) is None


def test_the_committed_file_is_what_the_tool_writes(script: ModuleType) -> None:
    assert script.render(read_manifest()) == FILE.read_text(encoding="utf-8")


def test_a_release_that_is_read_again_takes_the_place_of_the_old_one() -> None:
    first = Manifest({}, {}).with_release("9.10", {"version": "9.10.0"}, ["f"])
    both = first.with_release("9.9", {"version": "9.9.0"}, ["f", "g"])
    assert list(both.releases) == ["9.9", "9.10"]
    assert both.spans("g") == ["9.9-9.9"]
    again = both.with_release("9.10", {"version": "9.10.2"}, ["g"])
    assert again.spans("g") == ["9.9-9.10"]
    assert again.spans("f") == ["9.9-9.9"]


def test_the_newest_patch_of_each_minor_is_chosen_whatever_its_build(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = {
        "nvidia-cudnn-cu12": ["9.28.0.42", "9.10.2.21", "8.9.7.29", "8.7.0.84"],
        "nvidia-cudnn-cu13": ["9.28.1.4", "9.10.1.4"],
        "nvidia-cudnn-cu11": ["9.10.2.21", "8.9.6.50", "8.8.1.3"],
    }

    def pip(*arguments: str) -> str:
        return json.dumps({"versions": listed[arguments[2]]})

    monkeypatch.setattr(script, "_pip", pip)
    assert script.newest_patches() == {
        "8.8": ("nvidia-cudnn-cu11", "8.8.1.3"),
        "8.9": ("nvidia-cudnn-cu12", "8.9.7.29"),
        "9.10": ("nvidia-cudnn-cu12", "9.10.2.21"),
        "9.28": ("nvidia-cudnn-cu13", "9.28.1.4"),
    }


def test_the_data_is_not_read_before_it_is_asked_for(python: Callable[..., str]) -> None:
    said = python(
        "import sys",
        "opened = []",
        "sys.addaudithook(lambda event, told: event == 'open' and opened.append(str(told[0])))",
        "import cudnn_compat.cudnn.library, cudnn_compat.cudnn.symbols as symbols",
        "print(any('symbols.json' in each for each in opened))",
        "symbols.read_manifest(), symbols.read_manifest()",
        "print(sum('symbols.json' in each for each in opened))",
    )
    assert said.split() == ["False", "1"]


def test_a_missing_function_is_told_with_the_releases_that_have_it(each_library: Library) -> None:
    name, known = (
        ("cudnnAdvInferVersionCheck", "it ended with cuDNN 8.9")
        if each_library.major == 9
        else ("cudnnGetLastErrorString", "it exists from cuDNN 9.0 on")
    )
    with pytest.raises(UnsupportedError, match=f"has no {name}: {known}"):
        getattr(each_library, name)


def test_an_old_call_without_a_prototype_is_told_with_its_end(library: Library) -> None:
    with pytest.raises(AttributeError, match="cudnnRNNForwardTraining': it ended with cuDNN 8.9"):
        library.cudnnRNNForwardTraining  # noqa: B018
    with pytest.raises(AttributeError, match="prototype 'cudnnNeverWas'$"):
        library.cudnnNeverWas  # noqa: B018
