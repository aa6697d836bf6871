"""The plan of a shape that this package's own kernels compute."""

from __future__ import annotations

import concurrent.futures
import threading
from types import ModuleType
from typing import Any

from cudnn_compat.arrays import numpy_dtype
from cudnn_compat.engines.cache import BoundedCache
from cudnn_compat.engines.cudnn.device import Session
from cudnn_compat.engines.cudnn.fused import FusedNetwork
from cudnn_compat.engines.cudnn.fused.rows import Rows
from cudnn_compat.engines.cudnn.graphs import Again, Replays, Store
from cudnn_compat.engines.cudnn.plan import Shape, ShapedPlan
from cudnn_compat.sequences import Sequences, make_sequences
from cudnn_compat.weights import weight_size

__all__ = ["FusedPlan"]

_KEPT_ROWS = 32


_compiling = threading.Lock()
"""One at a time, so that compiling never takes more than one of the caller's processors."""


class FusedPlan(ShapedPlan):
    """A network of own kernels. Neither steps nor lengths matter to it.

    Args:
        store: where its graphs are kept; None where it runs plainly.
        wait: until the kernels are compiled; else that goes on in the background.

    Attributes:
        network: the kernels.
        scratch: bytes of scratch that calls have taken, by what they were given.
        replays: its calls as graphs; None where it runs plainly.

    Raises:
        UnsupportedError: the kernels do not serve this network and shape.
    """

    settled = True

    def __init__(self, session: Session, shape: Shape, store: Store | None, *, wait: bool) -> None:
        super().__init__(shape, "fused")
        spec, training = shape.spec, shape.training
        self.network = FusedNetwork(
            session.xp, session.device, spec, shape.batch, training=training
        )
        self._rows: BoundedCache[Rows] = BoundedCache(_KEPT_ROWS)
        self.scratch: dict[tuple[Any, ...], int] = {}
        self.replays: Replays | None = None
        if store is not None:
            self.replays = Replays(store, self.network, 0, blas=self.network.blas_bytes)
            self.again = Again(
                session.xp,
                self.replays,
                shape.index,
                numpy_dtype(spec.dtype),
                training=training,
                looks_back=False,
            )
        self._compiled: concurrent.futures.Future[None] | None = None
        if wait:
            self._compile()
        else:
            self._compiled = concurrent.futures.Future()
            threading.Thread(
                target=self._compile_behind, args=(self._compiled,), name="cudnn_compat compiles"
            ).start()

    def _compile_behind(self, done: concurrent.futures.Future[None]) -> None:
        """In a thread of its own. The interpreter waits for the one that has begun, not for all."""
        with _compiling:
            if not threading.main_thread().is_alive():
                return
            try:
                self._compile()
            except BaseException as error:
                done.set_exception(error)
            else:
                done.set_result(None)

    def _compile(self) -> None:
        """Run everything once, on a stream of its own: then it is compiled and loaded."""
        with Session(self.index) as outside, outside.xp.cuda.Stream(non_blocking=True) as stream:
            self._run_two_steps(outside.xp)
            stream.synchronize()

    def _run_two_steps(self, xp: ModuleType) -> None:
        spec, batch = self.spec, self.batch
        lengths = (2, *(1 if self.ragged else 2 for _ in range(batch - 1)))
        steps = 3 if self.ragged else 2
        rows: tuple[int, ...] = (sum(lengths),)
        if self.layout != "packed":
            rows = (steps, batch) if self.layout == "time_major" else (batch, steps)
        dtype = numpy_dtype(spec.dtype)
        x = xp.zeros((*rows, spec.input_size), dtype)
        y = xp.zeros((*rows, spec.output_size), dtype)
        h = xp.zeros(spec.state_shape(batch), dtype)
        c = xp.zeros(spec.cell_shape(batch), dtype) if spec.has_cell else None
        w = xp.zeros(weight_size(spec), dtype)
        sequences = make_sequences(self.layout, x.shape, lengths=lengths)
        network, where = self.network, self.network.rows(sequences)
        reserve = None
        if self.training:
            reserve = xp.empty((network.reserve_bytes(sequences),), "uint8")
        network.forward(where, w, x, h, c, y=y, hy=h, cy=c, reserve=reserve)
        if reserve is not None:
            network.backward_data(where, w, c, reserve, dy=y, dhy=h, dcy=c, dx=x, dhx=h, dcx=c)
            network.backward_weights(where, x, reserve, dw=w)

    @property
    def ready(self) -> bool:
        """Whether the kernels are compiled.

        Raises:
            Exception: what compiling them has raised.
        """
        if self._compiled is None:
            return True
        if not self._compiled.done():
            return False
        self._compiled.result()
        self._compiled = None
        return True

    def release(self) -> None:
        """Let go of its graphs: it will not be called again."""
        if self.replays is not None:
            self.replays.release()

    def workspace_bytes(self, sequences: Sequences) -> int:
        """Bytes of scratch that a forward takes."""
        return self.network.workspace_bytes(sequences) if sequences.total else 0

    def reserve_bytes(self, sequences: Sequences) -> int:
        """Bytes of the flat reserve; 0 in inference, and where there is nothing to compute."""
        return self.network.reserve_bytes(sequences) if sequences.total else 0

    def rows_of(self, session: Session, sequences: Sequences) -> Rows:
        """Where the rows of these lengths are. What it has on the device is of one stream."""
        key = (sequences.layout, sequences.steps, sequences.lengths, session.stream)
        rows = self._rows.get(key, lambda: self._send_rows(session, sequences))
        if rows.lengths is not None:
            session.outlive(rows)
        return rows

    def _send_rows(self, session: Session, sequences: Sequences) -> Rows:
        if sequences.ragged:
            session.check_sending()
        return self.network.rows(sequences)
