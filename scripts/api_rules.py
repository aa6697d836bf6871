"""Which difference of two snapshots needs which version: pure functions, no file and no import.

docs/compatibility.md says the same in words.
"""

from __future__ import annotations

import dataclasses
import enum
import re
from collections.abc import Iterable, Iterator

from api_text import Snapshot
from packaging.version import Version

__all__ = ["Change", "Level", "allowed", "baselines", "changes", "overdue", "problems", "section"]


class Level(enum.IntEnum):
    """What a change asks of the version, and what a version allows."""

    NOTHING = 0
    MINOR = 1
    MAJOR = 2


@dataclasses.dataclass(frozen=True)
class Change:
    """One difference.

    Attributes:
        level: what it asks of the version.
        name: what the changelog must call it by.
        about: the path of what differs, or the code of a warning.
        text: what differs, in words.
    """

    level: Level
    name: str
    about: str
    text: str


def changes(old: Snapshot, new: Snapshot) -> list[Change]:
    """Every difference of the public surface, what breaks programs first."""
    found = [
        *_entries(old, new, Level.MAJOR, "removed"),
        *_entries(new, old, Level.MINOR, "added"),
    ]
    for entry in old.keys() & new.keys():
        found += _facts(entry, old[entry], new[entry])
    return sorted(found, key=lambda change: (-change.level, change.text))


def _entries(have: Snapshot, lack: Snapshot, level: Level, what: str) -> Iterator[Change]:
    """Entries of ``have`` only.

    One that belongs to another says nothing that the other does not: a method goes and comes with
    its class, a function with the name in its module.
    """
    only = have.keys() - lack.keys()
    for entry in only:
        kind, _, path = entry.partition(" ")
        above, _, name = path.rpartition(".")
        owner = f"class {above}" in only or f"module {above}" in only
        named = f"module {above}" in have and f"name {name}" in have[f"module {above}"]
        if not (owner or named):
            name = path.rpartition(" ")[2] if kind in ("command", "report") else name
            yield Change(level, name or path, path, f"{entry} is {what}")


def _facts(entry: str, old: dict[str, str], new: dict[str, str]) -> Iterator[Change]:
    def change(level: Level, fact: str, text: str) -> Change:
        kind, _, path = entry.partition(" ")
        about = f"{path}.{fact.removeprefix('name ')}" if kind == "module" else path
        return Change(level, _name(entry, fact), about, f"{entry}: {text}")

    for fact in old.keys() - new.keys():
        if fact == "can be changed" and "frozen" in new:
            continue  # told by what came in its place
        yield change(_level_of_removal(fact), fact, f"no {fact}")
    for fact in new.keys() - old.keys():
        if fact == "can be changed" and "frozen" in old:
            continue
        value = f": {new[fact]}" if new[fact] else ""
        yield change(_level_of_addition(fact, new[fact]), fact, f"new {fact}{value}")
    for fact in old.keys() & new.keys():
        was, now = old[fact], new[fact]
        if was != now:
            text = f"{fact} was {was!r} and is {now!r}"
            level = _level_of_change(fact, was, now)
            if entry.startswith("warning "):
                level = _level_of_row(fact, old, new)
            yield change(level, fact, text)


def _name(entry: str, fact: str) -> str:
    """The word of a fact by which people know it; of an entry where the fact has none."""
    kind, *words = fact.split()
    if entry.startswith("warning "):
        return entry.removeprefix("warning ")
    if kind == "key" and words:
        return words[-1].rpartition(".")[2].removesuffix("[]")
    if kind in ("exit", "frozen", "can", "slots", "returns") or not words:
        return entry.split()[-1].rpartition(".")[2]
    return words[-1]


def _level_of_removal(fact: str) -> Level:
    # An annotation may be left away; so may __slots__.
    return Level.MINOR if fact in ("returns", "slots") else Level.MAJOR


def _level_of_addition(fact: str, value: str) -> Level:
    kind = fact.partition(" ")[0]
    needed = kind in ("parameter", "option", "argument") and ", required" in value
    return Level.MAJOR if needed or kind == "frozen" else Level.MINOR


def _level_of_row(fact: str, old: dict[str, str], new: dict[str, str]) -> Level:
    """A row of old names may be put off, with its class of warning; what replaces it may change."""
    put_off = Version(new["removal"]) > Version(old["removal"])
    later = put_off and fact in ("removal", "category")
    return Level.MINOR if fact == "new" or later else Level.MAJOR


