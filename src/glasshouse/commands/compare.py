"""Which protection is best? The same attacks on every protection, side by side: risk, and what is left of the use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from glasshouse.commands.declaration import Opt, command
from glasshouse.commands.options import Run, inputs_of
from glasshouse.commands.result import Result
from glasshouse.commands.words.compare import MEASURES, USES, Comparison, concluded, plan_notes
from glasshouse.errors import InputError

if TYPE_CHECKING:  # heavy modules are imported when they are needed, so that --help is quick
    import polars as pl

    from glasshouse.commands.compare_plan import ComparePlan
    from glasshouse.commands.work.compare import Hands
    from glasshouse.engine.lifecycle import Ended, Made, Workplace
    from glasshouse.engine.runner import Tally
    from glasshouse.engine.workers import Crew

RECORDS = "cef.parquet"  # the true records of a folder of synthesize
HOMES, HOUSING = "households.parquet", "housing.parquet"  # its households, and its subsidised properties
MANY_RECORDS = 100_000  # from so many on, runs go one after another, with all workers in each
PlanName = Annotated[str, Opt("Which protections: a plan by name, or a TOML file.", metavar="NAME|FILE")]


class Compared(Result[Comparison]):
    """Measures of every setting with every seed; their means are in `frame("summary")`."""

    measures: pl.DataFrame
    front: pl.DataFrame  # settings with their risk and cost; `dominated`: another is better in both
    uses: pl.DataFrame  # every error of every table, and what typical uses make of them


@dataclass(frozen=True)
class PlanShown:
    """A plan, as it is written."""

    plan: str
    text: str


class Plan(Result[PlanShown]):
    """A plan that is only shown."""


def show_plan(*folders: object, plan: str = "standard", **others: object) -> Plan:
    """Print the plan, and stop."""
    from glasshouse.commands.compare_plan import plan_path
    from glasshouse.engine.lifecycle import told

    text = plan_path(plan).read_text(encoding="utf-8")
    return Plan(told("compare", PlanShown(plan, text), text.splitlines()))


@command(
    example="glasshouse compare county --out compared\n\n"
    "DIR is a folder of synthesize, or several folders of compare, whose results are put side by side. With data of "
    "your own say --truth and --attacker. A plan is a TOML file with settings; --show-plan prints the built-in one.",
    instead={"--show-plan": ("Print the plan, and stop.", show_plan)},
)
def compare(
    folders: Annotated[
        tuple[Path, ...], Opt("A folder of synthesize, or folders of compare.", metavar="[DIR]...")
    ] = (),
    *,
    plan: PlanName = "standard",
    settings: Annotated[
        tuple[str, ...],
        Opt("Only this setting of the plan; repeatable.", flag="--setting", metavar="NAME", repeated=True),
    ] = (),
    seeds: Annotated[int, Opt("How many of the plan's seeds; 0 for all.", least=0)] = 0,
    scenario: Annotated[str, Opt("The tables that are published, instead of those of the plan.", short="-s")] = "",
    truth: Annotated[Path | None, Opt("The true records, instead of a folder.", metavar="RECORDS")] = None,
    attackers: Annotated[
        tuple[tuple[str, Path], ...],
        Opt("A list of names, place, sex and age; repeatable.", flag="--attacker", metavar="[NAME=]FILE"),
    ] = (),
    places: Annotated[
        Path | None, Opt("Every place there is, with x and y if known.", flag="--blocks", metavar="FILE")
    ] = None,
    households: Annotated[
        Path | None, Opt("The true households, for a plan that attacks them.", metavar="HOUSEHOLDS")
    ] = None,
    properties: Annotated[
        Path | None, Opt("Subsidised properties, for a plan whose attack is occupancy.", metavar="FILE")
    ] = None,
    i_am_the_data_holder: Annotated[
        bool, Opt("Allow attacks on households of real places (occupancy). Without it, only synthetic ones.")
    ] = False,
    keep: Annotated[Path | None, Opt("Keep the files of every run there: they hold records.", metavar="DIR")] = None,
    run: Run = Run(),  # noqa: B008  # frozen
) -> Compared:
    """The same attacks on every protection, side by side: risk, and what is left of the data's use."""
    from glasshouse.commands.compare_plan import plan_path, read_plan
    from glasshouse.engine.lifecycle import in_folder
    from glasshouse.engine.manifest import Manifest
    from glasshouse.scenarios.load import load

    crew = run.crew  # refused before anything is read
    if folders and all((folder / MEASURES).is_file() for folder in folders):
        return Compared(_side_by_side(folders, run.out, overwrite=run.overwrite))
    chosen = replace(read_plan(plan), chosen=settings)
    if seeds > len(chosen.seeds):
        raise InputError(f"--seeds {seeds}: the plan has {len(chosen.seeds)}; add to its seeds = [...]")
    chosen = replace(chosen, seeds=chosen.seeds[: seeds or None], scenario=scenario or chosen.scenario)
    told = load(chosen.scenario)  # refused here, before any work
    data = _data(folders, truth, attackers, places, households, properties, chosen)
    if chosen.attack != "people":
        from glasshouse.commands.work.comparing.households import refuse_persons_alone

        for one in chosen.asked:
            refuse_persons_alone(one)
        if chosen.attack == "occupancy" and told.occupancy is None:
            raise InputError(
                f"scenario {told.name} says nothing of a second agency; attack = occupancy needs one that does"
            )
    chosen, aside = _countable(chosen, data.truth)
    parameters = {
        "plan": chosen.name, "settings": [one.name for one in chosen.asked], "seeds": list(chosen.seeds),
        "scenario": chosen.scenario, "attackers": [name for name, _ in data.attackers],
        "by": list(chosen.by),
    }  # fmt: skip
    manifest = Manifest("compare", parameters, _inputs(chosen, data, plan_path(plan)))

    def work(at: Workplace) -> Made[Comparison]:
        made = _work(chosen, data, keep, at, crew, holder=i_am_the_data_holder)
        return replace(made, notes=[*made.notes, *aside])

    ended = in_folder(manifest, Comparison, work, out=run.out, overwrite=run.overwrite, unit="setting and seed")
    return Compared(ended)


