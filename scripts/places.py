"""Texts that are kept or shown, without the folders of the machine that made them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

__all__ = ["ROOT", "without_places"]

ROOT = Path(__file__).resolve().parent.parent


def without_places(text: str, places: Mapping[str, Path | str] | None = None) -> str:
    """The text with names for folders, which say nothing to a reader.

    Args:
        places: by name; beside them ``prefix`` (this Python's), ``tree`` (this project) and the
            home folder, which becomes ``~``.
    """
    for name, place in {**(places or {}), "prefix": sys.prefix, "tree": ROOT}.items():
        text = text.replace(str(place), f"<{name}>")
    return text.replace(str(Path.home()), "~")
