"""What did the steps of an audit find? Their files, read into one description; thresholds; the summary for scripts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from glasshouse.assess.microdata import microdata_rules
from glasshouse.assess.people.groups import EXPOSED
from glasshouse.attack.infer.onelevel import marginal
from glasshouse.commands.auditing.config import Config
from glasshouse.commands.auditing.files import Files, rules_of
from glasshouse.commands.auditing.proofs import PROOFS, anchor, certificates_of
from glasshouse.commands.auditing.proofs import section as proofs_section
from glasshouse.commands.auditing.steps import Step
from glasshouse.commands.auditing.summary import Summary
from glasshouse.engine.plain import Json
from glasshouse.errors import InputError
from glasshouse.files.geometry import read_shapes
from glasshouse.mechanism.gaussian import DiscreteGaussian, rate_of
from glasshouse.model.geography import plural
from glasshouse.report.bounds import sections as hidden_numbers
from glasshouse.report.description import (
    Cell,
    Count,
    Measure,
    Report,
    Said,
    Section,
    Sentence,
    Shape,
    Share,
    Tone,
    Verdict,
    styled,
    text,
    value_of,
    words,
)
from glasshouse.report.sections import answers as audit_answers
from glasshouse.report.sections import certainty as audit_certainty
from glasshouse.report.sections import people as audit_people
from glasshouse.report.sections import proofs as audit_proofs
from glasshouse.report.sections.answers import About
from glasshouse.report.sections.bounds import Bounds
from glasshouse.report.sections.certainty import Certainty
from glasshouse.report.sections.methods import definitions, label, methods, terms_of
from glasshouse.report.words import phrase, say
from glasshouse.scenarios.load import Scenario, load

MAPPED = 3000  # places that a map can still show
EXAMPLES = 12  # claims shown in words, and places whose certificates are
NAMES = ("CEF", "HDF", "MDG", "PRG")  # whose answers are compared, besides the rebuilt records


@dataclass(frozen=True)
class Findings:
    """The description of the internal report, and the numbers that scripts and thresholds look at."""

    report: Report
    summary: Summary
    exceeded: tuple[str, ...]  # thresholds that were exceeded, in words


class _Found:
    """The files of an audit, read."""

    def __init__(self, config: Config, files: Files, steps: Sequence[Step]) -> None:
        self.config, self.folder, self.files = config, files.folder, files
        self.scenario: Scenario = load(config.scenario)
        self.done = {step.name for step in steps if not step.without}
        self.files_shown: dict[str, list[str]] = {}  # of a step, the certificates of what the report shows
        self.left_out: list[tuple[str, str, Sentence]] = [
            (step.name, step.says, step.without) for step in steps if step.without
        ]

    def why_not(self, name: str) -> str:
        return next((text(why) for step, _, why in self.left_out if step == name), "")

    def frame(self, *path: str) -> pl.DataFrame:
        return pl.read_parquet(self.folder.joinpath(*path))

    def told(self, *path: str) -> Json:
        said: Json = json.loads(self.folder.joinpath(*path).read_text(encoding="utf-8"))
        return said

    def certainty(self) -> Certainty:
        geography = self.scenario.geography
        if not (self.folder / "solvar" / "summary.json").is_file():
            raise InputError(
                f"nothing could be rebuilt: the numbers of every {geography.unit} contradict each other, or none has "
                "any records; glasshouse check says where"
            )
        said = self.told("solvar", "summary.json")
        untold = self.told("solvar", "manifest.json")["counts"].get("not_compared", [])
        binned = {recode.attribute for recode in self.scenario.bins.values()}
        compared = [
            f"{label(attribute.name)} group" if attribute.name in binned else label(attribute.name)
            for attribute in self.scenario.schema.attributes
            if attribute.name not in untold
        ]
        return Certainty(
            said["headline"], said["by_size"], self.frame("solvar", "places.parquet"), geography.place, geography.unit,
            compared, "" if self.config.tables else self.scenario.reference,
        )  # fmt: skip

    def contradictions(self) -> tuple[int, int]:
        """Places whose numbers cannot all be true, and units that were left out for it."""
        check, solvar = self.told("check.json"), self.told("solvar", "manifest.json")["counts"]
        return len(check["findings"]), len(solvar.get("refused", {}))

    def refused(self) -> dict[str, str]:
        """Settings that could not be tried, and why: each once, whatever the seed. A reason may quote the records."""
        told: dict[str, str] = self.told("compared", "manifest.json")["counts"].get("settings_refused", {})
        return told

    def shapes(self, certainty: Certainty) -> tuple[str, Mapping[str, Shape]] | None:
        """Where areas lie: as given, or the middle of a unit's places where there are too many of those."""
        if self.files.geometry is None:
            return None
        found = read_shapes(self.files.geometry, self.scenario.geography).thinned()
        known = set(certainty.places[found.level]) if found.level in (certainty.place, certainty.unit) else set()
        outlines = {code: Shape(one.point, one.rings) for code, one in found.outlines.items() if code in known}
        if not outlines:
            return None
        if found.level in (certainty.place, certainty.unit) and len(outlines) <= MAPPED:
            return found.level, outlines
        if found.level == certainty.unit:
            return found.level, outlines
        middles: dict[str, list[tuple[float, float]]] = {}
        for code, shape in outlines.items():
            point = shape.point or shape.rings[0][0]
            middles.setdefault(self.scenario.geography.code(code, certainty.unit), []).append(point)
        return certainty.unit, {
            code: Shape((sum(x for x, _ in points) / len(points), sum(y for _, y in points) / len(points)))
            for code, points in middles.items()
        }

    def rules(self, certainty: Certainty) -> tuple[Section, ...]:
        """The rules of the scenario or of the configuration; without any, nothing is judged."""
        rules = rules_of(self.config, self.scenario)
        if rules is None:
            return ()
        records = pl.scan_parquet(self.folder / "rebuilt" / "records.parquet")
        known = records.collect_schema().names()
        marginals: list[str | tuple[str, ...]] = []
        titles: dict[str | tuple[str, ...], str] = {}
        binned = {recode.attribute: column for column, recode in self.scenario.bins.items()}
        for attribute in self.scenario.schema.attributes:
            columns = attribute.readings[0].columns
            name = (binned[attribute.name],) if attribute.name in binned else tuple(columns)
            if set(name) <= set(known):
                marginal_ = name[0] if len(name) == 1 else name
                marginals.append(marginal_)
                titles[marginal_] = label(attribute.name)
        inhabited = certainty.places.filter(pl.col("population") > 0)
        found = microdata_rules(
            inhabited, records, rules, marginals=marginals, over=self.config.title, certain=certainty.certain,
            persons="population", titles=titles,
        )  # fmt: skip
        return (audit_certainty.rules(found),)

    def bounds(self, said: Json) -> tuple[Section, ...]:
        """The hidden numbers: of a file of many, only what is shown is read."""
        folder = self.folder / "bounds"
        frame, reasons = (pl.scan_parquet(folder / f"{name}.parquet") for name in ("bounds", "reasons"))
        printed, scenario = pl.read_parquet(folder / "printed.parquet"), self.scenario
        rule = said["width"], said["percent"]
        return hidden_numbers(Bounds(frame, scenario, reasons, printed, *rule, said["contradictions"]))

    def claims(self) -> Section:
        assert self.config.claims is not None
        place = load(self.config.claims.scenario).geography.place
        rows = pl.scan_parquet(self.folder / "claims" / "claims.parquet").with_row_index("number")
        some = rows.filter((pl.col("m") == 1) & (pl.col("low") == pl.col("high"))).sort(
            pl.col("k"), place, "kind", descending=[True, False, False]
        )
        shown = some.unique([place, "kind"], keep="first", maintain_order=True).head(EXAMPLES).collect()
        links = self._proved("claims", [(at, f"claim-{row}") for at, row in shown.select(place, "number").rows()])
        return audit_answers.claims(self.told("claims", "summary.json"), shown, place, links)

    def _proved(self, step: str, found: list[tuple[str, str]]) -> tuple[str, ...]:
        self.files_shown[step] = certificates_of(self.folder, step, found[:EXAMPLES]) if "prove" in self.done else []
        return tuple(anchor(step, file) for file in self.files_shown[step])

    def occupancy(self) -> Section:
        assert self.config.occupancy is not None
        scenario, told = load(self.config.occupancy.scenario), self.told("occupancy", "summary.json")
        assert scenario.occupancy is not None
        reading, place = scenario.occupancy.model(told["model"]).title, scenario.geography.place
        certain = self.frame("occupancy", "places.parquet").filter(pl.col("answer") == "certain")
        links = self._proved("occupancy", [(code, "violations") for code in certain[place]])
        return audit_answers.occupancy(told, certain, place, reading, links)

    def noise(self) -> tuple[Section, float]:
        said, wanted = self.told("noise.json"), self.config.noise
        assert wanted is not None
        rules = said.get("neighbours", "add-remove")
        if "plans" in said:
            name = said["allocation"]
            counts = [(one["level"], float(one["rho"])) for one in said["plans"][0]["alone"]["levels"]]
        else:
            name, counts = f"rho {said['rho']:g}", [("one count", float(said["rho"]))]
        levels = []
        for level, rho in counts:
            rate = rate_of(rho, rules)
            belief, noise = marginal([rate], wanted.prior), DiscreteGaussian(rate)
            levels.append((level, rho, noise.variance**0.5, belief.posterior, belief.ratio))
        section = audit_answers.noise(levels, Path(name).name, wanted.prior, rate_of(1.0, rules))
        return section, max(one[3] for one in levels)


