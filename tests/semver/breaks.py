"""Changes to a copy of the package: some that break programs, and some that break none."""

from __future__ import annotations

import dataclasses
import re
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

ROOT = Path(__file__).parents[2]

Edit = Callable[[str], str]


def put(old: str, new: str) -> Edit:
    """Replaces what stands in a file exactly once."""

    def edit(source: str) -> str:
        assert source.count(old) == 1, f"{old!r} stands {source.count(old)} times: another edit"
        return source.replace(old, new)

    return edit


def put_all(pattern: str, new: str) -> Edit:
    """Replaces every match, of which there must be one."""

    def edit(source: str) -> str:
        changed, count = re.subn(pattern, new, source)
        assert count, f"{pattern!r} stands nowhere: this needs another edit"
        return changed

    return edit


def append(text: str) -> Edit:
    return lambda source: f"{source}\n\n{text}".lstrip()


@dataclasses.dataclass(frozen=True)
class Damage:
    """One change.

    Attributes:
        file: the file of the package that is changed.
        edit: how.
        seen: what the comparison of snapshots says, or a part of it.
    """

    file: str
    edit: Edit
    seen: str


BREAKS = {
    "a name is gone": Damage(
        "v2/__init__.py", put('    "unpack",\n', ""), "module cudnn_compat.v2: no name unpack"
    ),
    "a parameter has another name": Damage(
        "packed.py",
        put_all(r"\blengths: Any\b", "sizes: Any"),
        "function cudnn_compat.v2.pack: no parameter lengths",
    ),
    "a default has changed": Damage(
        "spec.py",
        put('    dtype: str = "float32"', '    dtype: str = "float64"'),
        "class cudnn_compat.v2.RNNSpec: parameter dtype was",
    ),
    "a value is no longer taken": Damage(
        "spec.py",
        append('ALGOS = tuple(algo for algo in ALGOS if algo != "persist_small_h")\n'),
        "class cudnn_compat.v2.RNNSpec: no value algo persist_small_h",
    ),
    "an error is no longer a TypeError": Damage(
        "errors.py",
        put("class DTypeError(CompatError, TypeError)", "class DTypeError(CompatError)"),
        "class cudnn_compat.errors.DTypeError: no base TypeError",
    ),
    "a spec can be changed": Damage(
        "spec.py",
        put(
            "@dataclasses.dataclass(frozen=True)\nclass RNNSpec",
            "@dataclasses.dataclass\nclass RNNSpec",
        ),
        "class cudnn_compat.v2.RNNSpec: no frozen",
    ),
    "a new parameter must be given": Damage(
        "v2/plans.py",
        put("def clear_plans()", "def clear_plans(engine: str)"),
        "function cudnn_compat.v2.clear_plans: new parameter engine: positional 1, required",
    ),
    "a parameter is taken by keyword only": Damage(
        "dropout.py",
        put("def restart(self, seed:", "def restart(self, *, seed:"),
        "method cudnn_compat.v2.DropoutState.restart: parameter seed was",
    ),
    "a method is gone": Damage(
        "weights.py",
        put("def linear_ids(", "def ids_of_all("),
        "method cudnn_compat.v2.NamedWeights.linear_ids is removed",
    ),
    "a result has one value less": Damage(
        "v2/results.py",
        put_all(r"\breserve_bytes\b", "_reserve_bytes"),
        "class cudnn_compat.v2.RNNOutput: no attribute reserve_bytes",
    ),
    "a constant of the old API has another value": Damage(
        "legacy/cupy/libcudnn.py",
        append("available = False\n"),
        "module cudnn_compat.legacy.cupy.libcudnn: name available was",
    ),
    "two codes have changed places": Damage(
        "legacy/table.py",
        lambda source: (
            source.replace('"CC023"', '"CC0x"')
            .replace('"CC024"', '"CC023"')
            .replace('"CC0x"', '"CC024"')
        ),
        "warning CC024: old was",
    ),
    "a warning is of another class": Damage(
        "legacy/deprecations.py",
        put('{"3.0": RemovedIn3Warning}', '{"3.0": LegacyAPIWarning}'),
        "category was 'RemovedIn3Warning' and is 'LegacyAPIWarning'",
    ),
    "an option is gone": Damage(
        "cli/info.py",
        put('"--json", "as_json"', '"--as-json", "as_json"'),
        "command cudnn-compat info: no option --json",
    ),
    "an exit status has changed": Damage(
        "cli/run.py",
        put("    context.exit(status)", "    context.exit(min(status, 1))"),
        "command cudnn-compat run: exit status of a program that ends with 7 was",
    ),
    "a key is gone from a report": Damage(
        "cli/report.py",
        put_all(r'\n +"summary": each\.row\.summary,', ""),
        "report cudnn-compat run --report: no key calls[].summary",
    ),
    "an environment variable has another name": Damage(
        "cudnn/find.py",
        put_all(r"\bCUDNN_COMPAT_CUDNN\b", "CUDNN_COMPAT_LIBRARY"),
        "environment CUDNN_COMPAT_CUDNN is removed",
    ),
}
"""Each needs a major version."""

