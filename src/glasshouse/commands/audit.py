"""All of it, one report: what is certain, who is at risk, and what each protection would change."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from glasshouse.commands.auditing.summary import Summary
from glasshouse.commands.declaration import Opt, command
from glasshouse.commands.options import Run, chosen_scenario, inputs_of
from glasshouse.commands.result import Result
from glasshouse.errors import InputError

if TYPE_CHECKING:  # heavy modules are imported when they are needed, so that --help is quick
    import polars as pl

    from glasshouse.commands.auditing.config import Config
    from glasshouse.commands.auditing.files import Files
    from glasshouse.commands.auditing.steps import Step
    from glasshouse.engine.lifecycle import Made, Workplace

ConfigFile = Annotated[
    Path | None, Opt("A TOML file; default: a synthetic county.", flag="--config", short="-c", metavar="FILE")
]


class Audited(Result[Summary]):
    """The report of an audit, and everything behind it."""

    @property
    def report(self) -> str:
        """The report as HTML: internal, or the public one if only that was written."""
        name = "report.html" if "report.html" in self.files else "report-public.html"
        return self.ended.files.read(name).decode()

    numbers: pl.DataFrame  # every number of the report, with its definition and source

    def said(self) -> dict[str, object]:
        """The summary for scripts; what exceeds a threshold is among the findings."""
        return {**super().said(), "findings": list(self.ended.findings)}

    def lines(self) -> list[str]:
        """The summary for people; last, the thresholds that were exceeded."""
        name = "report.html" if "report.html" in self.files else "report-public.html"
        before = [f"{self.out} is up to date"] if self.ended.unchanged else []
        where = [f"-> {self.out / name}"] if self.out is not None else []
        return [*before, *self.ended.lines, *where, *(f"exceeded: {line}" for line in self.ended.findings)]


@dataclass(frozen=True)
class Planned:
    """The steps of an audit, about how long each takes, and what is left out and why."""

    title: str
    persons_about: int
    seconds_about: int
    steps: tuple[Mapping[str, str | int | None], ...]
    dry_run: bool = True


@dataclass(frozen=True)
class Text:
    """Something that is only printed."""

    text: str = ""


class Printed(Result[Text]):
    """A text as it is."""

    def said(self) -> dict[str, object]:
        return {"text": self.summary.text}


class Plan(Result[Planned]):
    """What an audit would do."""


def plan_audit(config: Path | None = None, run: Run = Run(), **_: object) -> Plan:  # noqa: B008  # frozen
    """The steps of an audit and what they may take; nothing is done."""
    from glasshouse.engine.lifecycle import told

    asked = _Asked.of(config, run, public=False)
    files = asked.files(run.out or Path("audit"))
    steps = asked.steps(files)
    total = sum(step.seconds for step in steps if not step.without)
    rows: tuple[Mapping[str, str | int | None], ...] = tuple(
        {"step": step.name, "says": step.says, "seconds_about": None if step.without else round(step.seconds),
         "left_out": step.without or None}
        for step in steps
    )  # fmt: skip
    width = max(len(step.name) for step in steps)
    lines = [f"{asked.config.title}: about {files.persons:,} persons"]
    for step in steps:
        time = f"left out: {step.without}" if step.without else f"about {_told(step.seconds)}"
        lines.append(f"    {step.name:<{width}}  {step.says:<48}  {time}")
    lines.append(f"in all about {_told(total)} on two cores, and the report; nothing was done yet")
    return Plan(told("audit", Planned(asked.config.title, files.persons, round(total), rows), lines))


def _printed(text: str) -> Printed:
    from glasshouse.engine.lifecycle import told

    return Printed(told("audit", Text(text), text.removesuffix("\n").split("\n")))


def show_schema(**_: object) -> Printed:
    """The JSON Schema of the configuration."""
    from glasshouse.commands.auditing.config import schema

    return _printed(schema())


def show_config(config: Path | None = None, **_: object) -> Printed:
    """The built-in configuration, or the one given."""
    from glasshouse.commands.auditing.config import config_path

    return _printed(config_path(config).read_text(encoding="utf-8"))


@command(
    example="glasshouse audit --out out/audit        (a synthetic county, some minutes)\n\n"
    "Your own:  glasshouse audit --show-config > mine.toml, edit it, glasshouse audit --config mine.toml --dry-run, "
    "then the same with --out DIR. Interrupted or killed, run the same command again to resume.\n\n"
    "Exit code 0: done. 1: a risk exceeds a threshold of the configuration, or the public report would give somebody "
    "away and was not written (the last line says which). 2: bad input.",
    instead={
        "--dry-run": ("List the steps and what they may take, and stop.", plan_audit),
        "--schema": ("Print the configuration's JSON Schema, and stop.", show_schema),
        "--show-config": ("Print the built-in configuration, or --config, and stop.", show_config),
    },
)
def audit(
    *,
    config: ConfigFile = None,
    public: Annotated[bool, Opt("Write the report, its workbook and figures only as the public may see them.")] = False,
    certificate_key: Annotated[
        Path | None,
        Opt(
            "A secret file of yours, 32 bytes or more: the public report has digests of the inputs, keyed with it; "
            "default: no digests.",
            metavar="FILE",
        ),
    ] = None,
    run: Run = Run(),  # noqa: B008  # frozen
) -> Audited:
    """All of it, one report: what is certain, who is at risk, and what each protection would change."""
    from glasshouse.engine.lifecycle import in_folder
    from glasshouse.engine.manifest import Manifest

    asked = _Asked.of(config, run, public=public, key=_key(certificate_key))
    files = asked.files(run.out or Path("audit"))
    asked.steps(files)  # refused before anything is done
    parameters = {"title": asked.config.title, "seed": asked.config.seed, "public": public, "keyed": asked.keyed}
    manifest = Manifest("audit", parameters, asked.inputs(files))
    ended = in_folder(manifest, Summary, asked.work, out=run.out, overwrite=run.overwrite, unit="step")
    return Audited(ended)


@dataclass(frozen=True)
class _Asked:
    """What an audit is asked: its configuration, checked, and how it is run."""

    path: Path
    config: Config
    run: Run
    public: bool
    key: bytes | None = None

    @property
    def keyed(self) -> str:
        """Which key, told without it."""
        return "" if self.key is None else hmac.new(self.key, b"glasshouse certificate", "sha256").hexdigest()

    @classmethod
    def of(cls, config: Path | None, run: Run, *, public: bool, key: bytes | None = None) -> _Asked:
        from glasshouse.commands.auditing.config import config_path, read_config

        run.crew  # noqa: B018  # refused before anything is read
        path = config_path(config)
        return cls(path, read_config(path), run, public, key)

    def files(self, folder: Path) -> Files:
        from glasshouse.commands.auditing.files import files_of

        return files_of(self.config, folder)

    def steps(self, files: Files) -> tuple[Step, ...]:
        """The steps; whatever could be found wrong before them is refused."""
        from glasshouse.commands.auditing.files import refuse_unreadable, rules_of
        from glasshouse.commands.auditing.steps import refuse_unknown, refuse_unmeasured, steps_of

        try:
            steps = steps_of(self.config, files)
            refuse_unmeasured(self.config, steps)
            refuse_unknown(self.config)
            scenario = chosen_scenario(self.config.scenario, self.config.tables)
            rules_of(self.config, scenario)
        except InputError as error:
            error.add_where(self.path.name)
            raise
        refuse_unreadable(self.config, files, scenario)
        return steps

    def inputs(self, files: Files) -> dict[str, Path]:
        """Every file that the result depends on, by role."""
        config = self.config
        inputs: dict[str, Path | None] = {"config": self.path, **files.given}
        for extra in (config.claims, config.occupancy):
            if extra is not None:
                name = Path(extra.scenario).name
                inputs |= {f"{name}: {role}": one for role, one in inputs_of({}, extra.scenario).items()}
        named = {
            "plan": config.protections and config.protections.plan, "budget": config.noise and config.noise.budget,
            "preset": config.synthetic and config.synthetic.preset,
        }  # fmt: skip
        inputs |= {role: Path(name) for role, name in named.items() if name and Path(name).is_file()}
        return inputs_of(inputs, config.scenario)

    def work(self, at: Workplace) -> Made[Summary]:
        """Do the steps that are not left out, and write the report."""
        from glasshouse.commands.auditing.findings import find
        from glasshouse.commands.auditing.steps import Ask
        from glasshouse.commands.auditing.writing import certificate, digests, earlier_files, write_report
        from glasshouse.engine.ledger import Entry, Notes
        from glasshouse.engine.lifecycle import Made
        from glasshouse.engine.progress import say
        from glasshouse.engine.runner import Tally

        files = self.files(at.folder.path)
        steps = self.steps(files)
        todo = [step for step in steps if not step.without]
        done: dict[str, Result[Any] | None] = {}
        at.ledger.tell(units=len(todo))
        for number, step in enumerate(todo, start=1):
            say(f"[{number}/{len(todo)}] {step.name}: {step.says} (about {_told(step.seconds)})")
            result = done[step.name] = step.do(Ask(self.run.workers, self.run.executor, done, self.run.insecure))
            if result is not None and result.ended.unchanged:
                say("    done before")
            at.ledger.put(Entry(f"{number:02d}{step.name}", Notes(), {}))
        manifest = at.folder.manifest
        found = find(self.config, files, steps, certificate(self.config, manifest, steps), digests(manifest))
        threshold = self.config.public.threshold
        outputs, refused = write_report(found, at.path, threshold, public=self.public, key=self.key)
        stopped = any(one is not None and one.ended.stopped_by_clock for one in done.values())
        return Made(
            found.summary, outputs, _lines(found.summary), _notes(done), Tally(),
            (*found.exceeded, *refused), complete=not stopped, replaces=earlier_files(at.folder.path),
        )  # fmt: skip


def _key(path: Path | None) -> bytes | None:
    """The bytes of the office's key; a short one could be tried out."""
    from glasshouse.report.publish import KEY

    if path is None:
        return None
    try:
        key = path.read_bytes()
    except OSError as error:
        raise InputError(
            f"{path}: the key cannot be read ({error.strerror}); expected a file of {KEY} bytes or more"
        ) from None
    if not KEY <= len(key) <= 1 << 20:
        raise InputError(
            f"{path}: a key of {len(key):,} bytes; expected {KEY} or more, and at most a mebibyte, as from "
            "head -c 32 /dev/urandom"
        )
    return key


