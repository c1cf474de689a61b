"""Makes the records of the example village: invented people, the same ones every time.

The village lies in no state (99), so it cannot be mistaken for a real place. Households share race and origin, blocks
lean towards one, and ages fit together; nothing more is claimed. Run: python examples/village/make.py
"""

from __future__ import annotations

import csv
import random
from pathlib import Path

RACES = ("white", "black", "aian", "asian", "nhopi", "sor")
COLUMNS = ("block", "sex", "age", *RACES, "hispanic")


def people(seed: int = 1) -> list[dict[str, object]]:
    rng = random.Random(seed)
    rows: list[dict[str, object]] = []
    for tract in ("000100", "000200"):
        for block in range(1, 26):
            code = f"99001{tract}{1 + block // 10}{block:03d}"
            usual = rng.choices(RACES, weights=(70, 14, 2, 6, 1, 7))[0]
            hispanic = rng.random() < (0.8 if usual == "sor" else 0.1)
            for _ in range(1 + int(rng.expovariate(1 / 9))):
                rows += household(rng, code, usual, hispanic)
    return sorted(rows, key=lambda row: str(row["block"]))


def household(rng: random.Random, block: str, usual: str, hispanic: bool) -> list[dict[str, object]]:
    own = usual if rng.random() < 0.9 else rng.choice(RACES)
    second = rng.choice(RACES) if rng.random() < 0.04 else own
    origin = hispanic if rng.random() < 0.9 else not hispanic
    head = rng.randint(20, 88)
    ages = [head]
    if rng.random() < 0.55:
        ages.append(max(18, min(95, head + rng.randint(-6, 6))))
    if head < 58:
        ages += [
            rng.randint(0, min(18, head - 18)) for _ in range(rng.choices((0, 1, 2, 3), weights=(45, 22, 22, 11))[0])
        ]
    return [
        {
            "block": block,
            "sex": rng.choice(("male", "female")),
            "age": age,
            **{race: int(race in ((own, second) if age < 18 else (own,))) for race in RACES},
            "hispanic": int(origin),
        }
        for age in ages
    ]


def main(path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(people())


if __name__ == "__main__":
    main(Path(__file__).with_name("records.csv"))
