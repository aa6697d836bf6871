"""Run rows of the matrix."""

from __future__ import annotations

import dataclasses
import datetime
import math
import warnings
from collections.abc import Iterable
from typing import Any, Final, Literal, TypeAlias

from cudnn_compat.errors import UnsupportedError
from cudnn_compat.legacy import LegacyAPIWarning
from cudnn_compat.matrix import checks_legacy, checks_parts, checks_v2
from cudnn_compat.matrix.comparing import Case, Comparison
from cudnn_compat.matrix.rows import Row

__all__ = ["STATUSES", "Result", "as_json", "run_row"]

Status: TypeAlias = Literal["ok", "failed", "not supported"]

STATUSES: Final[tuple[Status, ...]] = ("ok", "failed", "not supported")

CHECKS: Final = {
    "v2": checks_v2.CHECKS | checks_parts.CHECKS,
    "legacy": checks_legacy.CHECKS,
}


@dataclasses.dataclass(frozen=True)
class Result:
    """What became of a row.

    Attributes:
        row: the row.
        status: ``"ok"``, ``"failed"`` or ``"not supported"``.
        error: largest absolute difference, of the comparison that came nearest to its tolerance or
            was farthest beyond it; None where nothing was compared.
        tolerance: what that comparison allows.
        reason: why it failed or is not supported; None where it is ok.
    """

    row: Row
    status: Status
    error: float | None = None
    tolerance: float | None = None
    reason: str | None = None

    @property
    def severity(self) -> float:
        """Error in units of the tolerance; infinite where nothing is allowed and something is."""
        if self.error is None or self.tolerance is None:
            return math.inf if self.status == "failed" else 0.0
        return _severity(self.error, self.tolerance)


def run_row(row: Row) -> Result:
    """Run one row and compare it with the reference. Never raises what the row's calls raise."""
    check = CHECKS[row.feature.api][row.feature.check]
    worst: tuple[float, float, float, str | None] | None = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LegacyAPIWarning)
            case = Case(row)
            for comparison in check(case):
                found = _judge(case, comparison)
                if worst is None or found[0] > worst[0]:
                    worst = found
    except UnsupportedError as error:
        return Result(row, "not supported", reason=str(error))
    except LegacyAPIWarning as error:
        # CUDNN_COMPAT_DEPRECATIONS=error: the user's wish, not a fault.
        return Result(row, "not supported", reason=f"warnings are errors here: {error}")
    except Exception as error:
        return Result(row, "failed", reason=f"{type(error).__name__}: {error}")
    if worst is None:
        return Result(row, "failed", reason=f"{row.feature.check} compared nothing")
    severity, difference, allowed, reason = worst
    if severity <= 1:
        return Result(row, "ok", difference, allowed)
    return Result(row, "failed", difference, allowed, reason)


def _judge(case: Case, comparison: Comparison) -> tuple[float, float, float, str]:
    """Severity, error and tolerance of a comparison, and what to say where it fails."""
    difference, reason = comparison.error()
    allowed = case.tolerance(comparison)
    if reason is None:
        reason = f"{comparison.name} is off by {difference:.2g}"
    return _severity(difference, allowed), difference, allowed, reason


def _severity(difference: float, allowed: float) -> float:
    if math.isnan(difference):
        return math.inf
    if allowed == 0:
        return math.inf if difference else 0.0
    return difference / allowed


def as_json(results: Iterable[Result], environment: dict[str, Any]) -> dict[str, Any]:
    """What ``cudnn-compat matrix --json`` writes. The keys are stable.

    Args:
        results: of any rows.
        environment: facts about the machine that they were run on.

    Returns:
        ``created`` (UTC, ISO 8601), ``environment``, ``summary`` (number of rows by status) and
        ``rows``: ``id, api, feature, cell, dtype, shape, engine, status, error, tolerance,
        reason``. An error that is no number is null.
    """
    found = list(results)
    now = datetime.datetime.now(datetime.UTC)
    counts: dict[str, int] = {s: sum(r.status == s for r in found) for s in STATUSES}
    return {
        "created": now.isoformat(timespec="seconds"),
        "environment": environment,
        "summary": {"rows": len(found), **counts},
        "rows": [
            {
                "id": result.row.id,
                "api": result.row.feature.api,
                "feature": result.row.feature.name,
                "cell": result.row.cell,
                "dtype": result.row.dtype,
                "shape": result.row.shape.label,
                "engine": result.row.engine,
                "status": result.status,
                "error": _finite(result.error),
                "tolerance": result.tolerance,
                "reason": result.reason,
            }
            for result in found
        ],
    }


def _finite(error: float | None) -> float | None:
    return error if error is not None and math.isfinite(error) else None