def _level_of_change(fact: str, was: str, now: str) -> Level:
    kind = fact.partition(" ")[0]
    if kind in ("returns", "attribute"):
        return Level.MINOR  # an annotation, which tells no more than the words of the changelog
    if kind == "parameter":
        how, what = (value.partition(", of ")[0] for value in (was, now))
        return Level.MINOR if how == what or _takes_all_of(how, what) else Level.MAJOR
    if kind in ("option", "argument") and now == was.replace(", required", ""):
        return Level.MINOR
    return Level.MAJOR


def _takes_all_of(was: str, now: str) -> bool:
    """Whether every call that suited one parameter suits the other."""
    (place, _, default), (place_now, _, default_now) = was.partition(", "), now.partition(", ")
    place_suits = (
        place_now == place
        or (place == "keyword only" and re.fullmatch(r"positional \d+", place_now) is not None)
        or place.replace(" only", "") == place_now
    )
    return place_suits and (default == default_now or default == "required")


def allowed(old: Version, new: Version) -> Level:
    """What a version may change against an earlier one.

    A candidate (or any pre-release) may break what an earlier candidate of the same release had;
    the final release may only add to its last candidate.
    """
    if new <= old:
        return Level.NOTHING
    if new.major > old.major:
        return Level.MAJOR
    if (new.major, new.minor, new.micro) == (old.major, old.minor, old.micro):
        if old.pre is None:
            return Level.NOTHING
        return Level.MAJOR if new.pre else Level.MINOR
    return Level.MINOR if new.minor > old.minor else Level.NOTHING


def baselines(releases: Iterable[Version], new: Version) -> list[Version]:
    """The releases that ``new`` is held against: the newest, and the newest final one."""
    earlier = sorted(each for each in releases if each <= new)
    final = [each for each in earlier if not each.is_prerelease]
    return sorted({*earlier[-1:], *final[-1:]})


def problems(
    old: Snapshot, old_version: Version, new: Snapshot, new_version: Version, changelog: str
) -> list[str]:
    """Why ``new`` must not be called ``new_version``; empty where it may.

    Args:
        changelog: what the changelog says of ``new_version`` (:func:`section`).
    """
    limit = allowed(old_version, new_version)
    due = _due(old, new, new_version)
    found = []
    for change in changes(old, new):
        if change.about in due:
            continue
        if change.level > limit:
            needs = "a major version" if change.level is Level.MAJOR else "a minor version"
            reason = f"this needs {needs} after {old_version}, and {new_version} is none"
            if new_version <= old_version:
                reason = f"{old_version} is released: give the tree a later version first"
            found.append(f"{change.text}: {reason}")
        elif change.level is Level.MAJOR and not _is_argued(change.name, changelog):
            found.append(
                f"{change.text}: the changelog of {new_version} needs an item "
                f"'- Breaking: …' that names `{change.name}` and says why"
            )
        elif change.level is Level.MINOR and not _names(change.name, changelog):
            found.append(f"{change.text}: the changelog of {new_version} needs `{change.name}`")
    return found


def _due(old: Snapshot, new: Snapshot, version: Version) -> set[str]:
    """Codes and old names that are gone, and whose removal in ``version`` was announced."""
    due = set()
    for entry in old.keys() - new.keys():
        kind, _, code = entry.partition(" ")
        if kind == "warning" and Version(old[entry]["removal"]) <= version:
            due |= {code, old[entry]["old"]}
    return due


def _names(name: str, text: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text) is not None


def _is_argued(name: str, changelog: str) -> bool:
    items = re.split(r"^- ", changelog, flags=re.MULTILINE)[1:]
    return any(item.startswith("Breaking: ") and _names(name, item) for item in items)


def section(changelog: str, version: Version) -> str | None:
    """What a changelog says of a version, from its heading to the next; None: it has no section."""
    found = re.search(
        rf"^## {re.escape(str(version))}(?= |$).*?(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL
    )
    return found[0] if found else None


def overdue(snapshot: Snapshot, version: Version) -> list[str]:
    """Rows of the table of old names that are still there in the version that removes them.

    While that version is in development there is still time; in its first candidate there is none.
    """
    return sorted(
        f"{entry.removeprefix('warning ')} {facts['old']} was to be removed in {facts['removal']}"
        for entry, facts in snapshot.items()
        if entry.startswith("warning ")
        and not version.is_devrelease
        and version.release >= Version(facts["removal"]).release
    )
