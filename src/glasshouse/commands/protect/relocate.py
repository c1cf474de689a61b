"""How are people relocated? Those at risk move to other places, at a point of the front; totals stay."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from glasshouse.commands.declaration import Opt, command
from glasshouse.commands.options import RecordsGiven, Seed
from glasshouse.commands.protect.files import ProtectedRecords, ToFile
from glasshouse.commands.relocation_options import BY, Relocating, SpreadName
from glasshouse.commands.words.protections import Relocated, relocate_line
from glasshouse.errors import InputError

if TYPE_CHECKING:  # heavy modules are imported when they are needed, so that --help is quick
    from glasshouse.engine.lifecycle import Made
    from glasshouse.engine.progress import Bar


class RelocatedRecords(ProtectedRecords[Relocated]):
    """Records of which some people are in other places."""


@command(
    example="glasshouse protect relocate people.parquet --by sex,race --place block --lambda 3 --capacity 20 "
    "--q 0.5 --out relocated.parquet\n\nPeople who are moved lose their household_id: nobody lives with them there."
)
def relocate(
    records: RecordsGiven,
    *,
    by: Annotated[tuple[str, ...], Opt(BY, metavar="COLUMNS")],
    at_risk: Annotated[int, Opt("Elements of 1 to N are at risk.", flag="--lambda", metavar="N", least=0)] = 3,
    q: Annotated[
        float, Opt("The point of the front: the share of utility lost; 1 protects most.", least=0, most=1)
    ] = 1.0,
    spread: SpreadName = "even",
    seed: Seed = 1,
    rules: Relocating = Relocating(),  # noqa: B008  # frozen
    to: ToFile = ToFile(),  # noqa: B008
) -> RelocatedRecords:
    """Move people at risk to other places, at a point of the front; totals of every combination stay."""
    from glasshouse.commands.work.relocate import relocate_file
    from glasshouse.engine.lifecycle import Made
    from glasshouse.engine.manifest import Manifest
    from glasshouse.protection.relocation.front import Spread

    if rules.coordinates is not None and not rules.within:
        raise InputError("--coordinates is of use with --within: how far people may move")
    parameters = {
        "by": ",".join(by), "place": rules.place, "lambda": at_risk, "capacity": rules.capacity, "q": q,
        "weight": rules.weight, "coverage": rules.coverage, "within": rules.within, "spread": spread, "seed": seed,
    }  # fmt: skip

    def work(path: Path, bar: Bar) -> Made[Relocated]:
        matrix = rules.matrix(records, by)
        (ruled,) = rules.rules(matrix, [at_risk])
        summary = relocate_file(records, path, matrix, ruled, by, rules.place, q, Spread(spread), seed)
        return Made(summary, [path.name], [relocate_line(summary)])

    manifest = Manifest("protect relocate", parameters, rules.inputs(records))
    return RelocatedRecords(to.write(manifest, Relocated, work, name="records.parquet"))