def find(
    config: Config, files: Files, steps: Sequence[Step], certificate: Sequence[tuple[str, str]],
    digests: Sequence[tuple[str, str]] = (),
) -> Findings:  # fmt: skip
    """Everything that was found, as a description and as numbers."""
    found = _Found(config, files, steps)
    certainty = found.certainty()
    head = certainty.head
    summary: Json = {
        "title": config.title, "persons": certainty.persons, "blocks": int(head["blocks"]),
        "share_certain": head["share_certain"], "share_certain_upper": head["share_certain_upper"],
        "solvar_mean": head["solvar_mean"], "solvar_mean_upper": head["solvar_mean_upper"],
        "zero_solvar_share": head["zero_solvar_share"], "undecided": int(head["undecided"]),
        "precision_exposed": None, "precision_exposed_low": None, "precision_exposed_high": None,
        "precision_guess": None, "advantage_exposed": None, "found_exposed": None, "claims_households": None,
        "detected_blocks": None, "posterior": None, "protections": [],
    }  # fmt: skip
    cells: dict[str, Cell] = {
        "share_certain": certainty.share, "zero_solvar_share": certainty.one_solution, "solvar_mean": certainty.solvar,
    }  # fmt: skip
    sections: list[Section] = []
    groups = found.frame("solvar", "groups.parquet")
    sections.append(audit_certainty.who(groups))
    if "bounds" in found.done:
        said = found.told("bounds", "summary.json")
        summary |= {
            "hidden_numbers": said["hidden"], "given_away": said["given_away"],
            "share_given_away": said["share_given_away"],
        }  # fmt: skip
        cells["share_given_away"] = Share(said["given_away"], said["hidden"])
        sections += found.bounds(said)
    if "leaks" in found.done:
        sections.append(audit_certainty.why(found.frame("leaks.parquet"), certainty.place, certainty.unit))
    sections.append(audit_certainty.size(certainty))
    rates, data, attacker = None, "", ""
    if "reidentify" in found.done:
        section, rates, data, attacker = _people(found, summary, cells)
        sections.append(section)
    if "claims" in found.done:
        sections.append(found.claims())
        first = next(iter(found.told("claims", "summary.json").get("by_columns") or ()), None)
        cells["claims_households"] = share = audit_answers.singled_out(first) if first else None
        summary["claims_households"] = value_of(share)
    if "occupancy" in found.done:
        sections.append(found.occupancy())
        said = found.told("occupancy", "summary.json")
        summary["detected_blocks"] = said["certain"] / said["blocks"] if said["blocks"] else None
        cells["detected_blocks"] = Share(said["certain"], said["blocks"])
    proved: Json = {}
    if "prove" in found.done:
        proved = found.told(PROOFS)
        sections.append(proofs_section(found.folder, config.proofs, certainty, found.files_shown))
        summary |= {"share_certified": value_of(audit_proofs.certified(proved)), "proofs": proved["steps"]}
    if "noise" in found.done:
        section, summary["posterior"] = found.noise()
        cells["posterior"] = Measure(summary["posterior"], 0, "share")
        sections.append(section)
    compared = found.frame("compared", "summary.parquet") if "compare" in found.done else None
    people = _about_whom(found, certainty, rates, data)
    if compared is not None:
        refused = found.refused()
        summary["protections_refused"] = refused
        if compared.height:
            sections.append(audit_answers.protections(compared, people, refused, _published(files)))
            summary["protections"] = _protections(found)
        else:
            compared = None
            reason = phrase("audit.no_setting")
            found.left_out.append(("compare", "which protection stops it, at what price?", reason))
    shapes = found.shapes(certainty)
    if files.geometry is not None and shapes is None:
        found.left_out.append(("map", "where?", phrase("audit.no_codes", file=files.geometry.name)))
    sections.insert(0, audit_certainty.where(certainty, shapes))
    places, units = found.contradictions()
    summary |= {"contradictions": places, "units_left_out": units}
    if places:
        named = certainty.unit if units == 1 else plural(certainty.unit)
        told = say("audit.contradictions", places=Count(places), number=Count(units), units=named)
        found.left_out.append(("check", "contradictions", told))
    sections += [*found.rules(certainty), methods(found.left_out)]
    people_card, records_card = audit_certainty.verdicts(certainty)
    verdicts: tuple[Verdict, ...] = (
        audit_proofs.on_card(people_card, proved),
        records_card,
        audit_people.verdict(rates, data, attacker, found.why_not("reidentify")),
        audit_answers.verdict(compared, people, found.why_not("compare")),
    )
    # a threshold looks at whole records, so that it is not met because less is told, and less compared
    whole = {key: head[f"{key}_whole"] for key in ("share_certain", "zero_solvar_share", "solvar_mean")}
    cells |= {key: Measure(value, certainty.persons, "share") for key, value in whole.items() if value != summary[key]}
    judged = {**summary, **whole}
    exceeded = _exceeded(config, judged, cells)
    verdicts = tuple(
        replace(one, tone=_tone(config, keys, judged)) for one, keys in zip(verdicts, _JUDGED, strict=True)
    )
    about = _about(found, certainty)
    set_ = sum(value is not None for _, value in config.thresholds)
    report = Report(
        config.title, about, "internal", verdicts, tuple(sentence for _, sentence in exceeded),
        tuple(section for section in sections if section.blocks), (), tuple(certificate), set_,
        _in_one_sentence(certainty, verdicts, units), digests=tuple(digests),
    )  # fmt: skip
    report = replace(report, definitions=definitions(terms_of(report)))
    summary["skipped"] = {name: text(why) for name, _, why in found.left_out}
    summary["thresholds"] = {key: value for key, value in config.thresholds if value is not None}
    lines = tuple(line for line, _ in exceeded)
    summary["exceeded"] = lines
    return Findings(_with_known_sections(report), Summary(**summary), lines)


