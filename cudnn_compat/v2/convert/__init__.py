"""Conversion of weights from and to PyTorch, ONNX and Keras.

No framework is imported: arrays come in (NumPy, CuPy, or anything with ``detach`` or ``numpy``,
such as a torch tensor), NumPy arrays go out, and nothing that is returned shares memory with what
was given. The dtype of the arrays decides ``spec.dtype``.

=========  =============  =============  ===================================================
framework  LSTM gates     GRU gates      biases
=========  =============  =============  ===================================================
here       i f g o        r z n          two, one or none (``spec.bias``)
PyTorch    i f g o        r z n          two or none
ONNX       i o f c        z r h          two or none
Keras      i f c o        z r h          one or none; two for a GRU with ``reset_after=True``
=========  =============  =============  ===================================================

g is what ONNX and Keras call c, n what they call h. In all four a GRU's z keeps the old state:
``h = (1 - z) * n + z * h_prev``. What differs between GRUs is where r acts: here and in PyTorch
``n = tanh(W x + b_W + r * (R h + b_R))`` (reset-after), while ``n = tanh(W x + R (r * h) + b)``
(reset-before: ONNX's ``linear_before_reset=0``, Keras's ``reset_after=False``, Flux's ``GRUv3``) is
another function of the same weights. cuDNN cannot compute it, and it is refused.
"""

from cudnn_compat.v2.convert.biases import change_bias
from cudnn_compat.v2.convert.keras import from_keras, to_keras
from cudnn_compat.v2.convert.onnx import OnnxNodes, from_onnx, to_onnx
from cudnn_compat.v2.convert.torch import from_torch, to_torch

__all__ = [
    "OnnxNodes",
    "change_bias",
    "from_keras",
    "from_onnx",
    "from_torch",
    "to_keras",
    "to_onnx",
    "to_torch",
]
