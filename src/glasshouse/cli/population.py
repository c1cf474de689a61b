"""The command that makes a county with a known truth: synthesize."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from glasshouse.cli.options import Json, Quiet, Verbose, finish
from glasshouse.errors import InputError

app = typer.Typer(rich_markup_mode=None)


@app.command(
    epilog="Example:  glasshouse synthesize --persons 30000 --seed 1 --out county\n\n"
    "Nobody in it is real. datasheet.md, written beside the files, says what it was made from."
)
def synthesize(
    persons: Annotated[int, typer.Option("--persons", help="How many persons: a village, a county, a state.")] = 30_000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same files.")] = 1,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The folder to write.")] = None,
    preset: Annotated[
        str,
        typer.Option(
            "--preset", help="The kind of county: national, homogeneous-rural, diverse-urban, or a TOML file of yours."
        ),
    ] = "national",
    commercial: Annotated[
        str, typer.Option("--commercial", help="How good the attacker's bought list is: low, 2010-like, high.")
    ] = "2010-like",
    swap_base: Annotated[
        float,
        typer.Option("--swap-base", min=0, max=1, help="Chance that a household is swapped in the published file."),
    ] = 0.02,
    swap_risky: Annotated[
        float,
        typer.Option("--swap-risky", min=0, max=1, help="The same for households at risk (small blocks, rare races)."),
    ] = 0.10,
    alpha: Annotated[
        float, typer.Option("--alpha", min=0, max=1, help="Weight of over-occupied homes in subsidised housing.")
    ] = 1e-4,
    subsidised: Annotated[
        float,
        typer.Option(
            "--subsidised", min=0, max=1, help="Share of households in subsidised properties (0.006 in the nation)."
        ),
    ] = 0.03,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the result of another run in --out.")] = False,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> int:
    """Make a synthetic county with a known truth, and the files around it."""
    from glasshouse.commands.words.datasheet import datasheet
    from glasshouse.commands.work.synthesize import FILES, Choices
    from glasshouse.commands.work.synthesize import synthesize as make
    from glasshouse.engine.folder import Folder
    from glasshouse.engine.manifest import Manifest
    from glasshouse.engine.progress import progress
    from glasshouse.population.attackers import quality
    from glasshouse.population.county import County
    from glasshouse.population.preset import known_presets, load_preset
    from glasshouse.protection.swap.by_rates import Rates

    if out is None and not as_json:
        raise InputError("--out is missing: say which folder to write (or ask for --json alone, which keeps nothing)")
    chosen = load_preset(preset)
    choices = Choices(quality(commercial), Rates(swap_base, swap_risky), alpha, subsidised)
    county = County(chosen, persons, seed)
    parameters = {
        "persons": persons,
        "seed": seed,
        "preset": chosen.name,
        "commercial": commercial,
        "swap_base": swap_base,
        "swap_risky": swap_risky,
        "alpha": alpha,
        "subsidised": subsidised,
    }
    inputs = {} if preset in known_presets() else {"preset": Path(preset)}
    manifest = Manifest("synthesize", parameters, inputs)
    with ExitStack() as stack:
        where = out or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="glasshouse-")))
        folder = Folder(where, manifest)
        told = folder.done(overwrite=overwrite)
        counts: dict[str, Any] = dict(told["counts"]) if told else {}
        if told is None:
            county.places  # noqa: B018  # what cannot be laid out is refused before anything is written
            about = {"command": "synthesize", "parameters": parameters}
            with folder.working(about, overwrite=overwrite) as ledger, progress("synthesize", shown=not quiet) as watch:
                folder.make_room()
                outputs = [*(f"{name}.parquet" for name in FILES), "datasheet.md"]
                try:
                    counts = make(county, choices, folder.path, watch)
                    datasheet(folder.path, chosen, parameters, counts)
                    folder.write(counts, outputs, cpu=0.0, complete=True)
                except BaseException:
                    folder.remove(outputs)
                    raise
            ledger.forget()
    said = {
        "command": "synthesize",
        "out": str(out) if out else None,
        **parameters,
        **counts,
        "unchanged": told is not None,
    }
    line = (
        f"{counts['records']:,} persons in {counts['households']:,} households, {counts['blocks']:,} blocks, "
        f"{counts['tracts']:,} tracts, none of them real -> {out}"
    )
    return finish(said, as_json, quiet, [f"{out} is up to date" if told else line])