def _published(files: Files) -> str:
    """What stands behind `nothing` in a comparison, where the tables audited are of other records."""
    if files.published in (None, files.records):
        return ""
    return phrase("audit.nothing_is_the_truth")


def _in_one_sentence(certainty: Certainty, verdicts: Sequence[Verdict], left_out: int) -> Sentence:
    """What a director should know after one line."""
    people: Sentence = ""
    precision = verdicts[2]
    if precision.number is not None and isinstance(precision.beside, Said):
        people = say("audit.with_people", precision=precision.number, guess=precision.beside.cells[0])
    units = certainty.unit if left_out == 1 else plural(certainty.unit)
    without = say("audit.without_units", number=Count(left_out), units=units) if left_out else ""
    return say("audit.in_one_sentence", share=certainty.share, people=people, without=without)


# the thresholds that each of the four numbers is judged by
_JUDGED = (
    ("share_certain", "zero_solvar_share"), ("solvar_mean",),
    ("precision_exposed", "advantage_exposed", "found_exposed"), (),
)  # fmt: skip


def _tone(config: Config, keys: Sequence[str], summary: Mapping[str, Any]) -> Tone:
    """Exceeded or not, where the configuration has a threshold for it."""
    limits = {key: limit for key, limit in config.thresholds if key in keys and limit is not None}
    if not limits:
        return "plain"
    return "bad" if any(_beyond(key, summary[key], limit) for key, limit in limits.items()) else "good"


