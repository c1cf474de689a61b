"""Who could be identified? Records are linked to named lists, checked against the truth, compared with guessing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from glasshouse.commands.declaration import Opt, command
from glasshouse.commands.options import Run, Seed, chosen_scenario, inputs_of
from glasshouse.commands.result import Result
from glasshouse.commands.words.reidentify import Summary
from glasshouse.errors import InputError

if TYPE_CHECKING:  # heavy modules are imported when they are needed, so that --help is quick
    import polars as pl

    from glasshouse.assess.people.facts import Reidentification, Together
    from glasshouse.commands.work.linking import Attacked, Files
    from glasshouse.engine.lifecycle import Made, Workplace
    from glasshouse.engine.runner import Tally
    from glasshouse.protection.swap.by_rates import Rates
    from glasshouse.scenarios.load import Scenario


class Reidentified(Result[Summary]):
    """How many people could be identified, by group and size of the place, beside guessing."""

    rates: pl.DataFrame
    agreement: pl.DataFrame  # how well the records agree with the truth
    guessers: pl.DataFrame
    uniques: pl.DataFrame  # how many persons are alone in their place, in bins and exactly, by size of the place
    leave_one_out: pl.DataFrame  # what each person's own answer gave away, if that was asked
    links: pl.DataFrame  # who was linked to which record, if that was asked: confidential


@command(
    example="glasshouse reidentify rebuilt --vary solvar --truth cef.parquet --published hdf.parquet "
    "--attacker commercial.parquet --attacker attacker-perfect.parquet --out risk\n\n"
    "Exit code 0: done. 1: done, but some units were left out. 2: bad input or usage. "
    "130: interrupted; run the same command again to resume."
)
def reidentify(
    rebuilt: Annotated[
        tuple[tuple[str, Path], ...],
        Opt(
            "Reconstructions to attack with: folders of reconstruct; NAME=DIR or NAME=RECORDS names another file.",
            metavar="DIR...",
        ),
    ],
    *,
    truth: Annotated[Path, Opt("The confidential records, with person_id (and data_defined).")],
    published: Annotated[Path, Opt("The records that the tables were made from.")],
    attacker: Annotated[
        tuple[tuple[str, Path], ...],
        Opt("A list of named people: person_id, place, sex, age; repeatable.", metavar="[NAME=]FILE"),
    ],
    vary: Annotated[Path | None, Opt("A folder of vary: which places have one solution.", metavar="DIR")] = None,
    scenario: Annotated[str, Opt("How records are spelled; default: as the reconstruction was made.", short="-s")] = "",
    links: Annotated[bool, Opt("Also write who was linked to which record (confidential): links.parquet.")] = False,
    leave_one_out: Annotated[
        int,
        Opt(
            "Do it again without a person, for N persons of each group: what did their own answer give away?",
            metavar="N",
            least=0,
        ),
    ] = 0,
    swap: Annotated[
        str,
        Opt(
            "With --leave-one-out: swap households again in both worlds, with these chances "
            "(default: the swap is held as it was).",
            metavar="BASE,RISKY",
        ),
    ] = "",
    seed: Seed = 1,
    run: Run = Run(),  # noqa: B008  # frozen
) -> Reidentified:
    """Who could be identified? Links records to named lists, checks against the truth, compares with guessing."""
    from glasshouse.commands.work.linking import PLACES, attacked, listed
    from glasshouse.engine.lifecycle import in_folder
    from glasshouse.engine.manifest import Manifest

    if swap and not leave_one_out:
        raise InputError("--swap needs --leave-one-out; say how many persons to leave out")
    data = tuple(attacked(*given) for given in rebuilt)
    lists = tuple(listed(*given) for given in attacker)
    _refuse_twice([file.name for file in data], "NAME=DIR")
    _refuse_twice([name for name, _ in lists], "NAME=FILE")
    if vary is not None and not (vary / PLACES).is_file():
        raise InputError(f"--vary {vary}: no {PLACES} there; expected the --out folder of vary")
    run.crew  # noqa: B018  # refused before anything is read
    inputs: dict[str, Path | None] = {"truth": truth, "published": published}
    inputs |= {f"data {file.name}": file.path for file in data}
    inputs |= {f"attacker {name}": path for name, path in lists}
    inputs |= {"vary": vary / PLACES} if vary else {}
    name = scenario or _scenario_of(data)
    rates = None
    if swap:
        from glasshouse.commands.work.leaving_plan import rates_of

        rates = rates_of(swap)
    asked = _Asked(data, chosen_scenario(name), truth, published, lists, vary, seed, links, leave_one_out, rates, run)
    parameters = {
        "scenario": asked.scenario.name,
        "data": [file.name for file in data],
        "attackers": [one for one, _ in lists],
        "seed": seed,
        "links": links,
        "leave_one_out": leave_one_out,
        "swap": [rates.base, rates.risky] if rates else None,
    }
    ended = in_folder(
        Manifest("reidentify", parameters, inputs_of(inputs, name)), Summary, asked.work, out=run.out,
        overwrite=run.overwrite, unit=asked.scenario.geography.unit, notes=asked.notes(),
    )  # fmt: skip
    return Reidentified(ended)


def _refuse_twice(names: Sequence[str], how: str) -> None:
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two files go by the name {name}; name one of them yourself, as {how}")


def _scenario_of(data: Sequence[Attacked]) -> str:
    """The scenario that the reconstructions were made with."""
    found = {file.scenario for file in data} - {None}
    if len(found) != 1:
        raise InputError("--scenario is missing: the files to attack do not say one scenario that they were made with")
    return str(found.pop())


@dataclass(frozen=True)
class _Asked:
    """What the command is asked, checked."""

    data: tuple[Attacked, ...]
    scenario: Scenario
    truth: Path
    published: Path
    attackers: tuple[tuple[str, Path], ...]
    vary: Path | None
    seed: int
    links: bool
    leave_out: int
    rates: Rates | None
    run: Run

    def notes(self) -> list[str]:
        """What must be known of the files, whatever comes of them."""
        notes = [note for file in self.data for note in file.doubts]
        if self.leave_out:
            notes += self._leaving_notes()
        if self.links and self.run.out is None:
            notes.append("note: --links without --out: who was linked to whom is in memory only, and no file is kept")
        return notes

    def _leaving_notes(self) -> list[str]:
        """What is not left out of, and how a person is found."""
        from glasshouse.assess.people.leaving_out import HOUSEHOLD
        from glasshouse.files.frames import open_source

        aside = [file.name for file in self.data if file.folder is None]
        notes = [f"note: --leave-one-out: {name} is no reconstruction of ours and was not made again" for name in aside]
        columns = [open_source(path).columns for path in (self.truth, self.published)]
        if self.rates is None and not all(HOUSEHOLD in some for some in columns):
            notes.append(
                f"note: --leave-one-out: without {HOUSEHOLD} in truth and published file a person's record is taken to "
                "be one like it in the same place; where there is none, nothing changes"
            )
        return notes

    def work(self, at: Workplace) -> Made[Summary]:
        """Link the people of every unit, then perhaps leave some out one by one, and say what came of it."""
        from glasshouse.assess.people.facts import Reidentification
        from glasshouse.attack.people.reidentify import compile_once
        from glasshouse.commands.words.reidentify import conclude
        from glasshouse.commands.work.linking import Files
        from glasshouse.commands.work.reidentify import KINDS, identify
        from glasshouse.engine.runner import Pace, run

        files = Files(self.scenario, self.truth, self.published, self.data, self.attackers, self.vary)
        pace = Pace(at.bar, self.scenario.geography)
        items = files.read(at.ledger.folder, lambda share: pace.reading(share / 2))
        first = next(items)
        pace.begin(len(files.units))
        at.ledger.tell(units=pace.units)
        job = Reidentification(
            self.scenario, tuple(file.name for file in self.data), tuple(name for name, _ in self.attackers),
            files.nations, self.vary is not None, self.seed, self.links,
            tuple(file.name for file in self.data if file.folder is not None),
        )  # fmt: skip

        def every() -> Iterator[Together]:
            yield first
            yield from items

        compile_once()  # before several workers would do it at the same time
        tally = run(job, identify, KINDS, every(), at.ledger, self.run.crew, pace)
        left = self._leave_out(at, job, files, tally) if self.leave_out else None
        return conclude(
            at.path, at.ledger, job, tally, left=left, swapped=self.rates is not None, truth=self.truth,
            vary=files.vary,
        )  # fmt: skip

    def _leave_out(self, at: Workplace, job: Reidentification, files: Files, tally: Tally) -> Tally:
        """The same again without a person, for many persons one by one; counted into the ledger."""
        from glasshouse.assess.people.leaving_out import LEAVING, LeavingOut, Targets
        from glasshouse.commands.work.leave_one_out import leave_out
        from glasshouse.commands.work.leaving_plan import attacks_of, everyone, plan
        from glasshouse.engine.progress import progress
        from glasshouse.engine.runner import run

        chosen = plan(at.ledger, job, self.leave_out)
        attacks = attacks_of(self.data, self.scenario)
        swapped = everyone(files.truth, self.scenario, self.rates, self.seed, job) if self.rates else None
        again = LeavingOut(job, attacks, swapped)
        units = len(chosen)
        at.ledger.tell(units=tally.units + units)
        with progress("leave one out") as bar:
            items = (
                Targets(item, chosen[item.code])
                for item in files.read(at.ledger.folder, lambda share: bar(0.05 * share, "reading"), households=True)
                if item.code in chosen
            )

            def watch(found: Tally) -> None:
                bar(0.05 + 0.95 * found.units / max(units, 1), f"{found.counts['left_out']:,} persons left out")

            found = run(again, leave_out, {"leaving": LEAVING}, items, at.ledger, self.run.crew, watch)
        tally.refused |= found.refused
        tally.bugs += found.bugs
        tally.cpu += found.cpu
        return found
