"""Glasshouse shows a statistical office what its published tables give away.

    import glasshouse as gh
    found = gh.vary("tables.parquet", scenario="sf1-person")
    found.places, found.summary.headline, found.figure()

Records are cells of a histogram; a release says how groups of cells add up. The house, from the ground up
(a module imports only from those above it):

    limits      how much is too much        what files may ask of us at most
    text        which letters are printed   harmful, plain
    errors      what can go wrong           InputError, GlasshouseBug
    model       what we talk about          schema, geography, records, release, tabulate, identities, wording
    scenarios   which tables an office publishes   load, parse, occupancy; data/ holds the built-in ones
    files       real files in and out       records, tables, summary (archives); describing/: what tables say of
                                            themselves
    population  a synthetic county          places, people, homes, lists, subsidised housing; presets are data
    program     which histograms fit        compile_tables, places_alone, one, farthest, ranges, settled, conflict
    mechanism   noise and its price         DiscreteGaussian, sum_of, epsilon, Ledger, allocation
    attack      what can be learnt          contradictions; reconstruct, vary: tables to records; claims/: what must be
                                            true; occupancy/: two agencies' numbers; people/: records to people; infer/:
                                            noisy counts to beliefs
    proofs      how can strangers check it  definitions, space, derivation, certificate, witness: facts as files;
                                            check_proof: the program that checks them, on its own
    protection  what could be done          swap/, topdown/, relocation/; noise, perturb: of tables; properties
    assess      how bad, how good           rates, variability, baselines, reidentification, claims, occupancy,
                                            frontier, utility, usefulness, comparison, microdata: the office's own rules
    report      say it                      description: what a report says; sections/, text/: in which words;
                                            render/, theme: how it is shown; publish: what everybody may see
    engine      do it at scale              job, runner, workers, dask, ledger, folder, manifest, lifecycle, progress
    commands    one question, one module    a function with typed keywords and a frozen result; work/: what is done to
                                            one unit; words/: what is said at the end
    cli         the terminal                derived from the functions

Nothing heavy is imported before it is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from glasshouse.commands.namespace import Namespace
from glasshouse.commands.protect.register import protect as _protect

# The verbs: where each function is. The terminal offers the same ones.
VERBS = {
    "describe": "glasshouse.commands.describe",
    "synthesize": "glasshouse.commands.synthesize",
    "furnish": "glasshouse.commands.synthesize",
    "tabulate": "glasshouse.commands.tabulate",
    "check": "glasshouse.commands.check",
    "reconstruct": "glasshouse.commands.reconstruct",
    "vary": "glasshouse.commands.vary",
    "bounds": "glasshouse.commands.bounds",
    "verify": "glasshouse.commands.verify",
    "detect": "glasshouse.commands.detect",
    "prove": "glasshouse.commands.proving.prove",
    "check_proof": "glasshouse.commands.proving.check_proof",
    "reidentify": "glasshouse.commands.reidentify",
    "tradeoff": "glasshouse.commands.tradeoff",
    "compare": "glasshouse.commands.compare",
    "audit": "glasshouse.commands.audit",
    "status": "glasshouse.commands.status",
}
# Verbs that belong together: `gh.infer.plan` is `glasshouse infer plan`.
NAMESPACES = {
    "infer": Namespace(
        "infer",
        "What does an adversary learn from noisy counts? Exact posteriors, risks and decisions; plans for a budget.",
        {
            "posterior": "glasshouse.commands.infer.beliefs",
            "risk": "glasshouse.commands.infer.releases",
            "decide": "glasshouse.commands.infer.releases",
            "plan": "glasshouse.commands.infer.budgets",
            "epsilon": "glasshouse.commands.infer.whole",
            "sweep": "glasshouse.commands.infer.sweep",
            "noise": "glasshouse.commands.infer.beliefs",
            "data": "glasshouse.commands.infer.persons",
            "postprocess": "glasshouse.commands.infer.beliefs",
            "figures": "glasshouse.commands.infer.figures",
        },
    ),
    "protect": _protect,
}
_OTHERS = {
    "read_tables": "glasshouse.commands.reading",
    "read_records": "glasshouse.commands.reading",
    "scenario": "glasshouse.commands.scenarios",
    "aloud": "glasshouse.engine.progress",
    "InputError": "glasshouse.errors",
    "GlasshouseBug": "glasshouse.errors",
}
__all__ = [*VERBS, *NAMESPACES, *_OTHERS]  # names


def __getattr__(name: str) -> Any:
    if name in NAMESPACES:
        return NAMESPACES[name]
    where = VERBS.get(name) or _OTHERS.get(name)
    if where is None:
        raise AttributeError(f"module 'glasshouse' has no attribute '{name}'; known: {', '.join(__all__)}")
    return getattr(import_module(where), name)


def __dir__() -> list[str]:
    return [*__all__, "__doc__"]