def _beyond(key: str, value: float, limit: float) -> bool:
    return value < limit if key in _LOWER else value > limit


def _with_known_sections(report: Report) -> Report:
    names = {section.name for section in report.sections}

    def known(verdict: Verdict) -> Verdict:
        return verdict if verdict.section in names else replace(verdict, section="methods")

    return replace(report, verdicts=tuple(known(verdict) for verdict in report.verdicts))


def _people(found: _Found, summary: Json, cells: dict[str, Cell]) -> tuple[Section, pl.DataFrame, str, str]:
    rates = found.frame("risk", "rates.parquet")
    known = {"CEF", "HDF", "MDG", "PRG"}
    data = next(name for name in rates["data"].unique(maintain_order=True) if name not in known)
    attacker = found.files.strongest
    names = {name: phrase(f"audit.data.{name}") for name in NAMES} | {data: phrase("audit.rebuilt")}
    path = found.folder / "risk" / "leave-one-out.parquet"
    left_out = pl.read_parquet(path) if path.is_file() else None
    places = {row["band"]: row["blocks"] for row in found.told("solvar", "summary.json")["by_size"]}
    section = audit_people.identify(
        rates, found.frame("risk", "agreement.parquet"), places, left_out, data, names, attacker
    )
    row = audit_people.exposed(rates, data, attacker)
    if row is not None:
        summary |= {
            "precision_exposed": row["precision"], "precision_exposed_low": row["low"],
            "precision_exposed_high": row["high"], "precision_guess": row["baseline"],
            "advantage_exposed": row["advantage"],
            "found_exposed": row["confirmed"] / row["population"] if row["population"] else None,
        }  # fmt: skip
        cells |= {
            "precision_exposed": Share(row["confirmed"], row["putative"]),
            "advantage_exposed": Measure(row["advantage"] or 0.0, row["putative"], "points"),
            "found_exposed": Share(row["confirmed"], max(row["population"], row["confirmed"])),
        }
    return section, rates, data, attacker


