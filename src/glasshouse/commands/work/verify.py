"""The job behind `glasshouse verify`: everything that is certain about the places of one unit, as rows of its files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from glasshouse.assess.claims import PRIOR
from glasshouse.assess.priors import Prior, Uniform
from glasshouse.attack.claims.absence import Patterns, absent, cannot, zero_masks
from glasshouse.attack.claims.descriptions import predicate_of, told_by, values_of_records
from glasshouse.attack.claims.generate import generated, reconstructions
from glasshouse.attack.claims.hiding import leave_out, only, totals
from glasshouse.attack.claims.printed import Printed
from glasshouse.attack.claims.reasons import Explainer, Lines
from glasshouse.attack.claims.spelling import COLUMNS as DESCRIPTION
from glasshouse.attack.claims.spelling import Teller
from glasshouse.attack.claims.verify import Asked, Claimable, Represented, Verified, places_of, verify
from glasshouse.attack.claims.withholding import Change, gained, hidden, lost, named
from glasshouse.attack.published import NothingFits, recounted
from glasshouse.commands.work.claims.beside import Examined, Values, codes_of_claims
from glasshouse.commands.work.questions import AboutClaims
from glasshouse.commands.work.reconstruct import where
from glasshouse.engine.job import Done, Item, Job
from glasshouse.errors import GlasshouseBug
from glasshouse.files.output import Columns
from glasshouse.model.geography import Geography
from glasshouse.model.records import UNLIMITED
from glasshouse.model.release import Counts, Table
from glasshouse.model.schema import EVERYONE, Predicate
from glasshouse.model.wording import Wording
from glasshouse.scenarios.load import Scenario

Flags = NDArray[np.bool_]
QUESTION = "verify"
EVEN = f"{PRIOR}uniform"  # the column of the prior that is drawn from no records
RANGES = ("households_low", "households_high", "vacant_low", "vacant_high")  # proved; no upper end is no limit


@dataclass(frozen=True)
class Enquiry(Job):
    """What all units share: what is asked, and priors of the coarsest areas, by the code they begin with."""

    asked: AboutClaims
    priors: Mapping[str, Prior]

    @cached_property
    def used(self) -> tuple[Table, ...]:
        """The tables taken as published; others are read only because they may be added."""
        return tuple(table for table in self.published.tables if not self.asked.used or table.name in self.asked.used)

    @cached_property
    def claimable(self) -> Claimable:
        return self.told_by(self.used)

    def told_by(self, tables: tuple[Table, ...]) -> Claimable:
        """What may be claimed where these tables are published."""
        schema, names = self.scenario.schema, {line.variable for table in tables for line in table.lines}
        present = [variable for variable in self.published.variables if variable in names]
        present += [one.lines[0].variable for one in (totals(tables, present, self.kept) if self.asked.drop else ())]
        return Claimable(schema, tables, tuple(present), told_by(tables, present, schema, self.scenario.wording))

    @property
    def kept(self) -> tuple[Predicate | None, ...]:
        """Whose number stays known, whatever is left out."""
        return EVERYONE, self.scenario.wording.apart, self.scenario.wording.noun.where

    def numbers(self, item: Item, tables: tuple[Table, ...]) -> tuple[Counts, Flags]:
        """The numbers of these tables, without those that are left out because of their value; and which these are."""
        return leave_out(only(item.unit.counts, tables), tables, self.asked.drop, self.kept)

    @property
    def wording(self) -> Wording:
        """What claims may say."""
        return self.claimable.wording

    @cached_property
    def teller(self) -> Teller:
        return Teller(self.scenario.schema, self.wording)

    @cached_property
    def lines(self) -> Lines:
        return Lines.of(self.claimable)

    @cached_property
    def patterns(self) -> Patterns:
        return Patterns(self.claimable, self.asked.absent)

    @cached_property
    def printed(self) -> Printed:
        return Printed(self.claimable)

    @cached_property
    def uniform(self) -> Uniform | None:
        """Every level that a record may have is as likely as any other of its column."""
        if not self.asked.uniform:
            return None
        said, cells = self.claimable.vocabulary, self.claimable.compiled.cells
        codes = cells.codes if self.asked.units else cells.codes[~self.claimable.apart]
        shares = []
        for at, values in zip(said.at, said.of_level, strict=True):
            there = np.isin(cells.classes[at], codes[:, at])
            levels = np.bincount(values[there], minlength=int(values.max()) + 1)
            shares.append(levels / max(int(levels.sum()), 1))
        return Uniform(tuple(shares))


def priors_of(geography: Geography) -> tuple[str, str]:
    """The columns with how probable a claim is, by records of its unit and of its coarsest area."""
    return f"{PRIOR}{geography.unit}", f"{PRIOR}{geography.coarsest}"


def schemas(scenario: Scenario, asked: AboutClaims) -> dict[str, pl.Schema]:
    """The columns of the data files."""
    place: Columns = {scenario.geography.place: pl.String}
    unit: Columns = {scenario.geography.unit: pl.String}
    names = (*priors_of(scenario.geography), *([EVEN] if asked.uniform else []))
    priors: Columns = dict.fromkeys(names, pl.Float64)
    bounds: Columns = {"m": pl.Int64, "low": pl.Int64, "high": pl.Int64, "proof": pl.String}
    found: dict[str, Columns] = {
        "claims": place | DESCRIPTION | bounds | {"kind": pl.Int32, "printed": pl.Boolean, "truth": pl.Int64} | priors,
        "apart": place | DESCRIPTION | bounds,
        "counts": place | {"k": pl.Int8, "multiplicity": pl.String, "claims": pl.Int64, "kinds": pl.Int64,
                           "households_low": pl.Int64, "households_high": pl.Int64, "households": pl.Int64},
        "places": place | unit | {"households": pl.Int64, "vacant": pl.Int64, "unique": pl.Boolean, "cells": pl.Int64,
                                  "claims": pl.Int64, "kinds": pl.Int64, "undecided": pl.Int64, "queries": pl.Int64,
                                  "queries_dropped": pl.Int64, **dict.fromkeys(RANGES, pl.Int64), "truth": pl.Int64},
    }  # fmt: skip
    if asked.reconstructions:
        found["generated"] = place | {"reconstructions": pl.Int64, "different": pl.Int64} | DESCRIPTION | {
            "m": pl.Int64, "frequency": pl.Float64, "verified": pl.Boolean,
        }  # fmt: skip
    if asked.why:
        found["reasons"] = place | DESCRIPTION | {
            "m": pl.Int64, "because": pl.String, "variables": pl.List(pl.String), "lower": pl.List(pl.Int64),
            "upper": pl.List(pl.Int64), "proof": pl.String, "minimal": pl.Boolean,
        }  # fmt: skip
    if asked.leaks:
        found["leaks"] = place | {"table": pl.String, "change": pl.String, "of": pl.Int64, "claims": pl.Int64,
                                  "kinds": pl.Int64, "undecided": pl.Int64}  # fmt: skip
    if asked.absent:
        found["absent"] = place | DESCRIPTION | {"printed": pl.Boolean, "proof": pl.String}
    if asked.cannot:
        found["cannot"] = place | DESCRIPTION | bounds
    return {name: pl.Schema(columns) for name, columns in found.items()}


def examine(job: Enquiry, item: Examined) -> Done:
    """One unit: its claims, place by place, and what was asked besides."""
    used, dropped = job.numbers(item, job.used)
    rng = job.generator(item.code, QUESTION)
    found = [verify(place, job.asked.columns, job.ladder) for place in places_of(job.claimable, used, rng, job.ladder)]
    page = _Page(job, item)
    for row, verified in enumerate(found):
        page.add(row, verified, used, dropped[row])
        if job.asked.reconstructions:
            page.generate(row, verified)
        if job.asked.why:
            page.explain(row, verified, used)
        if job.asked.absent:
            page.rule_out(row, verified, used)
        for m in job.asked.cannot:
            page.exclude(row, verified, m)
    if job.asked.leaks:
        _withhold(job, item, used, found, page)
    every = schemas(job.scenario, job.asked)
    frames = {name: page.frame(name, schema) for name, schema in every.items()}
    open_ = int(frames["places"]["undecided"].sum())
    asked = int(frames["places"]["claims"].sum()) + open_
    notes = {"places": len(found), "claims": asked - open_, "undecided": open_, "populated": asked,
             "proved": asked - open_, "untrue": page.untrue, "other_truth": page.other_truth,
             "nobody_around": len(found) if page.around is not None and not page.around.total else 0,
             "nobody_coarsest": len(found) if job.priors and page.coarsest is None else 0}  # fmt: skip
    return Done(frames, notes, any(verified.clock for verified in found))


class _Page:
    """The rows of one unit's files."""

    def __init__(self, job: Enquiry, item: Examined) -> None:
        self.job, self.item, self.teller = job, item, job.teller
        names = list(schemas(job.scenario, job.asked))
        self.rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in names}
        self.frames: dict[str, list[pl.DataFrame]] = {name: [] for name in names}
        self.schema, self.wording = job.scenario.schema, job.wording
        around = None if item.around is None else Prior.of(item.around)
        coarsest = next((prior for code, prior in job.priors.items() if item.code.startswith(code)), None)
        self.around, self.coarsest = around, coarsest
        self.true_values, self.fits = self._truth()
        self.untrue, self.other_truth = 0, int((~self.fits).sum())
        self.certain: list[int] = []  # claims of each place

    def _truth(self) -> tuple[list[Values] | None, Flags]:
        """Of each place the values of its true records, and whether they give the published numbers."""
        places = len(self.item.unit.counts.places)
        if self.item.truth is None:
            return None, np.ones(places, np.bool_)
        place, codes = self.item.truth
        fits, _ = recounted(self.job.published, self.item.unit, place, codes)
        inside = codes_of_claims(self.job.scenario, codes)
        values = values_of_records(self.wording, self.schema, codes)
        return [values[(place == row) & inside] for row in range(places)], fits

    def frame(self, name: str, schema: pl.Schema) -> pl.DataFrame:
        """All rows of a file."""
        rows = pl.DataFrame(self.rows[name], schema=schema, orient="row")
        return pl.concat([rows, *(frame.select(schema.names()).cast(schema) for frame in self.frames[name])])

    def _describe(self, file: str, row: int, values: Values, m: Sequence[int | None], never: bool = False,
                  priors: Mapping[str, list[float | None]] | None = None, **columns: Any) -> None:  # fmt: skip
        """Rows of a file about descriptions of one place."""
        if len(values):
            told = self.teller.frame(values, m, never=never, apart=file == "apart")
            place = pl.lit(self.item.unit.counts.places[row]).alias(self.job.scenario.geography.place)
            more = [
                pl.Series(name, column, strict=False) for name, column in {"m": m, **columns, **(priors or {})}.items()
            ]
            self.frames[file].append(told.with_columns(place, *more))

    def add(self, row: int, verified: Verified, counts: Counts, dropped: Flags) -> None:
        """The claims of one place, how many records they are about, and what is known of the place."""
        code, asked = self.item.unit.counts.places[row], verified.claims
        only = self.job.asked.singletons
        low, high = asked.settled.low[asked.candidates.kind], asked.settled.high[asked.candidates.kind]
        certain = asked.certain & ((low == 1) | (not only))
        open_ = asked.undecided & ((low <= 1) | (not only))
        chosen = np.flatnonzero(certain | open_)
        values, kind = asked.candidates.values[chosen], asked.candidates.kind[chosen]
        truth = self._true_counts(row, values)
        self._refuse_untrue(row, certain[chosen], low[chosen], truth)
        parts = list(verified.represented(self.job.ladder)) if verified.records[1] else []
        # whoever is represented is there: where little may be asked, that can say more than the number that was proved
        households = _bounds(max([verified.records[0], *(part.low for part in parts)]), verified.records[1])
        sure = certain[chosen]
        m = [int(value) if fine else None for value, fine in zip(low[chosen], sure, strict=True)]
        proof = [str(asked.settled.proof[one]) for one in kind]
        vacant, cells = _bounds(*verified.records_apart), verified.place.live.count
        drawn = households[0]
        if self.job.asked.units and drawn is not None:
            drawn = None if vacant[0] is None else drawn + vacant[0]
        self._describe(
            "claims", row, values, m, low=low[chosen], high=high[chosen], proof=proof, kind=kind,
            printed=self.job.printed.of(values, counts, row) & sure, truth=[None] * len(m) if truth is None else truth,
            priors=self._chances(values, low[chosen], drawn, sure),
        )  # fmt: skip
        self._apart(row, verified.apart)
        self._counts(row, code, verified, parts)
        kinds = len(np.unique(asked.candidates.kind[certain]))
        true = len(self.true_values[row]) if self.true_values is not None and self.fits[row] else None
        self.rows["places"].append(
            (*where(code, self.item.code, self.job.scenario.geography), households[0], vacant[0], verified.unique,
             cells, int(certain.sum()), kinds, int(open_.sum()), len(dropped), int(dropped.sum()), *households[1:],
             *vacant[1:], true)
        )  # fmt: skip
        self.certain.append(int(certain.sum()))

    def _chances(
        self, values: Values, m: NDArray[np.int64], records: int | None, sure: Flags
    ) -> dict[str, list[float | None]]:
        """How probable the claims that are sure were to begin with, by each prior; None where it is not known."""
        found: dict[str, list[float | None]] = {}
        names = priors_of(self.job.scenario.geography)  # one and the same where a unit is a coarsest area
        priors: list[tuple[str, Prior | Uniform | None]] = list(zip(names, (self.around, self.coarsest), strict=True))
        priors += [(EVEN, self.job.uniform)] if self.job.uniform else []
        for name, prior in priors:
            if prior is not None and prior.total and records is not None:
                chances = prior.chance(values, np.minimum(m, records), records).tolist()
                found[name] = [chance if fine else None for chance, fine in zip(chances, sure, strict=True)]
            else:
                found.setdefault(name, [None] * len(values))
        return found

    def _true_counts(self, row: int, values: Values) -> NDArray[np.int64] | None:
        if self.true_values is None:
            return None
        found = np.zeros(len(values), np.int64)
        for record in self.true_values[row]:
            found += ((values == record) | (values < 0)).all(axis=1)
        return found

    def _refuse_untrue(self, row: int, certain: Flags, m: NDArray[np.int64], truth: NDArray[np.int64] | None) -> None:
        """What holds in all data sets that fit holds in the true one, if that fits."""
        if truth is not None:
            wrong = int((truth[certain] != m[certain]).sum())
            self.untrue += wrong
            if wrong and self.fits[row]:
                raise GlasshouseBug("a verified claim is not true of records that fit the tables; please report this")

    def _apart(self, row: int, asked: Asked) -> None:
        kind = asked.candidates.kind[asked.certain]
        m = [int(value) for value in asked.settled.low[kind]]
        proof = [str(asked.settled.proof[one]) for one in kind]
        self._describe("apart", row, asked.candidates.values[asked.certain], m, low=m, high=m, proof=proof)

    def _counts(self, row: int, code: str, verified: Verified, parts: Sequence[Represented]) -> None:
        """How many records the verified claims of each k are about; with the truth, exactly."""
        asked = verified.claims
        columns, kind, certain = asked.candidates.columns, asked.candidates.kind, asked.certain
        for part in parts:
            if self.job.asked.singletons and not part.singletons:
                continue
            mine = certain & (columns == part.k) & np.isin(kind, part.kinds)
            true = None
            if self.true_values is not None and self.fits[row]:  # records of other tables say nothing here
                values = asked.candidates.values[mine]
                true = sum(bool(((values == one) | (values < 0)).all(axis=1).any()) for one in self.true_values[row])
            what = "singleton" if part.singletons else "all"
            found = (int(mine.sum()), len(part.kinds), part.low, part.high, true)
            self.rows["counts"].append((code, part.k, what, *found))

    def generate(self, row: int, verified: Verified) -> None:
        """What data sets that are drawn agree on, and whether it is certain (null: undecided)."""
        wanted, code = self.job.asked.reconstructions, self.item.unit.counts.places[row]
        rng = self.job.generator(code, f"{QUESTION} reconstructions")  # fewer are the first of more
        drawn = reconstructions(verified.place, max(wanted), rng, self.job.ladder)
        says = np.array([True, False, None], object)  # by verdict
        for found in generated(verified, drawn, wanted):
            chosen = found.m == 1 if self.job.asked.singletons else np.ones(len(found.m), np.bool_)
            m, number = found.m[chosen].tolist(), int(chosen.sum())
            self._describe(
                "generated", row, found.values[chosen], m, reconstructions=[found.wanted] * number,
                different=[found.different] * number, frequency=found.frequency[chosen],
                verified=says[found.verdict[chosen]].tolist(),
            )  # fmt: skip

    def explain(self, row: int, verified: Verified, counts: Counts) -> None:
        """Why claims are certain: first those that single out a record, with as many columns as they have."""
        asked, lines = verified.claims, self.job.lines
        candidates, low = asked.candidates, asked.settled.low
        at = [counts.column[line.variable] for line in lines.lines]
        first = int(verified.place.problem.programs.first[verified.place.number])
        cell = verified.place.problem.cell[first : first + len(verified.place.x)]
        explainer = Explainer(
            lines, counts.lower[row, at], counts.upper[row, at], cell, verified.place.x, self.job.ladder
        )  # fmt: skip
        widest: dict[int, int] = {}
        for description in np.flatnonzero(asked.certain)[np.argsort(-candidates.columns[asked.certain], kind="stable")]:
            widest.setdefault(int(candidates.kind[description]), int(description))
        if self.job.asked.singletons:
            widest = {kind: one for kind, one in widest.items() if low[kind] == 1}
        order = sorted(widest.values(), key=lambda one: (low[candidates.kind[one]] != 1, -candidates.columns[one], one))
        for one in order[: self.job.asked.why]:
            m = int(low[candidates.kind[one]])
            reason = explainer.explain(predicate_of(self.wording, self.schema, candidates.values[one]), m)
            if reason is not None:
                numbers = reason.numbers
                self._describe(
                    "reasons", row, candidates.values[one : one + 1], [m], because=[self.teller.because(reason)],
                    variables=[[number.line.variable for number in numbers]],
                    lower=[[number.lower for number in numbers]], upper=[[number.upper for number in numbers]],
                    proof=[str(reason.proof)], minimal=[reason.minimal],
                )  # fmt: skip

    def rule_out(self, row: int, verified: Verified, counts: Counts) -> None:
        """The coarsest descriptions that no record fits."""
        zeros = zero_masks(self.job.patterns, counts.upper[row] == 0, counts.variables)
        found = absent(self.job.patterns, verified.place, zeros, self.job.ladder)
        none, proof = [0] * len(found.values), [str(found.proof)] * len(found.values)
        self._describe("absent", row, found.values, none, printed=found.printed, proof=proof)

    def exclude(self, row: int, verified: Verified, m: int) -> None:
        """Descriptions that are not certain, but whose count cannot be m."""
        candidates = verified.claims.candidates
        for ruled in cannot(verified, m, self.job.ladder):
            values = candidates.values[candidates.kind == ruled.kind]
            low, high, proof = ([one] * len(values) for one in (ruled.low, ruled.high, str(ruled.proof)))
            self._describe("cannot", row, values, [m] * len(values), never=True, low=low, high=high, proof=proof)


