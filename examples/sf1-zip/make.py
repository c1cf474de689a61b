"""Moves the people of the example village to a county that does not exist (Wyoming has no 999), for a state's archive.

Archives are named after a state, so the village, which lies in none, cannot be in one.
Run: python examples/sf1-zip/make.py
"""

from __future__ import annotations

import csv
from pathlib import Path

VILLAGE = Path(__file__).resolve().parents[1] / "village" / "records.csv"


def main(path: Path = Path("people.csv")) -> None:
    with VILLAGE.open(encoding="utf-8", newline="") as source, path.open("w", encoding="utf-8", newline="") as target:
        rows = csv.DictReader(source)
        writer = csv.DictWriter(target, rows.fieldnames or (), lineterminator="\n")
        writer.writeheader()
        writer.writerows({**row, "block": row["block"].replace("99001", "56999", 1)} for row in rows)
    print(f"-> {path}")


if __name__ == "__main__":
    main()
