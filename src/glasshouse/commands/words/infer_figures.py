"""The figures of Kazan and Reiter, computed exactly: each is a table of numbers and a picture of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from glasshouse.attack.infer.hierarchy import CountPrior
from glasshouse.attack.infer.onelevel import decide, marginal, posterior
from glasshouse.attack.infer.postprocess import post_processing
from glasshouse.attack.infer.twolevel import MODES, TwoLevels, correct_decision, decision_map
from glasshouse.files.output import row_writer
from glasshouse.mechanism.account import allocation
from glasshouse.mechanism.gaussian import DiscreteGaussian, sum_of
from glasshouse.report.description import Column, Table, Tiles
from glasshouse.report.figure import Figure
from glasshouse.report.framed import Axis, lines, number

PRIORS = {"1/2": 1 / 2, "1/5": 1 / 5, "1/10": 1 / 10, "1/50": 1 / 50, "1/864": 1 / 864}
OTHERS = 27
BUDGET = allocation("paper-2020")
RHO1, RHO2 = (float(BUDGET.rho(level, "detailed")) for level in ("block", "block_group"))
PRIOR = Axis("prior", "prior p")
Drawn = tuple[pl.DataFrame, Figure]  # the numbers, and the picture of them
MEASURES = ("posterior probability", "disclosure risk")


def _frame(rows: Sequence[tuple[object, ...]], columns: str) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=columns.split(), orient="row")


def figure1() -> Drawn:
    rows = []
    for prior, p in PRIORS.items():
        for x in range(-6, 9):
            belief = posterior(RHO1, p, x)
            rows += [(MEASURES[0], prior, x, belief.posterior), (MEASURES[1], prior, x, belief.ratio)]
    data = _frame(sorted(rows, key=lambda row: MEASURES.index(str(row[0]))), "measure prior x1 value")
    return data, lines(
        "Figure 1: after one noisy count",
        data,
        Axis("x1", "noisy count x1*"),
        Axis("value", ""),
        PRIOR,
        "measure",
        points=True,
    )


def figure2() -> Drawn:
    rows = []
    for prior, p in PRIORS.items():
        for rho in np.logspace(-2, 1.3, 60):
            belief = marginal([float(rho)], p)
            rows += [(MEASURES[0], prior, float(rho), belief.posterior), (MEASURES[1], prior, float(rho), belief.ratio)]
    data = _frame(sorted(rows, key=lambda row: MEASURES.index(str(row[0]))), "measure prior rho value")
    return data, lines(
        "Figure 2: on average",
        data,
        Axis("rho", "rho1", log=True),
        Axis("value", "", log=True),
        PRIOR,
        "measure",
        rule_x=RHO1,
    )


def figure3() -> Drawn:
    rows = [
        (prior, float(rho), decide([float(rho)], p).probability)
        for prior, p in PRIORS.items()
        for rho in np.logspace(-2, 1, 200)
    ]
    data = _frame(rows, "prior rho probability")
    y = Axis("probability", "probability of a correct decision", zero=True)
    return data, lines(
        "Figure 3: picking the likelier value", data, Axis("rho", "rho1", log=True), y, PRIOR, rule_x=RHO1
    )


def _map(figure: int, cases: dict[str, TwoLevels]) -> Drawn:
    x1, x2, y1 = range(-1, 3), range(-3, 6), range(-30, 31)
    words = {1: "x1 = 1", 0: "x1 = 0", -1: "tie"}
    rows = []
    for name, attack in cases.items():
        decisions = decision_map(attack, x1, x2, y1)
        rows += [
            (name, f"x1* = {a}", b, c, words[int(decisions[i, j, k])])
            for i, a in enumerate(x1)
            for j, b in enumerate(x2)
            for k, c in enumerate(y1)
        ]
    data = _frame(rows, "case x1 x2 y1 decision")
    title = f"Figure {figure}: the adversary's decision"
    rows_ = tuple((case, at, number(b), number(c), decision) for case, at, b, c, decision in data.iter_rows())
    columns = (Column("posterior"), Column("x1*"), Column("x2*"), Column("y1*"), Column("decision"))
    table = Table(f"figure-{figure}", title, columns, rows_, "", keys=4)
    return data, Figure.of(Tiles("decisions", title, "", table, 4, 2, 3, "decision", panel=1, row=0))


def figure4() -> Drawn:
    return _map(4, {mode: TwoLevels(RHO1, RHO2, OTHERS, mode=mode) for mode in MODES})


def _correct(rows: list[tuple[object, ...]], name: str, at: float, attack: TwoLevels, true2: int) -> None:
    rows.append((name, at, correct_decision(attack, true2=true2).probability))


def figure5() -> Drawn:
    rows: list[tuple[object, ...]] = []
    for mode in MODES:
        for x2 in (*range(1, 16), 20, 30):
            _correct(rows, mode, x2, TwoLevels(RHO1, RHO2, OTHERS, mode=mode), x2)
    alone = decide([RHO1], 0.5).probability
    y = Axis("probability", "probability of a correct decision")
    data = _frame(rows, "mode x2 probability")
    return data, lines(
        "Figure 5: with the level above",
        data,
        Axis("x2", "true count x2"),
        y,
        Axis("mode", "posterior"),
        points=True,
        rule_y=alone,
    )


def figure6() -> Drawn:
    rows: list[tuple[object, ...]] = []
    for mode in MODES:
        for x2 in (1, 10, 100):
            for rho2 in np.logspace(-1.5, 2, 12):
                _correct(rows, f"{mode}, x2 = {x2}", float(rho2), TwoLevels(RHO1, float(rho2), OTHERS, mode=mode), x2)
    y = Axis("probability", "probability of a correct decision")
    data = _frame(rows, "case rho2 probability")
    alone = decide([RHO1], 0.5).probability
    return data, lines(
        "Figure 6: against rho2", data, Axis("rho2", "rho2", log=True), y, Axis("case", ""), rule_x=RHO2, rule_y=alone
    )


def figure7() -> Drawn:
    rates = [float(rho) for rho in BUDGET.rhos("detailed").values()]
    rows = []
    for prior, p in PRIORS.items():
        for levels in range(1, len(rates) + 1):
            belief = marginal(rates[:levels], p)
            rows += [(MEASURES[0], prior, levels, belief.posterior), (MEASURES[1], prior, levels, belief.ratio)]
    data = _frame(sorted(rows, key=lambda row: MEASURES.index(str(row[0]))), "measure prior levels value")
    x = Axis("levels", "levels at which the target is unique")
    return data, lines(
        "Figure 7: a target known to be unique", data, x, Axis("value", "", log=True), PRIOR, "measure", points=True
    )


def figure8() -> Drawn:
    rows: list[tuple[object, ...]] = []
    for s in np.logspace(-1.3, 1.3, 80):
        rows += [("variance", float(s), DiscreteGaussian(1 / (2 * float(s))).variance), ("s", float(s), float(s))]
    data = _frame(rows, "what s value")
    return data, lines(
        "Figure 8: variance of the noise",
        data,
        Axis("s", "s = 1 / (2 rho)", log=True),
        Axis("value", "", log=True),
        Axis("what", ""),
    )


def figure9() -> Drawn:
    rows: list[tuple[object, ...]] = []
    for rho in (RHO1, 1.0):
        for n in (OTHERS, 5):
            reach = int(3.5 * np.sqrt(n / (2 * rho)))
            values = np.arange(-reach, reach + 1)
            for kind, label in (("exact", "exact sum"), ("approx", "one discrete Gaussian")):
                masses = np.exp(sum_of(rho, n, kind).log_mass(values))
                rows += [
                    (f"rho = {rho:.3f}, n = {n}", label, int(v), float(m)) for v, m in zip(values, masses, strict=True)
                ]
    data = _frame(rows, "case kind noise mass")
    return data, lines(
        "Figure 9: sums of noise",
        data,
        Axis("noise", "noise"),
        Axis("mass", "probability", zero=True),
        Axis("kind", ""),
        "case",
    )


def _with_prior(name: str) -> TwoLevels:
    return TwoLevels(RHO1, RHO2, OTHERS, above=CountPrior.read(name))


def figure10() -> Drawn:
    return _map(10, {name: _with_prior(name) for name in ("uniform", "uniform:10")})


def figure11() -> Drawn:
    return _map(11, {name: _with_prior(name) for name in ("point:1", "point:25")})


def figure12() -> Drawn:
    rows: list[tuple[object, ...]] = []
    for total in range(1, 121):
        found = post_processing(RHO1, 0.5, OTHERS, total)
        for name, belief in (
            ("post-processed", found.processed),
            ("x1* alone (the paper's bound)", found.x1_alone),
            ("x1* and y1* (valid bound)", found.x1_and_others),
        ):
            rows.append(("against the count above", name, float(total), belief.ratio))
    for rho in np.logspace(-2, 0.5, 25):
        for total in (1, 10, 100):
            found = post_processing(float(rho), 0.5, OTHERS, total)
            rows.append(("against rho1", f"post-processed, count above {total}", float(rho), found.processed.ratio))
        rows.append(("against rho1", "x1* alone (the paper's bound)", float(rho), found.x1_alone.ratio))
    data = _frame(rows, "panel case at risk")
    return data, lines(
        "Figure 12: post-processing", data, Axis("at", ""), Axis("risk", "disclosure risk R"), Axis("case", ""), "panel"
    )


FIGURES: dict[str, Callable[[], Drawn]] = {
    "1": figure1,
    "2": figure2,
    "3": figure3,
    "4": figure4,
    "5": figure5,
    "6": figure6,
    "7": figure7,
    "8": figure8,
    "9": figure9,
    "10": figure10,
    "11": figure11,
    "12": figure12,
}


def draw(out: Path, numbers: Sequence[str], watch: Callable[[float], None]) -> list[Path]:
    """Write the chosen figures and their data."""
    written = []
    for done, name in enumerate(numbers, start=1):
        data, picture = FIGURES[name]()
        path = out / f"figure-{int(name):02d}.svg"
        picture.save(path)
        with row_writer(path.with_suffix(".csv")) as writer:
            writer.write(data)
        written += [path, path.with_suffix(".csv")]
        watch(done / len(numbers))
    return written
