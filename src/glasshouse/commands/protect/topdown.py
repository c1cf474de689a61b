"""How are records protected from the top down? Noisy counts at every level, made into records that agree with them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from glasshouse.commands.declaration import Opt, command
from glasshouse.commands.options import RecordsGiven, ScenarioName, inputs_of
from glasshouse.commands.protect.files import ProtectedRecords, Secure, SeedOrSecure, ToFileInUnits, chance_of
from glasshouse.commands.words.protections import FromTopDown, topdown_line, topdown_notes
from glasshouse.errors import InputError

if TYPE_CHECKING:  # heavy modules are imported when they are needed, so that --help is quick
    from glasshouse.engine.lifecycle import Made
    from glasshouse.engine.progress import Bar

SIMULATED = "note: noise from the seeded simulator: for studies, not for a release (see --secure)"
SECURE_NOTE = "note: noise from a secure source (OpenDP): not repeatable, and slow (about 50,000 numbers a second)"
At = tuple[tuple[str, str], ...] | None  # queries and their levels; None: as the budget says


class ToppedDown(ProtectedRecords[FromTopDown]):
    """Records that add up at every level, made from noisy counts."""


@command(
    example="glasshouse protect topdown county/cef.parquet --scenario pl94 --budget pl94-2020 "
    "--places county/blocks.parquet --out mdf.parquet\n\n"
    "The records written add up at every level, and their tables too; people are no longer in households. Noise with "
    "--seed is a simulation, for studies; for a release use --secure."
)
def topdown(
    records: RecordsGiven,
    *,
    scenario: ScenarioName = "mdf-person",
    budget: Annotated[
        str, Opt("How rho is divided: a budget by name, or a TOML file.", metavar="NAME|FILE")
    ] = "persons-2020",
    rho: Annotated[Fraction | None, Opt("Another total, divided alike: a decimal or a fraction.", metavar="R")] = None,
    top: Annotated[str, Opt("Where it begins; default: what all records have in common.", metavar="LEVEL")] = "",
    bottom_up: Annotated[bool, Opt("For comparison: spend all of it at the finest level, and add up.")] = False,
    hold: Annotated[
        tuple[str, ...],
        Opt(
            "Counts without noise, such as total@top, or none; default: as the budget says.",
            metavar="QUERY@LEVEL",
            repeated=True,
        ),
    ] = (),
    absence: Annotated[
        tuple[str, ...],
        Opt(
            "Where a group has nobody it gets nobody; or none; default: as the budget says.",
            metavar="QUERY@LEVEL",
            repeated=True,
        ),
    ] = (),
    places: Annotated[Path | None, Opt("Every place there is: those without records, too.", metavar="FILE")] = None,
    neighbours: Annotated[
        Literal["add-remove", "change-one"] | None, Opt("add-remove or change-one; default: as the budget says.")
    ] = None,
    seed: SeedOrSecure = None,
    secure: Secure = False,
    to: ToFileInUnits = ToFileInUnits(),  # noqa: B008  # frozen
) -> ToppedDown:
    """Noisy counts at every level, made into records that agree with them and add up."""
    from dataclasses import replace

    from glasshouse.commands.work.topdown import Settings, topdown_file
    from glasshouse.engine.lifecycle import Made
    from glasshouse.engine.manifest import Manifest
    from glasshouse.engine.progress import say
    from glasshouse.mechanism.account import allocation
    from glasshouse.scenarios.load import load

    chance, crew = chance_of(seed, secure=secure), to.crew
    divided = allocation(budget)
    if rho is not None:
        if rho <= 0:
            raise InputError(f"--rho {rho}: expected more than 0; with no budget nothing can be told")
        divided = replace(divided, total=rho)
    held, absent = _at(hold, "--hold"), _at(absence, "--absence")
    parameters = {
        "scenario": scenario, "budget": budget, "rho": str(divided.total), "top": top, "bottom_up": bottom_up,
        "hold": list(hold) or None, "absence": list(absence) or None,
        "neighbours": neighbours or divided.neighbours, "seed": chance, "secure": secure,
    }  # fmt: skip
    files = {"records": records, "places": places, "budget": Path(budget) if Path(budget).is_file() else None}
    chosen = load(scenario)

    def work(path: Path, bar: Bar) -> Made[FromTopDown]:
        if secure:
            say(SECURE_NOTE)
        settings = Settings(
            divided, top, bottom_up, held, absent, 1 if chance is None else chance, secure, places, neighbours, bar,
            crew,
        )  # fmt: skip
        summary = topdown_file(records, chosen, path, settings)
        notes = topdown_notes(summary, scenario, every_place=places is not None)
        line = topdown_line(summary, chosen.geography.place, bottom_up=bottom_up)
        return Made(summary, [path.name], [line], [*([] if secure else [SIMULATED]), *notes])

    manifest = Manifest("protect topdown", parameters, inputs_of(files, scenario))
    return ToppedDown(to.write(manifest, FromTopDown, work, name="records.parquet"))


def _at(given: Sequence[str], option: str) -> At:
    """What is held where: of `total@top` the query and the level; None if nothing was said."""
    if not given:
        return None
    if "none" in given:
        if len(given) > 1:
            raise InputError(f"{option} none beside another {option}: nothing, or something; give one or the other")
        return ()
    found = []
    for entry in given:
        query, at, level = entry.rpartition("@")
        if not at or not query or not level:
            raise InputError(f"{option} {entry}: expected QUERY@LEVEL, as total@top, or none")
        found.append((query, level))
    return tuple(found)
