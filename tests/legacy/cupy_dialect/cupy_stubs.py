"""Packages called cupy, cupyx and cupy_backends, as far as their cuDNN modules go."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

Own = Literal["none", "working", "shell"]
"""What a CuPy brings: 14 no cuDNN modules; 13 its own, which need its libcudnn.so.8."""

PACKAGES = {
    "cupy/__init__.py": "__version__ = {version!r}\nclass ndarray: pass\nfrom cupy import cuda\n",
    "cupy/cuda/__init__.py": "",
    "cupyx/__init__.py": "",
    "cupy_backends/__init__.py": "",
    "cupy_backends/cuda/__init__.py": "",
    "cupy_backends/cuda/libs/__init__.py": "",
}

LIBRARY = {
    "working": """\
        import sys
        assert "once" not in vars(sys), "an extension module is imported once only"
        sys.once = True
        def getVersion(): return 8907
        """,
    "shell": "raise ImportError('libcudnn.so.8: cannot open shared object file')",
}

OWN_MODULES = {
    "cupy/cuda/cudnn.py": """\
        available = True
        try:
            from cupy_backends.cuda.libs.cudnn import *
        except ImportError as error:
            available = False
            import warnings
            warnings.warn(f"cudnn library could not be loaded: {error}")
        """,
    "cupyx/cudnn.py": """\
        from cupy_backends.cuda.libs import cudnn as libcudnn
        def get_handle(): return "CuPy's own"
        """,
    "cupy/cudnn.py": "from cupyx.cudnn import *",
}


def make_cupy(folder: Path, version: str, own: Own = "none") -> Path:
    """Write such packages into ``folder``."""
    files = dict(PACKAGES)
    if own != "none":
        files |= OWN_MODULES | {"cupy_backends/cuda/libs/cudnn.py": LIBRARY[own]}
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [line.removeprefix("        ") for line in text.splitlines()]
        content = "\n".join(lines) + "\n"
        if name == "cupy/__init__.py":
            content = content.format(version=version)
        path.write_text(content, encoding="utf-8")
    return folder