HARMLESS = {
    "a function more": Damage(
        "v2/__init__.py",
        lambda source: (
            source.replace('    "unpack",\n', '    "unpack",\n    "unpack_all",\n')
            + "\n\ndef unpack_all(*packed: Packed) -> object:\n    return [*map(unpack, packed)]\n"
        ),
        "module cudnn_compat.v2: new name unpack_all",
    ),
    "a parameter more, that has a default": Damage(
        "packed.py",
        put(
            "def pack(x: Array, lengths: Any, *,",
            "def pack(x: Array, lengths: Any, *, axis: int = 0,",
        ),
        "function cudnn_compat.v2.pack: new parameter axis: keyword only, default 0",
    ),
    "a value more": Damage(
        "spec.py",
        append('ALGOS = (*ALGOS, "fastest")\n'),
        "class cudnn_compat.v2.RNNSpec: new value algo fastest",
    ),
    "an option more": Damage(
        "cli/info.py",
        put(
            '@click.option("--json"',
            '@click.option("--short", is_flag=True, expose_value=False)\n@click.option("--json"',
        ),
        "command cudnn-compat info: new option --short",
    ),
    "a key more in a report": Damage(
        "environment.py",
        put(
            '            "executable": sys',
            '            "build": None,\n            "executable": sys',
        ),
        "report cudnn-compat info --json: new key python.build",
    ),
    "an environment variable more": Damage(
        "cudnn/find.py",
        append('_MORE = "CUDNN_COMPAT_MORE"\n'),
        "environment CUDNN_COMPAT_MORE is added",
    ),
}
"""Each needs a minor version, no more."""

UNSEEN = {
    "a message has other words": Damage(
        "packed.py", put("wanted three axes", "it must have three axes"), ""
    ),
    "a private function more": Damage(
        "dropout.py", append("def _more() -> None:\n    return None\n"), ""
    ),
    "a module more": Damage(
        "more.py",
        append(
            '"""More."""\n\nfrom __future__ import annotations\n\n__all__ = ["clear_plans"]\n\n\n'
            "def clear_plans() -> None:\n    return None\n"
        ),
        "",
    ),
    "a function is defined elsewhere": Damage(
        "v2/__init__.py", append("from cudnn_compat.more import clear_plans\n"), ""
    ),
}
"""Nothing of this is public."""


def copy_with(folder: Path, damages: Iterable[Damage]) -> Path:
    """A copy of the package in a new folder, and changes; what is compiled goes with it.

    The copy can have many, because each says which words it looks for.
    """
    shutil.copytree(ROOT / "cudnn_compat", folder / "cudnn_compat")
    for damage in damages:
        file = folder / "cudnn_compat" / damage.file
        source = file.read_text(encoding="utf-8") if file.exists() else ""
        file.write_text(damage.edit(source), encoding="utf-8")
    return folder
