"""Arguments that calls pass by name, where it is not seen what is called."""

from __future__ import annotations

import libcst as cst

from cudnn_compat.migrate.file_context import FileContext
from cudnn_compat.migrate.names import Names
from cudnn_compat.migrate.syntax import walk

__all__ = ["passed_by_name"]


def passed_by_name(file: FileContext, name: str) -> str:
    """The reason why a value has to stay that may be called with this argument; or empty."""
    if name in file.hints.keywords or name in _keywords(file.names):
        return f"it may be called with {name}=, which the new code does not take"
    return ""


def _keywords(names: Names) -> set[str]:
    """Names of arguments in calls, but for those of certain old names; keys of dictionaries."""
    found = set()
    for node in walk(names.module):
        if isinstance(node, cst.Call):
            func = node.func.value if isinstance(node.func, cst.Subscript) else node.func
            if names.row(func) is None:
                found |= {arg.keyword.value for arg in node.args if arg.keyword is not None}
        elif isinstance(node, cst.DictElement) and isinstance(node.key, cst.SimpleString):
            found.add(str(node.key.evaluated_value))
    return found
