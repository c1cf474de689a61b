"""The commands of `glasshouse infer`: what an adversary learns from differentially private counts."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from glasshouse.commands.words.infer import (
    about,
    belief_in_truth,
    check_words,
    only_with_rho2,
    plan_lines,
    read_level,
    read_number,
    read_rate,
    say,
    say_posterior,
    spelled,
)
from glasshouse.errors import InputError

app = typer.Typer(
    name="infer",
    help="What does an adversary learn from noisy counts? Exact posteriors, risks and decisions; plans for a budget.",
    rich_markup_mode=None,
)


@app.callback(invoke_without_command=True)
def _root(ctx: typer.Context) -> None:
    if ctx.invoked_subcommand is None:
        print(ctx.get_help())


Rho = Annotated[str, typer.Option("--rho", help="Privacy loss of the count: a decimal or a fraction.")]
Rhos = Annotated[
    list[str],
    typer.Option("--rho", help="Privacy loss; repeat it for levels at which the target is unique, or releases."),
]
Prior = Annotated[str, typer.Option("--prior", "-p", help="The adversary's belief beforehand: 0.5 or 1/864.")]
Known = Annotated[
    int, typer.Option("--known", help="How many others the adversary knows to share the characteristics.")
]
Rho2 = Annotated[str | None, typer.Option("--rho2", help="Privacy loss one level up.")]
Others = Annotated[int | None, typer.Option("--others", help="How many other groups make up the level above.")]
X2Prior = Annotated[
    str, typer.Option("--x2-prior", help="Belief about the count above: uniform, uniform:10, point:1, or 0.5,0.3,0.2.")
]
NoiseSum = Annotated[str, typer.Option("--noise-sum", help="The others' noise: exact, or approx as in eq. 3.7.")]
Mode = Annotated[str, typer.Option("--mode", help="exact, or printed: the paper's printed two-level numbers.")]
Neighbours = Annotated[
    str, typer.Option("--neighbours", help="add-remove (noise parameter 1/(2 rho)) or change-one (1/rho, production).")
]
Attack = Annotated[
    str | None,
    typer.Option(
        "--attack", help="What the prior is a belief about: characteristics, participation, honesty, attribute."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]
AllocationName = Annotated[
    str | None, typer.Option("--allocation", "-a", help="A named budget (paper-2020, pl94-2020) or a TOML file.")
]
Query = Annotated[str, typer.Option("--query", help="Which query of the allocation.")]


@app.command(
    epilog="Example:  glasshouse infer posterior --rho 0.0992263542 --prior 0.5 --noisy 2\n\n"
    "Two levels:  ... --rho2 0.2464845096 --others 27 --noisy2 1 --noisy-others -1\n\n"
    "More levels, finest first:  --level RHO:NOISY:OTHERS:NOISY_OTHERS, repeated"
)
def posterior(
    rho: Annotated[
        str | None, typer.Option("--rho", help="Privacy loss of the count: a decimal or a fraction.")
    ] = None,
    noisy: Annotated[float | None, typer.Option("--noisy", help="The released noisy count.")] = None,
    prior: Prior = "0.5",
    known: Known = 0,
    rho2: Rho2 = None,
    others: Others = None,
    noisy2: Annotated[float | None, typer.Option("--noisy2", help="The noisy count one level up.")] = None,
    noisy_others: Annotated[
        float | None, typer.Option("--noisy-others", help="The sum of the other groups' noisy counts.")
    ] = None,
    level: Annotated[list[str], typer.Option("--level", help="A level as RHO:NOISY[:OTHERS:NOISY_OTHERS].")] = [],  # noqa: B006  # typer copies it
    x2_prior: X2Prior = "uniform",
    noise_sum: NoiseSum = "approx",
    mode: Mode = "exact",
    neighbours: Neighbours = "add-remove",
    true1: Annotated[int | None, typer.Option("--true1", help="The true count: adds how much belief it gets.")] = None,
    attack: Attack = None,
    as_json: Json = False,
) -> int:
    """What the adversary believes after seeing noisy counts."""
    from glasshouse.attack.infer import hierarchy, onelevel, twolevel

    check_words(mode=mode, noise_sum=noise_sum)

    above = hierarchy.CountPrior.read(x2_prior)
    belief_before = read_number(prior, "the prior")
    if level:
        levels = [read_level(text, neighbours) for text in level]
        found = hierarchy.posterior(levels, belief_before, known, above=above, noise_sum=noise_sum)
        return say_posterior(found, as_json, {**belief_in_truth(found.belief.posterior, true1, known), **about(attack)})
    if rho is None or noisy is None:
        raise InputError("--rho and --noisy are needed (or --level for each level)")
    rate = read_rate(rho, neighbours)
    if rho2 is None:
        one = onelevel.posterior(rate, belief_before, noisy, known)
        only_with_rho2(others=others, noisy2=noisy2, noisy_others=noisy_others)
        more = {**belief_in_truth(one.posterior, true1, known), **about(attack)}
        line = f"posterior {one.posterior:.6g}: {one.ratio:.4g} times the prior {belief_before:g}"
        return say({"posterior": one.posterior, "ratio": one.ratio, **more}, as_json, [line, *spelled(more)])
    if others is None or noisy2 is None or noisy_others is None:
        raise InputError("two levels need --others, --noisy2 and --noisy-others")
    adversary = twolevel.TwoLevels(
        rate, read_rate(rho2, neighbours), others, belief_before, known, above, noise_sum=noise_sum, mode=mode
    )
    found = adversary.posterior(noisy, noisy2, noisy_others)
    return say_posterior(found, as_json, {**belief_in_truth(found.belief.posterior, true1, known), **about(attack)})


@app.command(epilog="Example:  glasshouse infer risk --rho 0.0992263542 --prior 1/10")
def risk(
    rho: Rhos,
    prior: Prior = "0.5",
    neighbours: Neighbours = "add-remove",
    attack: Attack = None,
    as_json: Json = False,
) -> int:
    """The posterior of the truth, averaged over the noise, and its ratio to the prior (R)."""
    from glasshouse.attack.infer.onelevel import marginal

    found = marginal([read_rate(one, neighbours) for one in rho], read_number(prior, "the prior"))
    line = f"average posterior of the truth {found.posterior:.6g}: {found.ratio:.4g} times the prior"
    words = about(attack)
    return say({"posterior": found.posterior, "risk": found.ratio, **words}, as_json, [line, *spelled(words)])


@app.command(
    epilog="Example:  glasshouse infer decide --rho 0.0992263542 --prior 0.5\n\n"
    "Two levels:  ... --rho2 0.2464845096 --others 27 --true2 1 [--mode printed]"
)
def decide(
    rho: Rho,
    prior: Prior = "0.5",
    known: Known = 0,
    true1: Annotated[int | None, typer.Option("--true1", help="The true count; default: known + 1.")] = None,
    rho2: Rho2 = None,
    others: Others = None,
    true2: Annotated[int | None, typer.Option("--true2", help="The true count one level up.")] = None,
    x2_prior: X2Prior = "uniform",
    ties: Annotated[
        str, typer.Option("--ties", help="Who gets a posterior of exactly one half: strict, half or one.")
    ] = "strict",
    mode: Mode = "exact",
    noise_sum: NoiseSum = "approx",
    neighbours: Neighbours = "add-remove",
    attack: Attack = None,
    as_json: Json = False,
) -> int:
    """How often an adversary who picks the likelier value is right."""
    from glasshouse.attack.infer import hierarchy, onelevel, twolevel

    check_words(mode=mode, noise_sum=noise_sum, ties=ties)
    rate, believed = read_rate(rho, neighbours), read_number(prior, "the prior")
    if rho2 is None:
        only_with_rho2(others=others, true2=true2)
        found = onelevel.decide(rate, believed, known, truth=true1, ties=ties)
        lines = [f"right with probability {found.probability:.6g}"]
        if found.threshold is not None:
            lines[0] += f"; {known + 1} is picked from a noisy count of {found.threshold} on"
        said = {"probability": found.probability, "threshold": found.threshold, **about(attack)}
        return say(said, as_json, [*lines, *spelled(about(attack))])
    if others is None or true2 is None:
        raise InputError("two levels need --others and --true2")
    above = hierarchy.CountPrior.read(x2_prior)
    adversary = twolevel.TwoLevels(rate, read_rate(rho2, neighbours), others, believed, known, above, noise_sum, mode)
    correct = twolevel.correct_decision(adversary, true1=true1, true2=true2, ties=ties)
    lines = [
        f"right with probability {correct.probability:.6g} ({mode} posterior); the level above corrects "
        f"{correct.gained:.4%} of the decisions and spoils {correct.lost:.4%}; ties {correct.ties:.4%}"
    ]
    return say({**asdict(correct), "mode": mode, **about(attack)}, as_json, [*lines, *spelled(about(attack))])


@app.command(
    epilog="Example:  glasshouse infer plan --posterior 0.55 --prior 0.5 --levels block,block_group,tract\n\n"
    "A budget given:  glasshouse infer plan --allocation paper-2020 --query detailed --prior 0.5 --prior 1/10"
)
def plan(
    posterior: Annotated[
        str | None, typer.Option("--posterior", help="The largest tolerable average posterior.")
    ] = None,
    ratio: Annotated[
        str | None, typer.Option("--ratio", help="The largest tolerable ratio of posterior to prior.")
    ] = None,
    prior: Annotated[
        list[str], typer.Option("--prior", "-p", help="A belief beforehand; repeat it for several adversaries.")
    ] = ["0.5"],  # noqa: B006  # typer copies it
    levels: Annotated[str, typer.Option("--levels", help="Levels that get noise, finest first; default: block.")] = "",
    unique: Annotated[
        bool, typer.Option("--unique", help="Against a target known to be unique at every level.")
    ] = False,
    allocation: AllocationName = None,
    query: Query = "detailed",
    delta: Annotated[float, typer.Option("--delta", help="For the reading as epsilon.")] = 1e-10,
    neighbours: Annotated[
        str | None, typer.Option("--neighbours", help="add-remove (default) or change-one; an allocation says its own.")
    ] = None,
    as_json: Json = False,
) -> int:
    """Which rho keeps the risk tolerable; or, for a given budget, what the risk is."""
    from glasshouse.attack.infer import planning
    from glasshouse.mechanism import account

    priors = [read_number(text, "the prior") for text in prior]
    names = [name.strip() for name in levels.split(",") if name.strip()]
    budget = account.allocation(allocation) if allocation is not None else None
    if budget is not None and neighbours is not None:
        raise InputError(f"allocation {budget.name} is for {budget.neighbours} neighbours; leave out --neighbours")
    if posterior is None and ratio is None:
        if budget is None:
            raise InputError("say a limit (--posterior or --ratio), or a budget (--allocation)")
        plans = [planning.assess(budget, query, p, names, delta=delta) for p in priors]
        read: dict[str, Any] = {
            "allocation": budget.name,
            "query": query,
            "neighbours": budget.neighbours,
            "plans": [{"alone": asdict(alone), "unique": asdict(together)} for alone, together in plans],
        }
        lines = [f"{budget.title}: query {query}, of a total rho of {float(budget.total):g}"]
        for pair in plans:
            for kind, one in zip(("alone", "unique"), pair, strict=True):
                lines += plan_lines(one, kind)
        return say(read, as_json, lines)
    limit = planning.Limit(
        None if posterior is None else read_number(posterior, "the largest tolerable posterior"),
        None if ratio is None else read_number(ratio, "the largest tolerable ratio"),
    )
    shares = None
    if budget is not None:
        if not unique:
            raise InputError("a limit with an allocation divides rho as the allocation does: add --unique")
        shares = {level: float(value) for level, value in budget.rhos(query).items()}
        names, neighbours = names or list(shares), budget.neighbours
    relation = neighbours or "add-remove"
    found = [
        planning.plan(limit, p, names or ["block"], unique=unique, shares=shares, delta=delta, neighbours=relation)
        for p in priors
    ]
    lines = [line for one in found for line in plan_lines(one, "unique" if unique else "alone")]
    return say(
        {"limit": asdict(limit), "neighbours": relation, "plans": [asdict(one) for one in found]}, as_json, lines
    )


@app.command(epilog="Example:  glasshouse infer noise --rho 0.0992263542 --others 27")
def noise(
    rho: Rho,
    others: Annotated[int, typer.Option("--others", help="How many counts are added up.")] = 1,
    neighbours: Neighbours = "add-remove",
    as_json: Json = False,
) -> int:
    """How much noise rho buys, and the error of approximating its sums (3.7)."""
    from glasshouse.mechanism.gaussian import DiscreteGaussian, approximation_error

    rate = read_rate(rho, neighbours)
    variance = DiscreteGaussian(rate).variance
    said = {
        "standard_deviation": variance**0.5,
        "variance": variance,
        "others": others,
        "approximation_error": approximation_error(rate, others),
    }
    return say(said, as_json)


@app.command(
    epilog="Example:  glasshouse infer data examples/district-28-21/records.csv --scenario gvhr-1940 "
    "--allocation paper-2020 --levels district=block,county=block_group"
)
def data(
    records: Annotated[Path, typer.Argument(help="Records of persons, as a scenario reads them.")],
    scenario: Annotated[
        str, typer.Option("--scenario", "-s", help="The scenario whose attributes make up the histogram.")
    ],
    allocation: AllocationName = "paper-2020",
    query: Query = "detailed",
    levels: Annotated[
        str, typer.Option("--levels", help="Levels, finest first, as in block,tract or district=block.")
    ] = "",
    prior: Prior = "0.5",
    threshold: Annotated[
        float, typer.Option("--threshold", help="Report the share of persons above this posterior.")
    ] = 0.55,
    tables: Annotated[str, typer.Option("--tables", help="Only the attributes these tables look at.")] = "",
    matrix: Annotated[
        bool, typer.Option("--matrix", help="The file has a row per place and a column per combination.")
    ] = False,
    sample: Annotated[int, typer.Option("--sample", min=0, help="Report on so many persons only; 0: all.")] = 0,
    seed: Annotated[int, typer.Option("--seed", help="Which sample.")] = 0,
    as_json: Json = False,
) -> int:
    """How exposed the persons of a file are: at how many levels each is unique, and what that means."""
    import polars as pl

    from glasshouse.attack.infer.exposure import exposure, read_matrix
    from glasshouse.files.records import open_records
    from glasshouse.mechanism import account
    from glasshouse.mechanism.gaussian import rate_of
    from glasshouse.scenarios.load import load

    chosen = load(scenario)
    chosen = chosen.choose(tables.split(",")) if tables else chosen
    budget = account.allocation(allocation or "paper-2020")
    pairs = [word.partition("=") for word in levels.split(",") if word] or [(name, "", "") for name in budget.levels]
    rates = {name: rate_of(float(budget.rho(other or name, query)), budget.neighbours) for name, _, other in pairs}
    if matrix:
        people, attributes = read_matrix(records, next(iter(rates))), ["cell"]
    else:
        people, attributes = pl.concat(list(open_records(records, chosen).frames())), sorted(chosen.attributes_used)
    found = exposure(
        people, attributes, chosen.geography, rates, read_number(prior, "the prior"), sample=sample, seed=seed
    )
    said = {
        "persons": found.persons,
        "levels": list(rates),
        "exposed": [asdict(row) for row in found.rows],
        "unique_up_to": dict(zip(rates, found.unique_up_to(len(rates)), strict=True)),
        "threshold": threshold,
        "share_above": found.share_above(threshold),
    }
    lines = [f"{found.persons:,} persons; levels, finest first: {', '.join(rates)}"]
    for row in found.rows:
        where = f"unique at {row.levels} level{'s' * (row.levels != 1)}"
        who = f"{row.persons:,} person{'s' * (row.persons != 1)}"
        lines.append(f"{where}: {who}, posterior {row.posterior:.4f} (ratio {row.ratio:.3f})")
    lines.append(f"share of persons with a posterior above {threshold:g}: {found.share_above(threshold):.4f}")
    return say(said, as_json, lines)


@app.command(epilog="Example:  glasshouse infer postprocess --rho 0.0992263542 --others 27 --total 10")
def postprocess(
    rho: Rho,
    others: Annotated[int, typer.Option("--others", help="How many other groups make up the level above.")],
    total: Annotated[int, typer.Option("--total", help="The post-processed count of the level above.")],
    prior: Prior = "0.5",
    true2: Annotated[
        int, typer.Option("--true2", help="The true count of the level above, known to the adversary.")
    ] = 1,
    rounding: Annotated[str, typer.Option("--rounding", help="half-even, half-up or half-down.")] = "half-even",
    neighbours: Neighbours = "add-remove",
    as_json: Json = False,
) -> int:
    """What is left to learn after the counts were made to add up (S6), and the bounds on it."""
    from glasshouse.attack.infer.postprocess import post_processing

    found = post_processing(
        read_rate(rho, neighbours), read_number(prior, "the prior"), others, total, true2=true2, rounding=rounding
    )
    said = {
        "posterior": found.processed.posterior,
        "risk": found.processed.ratio,
        "bound": found.x1_and_others.posterior,
        "claimed_bound": found.x1_alone.posterior,
    }
    return say(said, as_json)


@app.command(epilog="Example:  glasshouse infer figures --out figures --only 1,5")
def figures(
    out: Annotated[Path, typer.Option("--out", "-o", help="A folder for the pictures (SVG) and their data (CSV).")],
    only: Annotated[
        str, typer.Option("--only", help="Which figures of the paper, as in 1,5; default: all twelve.")
    ] = "",
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")] = False,
    as_json: Json = False,
) -> int:
    """Draw the paper's figures anew, exactly."""
    from glasshouse.commands.words.infer_figures import FIGURES, draw
    from glasshouse.engine.progress import progress

    numbers = [word.strip() for word in only.split(",") if word.strip()]
    if any(number not in FIGURES for number in numbers):
        bad = next(number for number in numbers if number not in FIGURES)
        raise InputError(f"unknown figure '{bad}'; known: {', '.join(FIGURES)}")
    with progress("figures", shown=not quiet) as watch:
        written = draw(out, numbers or list(FIGURES), watch)
    return say({"written": [str(path) for path in written]}, as_json, [str(path) for path in written])
