"""How are households swapped? With others nearby that have as many persons and adults, the exposed ones rather."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from glasshouse.commands.declaration import Opt, command
from glasshouse.commands.options import RecordsGiven, Seed, inputs_of
from glasshouse.commands.protect.files import ProtectedRecords, ToFile
from glasshouse.commands.words.protections import SwapCounts, swap_lines, swap_notes
from glasshouse.errors import InputError

if TYPE_CHECKING:  # heavy modules are imported when they are needed, so that --help is quick
    from glasshouse.engine.lifecycle import Made
    from glasshouse.engine.progress import Bar


class Swapped(ProtectedRecords[SwapCounts]):
    """Records of which some households are in each other's places."""

    def said(self) -> dict[str, object]:
        """The result for scripts; from which level residents were drawn is part of a key."""
        said = super().said()
        said.pop("redrawn_from", None)
        return said | {f"redrawn_from_{level}": some for level, some in (self.summary.redrawn_from or {}).items()}


@command(
    example="glasshouse protect swap county/cef.parquet --rate 0.1 --coordinates county/blocks.parquet "
    "--out swapped.parquet --log pairs.parquet\n\nThe households go along with  --households "
    "county/households.parquet --households-out moved.parquet\n\nPersons, adults and households of each size stay as "
    "counted in every place; the log undoes the swap: keep it as you keep the records."
)
def swap(
    records: RecordsGiven,
    *,
    rate: Annotated[float, Opt("The share of households that change places, from 0 to 1.", metavar="R")],
    nearest: Annotated[int, Opt("A partner is drawn from so many nearest households.", metavar="N", least=1)] = 5,
    small: Annotated[int, Opt("A place of fewer persons exposes its households.", metavar="N", least=0)] = 10,
    coordinates: Annotated[
        Path | None, Opt("Where places are: code, x, y; else nearness is by code.", metavar="FILE")
    ] = None,
    group_quarters: Annotated[
        Literal["keep", "synthesize"],
        Opt(
            "Group quarters are never swapped; synthesize draws anew what makes their residents stand out.",
            metavar="keep|synthesize",
        ),
    ] = "keep",
    log: Annotated[
        Path | None, Opt("Write the pairs: .csv, .csv.gz or .parquet; private.", metavar="FILE", writes=True)
    ] = None,
    households: Annotated[
        Path | None, Opt("The file of the same households: household_id, the place, ...", metavar="FILE")
    ] = None,
    households_out: Annotated[
        Path | None, Opt("Write --households, too, with the same moves.", metavar="FILE", writes=True)
    ] = None,
    scenario: Annotated[
        str,
        Opt(
            "Whose [household] says who lives together and who is alike; else the columns of the file decide.",
            metavar="NAME|FOLDER",
        ),
    ] = "",
    seed: Seed = 1,
    to: ToFile = ToFile(),  # noqa: B008  # frozen
) -> Swapped:
    """Swap households with others nearby that have as many persons and adults, rather those that are exposed."""
    from glasshouse.commands.work.swap import swap_file
    from glasshouse.engine.draft import draft_of
    from glasshouse.engine.lifecycle import Made
    from glasshouse.engine.manifest import Manifest
    from glasshouse.scenarios.load import load

    if not 0 <= rate <= 1:
        raise InputError(f"--rate {rate:g}: expected the share of households that change places, from 0 to 1")
    if (households is None) != (households_out is None):
        raise InputError("--households and --households-out go together: give both, or neither")
    inputs = inputs_of({"records": records, "coordinates": coordinates, "households": households}, scenario)
    to.refuse_beside("--log", log, inputs.values())
    to.refuse_beside("--households-out", households_out, [*inputs.values(), log])
    parameters = {
        "rate": rate, "nearest": nearest, "small": small, "group-quarters": group_quarters, "log": log is not None,
        "households-out": str(households_out) if households_out else "", "seed": seed,
    }  # fmt: skip
    parameters |= {"scenario": scenario} if scenario else {}
    told = load(scenario) if scenario else None

    def work(path: Path, bar: Bar) -> Made[SwapCounts]:
        summary = swap_file(
            records, path, rate=rate, seed=seed, nearest=nearest, small=small, coordinates=coordinates,
            quarters=group_quarters, log=draft_of(path, log), households=households,
            households_out=draft_of(path, households_out), scenario=told,
        )  # fmt: skip
        return Made(summary, [path.name], swap_lines(summary, households_out), swap_notes(summary, rate))

    manifest = Manifest("protect swap", parameters, inputs)
    return Swapped(to.write(manifest, SwapCounts, work, name="records.parquet", beside=[log, households_out]))
