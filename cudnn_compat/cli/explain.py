"""``cudnn-compat explain``: what an old name was, and what to use."""

from __future__ import annotations

import difflib
import re

import click
from rich.console import Console
from rich.syntax import Syntax
from rich.text import Text

from cudnn_compat.cli.console import make_console
from cudnn_compat.legacy.cupy.absent import ABSENT, missing_attribute
from cudnn_compat.legacy.names import MODULES
from cudnn_compat.legacy.table import TABLE, LegacyName, find

__all__ = ["explain"]


@click.command(short_help="What an old name was, and what to use instead.")
@click.argument("codes", nargs=-1, metavar="[CODE]...")
@click.option("--all", "everything", is_flag=True, help="List all codes; so does giving none.")
def explain(codes: tuple[str, ...], everything: bool) -> None:
    """Explain deprecated names: since when, until when, what to use, before and after.

    CODE is what the warning shows in brackets (CC012), or an old name (forward).
    """
    console = make_console()
    if everything or not codes:
        _list(console, TABLE)
        return
    rows = []
    for code in codes:
        row = find(code)
        if row is None:
            _refuse_what_is_not_offered(code)
            close = _nearest(code, TABLE)
            raise click.BadParameter(
                f"there is no code or old name {code!r}; the nearest is "
                f"{close.code} ({close.name}). 'cudnn-compat explain' lists all.",
                param_hint="CODE",
            )
        rows.append(row)
    for index, row in enumerate(rows):
        if index:
            console.print()
        _explain(console, row)


def _refuse_what_is_not_offered(code: str) -> None:
    """Old names that were left out have no row, and are explained all the same."""
    name = code.strip().rpartition(".")[2]
    for group in ABSENT:
        for module, names in (("cupy.cudnn", group.high), ("cupy.cuda.cudnn", group.low)):
            if name in names:
                error = missing_attribute(module, name, high=module == "cupy.cudnn")
                raise click.BadParameter(str(error), param_hint="CODE")


def _nearest(code: str, table: tuple[LegacyName, ...]) -> LegacyName:
    """The row with the nearest number, or with the most similar name."""
    number = re.fullmatch(r"\s*(?:cc)?(\d+)\s*", code, re.IGNORECASE)
    if number:
        wanted = int(number[1])
        return min(table, key=lambda row: abs(int(row.code[2:]) - wanted))
    last = code.strip().rpartition(".")[2].lower()

    def likeness(row: LegacyName) -> float:
        return difflib.SequenceMatcher(None, last, row.name.lower()).ratio()

    return max(table, key=likeness)


def _list(console: Console, table: tuple[LegacyName, ...]) -> None:
    """One line a name, by module; never broken, so that it can be searched for."""
    for module, installed_as in MODULES.items():
        rows = [row for row in table if row.module == module]
        called = f", installed as {' and '.join(installed_as)}" if installed_as else ""
        console.print(Text.assemble((module, "bold"), called), soft_wrap=True)
        names, news = (max(len(getattr(row, field)) for row in rows) for field in ("name", "new"))
        heads = f"  code   {'old':<{names}}  {'use':<{news}}  since  removed in"
        console.print(Text(heads, "dim"), soft_wrap=True)
        for row in rows:
            line = Text.assemble(
                (f"  {row.code}  ", "bold yellow"),
                f"{row.name:<{names}}  ",
                (f"{row.new:<{news}}  ", "green"),
                f"{row.since:<5}  {row.removal}",
            )
            console.print(line, soft_wrap=True)
        console.print()


def _explain(console: Console, row: LegacyName) -> None:
    console.print(Text.assemble((f"{row.code}  {row.old}", "bold"), f"  ({row.kind})"))
    console.print(f"  {row.summary}")
    console.print(f"  Deprecated since {row.since}, to be removed in {row.removal}.")
    console.print(Text.assemble("  Use ", (row.new, "green"), "."))
    if row.value is not None:
        console.print(f"  In its place: {row.value}", markup=False)
    if row.renamed:
        pairs = ", ".join(f"{old} is now {new}" for old, new in row.renamed)
        console.print(f"  Parameters: {pairs}.")
    for heading, example in (("Before", row.before), ("After", row.after)):
        console.print(f"\n  {heading}:")
        text = Syntax(example, "python", theme="ansi_dark").highlight(example)
        for line in text.split("\n", allow_blank=False):
            console.print(Text("      ") + line, soft_wrap=True)
    console.print(
        f'\n  To silence it: warnings.filterwarnings("ignore", message=r"\\[{row.code}\\]")',
        markup=False,
        soft_wrap=True,
    )
