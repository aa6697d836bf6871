"""Stands in for CuPy where there is none: the same names, on NumPy arrays.

Not a frozen program. It has what the frozen programs call, nothing more, and no cuDNN modules: it
is a CuPy 14 in that.
"""

import numpy

from cupy import cuda

__version__ = "14.0.0"


class ndarray:
    """There are no arrays of this library."""


asarray, empty, zeros, zeros_like = numpy.asarray, numpy.empty, numpy.zeros, numpy.zeros_like