def _about_whom(found: _Found, certainty: Certainty, rates: pl.DataFrame | None, data: str) -> About:
    """How many people the measures of the comparison are about; it has the same truth and list."""
    if rates is None:
        return About(certainty.persons, 0, 0)
    some = rates.filter(
        (pl.col("data") == data) & (pl.col("attacker") == found.files.strongest) & (pl.col("band") == "all")
    )
    sizes = dict(some.select("group", "population").iter_rows())
    return About(certainty.persons, int(sizes.get("all", 0)), int(sizes.get(EXPOSED, 0)))


def _protections(found: _Found) -> list[Json]:
    points = found.frame("compared", "front.parquet")
    columns = ["setting", "protect", "risk", "risk_low", "risk_high", "baseline", "cost", "dominated"]
    return points.select(columns).to_dicts()


def _about(found: _Found, certainty: Certainty) -> str:
    number = len(found.config.tables or found.scenario.tables)
    tables = phrase("audit.one_table") if number == 1 else phrase("audit.some_tables", number=number)
    places, areas = plural(certainty.place), plural(certainty.unit)
    told = places if places == areas else phrase("audit.and_areas", places=places, areas=areas)
    given = "from_records" if found.files.counted else "from_tables"
    source = phrase(f"audit.{'from_synthetic' if found.config.synthetic else given}")
    return phrase("audit.about", scenario=found.scenario.title, tables=tables, places=told, source=source)


# Which direction is beyond a threshold: higher for all but solvar

_LOWER = ("solvar_mean",)


def _exceeded(config: Config, summary: Mapping[str, Any], cells: Mapping[str, Cell]) -> list[tuple[str, Sentence]]:
    """Thresholds that were exceeded: a line for the terminal, a sentence for the report."""
    found: list[tuple[str, Sentence]] = []
    for key, limit in config.thresholds:
        if limit is None:
            continue
        value = summary.get(key)
        if value is None:
            raise InputError(f"thresholds.{key} is set, but there was nobody to measure it on; leave it out")
        if _beyond(key, value, limit):
            side = "below" if key in _LOWER else "above"
            what = phrase(f"audit.threshold.{key}")
            cell = cells[key]
            said = styled(limit, cell.style if isinstance(cell, Measure) else "share")  # in the unit of the number
            line = f"{what} is {words(cell)}, {side} the threshold {key} = {limit:g}"
            found.append((line, say(f"audit.{side}", what=what, value=cell, limit=said)))
    return found