def _bounds(low: int, high: int) -> tuple[int | None, int, int | None]:
    """A number if it is known, and its proved bounds; what nothing limits has no upper one."""
    return low if low == high else None, low, None if high >= UNLIMITED else high


def _withhold(job: Enquiry, item: Examined, counts: Counts, known: Sequence[Verified], page: _Page) -> None:
    """What every table gives away: claims lost when it is withheld; gained when one that is not used is added."""
    by_family = job.asked.leaks == "family"
    unused = [table for table in job.published.tables if table not in job.used]
    only = job.asked.singletons
    for change, tables in (("withheld", job.used), ("added", unused)):
        for name, group in named(tables, by_family=by_family).items():
            rng = job.generator(item.code, f"{QUESTION} {change} {name}")
            try:
                if change == "withheld":
                    columns = hidden(counts, group)
                    found = lost(job.claimable, counts, columns, known, rng, job.ladder, singletons=only)
                else:
                    longer = (*job.used, *group)
                    more, _ = job.numbers(item, longer)
                    columns, least = hidden(more, group), job.asked.columns
                    found = gained(job.told_by(longer), more, columns, least, rng, job.ladder, singletons=only)
            except NothingFits:  # something does fit; it was not found within the limits
                found = [Change(0, 0, of) for of in page.certain]
            for code, of, one in zip(counts.places, page.certain, found, strict=True):
                page.rows["leaks"].append((code, name, change, of, one.claims, one.kinds, one.undecided))
