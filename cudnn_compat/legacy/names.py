"""What a row of the table of old names says. Pure data, and importing it loads nothing else."""

from __future__ import annotations

import dataclasses
from typing import Final, Literal

__all__ = ["MODULES", "LegacyName"]

MODULES: Final = {
    "cudnn_compat.legacy": (),
    "cudnn_compat.legacy.cupy.cudnn": ("cupy.cudnn", "cupyx.cudnn"),
    "cudnn_compat.legacy.cupy.libcudnn": ("cupy.cuda.cudnn", "cupy_backends.cuda.libs.cudnn"),
}
"""Modules of old names, and what else they are called where they are installed."""

Kind = Literal["class", "constant", "function", "method"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LegacyName:
    """One old name.

    Attributes:
        code: stable code, ``"CC012"``.
        old: qualified old name.
        new: qualified name of what replaces it.
        kind: ``"class"``, ``"constant"``, ``"function"`` or ``"method"``.
        summary: in one line, what changes for the caller.
        before: an example of the old name in use.
        after: the same on the new API.
        renamed: pairs (parameter, what ``new`` calls it), where they differ.
        value: what the new API takes in place of a constant, as source text.
        prelude: what the examples start from.
        since: version that deprecated it.
        removal: version that removes it.
    """

    code: str
    old: str
    new: str
    kind: Kind
    summary: str
    before: str
    after: str
    renamed: tuple[tuple[str, str], ...] = ()
    value: str | None = None
    prelude: str = ""
    since: str = "2.0"
    removal: str = "3.0"

    @property
    def name(self) -> str:
        """The last part of the old name; of a method with its class."""
        parts = self.old.split(".")
        return ".".join(parts[-2:] if self.kind == "method" else parts[-1:])

    @property
    def module(self) -> str:
        """The module of the old name."""
        return self.old.removesuffix(f".{self.name}")

    @property
    def message(self) -> str:
        """The text of the warning: the same for every call, so that a call site warns once."""
        return (
            f"[{self.code}] {self.old} is deprecated: use {self.new}. "
            f"Deprecated since {self.since}, to be removed in {self.removal}."
        )
