"""How much of what an audit says could strangers check? Its certificates: counted, and read for the report."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import polars as pl

from glasshouse.assess.one_solution import one_solution
from glasshouse.commands.auditing.config import Proofs
from glasshouse.commands.proving.prove import Proved
from glasshouse.commands.proving.words import CERTIFIED, WEAKER
from glasshouse.engine.plain import Json
from glasshouse.proofs.check_proof import DEFINITIONS
from glasshouse.report.description import Panel, Section
from glasshouse.report.sections.certainty import Certainty
from glasshouse.report.sections.proofs import proofs

PROOFS = "proofs.json"
SIDES = ("least", "most")
NUMBERS = 40  # published numbers of a certificate that the report lists; the file has all
WHERE = {"vary": "proofs/vary", "bounds": "proofs/bounds", "claims": "proofs/claims", "occupancy": "proofs/occupancy"}


class ProofsFound:
    """What the runs of prove came to."""

    def __init__(self) -> None:
        self.steps: Json = {}
        self.index: pl.DataFrame | None = None
        self.certain = 0

    def add(self, step: str, proved: Proved) -> None:
        said = proved.summary
        counts = "facts", "certified", "weaker", "open", "not_accepted", "files", "bytes"
        self.steps[step] = {name: getattr(said, name) for name in counts}
        if step == "vary":
            self.index, self.certain = proved.index, said.records_certain or 0

    def said(self, looked_at: pl.DataFrame, *, everything: bool) -> Json:
        """For `proofs.json`: the steps, and of the places looked at what is certain and what is certified."""
        told: Json = {"steps": self.steps}
        if self.index is None:
            return told
        there = looked_at.filter(pl.col("population") > 0)
        place = self.index.filter((pl.col("fact") == "solvar") & (pl.col("status") == CERTIFIED))["place"].to_list()
        one = there.filter(one_solution("solvar_upper"))
        name = next(column for column in there.columns if set(place) <= set(there[column].cast(pl.String)))
        return told | {
            "everything": everything, "places": there.height, "records": int(there["population"].sum()),
            "certain": int(there["certain"].sum()), "certain_certified": self.certain, "one_solution": one.height,
            "one_solution_certified": one.filter(pl.col(name).is_in(place)).height,
        }  # fmt: skip


def section(
    folder: Path, wanted: Proofs | None, certainty: Certainty, shown: Mapping[str, Sequence[str]]
) -> Section:  # fmt: skip
    """The part of the report: counts, the largest places, and the certificates of the rows that are shown."""
    most = 0 if wanted is None else wanted.examples
    told: Json = json.loads((folder / PROOFS).read_text(encoding="utf-8"))
    some, found = list[tuple[str, int, int, str]](), list[Panel]()
    if "vary" in told["steps"]:
        some = examples(folder, certainty.places, certainty.place, most)
        found += panels(folder, "vary", [file for *_, file in some])
    for step in ("claims", "bounds", "occupancy"):
        if step in told["steps"]:
            found += panels(folder, step, shown.get(step) or first_files(folder, step, most))
    rows = [(code, many, sure, anchor("vary", file)) for code, many, sure, file in some]
    return proofs(told, certainty.place, certainty.persons, rows, found)


def anchor(step: str, file: str) -> str:
    """What a panel is called on the page."""
    return f"proof-{step}-{file.removesuffix('.vipr')}" if file else ""


def panels(folder: Path, step: str, files: Iterable[str]) -> list[Panel]:
    """Certificates of a step by the names of their files, as the report shows them."""
    here, wanted = folder / WHERE[step], dict.fromkeys(file for file in files if file)
    index = pl.read_csv(here / "index.csv", infer_schema=False).filter(pl.col("file").is_in(list(wanted)))
    texts = dict(
        pl.scan_parquet(here / "certificates.parquet")
        .filter(pl.col("file").is_in(list(wanted)) & (pl.col("text") != ""))
        .select("file", "text").collect().iter_rows()
    )  # fmt: skip
    told: Json = json.loads((here / DEFINITIONS).read_bytes())
    said = {row["file"]: row for row in reversed(list(index.iter_rows(named=True)))}
    found = []
    for file in wanted:
        row = said.get(file)
        if row is None or file not in texts:
            continue
        numbers = _numbers(texts[file], told)
        shown = tuple((name, words, where, value) for name, words, where, value in numbers[:NUMBERS])
        found.append(
            Panel(
                anchor(step, file), f"{told['place']} {row['place']}", row["statement"], row["status"], shown,
                len(numbers) - len(shown), f"{WHERE[step]}/{file}",
            )
        )  # fmt: skip
    return found


def _numbers(text: str, told: Json) -> list[tuple[str, str, str, str]]:
    """The published numbers that a certificate uses: the official name, what it counts, where, and its value."""
    fact = json.loads(next(line for line in text.splitlines() if line.startswith("% fact "))[7:])
    rows = text.partition("\nCON ")[2].partition("\nRTP ")[0].split("\n")[1:]
    ends: dict[tuple[str, str], dict[str, str]] = {}
    for name, sense, right in (row.split(" ", 3)[:3] for row in rows):
        if ":" not in name:
            variable, _, code = name.rstrip("<>").partition("@")
            ends.setdefault((variable, code or fact["places"][0]), {})[sense] = right
    found = []
    for (variable, code), values in ends.items():
        level = told["place"] if code in fact["places"] else _around(fact["levels"], told["place"])
        said = next((some[variable]["says"] for some in told["numbers"].values() if variable in some), "")
        found.append((variable, said, f"{level} {code}", _value(values)))
    return found


def _around(levels: Sequence[str], place: str) -> str:
    return next((level for level in levels if level != place), place)


def _value(ends: dict[str, str]) -> str:
    """A number, or a range, as it is printed."""
    if "E" in ends:
        return ends["E"]
    return "\N{EN DASH}".join((ends.get("G", "0"), ends["L"])) if "L" in ends else f"{ends['G']}+"


def examples(folder: Path, places: pl.DataFrame, place: str, most: int) -> list[tuple[str, int, int, str]]:
    """The largest places with a certificate: the code, its persons, how many are certain, and the file."""
    index = pl.read_csv(folder / WHERE["vary"] / "index.csv", infer_schema=False)
    accepted = index.filter((pl.col("file") != "") & pl.col("status").is_in([CERTIFIED, WEAKER]))
    files = accepted.group_by("place", maintain_order=True).agg(pl.col("file").first())
    there = places.join(files, left_on=place, right_on="place").sort("population", place, descending=[True, False])
    return list(there.select(place, "population", "certain", "file").head(most).iter_rows())


def certificates_of(folder: Path, step: str, found: Iterable[tuple[str, str]]) -> list[str]:
    """The files that certify what was found of places, the least, else the most; empty: there is none."""
    path = folder / WHERE[step] / "index.csv"
    if not path.is_file():
        return []
    index = pl.read_csv(path, infer_schema=False).filter(pl.col("file") != "").reverse()  # of readings, the first
    files = {(place, fact): file for place, fact, file in index.select("place", "fact", "file").iter_rows()}
    sides = [[files.get((place, f"{what} {side}"), "") for side in SIDES] for place, what in found]
    return [least or most for least, most in sides]


def first_files(folder: Path, step: str, most: int) -> list[str]:
    """The first certificates of a step."""
    index = pl.read_csv(folder / WHERE[step] / "index.csv", infer_schema=False)
    files = index.filter((pl.col("file") != "") & pl.col("file").is_not_null())["file"].unique(maintain_order=True)
    return files.head(most).to_list()
