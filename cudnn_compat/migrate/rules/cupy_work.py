"""The plan for one file: what is proved, and what it becomes.

Rules of the dialect prove a group of calls at a time (a training forward with its backward, a
descriptor with everything that is done with it). A proof that fails raises :class:`Unclear`, and
nothing of the group is changed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

import libcst as cst

from cudnn_compat.migrate.file_context import FileContext
from cudnn_compat.migrate.rules.cupy_old import OldCall
from cudnn_compat.migrate.rules.cupy_questions import Questions, Unclear
from cudnn_compat.migrate.rules.cupy_syntax import code
from cudnn_compat.migrate.rules.cupy_tree import Place

__all__ = ["Draft", "Work"]


class Draft:
    """New code for the calls of one group, until all of it is proved."""

    def __init__(self) -> None:
        self.new: dict[cst.CSTNode, str | list[str]] = {}
        self.ahead: dict[cst.CSTNode, list[str]] = {}
        self.done: list[OldCall] = []


class Work(Questions):
    """One file, and the plan for it.

    Attributes:
        new: what stands in place of an expression (its text) or of a statement (its lines).
        reasons: why a call was left, by its node.
        refused: nodes that no proof may use, with the reason: a later step could not follow them.
    """

    def __init__(self, file: FileContext) -> None:
        super().__init__(file)
        self.refused: dict[cst.CSTNode, str] = {}
        self.again = False
        self.start()

    def start(self) -> None:
        """Begin the plan again."""
        self.again = False
        self.wants_state: set[cst.CSTNode] = set()
        self.promises: list[tuple[Place, str]] = []
        self.given_names: dict[cst.CSTNode, set[str]] = {}
        self.networks: list[tuple[OldCall, list[OldCall]]] = []
        self.dropped: set[cst.CSTNode] = set()
        self.shortened: dict[cst.FunctionDef, cst.Parameters] = {}
        self.new: dict[cst.CSTNode, str | list[str]] = {}
        self.ahead: dict[cst.CSTNode, list[str]] = {}
        self.values.new = self.new
        self.reasons: dict[cst.CSTNode, str] = {}
        self.done: set[cst.CSTNode] = set()

    @property
    def exported(self) -> set[str]:
        """Names that other files take from this one, as far as that is known."""
        others: Iterable[str] = getattr(self.file, "exported", ())
        return {*others, *self.file.names.listed_in_all}

    def promise(self, place: Place, reason: str) -> None:
        """Nothing may read a place in the end; ``reason`` is said where something does."""
        self.promises.append((place, reason))

    def refuse(self, node: cst.CSTNode, reason: str) -> None:
        """No proof may use a node; the plan begins again."""
        self.refused[node] = reason
        self.again = True

    def attempt(self, calls: Sequence[OldCall], proof: Callable[[], None]) -> None:
        """Try a proof: where it fails nothing of it stays, and the calls are left."""
        before = self.new.copy(), self.done.copy(), self.wants_state.copy(), self.promises.copy()
        ahead, wanted = self.ahead.copy(), self.file.wanted()
        try:
            for call in calls:
                if call.node in self.refused:
                    raise Unclear(self.refused[call.node])
            proof()
        except Unclear as unclear:
            self.new, self.done, self.wants_state, self.promises = before
            self.values.new, self.ahead = self.new, ahead
            self.file.want(wanted)
            self.leave(calls, str(unclear))

    def commit(self, draft: Draft) -> None:
        """Take what a group became into the plan."""
        self.new.update(draft.new)
        for line, text in draft.ahead.items():
            self.ahead[line] = [*self.ahead.get(line, []), *text]
        self.done |= {call.node for call in draft.done}

    def leave(self, calls: Iterable[OldCall], reason: str) -> None:
        """Leave the calls of a group."""
        for call in calls:
            self.reasons.setdefault(call.node, reason)

    def drop_argument(self, load: cst.CSTNode, call: cst.Call, function: cst.FunctionDef) -> None:
        """Take away an argument, and the parameter that it is for."""
        index = next(i for i, arg in enumerate(call.args) if arg.value is load)
        self.dropped.add(load)
        args = [arg for arg in call.args if arg.value not in self.dropped]
        name = self._parameter(call, index, function)
        if args and args[-1] is not call.args[-1]:
            args[-1] = args[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
        self.new[call] = code(call.with_changes(args=args))
        now = self.shortened.get(function, function.params)
        kept = [p for p in now.params if p.name.value != name]
        if kept:
            kept[-1] = kept[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
        self.shortened[function] = now.with_changes(params=kept)

    def _parameter(self, call: cst.Call, index: int, function: cst.FunctionDef) -> str:
        keyword = call.args[index].keyword
        if keyword is not None:
            return keyword.value
        first = 1 if isinstance(call.func, cst.Attribute) else 0
        return function.params.params[first + index].name.value

    def alive(self, place: Place) -> list[cst.CSTNode]:
        """The reads of a place that the plan does not take away."""
        return [load for load in self.flow.loads[place] if not self.gone(load)]

    def gone(self, node: cst.CSTNode) -> bool:
        """Whether the plan replaces a node, or something that it stands in."""
        current: cst.CSTNode | None = node
        while current is not None:
            if current in self.new:
                return True
            current = self.flow.parents.get(current)
        return False

    def words(self) -> set[str]:
        """All identifiers of the new code."""
        new = [*self.new.values(), *self.ahead.values()]
        lines = [text if isinstance(text, str) else "\n".join(text) for text in new]
        return set(re.findall(r"[A-Za-z_]\w*", "\n".join(lines)))

    def read(self, place: Place) -> bool:
        """Whether anything reads a place once the plan is carried out."""
        return bool(self.alive(place)) or place.name in self.words() or self.flow.hidden(place)

    def used(self, target: cst.CSTNode) -> bool:
        """Whether what is assigned to a target is read: not ``_``, not a name that nobody reads."""
        place = self.place(target)
        if place is None:
            return True
        return place.attribute or self.read(place)

    def fresh(self, name: str, at: cst.CSTNode) -> str:
        """A name that the function around ``at``, or the file, has not got yet."""
        function = self.flow.function_of(at)
        if function is None:
            return self.file.free(name)
        taken = self.given_names.setdefault(
            function,
            {n.value for n in self.flow.walk(function) if isinstance(n, cst.Name)},
        )
        found, number = name, 2
        while found in taken:
            found, number = f"{name}{number}", number + 1
        taken.add(found)
        return found
