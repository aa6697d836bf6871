"""One network as callers of ``cupy.cudnn`` had it: its arguments, and the right answers.

The basic calls take packed sequences, longest first, and the batch size of each step; the calls
with ``_ex`` (``Ex``) take padded sequences in any order, and their lengths.
"""

from __future__ import annotations

import functools
from typing import Any, Final

import numpy as np

from cudnn_compat.arrays import Array
from cudnn_compat.legacy.cupy import cudnn
from cudnn_compat.matrix.comparing import Case, Comparison, Found
from cudnn_compat.matrix.old_step import MODES
from cudnn_compat.matrix.reference import (
    ReferenceGradients,
    ReferenceOutput,
    reference_forward,
)

__all__ = ["TYPES", "OldNetwork", "compare_data", "compare_outputs", "compare_weights"]

TYPES: Final = {"float32": 0, "float64": 1, "float16": 2}
"""``CUDNN_DATA_*``."""


class OldNetwork:
    """Arguments and right answers, and the calls that take arrays.

    Attributes:
        padded: whether it is given to the calls with ``_ex``.
        starts_from_zeros: whether an LSTM is given no cx.
        lengths: what those calls name so: batch sizes, or steps of each sequence.
    """

    def __init__(self, case: Case) -> None:
        self.case, self.spec, self.problem = case, case.spec, case.problem
        self.padded = case.options["form"] == "padded"
        self.layout = "time_major" if self.padded else "packed"
        # Padding of x and dy is not read.
        self.x, self.dy = (
            each(self.layout, padding=float("nan") if self.padded else 0.0)
            for each in (case.x, case.dy)
        )
        self.w = case.array(self.problem.w).reshape(-1, 1, 1)
        self.hx, self.cx = case.states()
        self.starts_from_zeros = not case.options.get("cx", True)
        if self.starts_from_zeros:
            self.cx = None
        self.dhy, self.dcy = case.state_gradients()
        if self.cx is None:
            self.dcy = None
        known = case.shape.known_lengths
        sizes = [sum(length > t for length in known) for t in range(max(known))]
        self.lengths: Any = np.array(known if self.padded else sizes, np.int32)
        self.direction, self.mode = int(self.spec.bidirectional), MODES[self.spec.cell]

    @functools.cached_property
    def right(self) -> ReferenceOutput:
        """The right y, hy and cy."""
        posed = self.problem
        if self.starts_from_zeros:
            return reference_forward(posed.spec, posed.w, posed.xs, posed.hx)
        return posed.output

    @functools.cached_property
    def gradients(self) -> ReferenceGradients:
        """The right dx, dhx, dcx and dw."""
        given = ("dy", "dhy") if self.starts_from_zeros else ("dy", "dhy", "dcy")
        return self.problem.gradients_of(given, self.right)

    def join(self, rows: list[Array], features: int) -> Array:
        """Right rows in the layout of the calls."""
        return self.case.join(rows, features, self.layout)

    @functools.cached_property
    def states(self) -> Any:
        """A ``DropoutStates`` whose ratio is 0."""
        return cudnn.DropoutStates(None, 1234)

    def call(self, name: str, **given: Any) -> Any:
        """A function of ``cupy.cudnn`` with what all of them take, by name."""
        function = getattr(cudnn, name + "_ex" * self.padded)
        return function(
            states=self.states,
            direction_mode=self.direction,
            rnn_mode=self.mode,
            hx=self.hx,
            w=self.w,
            xs=self.x,
            lengths=self.lengths,
            **given,
        )


def compare_outputs(network: OldNetwork, hy: Array, cy: Array | None, y: Array) -> Found:
    """y, hy and cy; cy may be None where nothing was to be written."""
    right, spec = network.right, network.spec
    yield Comparison("y", y, network.join(right.ys, spec.output_size))
    yield Comparison("hy", hy, right.hy)
    if network.cx is not None:
        yield Comparison("cy", cy, right.cy)
    elif cy is not None:
        yield Comparison("elements of cy without cx", cy.size, 0, "exact")


def compare_data(network: OldNetwork, dhx: Array, dcx: Array | None, dx: Array) -> Found:
    """dx, dhx and dcx."""
    right, spec = network.gradients, network.spec
    yield Comparison("dx", dx, network.join(right.dxs, spec.input_size), "gradient")
    yield Comparison("dhx", dhx, right.dhx, "gradient")
    if network.cx is not None:
        yield Comparison("dcx", dcx, right.dcx, "gradient")
    elif dcx is not None:
        yield Comparison("elements of dcx without cx", dcx.size, 0, "exact")


def compare_weights(network: OldNetwork, dw: Array) -> Found:
    """dw, in any shape."""
    yield Comparison("dw", dw.reshape(-1), network.gradients.dw, "gradient")
