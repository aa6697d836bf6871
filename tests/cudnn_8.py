"""Where tests find the last cuDNN 8, whose wheel cannot be installed beside that of cuDNN 9."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest


def cudnn_8_home() -> Path:
    """The folder of cuDNN 8.9, as its wheel has it: ``include/cudnn.h``, ``lib/libcudnn.so.8``."""
    home = Path(os.environ.get("CUDNN8_HOME") or Path(sys.prefix, "cudnn8", "nvidia", "cudnn"))
    if not home.exists():
        pytest.skip("needs cuDNN 8.9: `make cudnn8` unpacks it, or CUDNN8_HOME names its folder")
    return home
