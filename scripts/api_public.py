"""What is public: the one list that the snapshots and their tests read.

docs/compatibility.md says in words what follows from it.
"""

from __future__ import annotations

from typing import Final

__all__ = ["MODULES", "REPORTS", "RESULTS", "SLOW", "VALUES"]

MODULES: Final = (
    "cudnn_compat",
    "cudnn_compat.errors",
    "cudnn_compat.v2",
    "cudnn_compat.v2.convert",
    "cudnn_compat.legacy",
    "cudnn_compat.legacy.cupy",
    "cudnn_compat.legacy.cupy.cudnn",
    "cudnn_compat.legacy.cupy.libcudnn",
    "cudnn_compat.migrate",
)
"""Public modules: what their ``__all__`` names is public, and nothing else of the package. A class
that several of them name belongs to the first."""

RESULTS: Final = (
    "cudnn_compat.legacy.gradients.CellGradients",
    "cudnn_compat.legacy.gradients.Gradients",
)
"""Classes of results that no ``__all__`` names: nobody makes one, but programs read them."""

VALUES: Final = {
    ("class cudnn_compat.v2.RNNSpec", "cell"): "cudnn_compat.spec.CELLS",
    ("class cudnn_compat.v2.RNNSpec", "bias"): "cudnn_compat.spec.BIAS_MODES",
    ("class cudnn_compat.v2.RNNSpec", "input_mode"): "cudnn_compat.spec.INPUT_MODES",
    ("class cudnn_compat.v2.RNNSpec", "dtype"): "cudnn_compat.spec.DTYPES",
    ("class cudnn_compat.v2.RNNSpec", "math"): "cudnn_compat.spec.MATHS",
    ("class cudnn_compat.v2.RNNSpec", "algo"): "cudnn_compat.spec.ALGOS",
    ("function cudnn_compat.v2.rnn_forward", "layout"): "cudnn_compat.sequences.LAYOUTS",
    ("function cudnn_compat.v2.rnn_forward", "engine"): "cudnn_compat.engines.choose.ENGINES",
}
"""Arguments that take one of a few words, and where the package keeps the words. An annotation
``Literal[…]`` says its words itself."""

REPORTS: Final[dict[str, tuple[str, ...]]] = {
    "info --json": ("info", "--json"),
    "matrix --json": ("matrix", "--only", "v2/forward/lstm/float32/", "--json", "OUT"),
    "bench --json": (
        *("bench", "--quick", "--engine", "numpy", "--parts", "grid", "--rounds", "1"),
        *("--only", "lstm 1×1×16×32", "--json", "OUT"),
    ),
    "tuning --json": ("tuning", "--json"),
    "run --report": ("run", "-q", "--report", "OUT", "PROGRAM"),
}
"""A quick way to each JSON report of the command. OUT is a file that the command writes (without
it, the report is what the command prints), PROGRAM a small program for the old API."""

SLOW: Final = ("report cudnn-compat bench --json",)
"""Entries that take seconds; tests that are about something else leave them out."""