def _told(seconds: float) -> str:
    return f"{seconds:,.0f} s" if seconds < 120 else f"{seconds / 60:,.0f} min"


def _notes(done: Mapping[str, Result[Any] | None]) -> list[str]:
    """What steps left out, or could not do in time."""
    from glasshouse.commands.check import Checked
    from glasshouse.commands.compare import Compared

    notes = []
    for name, result in done.items():
        if result is None:
            continue
        refused, stopped = result.refused, result.ended.stopped_by_clock
        if isinstance(result, Compared):
            settings = result.summary.settings_refused or {}
            notes += [f"warning: '{what}' is left out: {why}" for what, why in settings.items()]
        elif refused:
            why = next(iter(refused.values())).reason
            notes.append(f"warning: {name}: {len(refused):,} units were left out; the first: {why}")
        if stopped:
            notes.append(f"warning: {name}: {len(stopped):,} units were stopped by the clock")
        if isinstance(result, Checked) and result.summary.findings:
            places = len(result.summary.findings)
            notes.append(f"warning: {name}: {places:,} places have numbers that cannot all be true")
    return notes


def _lines(summary: Summary) -> list[str]:
    def share(value: float | None) -> str:
        return "not measured" if value is None else f"{value:.1%}"

    guess = "" if summary.precision_guess is None else f" (guessing {summary.precision_guess:.1%})"
    lines = [
        f"{summary.title}: {summary.persons:,} records in {summary.blocks:,} place{'s' * (summary.blocks != 1)}",
        f"    certain records               {share(summary.share_certain)}",
        f"    places with one solution      {share(summary.zero_solvar_share)}",
        f"    could differ (solvar)         {share(summary.solvar_mean)}",
        f"    precision, most exposed       {share(summary.precision_exposed)}{guess}",
    ]
    if summary.hidden_numbers:
        hidden = f"of {summary.hidden_numbers:,} that are not printed exactly"
        lines.append(f"    hidden numbers given away     {share(summary.share_given_away)} ({hidden})")
    if summary.share_certified is not None:
        lines.append(f"    certified for strangers       {share(summary.share_certified)} (of the records looked at)")
    front = [str(one["setting"]) for one in summary.protections if not one["dominated"] and one["protect"]]
    if front:
        lines.append(f"    protections on the front      {'; '.join(front)}")
    return [*lines, *(f"    left out: {name}: {why}" for name, why in summary.skipped.items())]
