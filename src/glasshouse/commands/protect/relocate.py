"""How are people relocated? Those at risk move to other places, at a point of the front; totals stay."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from glasshouse.commands.declaration import Opt, command
from glasshouse.commands.options import RecordsGiven, Seed, inputs_of
from glasshouse.commands.protect.files import ProtectedRecords, ToFile
from glasshouse.commands.relocating.options import AT, BY, Relocating, SpreadName
from glasshouse.commands.words.protections import Relocated, relocate_lines
from glasshouse.errors import InputError

if TYPE_CHECKING:  # heavy modules are imported when they are needed, so that --help is quick
    from glasshouse.assess.front.choosing import Target
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
        float | None,
        Opt("The point of the front: the share of utility lost; 1 (default) protects most.", least=0, most=1),
    ] = None,
    at: Annotated[str | float, Opt(f"{AT}; instead of --q.", metavar="Q|U=|P=|tau=")] = "",
    theta: Annotated[
        Path | None,
        Opt(
            "Chances from theta.parquet or --theta-out: those of --lambda, and of --q if there are several.",
            metavar="FILE",
        ),
    ] = None,
    theta_out: Annotated[
        Path | None,
        Opt("Write the chances: who moves where; .csv, .csv.gz or .parquet; private.", metavar="FILE", writes=True),
    ] = None,
    spread: SpreadName = "even",
    seed: Seed = 1,
    rules: Relocating = Relocating(),  # noqa: B008  # frozen
    to: ToFile = ToFile(),  # noqa: B008
) -> RelocatedRecords:
    """Move people at risk to other places, at a point of the front; totals of every combination stay."""
    from glasshouse.assess.front.choosing import Target
    from glasshouse.commands.work.relocate import Chances, relocate_file
    from glasshouse.engine.draft import draft_of
    from glasshouse.engine.lifecycle import Made
    from glasshouse.engine.manifest import Manifest
    from glasshouse.protection.relocation.front import Spread

    if rules.coordinates is not None and not rules.within:
        raise InputError("--coordinates needs --within, which says how far people may move")
    if q is not None and at != "":
        raise InputError("--q and --at both say the point of the front; give one or the other")
    target = Target.read(str(at), "--at") if at != "" else Target("q", 1.0 if q is None else q)
    if theta is not None:
        _refuse_unheard(rules, target, spread)
    inputs = rules.inputs(records) | inputs_of({"theta": theta})
    to.refuse_beside("--theta-out", theta_out, inputs.values())
    parameters = {
        "by": ",".join(by), "place": rules.place, "lambda": at_risk, "capacity": rules.capacity, "at": str(target),
        "weight": rules.weight, "coverage": rules.coverage, "within": rules.within, "spread": spread, "seed": seed,
        "theta-out": str(theta_out) if theta_out else "",
    }  # fmt: skip

    def work(path: Path, bar: Bar) -> Made[Relocated]:
        matrix = rules.matrix(records, by)
        (ruled,) = rules.rules(matrix, [at_risk])
        if theta is not None:
            chances = Chances.read(theta, matrix, ruled, target.value if q is not None or at != "" else None)
        else:
            chances = Chances.at(matrix, ruled, target, Spread(spread))
        summary = relocate_file(
            records, path, matrix, ruled, by, rules.place, chances, seed, theta=draft_of(path, theta_out)
        )
        return Made(summary, [path.name], relocate_lines(summary))

    manifest = Manifest("protect relocate", parameters, inputs)
    return RelocatedRecords(to.write(manifest, Relocated, work, name="records.parquet", beside=[theta_out]))


def _refuse_unheard(rules: Relocating, target: Target, spread: str) -> None:
    """With chances from a file nobody looks for a front: what says where people may go is in the chances."""
    if target.kind != "q":
        raise InputError(f"--theta has relocations by lambda and q; found --at {target}; say --q")
    said = {
        "--near": rules.near is not None, "--within": bool(rules.within), "--coverage": rules.coverage != "row-wise",
        "--spread": spread != "even",
    }  # fmt: skip
    for option, given in said.items():
        if given:
            raise InputError(f"{option} says who may move where; --theta has decided that")
