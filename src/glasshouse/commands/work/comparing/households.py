"""What do protections do against attacks on households? One setting with one seed: published, attacked, judged.

Two attacks know households: claims (`verify`) and the numbers of two agencies (`detect`). Both are run on the protected
tables and held against the true households. A protection changes the tables, or the records behind them: then it must
be one that takes the households along.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import polars as pl

from glasshouse.assess.comparison import CLAIMED, FOUND_PLACES
from glasshouse.assess.rates import wilson
from glasshouse.assess.usefulness import usefulness
from glasshouse.commands.compare_plan import Setting
from glasshouse.commands.detect import detect
from glasshouse.commands.options import Solving
from glasshouse.commands.result import OUR_BUG
from glasshouse.commands.tabulate import tabulate
from glasshouse.commands.verify import verify
from glasshouse.commands.work.compare import HIGHER, LEFT_OUT, Job, Made, Row, Run, done, folder_of
from glasshouse.commands.work.picked_places import parse_pick, picked
from glasshouse.engine.job import Done
from glasshouse.errors import GlasshouseBug, InputError
from glasshouse.files.records import level_matrix, open_records
from glasshouse.model.records import satisfies
from glasshouse.scenarios.load import load

MOVES = "households_out"  # the option of a protection of persons that takes households along


def refuse_persons_alone(setting: Setting) -> None:
    """A protection of persons says nothing of households unless it takes them along."""
    of_records = setting.protection is not None and not setting.of_tables
    if of_records and setting.protection is not None and not setting.protection.takes(MOVES):
        raise InputError(
            f"setting '{setting.name}': protect {setting.protect} changes persons alone; an attack on households needs "
            "a protection of tables, or one that takes the households along (swap)"
        )
    if setting.match:
        raise InputError(f"setting '{setting.name}': match is for attacks on people")


def compare_one(job: Job, run: Run) -> Done:
    """One setting with one seed: every measure of its risk and of its use."""
    try:
        with folder_of(job, run) as folder:
            work = _Work(job, run, folder)
            work.protect()
            attacked = ATTACKS[job.plan.attack](work)
            uses, judged = work.judge()
    except InputError as error:
        error.add_where(run.told)
        raise
    return done(run, [*attacked, *judged], uses)


@dataclass(frozen=True)
class _Paths:
    """The files of a run."""

    tables: Path
    exact: Path
    homes: Path
    values: Path


class _Work:
    """The steps of one run, in its folder."""

    def __init__(self, job: Job, run: Run, folder: Path) -> None:
        assert job.households is not None  # the command has refused to do without
        self.job, self.run, self.folder, self.true = job, run, folder, job.households
        names = ("tables", "exact", "moved", "values")
        self.at = _Paths(*(folder / f"{name}.parquet" for name in names))
        self.scenario = load(job.plan.scenario)
        self.homes: Path | None = self.true  # those that are published; None where tables are protected
        self.values = self.at.tables  # what people read, where that is not what is attacked
        self.left_out = 0

    def _noted(self, made: Made) -> Made:
        """A step that was done; what it left out is counted."""
        if made.code == OUR_BUG:
            raise GlasshouseBug(f"{self.run.told}: {made.command} met a bug of ours")
        self.left_out += len(made.refused) + len(made.ended.stopped_by_clock)
        return made

    def protect(self) -> None:
        """Protect the records, and tabulate; or tabulate, and protect the tables."""
        setting, name = self.run.setting, self.job.plan.scenario
        keywords = setting.keywords(self.job.places, self.run.seed)
        if setting.protection is not None and setting.of_tables:
            self.homes = None
            self._noted(tabulate(self.true, scenario=name, out=self.at.exact, subtotals=setting.intervals))
            if setting.printed and setting.intervals:
                keywords["values"] = self.values = self.at.values
            self._noted(
                setting.protection.function(self.at.exact, **{"scenario": name, **keywords, "out": self.at.tables})
            )
            return
        if setting.protection is not None:
            moved = {"households": self.true, MOVES: self.at.homes, "out": self.folder / "persons.parquet"}
            self._noted(setting.protection.function(self.job.truth, **{**keywords, **moved}))
            self.homes = self.at.homes
        self._noted(tabulate(self.homes or self.true, scenario=name, out=self.at.tables))

    def occupancy(self) -> list[Row]:
        """Table 1 of paper 004, under every reading of the numbers: the first has no word behind its measures."""
        occupancy = self.scenario.occupancy
        assert occupancy is not None and self.job.properties is not None  # the command has refused others
        rows: list[Row] = []
        for number, model in enumerate(occupancy.models):
            found = self._noted(
                detect(
                    self.at.tables, properties=self.job.properties, scenario=self.job.plan.scenario, model=model,
                    truth=self.true, i_am_the_data_holder=self.job.holder, seed=self.run.seed,
                    run=Solving(self.folder / f"found-{model}", **self.job.inside.options),
                )
            )  # fmt: skip
            right, after = found.summary.blocks_right, "" if number == 0 else f" ({model})"
            if right is None or not right.blocks:
                continue
            share = right.putative / right.blocks
            rows.append(("risk", f"putative_places{after}", share, *_ends(right.putative, right.blocks), None, HIGHER))
            if right.recall is not None:
                ends = right.recall.low, right.recall.high, right.recall_by_chance
                rows.append(("risk", f"{FOUND_PLACES}{after}", right.recall.value, *ends, HIGHER))
            if right.precision is not None:
                ends = right.precision.low, right.precision.high, right.precision_by_chance
                rows.append(("risk", f"precision_places{after}", right.precision.value, *ends, HIGHER))
            rows.append(("run", f"nothing_fits{after}", right.contradictions / right.blocks, None, None, None, HIGHER))
        return rows

    def claims(self) -> list[Row]:
        """Where a household is singled out, and how often that is true of the true households."""
        chosen = self._chosen()
        found = self._noted(
            verify(
                self.at.tables, scenario=self.job.plan.scenario, singletons=True, truth=self.true, places=chosen,
                columns=min(COLUMNS, len(self.scenario.wording.columns)), seed=self.run.seed,
                run=Solving(self.folder / "claims", **self.job.inside.options),
            )
        )  # fmt: skip
        place = self.scenario.geography.place
        claims = found.claims.filter(pl.col("m") == 1)
        right, every = claims.filter(pl.col("truth") == 1), len(chosen) or found.places.height
        rows: list[Row] = []
        if every:
            for name, some in ((CLAIMED, right), ("claimed_places", claims)):
                there = some[place].n_unique()
                rows.append(("risk", name, there / every, *_ends(there, every), None, HIGHER))
        if claims.height:
            rows.append(("risk", "precision_claims", right.height / claims.height, None, None, None, HIGHER))
        return rows

    def _chosen(self) -> tuple[str, ...]:
        """The places that claims are about: drawn from the truth, so that every setting has the same ones."""
        scenario, pick = self.scenario, self.job.plan.pick
        if not pick:
            return ()
        sizes: dict[str, int] = {}
        for frame in open_records(self.true, scenario, scenario.wording.columns).frames():
            codes = level_matrix(frame, scenario.schema)
            apart = scenario.wording.apart
            kept = frame if apart is None else frame.filter(pl.Series(~satisfies(scenario.schema, codes, apart)))
            for code, count in kept.group_by("geoid").len().iter_rows():
                sizes[code] = sizes.get(code, 0) + count
        geography = scenario.geography
        return tuple(sorted(picked(sizes, parse_pick(pick, geography), geography, self.run.seed)[0]))

    def judge(self) -> tuple[pl.DataFrame, list[Row]]:
        """How useful the protected data still are: in full, and in a few numbers."""
        kind: Literal["records", "tables"] = "tables" if self.homes is None else "records"
        published = self.homes or self.values
        uses, headlines = usefulness(self.true, published, self.scenario, near=self.folder, kind=kind)
        rows: list[Row] = [("use", name, value, None, None, None, HIGHER) for name, value in headlines.items()]
        return uses, [*rows, ("run", LEFT_OUT, float(self.left_out), None, None, None, HIGHER)]


def _ends(hits: int, total: int) -> tuple[float, float]:
    low, high = wilson(hits, total)
    return float(low), float(high)


COLUMNS = 6  # the paper's least
ATTACKS: Mapping[str, Callable[[_Work], list[Row]]] = {"occupancy": _Work.occupancy, "claims": _Work.claims}