@dataclass(frozen=True)
class _Data:
    """What the protections are tried on."""

    truth: Path
    attackers: tuple[tuple[str, Path], ...]
    places: Path | None
    households: Path | None = None
    properties: Path | None = None


def _data(
    folders: Sequence[Path], truth: Path | None, attackers: Sequence[tuple[str, Path]], places: Path | None,
    households: Path | None, properties: Path | None, plan: ComparePlan,
) -> _Data:  # fmt: skip
    """The truth, the lists and the places: those of a folder of synthesize, or as they are given."""
    from glasshouse.commands.compare_plan import EVERY_PLACE
    from glasshouse.commands.work.linking import listed

    if len(folders) > 1:
        raise InputError(
            "several folders, and not all of them of compare; expected one of synthesize, or results of compare"
        )
    lists = tuple(listed(*given) for given in attackers)
    for folder in folders:
        if not (folder / RECORDS).is_file():
            raise InputError(
                f"{folder}: no {RECORDS} and no {MEASURES} there; expected a folder of synthesize, or of compare"
            )
        lists = lists or tuple((name, folder / f"{name}.parquet") for name in plan.attackers)
        households, properties = households or folder / HOMES, properties or folder / HOUSING
        every = folder / f"{EVERY_PLACE}.parquet"
        places = places or (every if every.is_file() else None)
        truth = truth or folder / RECORDS
    if truth is None:
        raise InputError("nothing to compare on: name a folder of synthesize, or --truth RECORDS and --attacker FILE")
    if plan.attack != "people":
        return _of_households(plan, _Data(truth, (), places, households, properties))
    if not lists:
        raise InputError("--attacker is missing: a list of people's names (person_id), places, sexes and ages")
    return _Data(truth, lists, places)


def _countable(plan: ComparePlan, truth: Path) -> tuple[ComparePlan, list[str]]:
    """The plan with the columns by which elements are counted, if the truth has them; what is said if it has not.

    A plan of one's own that names a column which is not there is refused; those that come with us fit other files, too.
    """
    from glasshouse.commands.compare_plan import known_plans
    from glasshouse.files.frames import open_source
    from glasshouse.scenarios.load import load

    if not plan.by or not truth.is_file():
        return plan, []
    source, place = open_source(truth), load(plan.scenario).geography.place
    missing = next((name for name in (place, *plan.by) if name not in source.columns), None)
    if missing is None:
        return plan, []
    said = f"{truth.name} has no column '{missing}'"
    if plan.name not in known_plans():
        raise InputError(f"{plan.name}.toml: by: {said}; found: {source.told}")
    return replace(plan, by=()), [f"note: tau, phi and the utility of elements were not counted: {said}"]


def _of_households(plan: ComparePlan, data: _Data) -> _Data:
    """What an attack on households needs: their file, and that of the properties if it is about these."""
    wanted = {"--households": data.households}
    if plan.attack == "occupancy":
        wanted["--properties"] = data.properties
    else:
        data = replace(data, properties=None)
    for flag, path in wanted.items():
        if path is None or not path.is_file():
            where = f"{path}: there is no such file" if path else "it is missing"
            raise InputError(f"{flag}: {where}; the attack of plan {plan.name} ({plan.attack}) needs it")
    return data


def _inputs(plan: ComparePlan, data: _Data, path: Path) -> dict[str, Path]:
    """Every file that the result depends on, by role."""
    inputs: dict[str, Path | None] = {"truth": data.truth, "plan": path, "blocks": data.places}
    inputs |= {"households": data.households, "properties": data.properties}
    inputs |= {f"attacker {name}": one for name, one in data.attackers}
    inputs |= {f"{one.name}: {key}": file for one in plan.settings for key, file in one.files.items()}
    found = inputs_of(inputs)
    for name in sorted({plan.scenario, *(one.scenario for one in plan.settings if one.scenario)}):
        found |= {f"{name}: {role}": file for role, file in inputs_of({}, name).items()}
    return found


