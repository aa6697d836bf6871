"""Where the first layer's part lies in a flat weight space: what the old API showed of it."""

from __future__ import annotations

import functools

from cudnn_compat.arrays import Array
from cudnn_compat.spec import RNNSpec
from cudnn_compat.weights import weight_layout

__all__ = ["divider"]


class _Divider:
    """Calling it on a flat array gives the views of the first layer's part.

    ``((Wi (input, G·hidden), Wh (hidden, G·hidden)), b (G·hidden,))``; b is the input half.
    """

    def __init__(self, spec: RNNSpec) -> None:
        part = weight_layout(spec).pseudo_layers[0]
        assert part.weight_ih is not None and part.bias_ih is not None
        (self._wi, self._rows), (self._wh, _), (self._b, _) = (
            (slice(slot.offset, slot.offset + slot.size), slot.shape[0])
            for slot in (part.weight_ih, part.weight_hh, part.bias_ih)
        )

    def __call__(self, w: Array) -> tuple[tuple[Array, Array], Array]:
        rows = self._rows
        return (w[self._wi].reshape(rows, -1).T, w[self._wh].reshape(rows, -1).T), w[self._b]


divider = functools.lru_cache(maxsize=256)(_Divider)
