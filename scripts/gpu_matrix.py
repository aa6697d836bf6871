"""The compatibility matrix on this machine's engines: the part `matrix` of `make gpu`.

    python scripts/gpu_matrix.py --json FILE [--logs FOLDER]

The same as ``cudnn-compat matrix --brief --json``, without what the command needs for a terminal.
FILE gets the numbers; the document, which belongs into a folder of docs/records/matrix, is
``matrix.json`` in FOLDER. Exit status 1 where a row failed.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from places import ROOT, without_places

sys.path.insert(0, str(ROOT))  # the package need not be installed

from cudnn_compat.environment import collect
from cudnn_compat.matrix.document import as_json
from cudnn_compat.matrix.format import to_text
from cudnn_compat.matrix.rows import all_rows
from cudnn_compat.matrix.run import run_row, why_not_here


def main() -> int:
    """Run all rows."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", type=Path, required=True, help="where to write the numbers")
    parser.add_argument("--logs", type=Path, help="folder for the document")
    options = parser.parse_args()
    facts = collect()
    missing = why_not_here(facts)
    document = as_json([run_row(row, missing) for row in all_rows()], facts, brief=True)
    if options.logs:
        options.logs.mkdir(parents=True, exist_ok=True)
        (options.logs / "matrix.json").write_text(
            without_places(to_text(document)), encoding="utf-8"
        )
    failed = [row for row in document["rows"] if row["status"] == "failed"]
    result = {"summary": document["summary"], "failed": failed}
    options.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(", ".join(f"{number} {name}" for name, number in document["summary"].items()))
    for row in failed:
        print(f"{row['id']}: {row['reason']}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
