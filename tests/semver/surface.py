"""Griffe, the second judge of the public surface: it reads the source and imports nothing."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import griffe
from api_public import MODULES


@cache
def public_part(root: Path) -> griffe.Module:
    """One made-up module of all public names of the package under ``root``.

    In it a name is ``cudnn_compat.v2.pack``, wherever the package defines it: a function may move
    from file to file. Imports are followed, also those for the type checker only, by which lazy
    modules tell their names; what a list adds by ``*other.__all__`` is not (the snapshot has it).
    """
    package = griffe.load(
        "cudnn_compat",
        search_paths=[str(root)],
        try_relative_path=False,
        allow_inspection=False,
        resolve_aliases=True,
    )
    assert package.filepath == root / "cudnn_compat" / "__init__.py"
    public = griffe.Module("public")
    for name in MODULES:
        path = name.split(".")[1:]
        try:
            module = package[path] if path else package
        except KeyError:  # not every version has every module
            continue
        for export in map(str, module.exports or []):
            member = module.members.get(export)
            if member is not None and not member.is_module:
                target = member.final_target if member.is_alias else member
                public.set_member([f"{name}.{export}"], griffe.Alias(f"{name}.{export}", target))
    public.exports = [*public.members]
    return public


def griffe_says(old: Path, new: Path) -> list[griffe.Breakage]:
    """What broke between the package under ``old`` and the one under ``new``."""
    return list(griffe.find_breaking_changes(public_part(old), public_part(new)))
