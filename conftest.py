"""Python examples in README.md and docs/ are tests: each page is one program.

An example behind ``<!--- skip: next if(no_gpu, reason="needs a GPU") -->`` runs where there is one.
"""

from typing import Any

from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser

from cudnn_compat.environment import collect


def set_up(namespace: dict[str, Any]) -> None:
    """What an example finds beside what the page itself defines."""
    namespace["no_gpu"] = not collect()["engines"]["cudnn"]["available"]


pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser(), SkipParser()],
    patterns=["README.md", "docs/*.md", "docs/guides/*.md"],
    setup=set_up,
).pytest()
