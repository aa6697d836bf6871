"""The public names of the package, as they are when it is imported."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import functools
import importlib
import importlib.util
import inspect
import textwrap
import types
import typing
from collections.abc import Iterator
from typing import Any, Final

from api_public import MODULES, RESULTS, VALUES
from api_text import Snapshot

__all__ = ["python_names", "values"]

PACKAGE: Final = "cudnn_compat"
BEHAVIOURS: Final = (
    *("__call__", "__class_getitem__", "__contains__", "__enter__", "__eq__", "__exit__"),
    *("__getitem__", "__hash__", "__iter__", "__len__", "__setitem__"),
)
"""Special methods that a program relies on."""


def python_names() -> Snapshot:
    """Every public module, and what its ``__all__`` names."""
    found: Snapshot = {}
    homes: dict[int, str] = {}
    """Where each class and function was met first."""
    for name in MODULES:
        # Not every version has every one of them.
        if importlib.util.find_spec(name) is None:
            continue
        module = importlib.import_module(name)
        facts = found.setdefault(f"module {name}", {})
        for public in sorted(module.__all__):
            value, path = getattr(module, public), f"{name}.{public}"
            if isinstance(value, type) or inspect.isroutine(value):
                home = homes.setdefault(id(value), path)
                if home != path:
                    facts[f"name {public}"] = f"the {_kind(value)} {home}"
                    continue
                found |= _class(value, path) if isinstance(value, type) else _function(value, path)
            facts[f"name {public}"] = "string" if public == "__version__" else _kind(value)
    for path in RESULTS:
        module_name, _, name = path.rpartition(".")
        result = getattr(importlib.import_module(module_name), name, None)
        if isinstance(result, type):
            found |= _class(result, path)
    for (entry, _), _ in VALUES.items():
        if entry in found:
            found[entry] |= values(entry)
    return found


def values(entry: str) -> dict[str, str]:
    """The words that arguments of an entry take."""
    facts: dict[str, str] = {}
    for (of, argument), place in VALUES.items():
        if of == entry:
            module, _, name = place.rpartition(".")
            words = getattr(importlib.import_module(module), name, None)
            if words is None:
                raise LookupError(f"VALUES of api_public.py names {place}, which is not there")
            facts |= {f"value {argument} {word}": "" for word in words}
    return facts


def _kind(value: Any) -> str:
    if isinstance(value, type):
        return "class"
    if inspect.isroutine(value):
        return "function"
    if isinstance(value, types.ModuleType):
        return "module"
    return f"value {value!r}" if _is_plain(value) else f"object of {type(value).__name__}"


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, (bool, int, float, str, bytes))


def _function(function: Any, path: str, kind: str = "function") -> Snapshot:
    facts = _parameters(inspect.signature(function), function)
    returns = inspect.signature(function).return_annotation
    if returns is not inspect.Signature.empty:
        facts["returns"] = _annotation(returns)
    return {f"{kind} {path}": facts}


def _parameters(signature: inspect.Signature, function: Any) -> dict[str, str]:
    facts: dict[str, str] = {}
    literals = _literals(function)
    position = 0
    for parameter in signature.parameters.values():
        if parameter.name == "self" or parameter.name.startswith("_"):
            continue
        if parameter.kind is parameter.KEYWORD_ONLY:
            how = "keyword only"
        elif parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            how = "any number" if parameter.kind is parameter.VAR_POSITIONAL else "any keyword"
        else:
            position += 1
            only = parameter.kind is parameter.POSITIONAL_ONLY
            how = f"positional only {position}" if only else f"positional {position}"
        if not how.startswith("any"):
            required = parameter.default is inspect.Parameter.empty
            how += ", required" if required else f", default {_default(parameter.default)}"
        if parameter.annotation is not inspect.Parameter.empty:
            how += f", of {_annotation(parameter.annotation)}"
        facts[f"parameter {parameter.name}"] = how
        facts |= {f"value {parameter.name} {w}": "" for w in literals.get(parameter.name, ())}
    return facts


def _literals(function: Any) -> dict[str, tuple[str, ...]]:
    """The words of annotations ``Literal[…]``, by parameter."""
    hints: dict[str, Any] = {}
    with contextlib.suppress(Exception):  # names that exist for the type checker only
        hints = typing.get_type_hints(inspect.unwrap(function))
    words = {}
    for name, hint in hints.items():
        parts = (hint, *typing.get_args(hint))
        of_literals = [part for part in parts if typing.get_origin(part) is typing.Literal]
        if of_literals and name != "return":
            words[name] = tuple(str(w) for part in of_literals for w in typing.get_args(part))
    return words


def _default(value: Any) -> str:
    if isinstance(value, types.ModuleType):
        return value.__name__
    if isinstance(value, type) or inspect.isroutine(value):
        return value.__qualname__
    return repr(value) if " at 0x" not in repr(value) else f"an object of {type(value).__name__}"


def _annotation(annotation: Any) -> str:
    if isinstance(annotation, typing.ForwardRef):
        annotation = annotation.__forward_arg__
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return " ".join(text.split())


def _class(cls: type, path: str) -> Snapshot:
    facts: dict[str, str] = {}
    ours = [each for each in cls.__mro__ if each.__module__.partition(".")[0] == PACKAGE]
    facts |= {f"base {name}": "" for name in _bases(cls, ours)}
    if dataclasses.is_dataclass(cls):
        parameters = cls.__dataclass_params__  # type: ignore[attr-defined]
        facts["frozen" if parameters.frozen else "can be changed"] = ""
    if "__slots__" in vars(cls):
        facts["slots"] = ""
    if issubclass(cls, tuple):
        facts |= {f"item {name}": str(i) for i, name in enumerate(getattr(cls, "_fields", ()))}
    if any("__init__" in vars(each) or hasattr(each, "_fields") for each in ours):
        facts |= _parameters(inspect.signature(cls), vars(cls).get("__init__", cls))
    found: Snapshot = {f"class {path}": facts}
    for name, member in sorted(_members(cls, ours).items()):
        if name in BEHAVIOURS and name != "__call__":
            facts[f"behaviour {name}"] = ""
        elif isinstance(member, (property, functools.cached_property)):
            get = member.fget if isinstance(member, property) else member.func
            facts[f"attribute {name}"] = _annotation(inspect.signature(get).return_annotation)  # type: ignore[arg-type]
        elif inspect.isroutine(member) and not inspect.isdatadescriptor(member):
            found |= _function(getattr(cls, name), f"{path}.{name}", "method")
        else:
            facts[f"attribute {name}"] = ""
    return found


def _bases(cls: type, ours: list[type]) -> Iterator[str]:
    """Classes that an instance is one of: all of the package's, and the nearest of others."""
    others = [each for each in cls.__mro__ if each not in ours and each is not object]
    for base in cls.__mro__[1:]:
        # A class may move within the package; by its name it stays what it was.
        if base in ours and not base.__name__.startswith("_"):
            yield base.__qualname__
        elif base in others and sum(issubclass(each, base) for each in others) == 1:
            module = "" if base.__module__ == "builtins" else f"{base.__module__}."
            yield module + base.__qualname__


def _members(cls: type, ours: list[type]) -> dict[str, Any]:
    """Public members that the package defines, inherited ones too."""
    members: dict[str, Any] = {}
    for each in reversed(ours):
        own = dict(vars(each)) | dict.fromkeys(_set_on_self(each))
        if dataclasses.is_dataclass(each):
            own |= dict.fromkeys(field.name for field in dataclasses.fields(each))
        for name, member in own.items():
            # `__hash__ = None` takes a behaviour away.
            behaves = name in BEHAVIOURS and member is not None
            if behaves or not name.startswith("_"):
                members[name] = members.get(name) if member is None else member
    return members


@functools.cache
def _set_on_self(cls: type) -> tuple[str, ...]:
    """Attributes that methods of a class give to ``self``."""
    try:
        source = textwrap.dedent(inspect.getsource(cls))
    except (OSError, TypeError):  # a class that was made, not written
        return ()
    return tuple(
        node.attr
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        if isinstance(node.value, ast.Name) and node.value.id == "self"
    )
