"""docs/cupy-names.md: what of cupy.cudnn is offered and what is not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from cudnn_compat.legacy.cupy import cudnn, libcudnn
from cudnn_compat.legacy.cupy.absent import ABSENT

ROOT = Path(__file__).parents[3]


def test_the_page_is_what_the_table_makes() -> None:
    command = [sys.executable, "scripts/cupy_names.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}run: python scripts/cupy_names.py"


def test_every_function_that_is_offered_or_not_is_on_the_page() -> None:
    text = (ROOT / "docs" / "cupy-names.md").read_text(encoding="utf-8")
    offered, missing = text.split("## Not offered")
    for module in (cudnn, libcudnn):
        for name in module.__all__:
            if callable(getattr(module, name)) and name != "CuDNNError":
                assert f"| `{name}` |" in offered
    for group in ABSENT:
        for name in (*group.high, *group.low):
            assert f"`{name}`" in missing
