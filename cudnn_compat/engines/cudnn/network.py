"""A network in the library: its descriptor, whatever the number of steps."""

from __future__ import annotations

from cudnn_compat.cudnn.descriptors import Descriptor
from cudnn_compat.engines.cudnn.device import Session
from cudnn_compat.engines.cudnn.dropout import Generator, scratch_descriptor
from cudnn_compat.engines.cudnn.settings import describe
from cudnn_compat.engines.cudnn.weights import check_layout
from cudnn_compat.spec import RNNSpec

__all__ = ["Network"]


class Network:
    """A spec with an algorithm, described to the library. Plans that differ in steps share it.

    Args:
        padded: whether x and y have room for padding.
        batch: B; it matters to ``persist_dynamic`` alone, which is compiled for it.
        drops: whether dropout acts.
    """

    def __init__(
        self, session: Session, spec: RNNSpec, algo: str, *, padded: bool, batch: int, drops: bool
    ) -> None:
        self.spec = spec
        self.algo = algo
        self.padded = padded
        self.batch = batch
        self.drops = drops
        dropout = scratch_descriptor(session, spec.dropout) if drops else None
        self.descriptor = self._describe(session, dropout)
        """For every call that draws no masks."""
        check_layout(session, self.descriptor, spec)

    def drawing(self, session: Session, generator: Generator) -> Descriptor:
        """The descriptor for a forward that draws its masks from ``generator``."""
        key = (self.spec, self.algo, self.padded, self.batch)
        ratio = self.spec.dropout
        return generator.kept(
            key, lambda: self._describe(session, generator.descriptor(session, ratio))
        )

    def _describe(self, session: Session, dropout: Descriptor | None) -> Descriptor:
        made = describe(session.library, self.spec, self.algo, padded=self.padded, dropout=dropout)
        if self.algo == "persist_dynamic":
            session.library.cudnnBuildRNNDynamic(session.handle, made, self.batch)
        return made
