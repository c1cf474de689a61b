"""Are the answers of two runs of `vary` the same, place by place? Between two versions none may contradict the other.

    python -m benchmarks.same_answers OLD NEW

What was exact must be exact again, with the same numbers. What two engines agreed on, or was undecided, may have become
exact, or narrower; ends that do not meet are a contradiction. How an answer was found (`method`) may change.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import polars as pl

from glasshouse.errors import InputError

GIVEN = ("population", "population_upper", "unique", "start_fits", "untold")  # follow from the start and the tables
ENDS = (("distance", "distance_upper", "proof"), ("certain", "certain_upper", "certain_proof"))


def compared(old: pl.DataFrame, new: pl.DataFrame) -> dict[str, int]:
    """How many places are the same, better and worse known, and how many contradict each other."""
    place = old.columns[0]
    if old.columns != new.columns or old[place].to_list() != new[place].to_list():
        raise InputError("the two files are not about the same places; compare two runs on the same tables")
    counts = {"places": old.height, "other starts": 0}
    same_start = pl.Series([True] * old.height)
    for column in GIVEN:
        same_start &= old[column] == new[column]
    counts["other starts"] = int((~same_start).sum())
    for low, high, proof in ENDS:
        was, now = old[proof] == "exact", new[proof] == "exact"
        same = (old[low] == new[low]) & (old[high] == new[high])
        apart = (old[low] > new[high]) | (new[low] > old[high])
        sure = old[proof] != "undecided"  # two engines mean one number, too
        counts[f"{low}: contradict"] = int((apart | (was & now & ~same) | (sure & now & ~same)).sum())
        counts[f"{low}: no longer exact"] = int((was & ~now).sum())
        counts[f"{low}: now exact"] = int((~was & now).sum())
        counts[f"{low}: looser"] = int(((new[low] < old[low]) | (new[high] > old[high])).sum())
        for name, frame in (("old", old), ("new", new)):
            for kind in ("two-engines", "undecided"):
                counts[f"{low}: {kind} in the {name}"] = int((frame[proof] == kind).sum())
    return counts


def agree(counts: dict[str, int]) -> bool:
    """Does nothing contradict, and is nothing lost?"""
    bad = ("contradict", "no longer exact", "other starts", "looser")
    return not any(number for name, number in counts.items() if name.endswith(bad))


def main(arguments: list[str]) -> int:
    if len(arguments) != 2:
        raise InputError("say two results of vary: OLD NEW")
    counts = compared(*(pl.read_parquet(Path(one) / "places.parquet") for one in arguments))
    print(json.dumps(counts, indent=1))
    return 0 if agree(counts) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
