"""The job behind `glasshouse compare`: one setting with one seed, protected, published, attacked and judged.

A unit of the work is a setting with a seed. It runs the commands that a user would, in a folder of its own that is
removed afterwards (or kept, with `--keep`), and reads their files. So what is compared is what the commands do.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from math import exp, log
from pathlib import Path
from typing import Any, Literal

import polars as pl

from glasshouse.assess.comparison import MEASURES
from glasshouse.assess.one_solution import one_solution
from glasshouse.assess.rates import wilson
from glasshouse.assess.usefulness import MEASURES as USE
from glasshouse.assess.usefulness import usefulness
from glasshouse.attack.infer.onelevel import marginal
from glasshouse.cli.calling import call
from glasshouse.commands.compare_plan import ComparePlan, Setting, times
from glasshouse.engine.job import Done
from glasshouse.mechanism.account import allocation
from glasshouse.mechanism.gaussian import rate_of
from glasshouse.scenarios.load import load

EXPOSED = "nonmodal-unique"  # who is most exposed: unlike their neighbours, and alone with sex and age
NAME = "rebuilt"
PRIOR = 0.5
STEPS, NEAR, FARTHER = 12, 0.02, 8.0  # of looking for a budget with the noise of another setting; how near is enough
HIGHER, LOWER = "higher", "lower"
LEFT_OUT, UNMATCHED = "units_left_out", "noise_unmatched"
USES = pl.Schema({"setting": pl.String, "seed": pl.Int64, **USE})


@dataclass(frozen=True)
class Compared:
    """What all units share."""

    plan: ComparePlan
    truth: Path
    attackers: tuple[tuple[str, Path], ...]
    blocks: Path | None
    scratch: Path
    keep: Path | None


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
    def places(self) -> int:
        return 0


def runs(plan: ComparePlan) -> Iterator[Run]:
    """Every setting with every seed."""
    for number, setting in enumerate(plan.asked):
        for seed in plan.seeds:
            yield Run(number, setting, seed)


def compare_one(job: Compared, run: Run) -> Done:
    """One setting with one seed: every measure of its risk and of its use."""
    with _folder(job, run) as folder:
        work = _Work(job, run, folder)
        work.protect()
        attacked = work.attack()
        uses, judged = work.judge()
    frame = pl.DataFrame(
        [(run.setting.name, run.setting.protect, run.seed, *row) for row in [*attacked, *judged]],
        schema=MEASURES,
        orient="row",
    )
    named = pl.lit(run.setting.name).alias("setting"), pl.lit(run.seed, pl.Int64).alias("seed")
    return Done({"measures": frame, "uses": uses.select(*named, pl.all()).cast(USES)})


@contextmanager
def _folder(job: Compared, run: Run) -> Iterator[Path]:
    if job.keep is not None:
        yield job.keep / run.code
        return
    folder = Path(tempfile.mkdtemp(prefix=".glasshouse-", dir=job.scratch))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


Row = tuple[str, str, float | None, float | None, float | None, float | None, str]


class _Work:
    """The steps of one run, in its folder."""

    def __init__(self, job: Compared, run: Run, folder: Path) -> None:
        self.job, self.run, self.folder = job, run, folder
        self.scenario = load(job.plan.scenario)
        self.records: Path | None = None  # the protected records, if records are protected
        self.tables = folder / "tables.parquet"  # what is published
        self.values = self.tables  # what is printed, where that is not what is certain
        self.said: dict[str, Any] = {}
        self.unmatched: float | None = None  # how far the noise is from that of another setting, if it should have it
        self.left_out = 0  # units that some step refused, or the clock stopped

    def _do(self, *arguments: str | Path) -> dict[str, Any]:
        said = call(arguments, f"setting '{self.run.setting.name}', seed {self.run.seed}")
        self.left_out += len(said.get("refused", ())) + len(said.get("stopped_by_clock", ()))
        self.left_out += int(said.get("without_records", 0))
        return said

    def protect(self) -> None:
        """Protect the records, and tabulate; or tabulate, and protect the tables."""
        setting, truth = self.run.setting, self.job.truth
        if setting.of_tables:
            exact = self.folder / "exact.parquet"
            self._tabulate(truth, exact)
            more: list[str | Path] = []
            if setting.protect in ("round", "cellkey"):
                self.values = self.folder / "values.parquet"
                more = ["--values", self.values]
            if setting.protect != "suppress":  # which leaves nothing to chance
                more += ["--seed", str(self.run.seed)]
            self.said = self._do(
                "protect", setting.protect, exact, "--scenario", self.job.plan.scenario,
                *setting.arguments(self.job.blocks), *more, "--out", self.tables,
            )  # fmt: skip
            return
        self.records = truth
        if setting.protect:
            changed = {"rho": self._matched()} if setting.match else {}
            self.records = self._protected(setting, self.folder / "protected.parquet", changed)
        self._tabulate(self.records, self.tables)

    def _protected(self, setting: Setting, out: Path, changed: dict[str, Any]) -> Path:
        self.said = self._do(
            "protect", setting.protect, self.job.truth, "--seed", str(self.run.seed),
            *setting.arguments(self.job.blocks, changed), "--out", out,
        )  # fmt: skip
        return out

    def _tabulate(self, records: Path, out: Path) -> None:
        self._do("tabulate", records, "--scenario", self.job.plan.scenario, "--out", out)

    def _matched(self) -> str:
        """The budget with which tables of places err as much as those of another setting, nearly."""
        other = self.job.plan.setting(self.run.setting.match)
        wanted = self._error(self._protected(other, self.folder / "other.parquet", {}))
        total = allocation(str(self.run.setting.options["budget"])).total
        tried: dict[float, float] = {}  # by the logarithm of the factor, that of the error over the one wanted
        at = 0.0
        for step in range(STEPS):
            out = self.folder / f"try{step}.parquet"
            found = self._error(self._protected(self.run.setting, out, {"rho": times(total, exp(at))}))
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
        scenario, setting = self.job.plan.scenario, self.run.setting
        rebuilt, solvar = self.folder / "rebuilt", self.folder / "solvar"
        common = ["--scenario", scenario, "--workers", "1", "--seed", str(self.run.seed)]
        printed = setting.of_tables and setting.protect != "suppress"
        near = ["--nearest", "absolute"] if printed else []
        level = ["--level", self.scenario.geography.place] if setting.of_tables and not near else []
        self._do("reconstruct", self.values if printed else self.tables, *common, *near, *level, "--out", rebuilt)
        rows: list[Row] = []
        linked: list[str | Path] = [
            "--truth",
            self.job.truth,
            "--published",
            self.records or rebuilt / "records.parquet",
        ]
        if not printed:
            self._do("vary", self.tables, *common, *level, "--out", solvar)
            rows += _certainty(solvar / "places.parquet", self.scenario.geography.place)
            linked += ["--vary", solvar]
        for name, path in self.job.attackers:
            linked += ["--attacker", f"{name}={path}"]
        self._do(
            "reidentify", f"{NAME}={rebuilt}", *linked, "--scenario", scenario, "--workers", "1",
            "--seed", str(self.run.seed), "--out", self.folder / "linked",
        )  # fmt: skip
        return [*rows, *_links(self.folder / "linked", self.job.attackers), *self._infer()]

    def _infer(self) -> list[Row]:
        """What an adversary who knows everyone else believes of one person, on average: all answers change by them."""
        if self.run.setting.protect not in ("topdown", "noise") or "ledger" not in self.said:
            return []
        rules, rhos = str(self.said["neighbours"]), [Fraction(rho) for rho in self.said["ledger"].values()]
        belief = marginal([rate_of(float(rho), rules) for rho in rhos], PRIOR).posterior
        return [
            ("risk", "infer_alone", belief, None, None, PRIOR, HIGHER),
            ("budget", "rho", float(self.said["rho_spent_decimal"]), None, None, None, HIGHER),
        ]

    def judge(self) -> tuple[pl.DataFrame, list[Row]]:
        """How useful the protected data still are: in full, and in a few numbers."""
        kind: Literal["records", "tables"] = "tables" if self.run.setting.of_tables else "records"
        protected = self.records or self.values  # where numbers are printed, people use those
        uses, headlines = usefulness(self.job.truth, protected, self.scenario, near=self.folder, kind=kind)
        rows: list[Row] = [("use", name, value, None, None, None, HIGHER) for name, value in headlines.items()]
        rows.append(("run", LEFT_OUT, float(self.left_out), None, None, None, HIGHER))
        if self.unmatched is not None:
            rows.append(("run", UNMATCHED, self.unmatched, None, None, None, HIGHER))
        return uses, rows


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


def _certainty(places: Path, place: str) -> list[Row]:
    """How far other records that fit can be, and how many are certain."""
    frame = pl.read_parquet(places).filter(pl.col("population") > 0)
    people = int(frame["population"].sum())
    if not people:
        return []
    zero = frame.filter(one_solution()).height
    low, high = wilson(zero, frame.height)
    solvar = float((frame["solvar"] * frame["population"]).sum()) / people
    return [
        ("risk", "certain", int(frame["certain"].sum()) / people, None, None, None, HIGHER),
        ("risk", "solvar", solvar, None, None, None, LOWER),
        ("risk", f"{place}s_certain", zero / frame.height, float(low), float(high), None, HIGHER),
    ]


def _links(folder: Path, attackers: Sequence[tuple[str, Path]]) -> list[Row]:
    """How well the rebuilt records agree with the truth, and who was found in them."""
    agreement = pl.read_parquet(folder / "agreement.parquet").row(
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
    rates = pl.read_parquet(folder / "rates.parquet").filter(pl.col("band") == "all")
    for number, (attacker, _) in enumerate(attackers):
        after = "" if number == 0 else f" ({attacker})"
        for group, word in ((EXPOSED, "exposed"), ("all", "all")):
            some = rates.filter((pl.col("attacker") == attacker) & (pl.col("group") == group))
            found = {row["data"]: row for row in some.iter_rows(named=True)}
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