def _work(
    plan: ComparePlan, data: _Data, keep: Path | None, at: Workplace, crew: Crew, *, holder: bool
) -> Made[Comparison]:
    """Do every setting with every seed, several at once or one after another, and put them side by side."""
    from glasshouse.assess.comparison import MEASURES as SCHEMA
    from glasshouse.commands.work.compare import USES as USES_SCHEMA
    from glasshouse.commands.work.compare import Job, compare_one, runs
    from glasshouse.engine.lifecycle import Made
    from glasshouse.engine.runner import put_together, run
    from glasshouse.engine.workers import Crew

    every = list(runs(plan))
    at.ledger.tell(units=len(every))

    def watch(tally: Tally) -> None:
        at.bar(tally.units / len(every), f"{tally.units} of {len(every)} runs")

    inside = _inside(crew, len(every), data.truth)
    job = Job(
        plan, data.truth, data.attackers, data.places, at.ledger.folder, keep, data.households, data.properties, holder,
        inside,
    )  # fmt: skip
    kinds = {"measures": SCHEMA, "uses": USES_SCHEMA}
    one_run = compare_one
    if plan.attack != "people":
        from glasshouse.commands.work.comparing import households

        one_run = households.compare_one
    tally = run(job, one_run, kinds, every, at.ledger, Crew(1) if inside.many else crew, watch)
    runs_refused = [(one, tally.refused[one.code]) for one in every if one.code in tally.refused]
    reasons = {one.setting.name: why.reason.removeprefix(f"{one.told}: ") for one, why in runs_refused}
    tally = replace(tally, refused={f"'{one.setting.name}', seed {one.seed}": why for one, why in runs_refused})
    put_together(at.ledger, at.path, kinds)
    truth = at.folder.manifest.hashes["truth"]
    made = concluded(at.path, plan.title, truth, len(every))
    notes = [*made.notes, *plan_notes(plan)]
    summary = replace(made.summary, settings_refused=reasons or None)
    return Made(summary, [MEASURES, USES, *made.outputs], made.lines, notes, tally)


def _inside(crew: Crew, runs: int, truth: Path) -> Hands:
    """Who works inside a run: everybody, and then runs go one after another; or one process, and many runs at once.

    A cluster has not the files of a run, and is sent its units. Of many records one set at a time is enough for a
    machine; and few runs would leave workers without work.
    """
    from glasshouse.commands.work.compare import Hands
    from glasshouse.files.frames import rows_in

    if crew.address is not None:
        return Hands(None, crew.address, crew.insecure)
    many = runs < 2 * crew.workers or rows_in(truth) >= MANY_RECORDS
    return Hands(crew.workers if many else 1)


def _side_by_side(folders: Sequence[Path], out: Path | None, *, overwrite: bool) -> Ended[Comparison]:
    """Results of several comparisons together: settings of the same name are the same setting."""
    from glasshouse.engine.lifecycle import Made, in_folder
    from glasshouse.engine.manifest import Manifest
    from glasshouse.engine.runner import Tally

    inputs = {f"compared {number}": folder / MEASURES for number, folder in enumerate(folders, start=1)}

    def work(at: Workplace) -> Made[Comparison]:
        from glasshouse.files.output import row_writer

        rows, truth = _together(folders)
        with row_writer(at.path / MEASURES) as writer:
            writer.write(rows)
        made = concluded(at.path, "Side by side", truth)
        return Made(made.summary, [MEASURES, *made.outputs], made.lines, made.notes, Tally())

    manifest = Manifest("compare", {"folders": len(folders)}, inputs)
    return in_folder(manifest, Comparison, work, out=out, overwrite=overwrite, unit="comparison")


def _together(folders: Sequence[Path]) -> tuple[pl.DataFrame, str]:
    """The measures of several comparisons, and the hash of the truth that they share."""
    import polars as pl

    from glasshouse.assess.comparison import MEASURES as SCHEMA
    from glasshouse.engine.folder import read_manifest

    frames = {folder: pl.read_parquet(folder / MEASURES) for folder in folders}
    for folder, frame in frames.items():
        if frame.schema != SCHEMA:
            raise InputError(f"{folder / MEASURES}: other columns than compare writes; was it made by another version?")
    truths = {str((read_manifest(one) or {}).get("counts", {}).get("truth")) for one in folders}
    if len(truths) > 1:
        raise InputError("the comparisons were made with other records; side by side stands what has one truth")
    once = pl.concat(frames.values()).unique(maintain_order=True)
    twice = once.filter(pl.struct("setting", "seed", "kind", "measure").is_duplicated())
    kinds = once.select("setting", "protect").unique().filter(pl.col("setting").is_duplicated())
    for frame, what in ((kinds, "is the name of two protections"), (twice, "has other results with the same seed")):
        if frame.height:  # one setting with one seed has one answer, wherever it was made
            raise InputError(f"setting '{frame['setting'][0]}' {what} in these comparisons; give one another name")
    return once, truths.pop()
