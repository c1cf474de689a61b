"""Makes the people of Norland, a country that does not exist: the same ones every time.

Wards lean towards one language, couples are of about one age, and work fits the age; nothing more is claimed.
Run: python examples/own-country/make.py
"""

from __future__ import annotations

import csv
import random
from pathlib import Path

COLUMNS = ("ward", "sex", "age", "language", "work")
LANGUAGES = ("Norlandic", "Coastal", "Hill", "another")
Row = dict[str, str | int]


def people(seed: int = 7) -> list[Row]:
    rng = random.Random(seed)
    rows: list[Row] = []
    for town in ("NO01", "NO02", "SU01"):
        for ward in range(1, 13):
            usual = rng.choices(LANGUAGES, weights=(6, 3, 2, 1))[0]
            for _ in range(1 + int(rng.expovariate(1 / 6))):
                rows += family(rng, f"{town}W{ward:02}", usual)
    return rows


def family(rng: random.Random, ward: str, usual: str) -> list[Row]:
    language = usual if rng.random() < 0.85 else rng.choice(LANGUAGES)
    head = rng.randint(19, 90)
    ages = [head]
    if rng.random() < 0.6:
        ages.append(max(18, min(99, head + rng.randint(-7, 7))))
    if head < 55:
        ages += [rng.randint(0, min(22, head - 18)) for _ in range(rng.choices((0, 1, 2, 3), weights=(4, 3, 3, 1))[0])]
    return [
        {"ward": ward, "sex": rng.choice("wm"), "age": age, "language": language, "work": work(rng, age)}
        for age in ages
    ]


def work(rng: random.Random, age: int) -> str:
    if age < 15:
        return "under 15"
    if age < 20:
        return "studies" if rng.random() < 0.8 else "works"
    if age >= 65:
        return "retired" if rng.random() < 0.9 else "works"
    return rng.choices(("works", "looks for work", "keeps house", "studies"), weights=(75, 8, 12, 5))[0]


def main(path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(people())


if __name__ == "__main__":
    main(Path(__file__).with_name("records.csv"))
