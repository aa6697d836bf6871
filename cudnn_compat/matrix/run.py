"""Run rows of the matrix."""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Callable
from typing import Any, Final

from cudnn_compat.cudnn.constants import STATUS_8
from cudnn_compat.errors import UnsupportedError
from cudnn_compat.legacy import LegacyAPIWarning
from cudnn_compat.legacy.cupy import CuDNNError
from cudnn_compat.matrix import (
    checks_addresses,
    checks_around,
    checks_arrays,
    checks_descriptors,
    checks_handles,
    checks_legacy,
    checks_library,
    checks_names,
    checks_parts,
    checks_v2,
)
from cudnn_compat.matrix.comparing import Case, Comparison, Found, NotOffered, NotTestedHere
from cudnn_compat.matrix.features import LIBRARY, Row
from cudnn_compat.matrix.format import Status

__all__ = ["CHECKS", "Result", "run_row", "why_not_here"]

_NOT_SUPPORTED = STATUS_8["CUDNN_STATUS_NOT_SUPPORTED"]

CHECKS: Final[dict[str, dict[str, Callable[[Case], Found]]]] = {
    "v2": checks_v2.CHECKS | checks_parts.CHECKS | checks_around.CHECKS | checks_names.CHECKS,
    "legacy": checks_legacy.CHECKS,
    "legacy.cupy": checks_names.CHECKS,
    "legacy.cupy.cudnn": checks_arrays.CHECKS | checks_names.CHECKS,
    "legacy.cupy.libcudnn": checks_addresses.CHECKS
    | checks_descriptors.CHECKS
    | checks_handles.CHECKS
    | checks_names.CHECKS,
    "cudnn": checks_library.CHECKS,
}
"""By API, then by name."""


@dataclasses.dataclass(frozen=True)
class Result:
    """What became of a row.

    Attributes:
        row: the row.
        status: one of :data:`~cudnn_compat.matrix.format.STATUSES`.
        error: largest absolute difference, of the comparison that came nearest to its tolerance or
            was farthest beyond it; None where nothing was compared.
        tolerance: what that comparison allows.
        reason: why it is not simply "works"; None where it is.
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


def why_not_here(environment: dict[str, Any]) -> dict[str | None, str]:
    """The engines that cannot be run, with the reason.

    Args:
        environment: what :func:`~cudnn_compat.environment.collect` gathered.
    """
    facts = {**environment["engines"], LIBRARY: environment["cudnn"]}
    return {name: fact["reason"] for name, fact in facts.items() if not fact["available"]}


def run_row(row: Row, missing: dict[str | None, str] | None = None) -> Result:
    """Run one row and compare it with the reference. Never raises what the row's calls raise.

    Args:
        row: any row.
        missing: engines that are not here, with the reason: their rows are not run.
    """
    if missing and row.engine in missing:
        return Result(row, "not tested here", reason=missing[row.engine])
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
        return Result(row, "refused", reason=str(error))
    except NotOffered as error:
        return Result(row, "not offered", reason=str(error))
    except NotTestedHere as error:
        return Result(row, "not tested here", reason=str(error))
    except LegacyAPIWarning as error:
        # CUDNN_COMPAT_DEPRECATIONS=error: the user's wish, not a fault.
        return Result(row, "not tested here", reason=f"warnings are errors here: {error}")
    except CuDNNError as error:
        status: Status = "refused" if error.status == _NOT_SUPPORTED else "failed"
        return Result(row, status, reason=str(error))
    except Exception as error:
        return Result(row, "failed", reason=f"{type(error).__name__}: {error}")
    if worst is None:
        return Result(row, "failed", reason=f"{row.feature.check} compared nothing")
    severity, difference, allowed, reason = worst
    if severity <= 1:
        works: Status = "works" if row.differs is None else "works differently"
        return Result(row, works, difference, allowed, row.differs)
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
