"""Generators of dropout masks, and dropout as an operation."""

from __future__ import annotations

from typing import Any

import numpy as np

from cudnn_compat.arrays import Array, check_array, device_of, load_cupy
from cudnn_compat.dropout import DropoutState
from cudnn_compat.engines.choose import choose_engine
from cudnn_compat.errors import ArgumentError, DTypeError
from cudnn_compat.legacy.cupy import handles
from cudnn_compat.legacy.cupy.described import Dropout
from cudnn_compat.legacy.cupy.entry import old_name
from cudnn_compat.legacy.cupy.high.descriptors import make_descriptor
from cudnn_compat.legacy.cupy.low.operations import STATES_BYTES, set_dropout
from cudnn_compat.legacy.cupy.memory import pointer_to
from cudnn_compat.legacy.cupy.registry import find
from cudnn_compat.legacy.cupy.translate import float_name

__all__ = ["DropoutStates", "create_dropout_states", "dropout_of"]


class DropoutStates:
    """A generator of dropout masks that networks and ``dropout`` share, and the ratio that is set.

    Every training forward advances it. Arrays of any device may be used with it: each device has a
    realisation of its own, which starts from the seed.

    Args:
        handle: any handle, or None.
        seed: an integer; the same seed gives the same masks to the same calls on one device.
    """

    @old_name("cudnn")
    def __init__(self, handle: int | None, seed: int) -> None:
        self._desc = make_descriptor(Dropout(DropoutState(seed)))
        # Of old the generator's memory; the engines keep it now, and nothing is written here.
        self._states = pointer_to(_bytes(handle, STATES_BYTES))

    @old_name("cudnn")
    def set_dropout_ratio(self, dropout_ratio: float) -> None:
        """Set the ratio of the training forwards to come; the generator goes on."""
        set_dropout(find(Dropout, self._desc.value), dropout_ratio, 0, 0)

    @old_name("cudnn")
    def forward(self, handle: int | None, x: Array, dropout_ratio: float) -> tuple[Array, Array]:
        """Dropout of any array; sets the ratio too.

        Args:
            x: any shape; float16, float32 or float64.

        Returns:
            ``(reserve_space, y)``: the mask, an int8 array that :meth:`backward` takes, and x with
            the elements that are kept times 1/(1 - ratio).
        """
        check_array("x", x)
        dropout = self._with(dropout_ratio)
        assert dropout.state is not None
        engine, device, dtype = choose_engine(None, x), device_of(x), float_name(x)
        y = engine.empty(x.shape, dtype, device)
        size = engine.dropout_reserve_bytes(int(x.size), dtype, device)
        reserve = engine.empty((size,), "int8", device)
        engine.dropout_forward(
            x, y=y, reserve=reserve.view("uint8"), ratio=dropout.ratio, state=dropout.state
        )
        return reserve, y

    @old_name("cudnn")
    def backward(
        self, handle: int | None, dy: Array, dropout_ratio: float, reserve_space: Array
    ) -> Array:
        """dx: dy under the mask of the forward that gave ``reserve_space``.

        Args:
            dropout_ratio: that of the forward.
        """
        check_array("dy", dy)
        check_array("reserve_space", reserve_space)
        if reserve_space.dtype.itemsize != 1:
            raise DTypeError(f"reserve_space is {reserve_space.dtype}; wanted what forward gave")
        dropout = self._with(dropout_ratio)
        engine = choose_engine(None, dy)
        dx = engine.empty(dy.shape, float_name(dy), device_of(dy))
        if device_of(reserve_space) != device_of(dy):
            raise ArgumentError(
                f"dy is on {device_of(dy)}, reserve_space on {device_of(reserve_space)}"
            )
        reserve = reserve_space.view("uint8")
        engine.dropout_backward(dy, dx=dx, reserve=reserve, ratio=dropout.ratio)
        return dx

    def _with(self, ratio: float) -> Dropout:
        dropout = find(Dropout, self._desc.value)
        set_dropout(dropout, ratio, 0, 0)
        return dropout


@old_name("cudnn")
def create_dropout_states(handle: int) -> Array:
    """Memory for ``create_dropout_descriptor``: a small int8 array."""
    return _bytes(handle, STATES_BYTES).view("int8")


def dropout_of(states: Any) -> Dropout:
    """The dropout descriptor of a ``states`` argument.

    Raises:
        DTypeError: it is no ``DropoutStates``.
    """
    descriptor = getattr(states, "_desc", None)
    if descriptor is None:
        raise DTypeError(f"states is a {type(states).__name__}; wanted a DropoutStates")
    return find(Dropout, descriptor.value)


def _bytes(handle: int | None, size: int) -> Array:
    device = (handles.space_of(handle) if handle else handles.current_space()).device
    if device is None:
        return np.empty(size, "uint8")
    cupy = load_cupy()
    with cupy.cuda.Device(device):
        return cupy.empty(size, "uint8")
