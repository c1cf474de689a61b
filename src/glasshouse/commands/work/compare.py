"""The job behind `glasshouse compare`: one setting with one seed, protected, published, attacked and judged.

A unit of the work is a setting with a seed. It calls the functions that a user would, in a folder of its own that is
removed afterwards (or kept, with `--keep`). So what is compared is what the commands do.

Tables whose numbers are intervals are published with their totals, and attacked in the two ways that an attacker has:
place by place, by the records inside every interval that are nearest to the print; and the places of an area together,
with the area's own tables. The risk is that of the way that finds more of the exposed.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from fractions import Fraction
from math import exp, log
from pathlib import Path
from typing import Any, Literal, TypeVar

import polars as pl

from glasshouse.assess.comparison import MEASURES, RISK
from glasshouse.assess.front.released import Elements, released
from glasshouse.assess.frontier import baselines
from glasshouse.assess.one_solution import one_solution
from glasshouse.assess.people.groups import EVERYBODY, EXPOSED
from glasshouse.assess.rates import wilson
from glasshouse.assess.usefulness import MEASURES as USE
from glasshouse.assess.usefulness import usefulness
from glasshouse.attack.infer.onelevel import marginal
from glasshouse.commands.compare_plan import ComparePlan, Setting, times
from glasshouse.commands.options import Run as Running
from glasshouse.commands.options import Solving
from glasshouse.commands.reconstruct import Reconstructed, reconstruct
from glasshouse.commands.reidentify import Reidentified, reidentify
from glasshouse.commands.result import OUR_BUG, FileResult, Result
from glasshouse.commands.tabulate import tabulate
from glasshouse.commands.vary import vary
from glasshouse.engine.job import Done
from glasshouse.engine.ledger import UNDER_WAY
from glasshouse.errors import GlasshouseBug, InputError, MachineFailed
from glasshouse.files.matrix import matrix_of, record_frames
from glasshouse.files.output import private_folder
from glasshouse.files.rooms import UNFINISHED
from glasshouse.mechanism.account import allocation
from glasshouse.mechanism.gaussian import rate_of
from glasshouse.mechanism.spent import Spent
from glasshouse.model.geography import plural
from glasshouse.protection.relocation.rules import Matrix
from glasshouse.scenarios.load import load

NAME, RECORDS = "rebuilt", "records.parquet"
TOGETHER = "together"  # the way that uses the tables of areas, too
PRIOR = 0.5
STEPS, NEAR, FARTHER = 12, 0.02, 8.0  # of looking for a budget with the noise of another setting; how near is enough
HIGHER, LOWER = "higher", "lower"
LEFT_OUT, UNMATCHED = "units_left_out", "noise_unmatched"
Made = TypeVar("Made", bound=Result[Any])
Row = tuple[str, str, float | None, float | None, float | None, float | None, str]
USES = pl.Schema({"setting": pl.String, "seed": pl.Int64, **USE})


@dataclass(frozen=True)
class Hands:
    """Who works inside a run: processes of this machine, or a cluster; as options of the commands that it calls."""

    workers: int | None = 1
    executor: str | None = None
    insecure: bool = False

    @property
    def many(self) -> bool:
        return self.workers != 1

    @property
    def options(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Job:
    """What all units share."""

    plan: ComparePlan
    truth: Path
    attackers: tuple[tuple[str, Path], ...]
    places: Path | None  # the file of every place there is
    scratch: Path
    keep: Path | None
    households: Path | None = None  # the true households, for attacks on them
    properties: Path | None = None  # what a second agency publishes
    holder: bool = False  # results about single households of real places are allowed
    inside: Hands = Hands()


@dataclass(frozen=True)
class Run:
    """One setting with one seed."""

    number: int
    setting: Setting
    seed: int

    @property
    def code(self) -> str:
        return f"{self.number:03d}s{self.seed}"

    @property
    def told(self) -> str:
        return f"setting '{self.setting.name}', seed {self.seed}"

    @property
    def places(self) -> int:
        return 0


def runs(plan: ComparePlan) -> Iterator[Run]:
    """Every setting with every seed; those that take longest first, so that nobody waits for one of them at the end."""
    numbered = sorted(enumerate(plan.asked), key=lambda one: not one[1].intervals)
    for number, setting in numbered:
        for seed in plan.seeds:
            yield Run(number, setting, seed)


def compare_one(job: Job, run: Run) -> Done:
    """One setting with one seed: every measure of its risk and of its use."""
    try:
        with folder_of(job, run) as folder:
            work = _Work(job, run, folder)
            work.protect()
            attacked = work.attack()
            uses, judged = work.judge()
    except InputError as error:
        error.add_where(run.told)
        raise
    return done(run, [*attacked, *judged], uses)


def done(run: Run, rows: Sequence[Row], uses: pl.DataFrame) -> Done:
    """What one run tells: its measures, and every error of every table."""
    told = [(run.setting.name, run.setting.protect, run.seed, *row) for row in rows]
    frame = pl.DataFrame(told, schema=MEASURES, orient="row")
    named = pl.lit(run.setting.name).alias("setting"), pl.lit(run.seed, pl.Int64).alias("seed")
    return Done({"measures": frame, "uses": uses.select(*named, pl.all()).cast(USES)})


@contextmanager
def folder_of(job: Job, run: Run) -> Iterator[Path]:
    """The folder of a run: kept, or gone afterwards. One that a killed run has left is gone on with."""
    if job.keep is not None:
        yield job.keep / run.code
        return
    folder = job.scratch / f"{run.code}{UNDER_WAY}"
    with private_folder(folder):
        try:
            yield folder
        except MachineFailed:
            raise
        except Exception:
            _remove(folder)
            raise
    _remove(folder)


def _remove(folder: Path) -> None:
    """Take a folder away at one moment: what a kill leaves of it is not gone on with."""
    gone = folder.with_name(f"{UNFINISHED}{folder.stem}")
    shutil.rmtree(gone, ignore_errors=True)
    folder.rename(gone)
    shutil.rmtree(gone)


class _Work:
    """The steps of one run, in its folder."""

    def __init__(self, job: Job, run: Run, folder: Path) -> None:
        self.job, self.run, self.folder = job, run, folder
        self.scenario = load(job.plan.scenario)
        self.records: Path | None = None  # the protected records, if records are protected
        self.tables = folder / "tables.parquet"  # what is published
        self.values = self.tables  # what is printed, where that is not what is certain
        self.spent: Spent | None = None  # what the protection cost, if it has an account of that
        self.unmatched: float | None = None  # how far the noise is from that of another setting, if it should have it
        self.left_out = 0  # units that some step refused, or the clock stopped

    def _noted(self, made: Made) -> Made:
        """A step that was done; what it left out is counted."""
        self.left_out += len(self._sound(made).refused) + len(made.ended.stopped_by_clock)
        return made

    def _sound(self, made: Made) -> Made:
        if made.code == OUR_BUG:
            raise GlasshouseBug(f"{self.run.told}: {made.command} met a bug of ours")
        return made

    def protect(self) -> None:
        """Protect the records, and tabulate; or tabulate, and protect the tables."""
        setting, truth = self.run.setting, self.job.truth
        if setting.of_tables and setting.protection is not None:
            exact, keywords = self.folder / "exact.parquet", setting.keywords(self.job.places, self.run.seed)
            self._tabulate(truth, exact, subtotals=setting.intervals)
            if setting.printed and setting.intervals:
                keywords["values"] = self.values = self.folder / "values.parquet"
            keywords = {"scenario": self.job.plan.scenario, **keywords, "out": self.tables}
            self._accounted(setting.protection.function(exact, **keywords))
            return
        self.records = truth
        if setting.protection is not None:
            rho = self._matched() if setting.match else None
            self.records = self._protected(setting, self.folder / "protected.parquet", rho)
        self._tabulate(self.records, self.tables)

    def _accounted(self, made: FileResult[Any]) -> None:
        """A protection that was done, with what it cost."""
        summary = self._noted(made).summary
        self.spent = summary if isinstance(summary, Spent) else None

    def _protected(self, setting: Setting, out: Path, rho: Fraction | None = None) -> Path:
        assert setting.protection is not None
        keywords = setting.keywords(self.job.places, self.run.seed) | ({"rho": rho} if rho is not None else {})
        keywords |= self.job.inside.options if setting.protection.takes(*self.job.inside.options) else {}
        self._accounted(setting.protection.function(self.job.truth, **keywords, out=out))
        return out

    def _tabulate(self, records: Path, out: Path, *, subtotals: bool = False) -> None:
        """Subtotals of exact numbers say nothing new; those that are protected on their own do."""
        self._noted(tabulate(records, scenario=self.job.plan.scenario, out=out, subtotals=subtotals))

    def _matched(self) -> Fraction:
        """The budget with which tables of places err as much as those of another setting, nearly."""
        other = self.job.plan.setting(self.run.setting.match)
        wanted = self._error(self._protected(other, self.folder / "other.parquet"))
        total = allocation(self.run.setting.budget).total
        tried: dict[float, float] = {}  # by the logarithm of the factor, that of the error over the one wanted
        at = 0.0
        for step in range(STEPS):
            out = self.folder / f"try{step}.parquet"
            found = self._error(self._protected(self.run.setting, out, times(total, exp(at))))
            tried[at] = log(max(found, 1e-12) / max(wanted, 1e-12))
            if abs(tried[at]) <= NEAR:
                break
            at = _next(tried)
        best = min(tried, key=lambda one: abs(tried[one]))
        self.unmatched = abs(tried[best])
        return times(total, exp(best))

    def _error(self, records: Path) -> float:
        _, headlines = usefulness(self.job.truth, records, self.scenario, near=self.folder, kind="records")
        return headlines[f"table_error_{self.scenario.geography.place}"]

    def attack(self) -> list[Row]:
        """Rebuild the records, see how sure that is, and look for people in them."""
        scenario, setting, seed = self.job.plan.scenario, self.run.setting, self.run.seed
        place = self.scenario.geography.place
        ways = self._ways()
        rows: list[Row] = []
        if not setting.printed:
            level = place if setting.of_tables else None  # intervals of areas take too long
            varied = vary(self.tables, scenario=scenario, level=level, seed=seed, run=self._solving("solvar"))
            rows += _certainty(self._noted(varied).places, place)
        links = {way: self._linked(way, records) for way, records in ways.items()}
        told = {way: _links(one, self.job.attackers) for way, one in links.items()}
        found = {way: next((row[2] or 0.0 for row in some if row[1] == RISK), 0.0) for way, some in told.items()}
        rows += told[max(found, key=lambda way: found[way])]  # the strongest; of equals the first
        if len(found) > 1:
            rows += [("run", f"{RISK}_{way}", share, None, None, None, HIGHER) for way, share in found.items()]
        return [*rows, *self._infer()]

    def _ways(self) -> dict[str, Path]:
        """The records that each way of attack rebuilds.

        Exact tables: with those of areas. Noise: the nearest, place by place. Intervals: both ways, and what was
        printed is used too where it is no blank; units that take too long with their areas are as place by place.
        """
        setting, place = self.run.setting, self.scenario.geography.place
        if not setting.of_tables:
            self._noted(self._rebuilt(NAME))
            return {NAME: self.folder / NAME / RECORDS}
        near: dict[str, Any] = {"nearest": "absolute"} if setting.printed else {"level": place}
        if setting.printed and setting.intervals:
            near["printed"] = self.values
        alone = self._noted(self._rebuilt(NAME, **near))
        self.left_out += alone.summary.without_records or 0
        if not setting.intervals:
            return {NAME: self.folder / NAME / RECORDS}
        together, geography = self._sound(self._rebuilt(TOGETHER)), self.scenario.geography
        without = pl.col(place).str.head(geography.lengths[geography.unit]).is_in(list(together.refused))
        filled = self.folder / f"{TOGETHER}.parquet"
        pl.concat([together.records, alone.records.filter(without)]).write_parquet(filled)
        return {NAME: self.folder / NAME / RECORDS, TOGETHER: filled}

    def _rebuilt(self, name: str, **keywords: Any) -> Reconstructed:
        """What one way rebuilds."""
        scenario, seed = self.job.plan.scenario, self.run.seed
        return reconstruct(self.tables, scenario=scenario, seed=seed, run=self._solving(name), **keywords)

    def _linked(self, way: str, records: Path) -> Reidentified:
        """The people who are found in rebuilt records."""
        vary_ = None if self.run.setting.printed else self.folder / "solvar"
        return self._noted(
            reidentify(
                ((NAME, records),), truth=self.job.truth, published=self.records or records,
                attacker=self.job.attackers, vary=vary_, scenario=self.job.plan.scenario, seed=self.run.seed,
                run=Running(self.folder / ("linked" if way == NAME else f"linked-{way}"), **self.job.inside.options),
            )
        )  # fmt: skip

    def _solving(self, name: str) -> Solving:
        return Solving(self.folder / name, **self.job.inside.options)

    def _infer(self) -> list[Row]:
        """What an adversary who knows everyone else believes of one person, on average: all answers change by them."""
        if self.spent is None:
            return []
        rates = [rate_of(float(Fraction(rho)), self.spent.neighbours) for rho in self.spent.ledger.values()]
        return [
            ("risk", "infer_alone", marginal(rates, PRIOR).posterior, None, None, PRIOR, HIGHER),
            ("budget", "rho", self.spent.rho_spent_decimal, None, None, None, HIGHER),
        ]

    def judge(self) -> tuple[pl.DataFrame, list[Row]]:
        """How useful the protected data still are: in full, and in a few numbers."""
        kind: Literal["records", "tables"] = "tables" if self.run.setting.of_tables else "records"
        protected = self.records or self.values  # where numbers are printed, people use those
        uses, headlines = usefulness(self.job.truth, protected, self.scenario, near=self.folder, kind=kind)
        rows: list[Row] = [("use", name, value, None, None, None, HIGHER) for name, value in headlines.items()]
        rows += self._elements()
        rows.append(("run", LEFT_OUT, float(self.left_out), None, None, None, HIGHER))
        if self.unmatched is not None:
            rows.append(("run", UNMATCHED, self.unmatched, None, None, None, HIGHER))
        return uses, rows

    def _elements(self) -> list[Row]:
        """tau, phi and U of paper 003, of released records: people alike are not told apart, whatever the setting."""
        by, place = self.job.plan.by, self.scenario.geography.place
        if self.records is None or not by:
            return []
        before, after = (_matrix(path, place, by) for path in (self.job.truth, self.records))
        now, (tau, phi) = released(Elements.nameless(before, after)), baselines(before)
        return [
            ("risk", "tau", now.tau, None, None, tau, HIGHER),
            ("risk", "phi", now.phi, None, None, phi, HIGHER),
            ("use", "element_utility", now.utility, None, None, 1.0, LOWER),
        ]


def _matrix(records: Path, place: str, by: Sequence[str]) -> Matrix:
    found = matrix_of(record_frames(records, place, by), by)
    return Matrix(found.combinations, found.places, found.counts)


def _next(tried: dict[float, float]) -> float:
    """Where to look for an error of the size wanted: between the two nearest tries that enclose it, or farther out."""
    above = [one for one, error in tried.items() if error > 0]  # too little rho
    below = [one for one, error in tried.items() if error <= 0]
    if not below:
        return max(above) + log(FARTHER)
    if not above:
        return min(below) - log(FARTHER)
    low, high = max(above), min(below)
    share = tried[low] / (tried[low] - tried[high])
    return low + (high - low) * min(max(share, 0.1), 0.9)


def _certainty(places: pl.DataFrame, place: str) -> list[Row]:
    """How far other records that fit can be, and how many are certain."""
    frame = places.filter(pl.col("population") > 0)
    people = int(frame["population"].sum())
    if not people:
        return []
    zero = frame.filter(one_solution()).height
    low, high = wilson(zero, frame.height)
    many = plural(place).replace(" ", "_")
    solvar = float((frame["solvar"] * frame["population"]).sum()) / people
    return [
        ("risk", "certain", int(frame["certain"].sum()) / people, None, None, None, HIGHER),
        ("risk", "solvar", solvar, None, None, None, LOWER),
        ("risk", f"{many}_certain", zero / frame.height, float(low), float(high), None, HIGHER),
    ]


def _links(linked: Reidentified, attackers: Sequence[tuple[str, Path]]) -> list[Row]:
    """How well the rebuilt records agree with the truth, and who was found in them."""
    agreement = linked.agreement.row(
        by_predicate=(pl.col("data") == NAME)
        & (pl.col("with") == "CEF")
        & (pl.col("group") == "all")
        & (pl.col("band") == "all"),
        named=True,
    )
    rows: list[Row] = [
        (
            "risk",
            "agreement",
            agreement["binned_share"],
            agreement["binned_low"],
            agreement["binned_high"],
            agreement["baseline"],
            HIGHER,
        )
    ]
    rates = linked.rates.filter(pl.col("band") == "all")
    for number, (attacker, _) in enumerate(attackers):
        after = "" if number == 0 else f" ({attacker})"
        for group, word in ((EXPOSED, "exposed"), (EVERYBODY, "all")):
            some = rates.filter((pl.col("attacker") == attacker) & (pl.col("group") == group))
            found = {row["data"]: row for row in some.iter_rows(named=True)}
            if NAME not in found:  # nobody is of this group
                continue
            one = found[NAME]
            people = one["population"]
            if one["putative"]:
                rows.append(
                    (
                        "risk",
                        f"precision_{word}{after}",
                        one["precision"],
                        one["low"],
                        one["high"],
                        one["baseline"],
                        HIGHER,
                    )
                )
            if people:
                low, high = wilson(min(one["confirmed"], people), people)
                guess = max(found[guesser]["confirmed"] for guesser in ("MDG", "PRG")) / people
                rows.append(
                    ("risk", f"found_{word}{after}", one["confirmed"] / people, float(low), float(high), guess, HIGHER)
                )
    return rows
