"""The engine's plain operations: dropout, softmax and activations of arrays, without a network."""

from __future__ import annotations

from collections.abc import Callable

from cudnn_compat.arrays import Array, device_of
from cudnn_compat.dropout import DropoutState
from cudnn_compat.engines.cudnn import operations
from cudnn_compat.engines.cudnn.device import Session, device_index
from cudnn_compat.engines.cudnn.staging import input_array, output_array, put_back
from cudnn_compat.engines.operations import (
    check_activation,
    check_dropout,
    check_like,
    check_softmax,
)

__all__ = ["PlainOperations"]


class PlainOperations:
    """The part of the engine that knows no networks."""

    def dropout_reserve_bytes(self, size: int, dtype: str, device: str = "cuda:0") -> int:
        """What the library says."""
        if not size:
            return 0
        with Session(device_index(device)) as session:
            return operations.dropout_reserve_bytes(session, dtype, size)

    def dropout_forward(
        self, x: Array, *, y: Array, reserve: Array, ratio: float, state: DropoutState
    ) -> None:
        """See :meth:`cudnn_compat.engines.interface.Engine.dropout_forward`."""
        check_like("x", x, y=y)
        dtype, device = x.dtype.name, device_of(x)
        check_dropout(ratio, reserve, self.dropout_reserve_bytes(x.size, dtype, device))
        if not x.size or ratio == 1:  # 1 / (1 - ratio) is not to be asked of the library
            y[...] = 0
            return
        with Session(device_index(device)) as session:
            given, out = input_array(x), output_array(y)
            operations.dropout_forward(session, state, ratio, dtype, given, out, reserve)
            put_back(out, y)

    def dropout_backward(self, dy: Array, *, dx: Array, reserve: Array, ratio: float) -> None:
        """See :meth:`cudnn_compat.engines.interface.Engine.dropout_backward`."""
        check_like("dy", dy, dx=dx)
        dtype, device = dy.dtype.name, device_of(dy)
        check_dropout(ratio, reserve, self.dropout_reserve_bytes(dy.size, dtype, device))
        if not dy.size or ratio == 1:
            dx[...] = 0
            return
        with Session(device_index(device)) as session:
            given, out = input_array(dy), output_array(dx)
            operations.dropout_backward(session, ratio, dtype, given, out, reserve)
            put_back(out, dx)

    def softmax_forward(self, x: Array, *, y: Array, algorithm: str, mode: str) -> None:
        """See :meth:`cudnn_compat.engines.interface.Engine.softmax_forward`."""
        check_like("x", x, y=y)
        check_softmax(x, algorithm, mode)
        if not x.size:
            return
        _apply(operations.softmax_forward, (x,), y, algorithm, mode)

    def softmax_backward(
        self, y: Array, dy: Array, *, dx: Array, algorithm: str, mode: str
    ) -> None:
        """See :meth:`cudnn_compat.engines.interface.Engine.softmax_backward`."""
        check_like("y", y, dy=dy, dx=dx)
        check_softmax(y, algorithm, mode)
        if not y.size:
            return
        _apply(operations.softmax_backward, (y, dy), dx, algorithm, mode)

    def activation_forward(self, x: Array, *, y: Array, function: str, coef: float) -> None:
        """See :meth:`cudnn_compat.engines.interface.Engine.activation_forward`."""
        check_like("x", x, y=y)
        check_activation(function)
        if not x.size:
            return
        _apply(operations.activation_forward, (x,), y, function, coef)

    def activation_backward(
        self, x: Array, y: Array, dy: Array, *, dx: Array, function: str, coef: float
    ) -> None:
        """See :meth:`cudnn_compat.engines.interface.Engine.activation_backward`."""
        check_like("x", x, y=y, dy=dy, dx=dx)
        check_activation(function)
        if not x.size:
            return
        _apply(operations.activation_backward, (x, y, dy), dx, function, coef)


def _apply(
    operation: Callable[..., None], given: tuple[Array, ...], out: Array, *how: str | float
) -> None:
    """Let the library compute a plain operation; ``out`` and ``given`` may be any views."""
    with Session(device_index(device_of(out))) as session:
        target = output_array(out)
        operation(session, *map(input_array, given), target, *how)
        put_back(target, out)
