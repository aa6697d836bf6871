"""Arguments of a call, by the names of the old signature."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import libcst as cst
import libcst.matchers as m

if TYPE_CHECKING:
    from cudnn_compat.migrate.rule import CallSite, Left

__all__ = ["bind", "does_something", "old_signature", "reorders"]


def bind(
    site: CallSite, signatures: Sequence[str], *, original: bool = False
) -> Mapping[str, cst.BaseExpression] | Left:
    """See :meth:`.rule.CallSite.arguments`."""
    from cudnn_compat.migrate.rule import Left

    call = site.original if original else site.call
    assert isinstance(call, cst.Call)
    if any(arg.star for arg in call.args):
        return Left("it is called with * or **, so its arguments cannot be seen")
    if signatures:
        choices = [_signature(text) for text in signatures]
    else:
        assert site.row is not None, "a name without a row has no signature: pass one"
        choices = [old_signature(site.row.old)]
    positional = [arg.value for arg in call.args if arg.keyword is None]
    named = {arg.keyword.value: arg.value for arg in call.args if arg.keyword is not None}
    for signature in choices:
        try:
            return dict(signature.bind(*positional, **named).arguments)
        except TypeError:
            continue
    accepted = " or ".join(f"{site.name}{signature}" for signature in choices)
    return Left(f"its arguments do not fit {accepted}")


def reorders(site: CallSite, given: Mapping[str, cst.BaseExpression]) -> bool:
    """See :meth:`.rule.CallSite.reorders`."""
    written = [arg.value for arg in site.call.args]
    active = [value for value in written if does_something(value)]
    return [value for value in given.values() if does_something(value)] != active


_ACTIVE = m.OneOf(m.Call(), m.Await(), m.Yield(), m.NamedExpr())


def does_something(expression: cst.CSTNode) -> bool:
    """Whether evaluating it may do more than look something up."""
    return bool(m.findall(expression, _ACTIVE))


@functools.cache
def _signature(text: str) -> inspect.Signature:
    namespace: dict[str, object] = {}
    # Default values are never looked at, only that they are there.
    exec(f"def function({text}): ...", namespace)
    signature = inspect.signature(namespace["function"])  # type: ignore[arg-type]
    return signature


@functools.cache
def old_signature(qualified: str) -> inspect.Signature:
    """Of the old function itself, without the types."""
    parts = qualified.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            found = getattr(found, part)
        signature = inspect.signature(found)  # type: ignore[arg-type]
        plain = [
            parameter.replace(annotation=inspect.Parameter.empty)
            for parameter in signature.parameters.values()
        ]
        return signature.replace(parameters=plain, return_annotation=inspect.Signature.empty)
    raise AssertionError(f"the table has {qualified}, which is not there")
