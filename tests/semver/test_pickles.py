"""What a release pickled is read by this tree, and is the same object."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import api_pickles
import pytest
from release import files_of, released

from cudnn_compat import errors, v2
from tests.semver.conftest import ROOT, TRIAL

RELEASES = [*map(str, released(ROOT))] or ["this tree"]


@pytest.fixture(scope="module", params=RELEASES)
def stored(request: pytest.FixtureRequest) -> Path:
    """The pickles of every release there was; before the first, of this tree."""
    if request.param == "this tree":
        return files_of(request.getfixturevalue("trial"), TRIAL)["pickles"]
    return files_of(ROOT, request.param)["pickles"]


def test_every_pickle_of_a_release_loads_and_is_what_it_was(stored: Path) -> None:
    objects = api_pickles.load(stored)
    assert objects.keys() <= api_pickles.RECIPES.keys(), "a recipe is never dropped"
    assert len(objects) > 20
    for name, found in objects.items():
        assert api_pickles.same(found, api_pickles.RECIPES[name]()), name


@pytest.mark.parametrize("name", api_pickles.RECIPES)
def test_two_objects_of_a_recipe_are_the_same_and_one_that_was_changed_is_not(name: str) -> None:
    made = api_pickles.RECIPES[name]()
    assert api_pickles.same(made, api_pickles.RECIPES[name]())
    other = pickle.loads(pickle.dumps(made))
    if isinstance(made, BaseException):
        other.args = ("other",)
    elif isinstance(made, v2.RNNSpec):
        other = made.replace(dropout=0.125, num_layers=3)
    elif isinstance(made, v2.DropoutState):
        other.restart(made.seed + 1)
    elif isinstance(made, v2.Packed):
        other.data[0, 0] += 1
    else:
        (other.params if hasattr(other, "params") else other.w)[0] += 1
    assert not api_pickles.same(made, other)


def test_every_error_is_pickled(stored: Path) -> None:
    assert set(errors.__all__) <= set(api_pickles.RECIPES)
    assert "CuDNNError" in api_pickles.load(stored)


def test_what_is_pickled_can_be_copied() -> None:
    for name, make in api_pickles.RECIPES.items():
        assert api_pickles.same(copy.deepcopy(make()), make()), name
