"""How exposed are the persons of a file? At how many levels each is unique in what is known, and what counts tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from glasshouse.commands.declaration import Opt, command
from glasshouse.commands.infer.asking import Answer, BudgetName, Prior, Query, each_once, number
from glasshouse.commands.options import chosen_scenario
from glasshouse.errors import InputError

if TYPE_CHECKING:  # heavy modules are imported when they are needed, so that --help is quick
    import polars as pl

    from glasshouse.attack.infer.exposure import Exposed


@dataclass(frozen=True)
class Exposure:
    """How many persons are unique at how many levels, and what an adversary comes to believe of them on average."""

    persons: int
    levels: tuple[str, ...]  # that the file can speak of
    left_out: tuple[str, ...]  # levels where it has one place, and may not hold all people of it
    unknown: str
    exposed: tuple[Exposed, ...]
    unique_up_to: Mapping[str, int]
    by_attribute: Mapping[str, Mapping[str, int]]  # unique_up_to, by the attribute that is unknown
    threshold: float
    share_above: float


class ExposureFound(Answer[Exposure]):
    """How exposed the persons of a file are."""

    exposed: pl.DataFrame  # persons by the number of levels at which they are unique

    @property
    def frames(self) -> Mapping[str, pl.DataFrame]:
        import polars as pl

        return {"exposed": pl.DataFrame([asdict(row) for row in self.summary.exposed])}


@command(
    example="glasshouse infer data examples/district-28-21/records.csv --scenario gvhr-1940 "
    "--allocation paper-2020 --levels district=block,county=block_group"
)
def data(
    records: Annotated[Path, Opt("Records of persons, as a scenario reads them.")],
    *,
    scenario: Annotated[str, Opt("The scenario whose attributes make up the histogram.", short="-s")],
    allocation: BudgetName = "paper-2020",
    query: Query = "detailed",
    levels: Annotated[tuple[str, ...], Opt("Levels, finest first, as in block,tract or district=block.")] = (),
    unknown: Annotated[
        str, Opt("The attribute that an adversary wants to learn: a name, any, or none of those in the file.")
    ] = "any",
    whole: Annotated[
        str | None,
        Opt("The file holds everyone up to this level; default: where it has several places.", metavar="LEVEL"),
    ] = None,
    prior: Prior = "0.5",
    threshold: Annotated[float, Opt("Report the share of persons above this posterior.")] = 0.55,
    only: Annotated[tuple[str, ...], Opt("Only the attributes these tables look at.", flag="--tables")] = (),
    matrix: Annotated[bool, Opt("The file has a row per place and a column per combination.")] = False,
    sample: Annotated[int, Opt("Report on so many persons only; 0: all.", least=0)] = 0,
    seed: Annotated[int, Opt("Which sample.")] = 0,
) -> ExposureFound:
    """How exposed the persons of a file are: at how many levels each is unique, and what that means."""
    import polars as pl

    from glasshouse.attack.infer.exposure import exposure, read_matrix
    from glasshouse.engine.lifecycle import told
    from glasshouse.files.records import open_records
    from glasshouse.mechanism import account
    from glasshouse.mechanism.gaussian import rate_of

    if matrix and only:
        raise InputError("--tables chooses attributes, and a matrix has none but its columns: leave it out")
    chosen = chosen_scenario(scenario, only)
    budget = account.allocation(allocation or "paper-2020")
    pairs = [word.partition("=") for word in levels or budget.levels]
    each_once([name for name, _, _ in pairs])
    rates = {name: rate_of(float(budget.rho(other or name, query)), budget.neighbours) for name, _, other in pairs}
    if matrix:
        people, attributes = read_matrix(records, next(iter(rates))), ["cell"]
    else:
        people, attributes = pl.concat(list(open_records(records, chosen).frames())), sorted(chosen.attributes_used)
    before = number(prior, "the prior")
    found = exposure(
        people, attributes, chosen.geography, rates, before, unknown=unknown, whole=whole, sample=sample, seed=seed
    )
    left_out = tuple(name for name in rates if name not in found.levels)
    share = found.share_above(threshold)
    lines = [f"{found.persons:,} persons; levels, finest first: {', '.join(found.levels)}"]
    if left_out:
        lines.append(
            f"not counted: {', '.join(left_out)}; the file has one place there and may not hold all of its people "
            "(--whole LEVEL says that it does)"
        )
    lines.append(f"unique: nobody else is alike in {_known(unknown, matrix)}")
    for row in found.rows:
        where = f"unique at {row.levels} level{'s' * (row.levels != 1)}"
        who = f"{row.persons:,} person{'s' * (row.persons != 1)}"
        lines.append(f"{where}: {who}, posterior {row.posterior:.4f} (ratio {row.ratio:.3f})")
    lines.append(f"share of persons with a posterior above {threshold:g}: {share:.4f}")
    by_attribute = {name: dict(zip(found.levels, unique, strict=True)) for name, unique in found.by_attribute.items()}
    unique = dict(zip(found.levels, found.unique_up_to, strict=True))
    summary = Exposure(
        found.persons, found.levels, left_out, unknown, found.rows, unique, by_attribute, threshold, share
    )
    return ExposureFound(told("infer data", summary, lines))


def _known(unknown: str, matrix: bool) -> str:
    """What an adversary knows of the target, in words."""
    if unknown == "none":
        return "all attributes (what is to be learnt is not in the file)"
    if unknown != "any":
        return f"all attributes but {unknown}"
    if matrix:
        return "the place alone, as a matrix has no other attribute than its columns (--unknown none: they are known)"
    return "all attributes but one, whichever exposes a person most"
