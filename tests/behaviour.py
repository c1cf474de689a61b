"""What does every command do today? Small runs of all of them, and what each wrote and said, kept in behaviour.json.

The record lets a change of the code's inside prove that nothing changed outside: `tests.test_behaviour` does the runs
again and compares. Everything goes through the command line, and starts from one synthetic county and the examples.

    python -m tests.behaviour                        make the record, or say what differs from it
    python -m tests.behaviour --because "..." [RUN]  take what differs into the record, with the reason

A reason is kept under `mended`, for every run and file that differed. What is not compared, or not as it is:

- manifest.json, *.manifest.json and timings.parquet (convention 8), and the ledger of a run that is not finished;
- certificates one by one: `certificates.parquet`, beside them, has them all;
- in pages, workbooks and texts, the hash of the code and the key of a run, which has it in it, are replaced by a word,
  and versions of libraries go from certificates;
- in what is printed, seconds are left out and the scratch folder has a word for a name;
- fractions: the last digits of what is computed in floating point depend on the processor, so nine digits are compared,
  and of a file that holds fractions its parts, not its bytes (that two runs on one machine give the same bytes is
  tested elsewhere);
- Parquet files, where polars or pyarrow are not those of the record: then their columns are compared, not their bytes.
"""

from __future__ import annotations

import csv
import fcntl
import gzip
import json
import math
import random
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager
from hashlib import sha256
from importlib import metadata, resources
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from tests.running import tool

HERE = Path(__file__).resolve().parent
RECORD = HERE / "behaviour.json"
EXAMPLES = HERE.parent / "examples"
LIBRARIES = ("polars", "pyarrow", "numpy", "scipy", "highspy", "ortools", "vl-convert-python", "xlsxwriter")
FRACTION = re.compile(r"-?\d+\.\d+(e[+-]?\d+)?")
NOTHING = 1e-12  # what is left of a difference of equal numbers
Said = dict[str, Any]


class Run(NamedTuple):
    """A command; what it writes is under a folder of its own, which has the run's name."""

    name: str
    arguments: str
    after: str = ""  # the runs whose files it reads
    json: bool = True
    slow: bool = False


# What the runs read besides the county: the examples, and files that are written here.

COPIED = {"norland": "own-country", "village": "village", "district": "district-28-21", "budget": "budget-planning"}
PLAN = """
title = "Some"
scenario = "mini"
seeds = [1]
attackers = ["attacker-perfect"]
[[setting]]
name = "nothing"
[[setting]]
name = "swap"
protect = "swap"
rate = 0.1
coordinates = "{blocks}"
[[setting]]
name = "round"
protect = "round"
base = 3
"""
AUDIT = """
title = "A small county"
scenario = "mini"
[synthetic]
persons = 500
subsidised = 0.25
[attackers]
leave_one_out = 3
[leaks]
blocks = 3
[claims]
scenario = "dhc-household"
pick = "median:1"
[occupancy]
scenario = "subsidised-housing"
[noise]
budget = "paper-2020"
[protections]
plan = "two.toml"
"""
NORLAND = """
title = "Norland, tables only"
scenario = "norland/scenario"
[input]
tables = "tables-norland/t.csv.gz"
[thresholds]
share_certain = 0.5
"""
WRITTEN = {
    "plan.toml": PLAN,
    "two.toml": "[[setting]]".join(PLAN.split("[[setting]]")[:3]),
    "audit.toml": AUDIT,
    "norland.toml": NORLAND,
    "also.csv": "level,geoid,variable\nward,NO01W01,W1_004\n",
}

N = "--scenario norland/scenario"
SF1 = "--scenario sf1-person"
DHC = "--scenario dhc-household"
TRUTH = "--truth county/cef.parquet --published county/hdf.parquet"
HOMES = "county/households.parquet"
RHO = "--rho 0.0992263542"

RENDERINGS = (".svg", ".html", ".xlsx", ".png")  # of data that are recorded

RUNS = (
    # the county, its tables, and whether they can be true
    Run("county", "synthesize --persons 4500 --seed 7 --subsidised 0.25 --alpha 0.001 --out county"),
    Run("hamlet", "synthesize --persons 400 --seed 3 --preset homogeneous-rural --commercial high --swap-base 0.1 "
        "--swap-risky 0.5 --out hamlet"),
    Run("tables", f"tabulate county/hdf.parquet {SF1} --out tables/sf1.parquet", "county"),
    Run("tables-few", f"tabulate county/hdf.parquet {SF1} --tables P1,P8,P12 --levels county,state --subtotals "
        "--out tables-few/t.csv", "county"),
    Run("tables-zip", f"tabulate alabama.csv {SF1} --out tables-zip/al2010.sf1.zip"),
    Run("tables-pl94", "tabulate county/cef.parquet --scenario pl94 --levels county --workers 2 "
        "--out tables-pl94/t.csv.gz", "county"),
    Run("tables-homes", f"tabulate {HOMES} {DHC} --out tables-homes/t.parquet", "county"),
    Run("tables-subsidised", f"tabulate {HOMES} --scenario subsidised-housing --out tables-subsidised/t.parquet",
        "county"),
    Run("tables-norland", f"tabulate norland/records.csv {N} --out tables-norland/t.csv.gz"),
    Run("check", f"check tables/sf1.parquet {SF1}", "tables", slow=True),
    Run("check-norland", f"check tables-norland/t.csv.gz {N} --workers 2", "tables-norland"),
    Run("check-zip", f"check tables-zip/al2010.sf1.zip {SF1} --tables P1,P12", "tables-zip"),
    Run("check-slip", f"check village/slip.csv {SF1}"),
    Run("check-nothing", f"check nowhere.csv {SF1}"),
    Run("usage", "check --colour red"),
    Run("scenarios", "scenarios"),
    Run("scenarios-sf1", "scenarios sf1-person"),
    Run("scenarios-norland", "scenarios norland/scenario"),
    Run("version", "--version", json=False),
    # which records fit, and how different they could be
    Run("rebuilt", f"reconstruct tables/sf1.parquet {SF1} --workers 1 --out rebuilt", "tables"),
    Run("rebuilt-blocks", f"reconstruct tables/sf1.parquet {SF1} --level block --tables P1,P8,P12 --seed 5 --workers 1 "
        "--out rebuilt-blocks", "tables"),
    Run("rebuilt-norland", f"reconstruct tables-norland/t.csv.gz {N} --workers 2 --out rebuilt-norland",
        "tables-norland"),
    Run("rebuilt-slip", f"reconstruct village/slip.csv {SF1} --workers 1 --out rebuilt-slip"),
    Run("rebuilt-near", f"reconstruct noise/t.parquet {SF1} --tables P1,P8,P12 --level block --nearest squared "
        "--workers 1 --out rebuilt-near", "noise"),
    Run("rebuilt-nearest", f"reconstruct noise/t.parquet {SF1} --tables P1,P8,P12 --level block --nearest absolute "
        "--workers 1 --out rebuilt-nearest", "noise"),
    Run("solvar", f"vary tables/sf1.parquet {SF1} --from rebuilt --uniques county/cef.parquet --workers 1 --out solvar",
        "tables rebuilt"),
    Run("solvar-norland", f"vary tables-norland/t.csv.gz {N} --scope town --tighten --workers 2 --out solvar-norland",
        "tables-norland"),
    Run("solvar-without", f"vary tables-norland/t.csv.gz {N} --tables W1,W2,W3,W4,T2 --workers 1 --out solvar-without",
        "tables-norland"),
    Run("solvar-age", f"vary tables-zip/al2010.sf1.zip {SF1} --schema exact-age --workers 1 --out solvar-age",
        "tables-zip", slow=True),
    Run("solvar-hidden", f"vary suppress-norland/t.csv {N} --workers 1 --out solvar-hidden", "suppress-norland"),
    Run("bounds-hidden", f"bounds suppress-norland/t.csv {N} --why 1 --most 0.5 --workers 1 --out bounds-hidden",
        "suppress-norland", slow=True),
    Run("bounds-rounded", f"bounds round-norland/t.csv {N} --tables W1,W2,T1 --numbers all --percent 20 --workers 1 "
        "--count sex=woman;age=0..6;language=Hill --out bounds-rounded", "round-norland",
        slow=True),
    Run("status", "status rebuilt", "rebuilt"),
    Run("status-norland", "status solvar-norland", "solvar-norland"),
    # who could be identified
    Run("risk", f"reidentify rebuilt --vary solvar {TRUTH} --attacker county/commercial.parquet "
        "--attacker county/attacker-perfect.parquet --links --leave-one-out 4 --workers 1 --out risk",
        "rebuilt solvar"),
    Run("risk-swapped", f"reidentify rebuilt near=rebuilt-near {TRUTH} --attacker names=county/commercial.parquet "
        "--leave-one-out 2 --swap 0.02,0.1 --seed 3 --workers 1 --out risk-swapped", "rebuilt rebuilt-near"),
    # what must be true of households
    Run("claims", f"verify tables-homes/t.parquet {DHC} --pick median:1 --why 2 --absent 1 --truth {HOMES} "
        f"--prior-tract {HOMES} --prior-state {HOMES} --workers 1 --out claims", "tables-homes", slow=True),
    Run("claims-leaks", f"verify tables-homes/t.parquet {DHC} --pick median:1 --leaks family --singletons --cannot 0 "
        "--columns 7 --workers 1 --out claims-leaks", "tables-homes"),
    Run("claims-norland", f"verify tables-norland/t.csv.gz {N} --columns 2 --leaks table --why 1 "
        "--truth norland/records.csv --workers 2 --out claims-norland", "tables-norland"),
    Run("claims-dropped", f"verify tables-homes/t.parquet {DHC} --pick median:1 --drop-cells 1 --zeros certain "
        "--columns 8 --workers 1 --out claims-dropped", "tables-homes"),
    # what two agencies give away together
    Run("found", "detect tables-subsidised/t.parquet --properties county/housing.parquet --why --nearest "
        f"--sample county/sample.parquet --solutions 3 --truth {HOMES} --workers 1 --seconds 0 --out found",
        "tables-subsidised"),
    Run("found-solvar", "detect tables-subsidised/t.parquet --properties county/housing.parquet --solvar --workers 1 "
        "--sample county/sample.parquet --seconds 0 --out found-solvar", "tables-subsidised", slow=True),
    Run("found-paper", "detect tables-subsidised/t.parquet --properties county/housing.parquet --model paper "
        "--workers 1 --out found-paper", "tables-subsidised"),
    Run("found-noisy", "detect tables-subsidised/t.parquet --properties properties/p.parquet --nearest --workers 1 "
        "--out found-noisy", "tables-subsidised properties"),
    # what a noisy count tells
    Run("posterior", f"infer posterior {RHO} --prior 0.5 --noisy 2 --true1 1"),
    Run("posterior-two", f"infer posterior {RHO} --noisy 2 --rho2 0.2464845096 --others 27 --noisy2 1 "
        "--noisy-others -1"),
    Run("posterior-printed", f"infer posterior {RHO} --noisy 2 --rho2 0.2464845096 --others 27 --noisy2 1 "
        "--noisy-others -1 --mode printed"),
    Run("posterior-levels", "infer posterior --level 0.1:2:27:-1 --level 0.2:3 --noise-sum exact"),
    Run("inferred-risk", f"infer risk {RHO} --rho 0.05 --prior 1/10 --neighbours change-one"),
    Run("decide", f"infer decide {RHO} --prior 0.5 --ties half"),
    Run("decide-two", f"infer decide {RHO} --rho2 0.2464845096 --others 27 --true2 1"),
    Run("plan", "infer plan --posterior 0.55 --prior 0.5 --levels block,tract --unique"),
    Run("plan-given", "infer plan --allocation paper-2020 --query detailed --prior 0.5 --prior 1/10"),
    Run("plan-own", "infer plan --allocation budget/budget.toml --query detailed --prior 0.5"),
    Run("inferred-noise", f"infer noise {RHO} --others 27"),
    Run("inferred-data", "infer data district/records.csv --scenario gvhr-1940 --allocation paper-2020 "
        "--levels district=block,county=block_group"),
    Run("inferred-county", f"infer data county/cef.parquet {SF1} --levels block,tract --tables P12 --sample 200",
        "county"),
    Run("postprocess", f"infer postprocess {RHO} --others 27 --total 10"),
    Run("figures", "infer figures --out figures --only 5", slow=True),
    # protections of records, of tables, of another agency's statistics
    Run("swap", f"protect swap county/cef.parquet --rate 0.1 --coordinates county/blocks.parquet --log swap/pairs.csv "
        f"--households {HOMES} --households-out swap/homes.parquet --group-quarters synthesize --out swap/p.parquet",
        "county"),
    Run("topdown", "protect topdown county/cef.parquet --scenario pl94 --budget pl94-2020 "
        "--places county/blocks.parquet --out topdown/p.parquet", "county"),
    Run("topdown-persons", "protect topdown hamlet/cef.parquet --places hamlet/blocks.parquet --seed 2 "
        "--out topdown-persons/p.csv", "hamlet"),
    Run("bottom-up", "protect topdown hamlet/cef.parquet --bottom-up --scenario pl94 --budget pl94-2020 --rho 1 "
        "--out bottom-up/p.parquet", "hamlet"),
    Run("relocate", "protect relocate county/cef.parquet --by sex,hispanic --lambda 3 --capacity 20 --q 0.5 "
        "--out relocate/p.parquet", "county"),
    Run("relocate-near", "protect relocate county/cef.parquet --by hispanic,black --lambda 2 --capacity 10% "
        "--within 500 --coordinates county/blocks.parquet --spread whole --out relocate-near/p.csv.gz", "county"),
    Run("noise", f"protect noise tables/sf1.parquet {SF1} --tables P1,P8,P12 --rho 4 --out noise/t.parquet", "tables"),
    Run("noise-budget", "protect noise tables-pl94/t.csv.gz --scenario pl94 --budget pl94-2020 --seed 4 "
        "--measurements noise-budget/m.csv --out noise-budget/t.csv", "tables-pl94"),
    Run("round", f"protect round tables/sf1.parquet {SF1} --base 3 --values round/v.parquet --out round/t.parquet",
        "tables"),
    Run("round-norland", f"protect round tables-norland/t.csv.gz {N} --base 5 --how nearest --out round-norland/t.csv",
        "tables-norland"),
    Run("suppress", f"protect suppress tables/sf1.parquet {SF1} --below 5 --zeros hide --values suppress/v.csv.gz "
        "--out suppress/t.parquet", "tables"),
    Run("suppress-norland", f"protect suppress tables-norland/t.csv.gz {N} --below 3 --also also.csv "
        "--out suppress-norland/t.csv", "tables-norland"),
    Run("cellkey", f"protect cellkey tables/sf1.parquet {SF1} --seed 7 --values cellkey/v.csv --out cellkey/t.parquet",
        "tables"),
    Run("properties", "protect properties county/housing.parquet --rho 12.66 --out properties/p.parquet", "county"),
    # what protections cost
    Run("front", "tradeoff county/cef.parquet --by sex,hispanic --lambda 1 --lambda 3 --capacity 20 --points 5 "
        "--out front", "county"),
    Run("front-near", "tradeoff county/cef.parquet --by hispanic,black --lambda 2 --capacity 10% --within 500 "
        "--coordinates county/blocks.parquet --weight constant --coverage relaxed --at 0.5 --points 3 --out front-near",
        "county"),
    Run("compared", "compare hamlet --plan plan.toml --setting nothing --setting swap --workers 1 --out compared",
        "hamlet", slow=True),
    Run("compared-one", "compare hamlet --plan plan.toml --setting round --workers 1 --out compared-one", "hamlet"),
    Run("compared-sides", "compare compared compared-one --out compared-sides", "compared compared-one", slow=True),
    Run("compare-plan", "compare --show-plan", json=False),
    # all of it
    Run("audit", "audit --config audit.toml --workers 1 --out audit", slow=True),
    Run("audit-norland", "audit --config norland.toml --workers 1 --out audit-norland", "tables-norland"),
    Run("audit-public", "audit --config norland.toml --public --workers 1 --out audit-public", "tables-norland"),
    Run("audit-plan", "audit --dry-run"),
    Run("audit-config", "audit --show-config", json=False),
    Run("audit-schema", "audit --schema", json=False),
    Run("status-audit", "status audit-norland", "audit-norland"),
    Run("built-in", "audit --workers 2 --out built-in", slow=True),
)  # fmt: skip
EVERY = {run.name: run for run in RUNS}


# Doing the runs


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """One process at a time."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def prepare(scratch: Path) -> None:
    """Put what the runs read besides each other's files into a folder."""
    _few_tables(scratch / "mini")
    _few_people(scratch / "alabama.csv")
    for name, folder in COPIED.items():
        shutil.copytree(EXAMPLES / folder, scratch / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name, text in WRITTEN.items():
        (scratch / name).write_text(text, encoding="utf-8")


def _few_tables(folder: Path) -> None:
    """The scenario of the 2010 Census with some of its tables: quick, and a scenario of one's own."""
    built_in = next(Path(str(resources.files("glasshouse"))).rglob("sf1-person/scenario.toml"))
    head, tables = built_in.read_text(encoding="utf-8").split("[table]\n")
    kept = [line for line in tables.splitlines() if line.split(" = ")[0] in ("P1", "P8", "P12", "PCT12")]
    few = "\n".join(kept).replace('"ABCDEFGHI"', '"H"').replace(', iterations = "ABCDEFGHIJKLMNO"', "")
    folder.mkdir()
    (folder / "scenario.toml").write_text(f"{head}[table]\n{few}\n", encoding="utf-8")
    shutil.copy(built_in.with_name("catalogue.csv"), folder)


def _few_people(path: Path) -> None:
    """Records with codes of a state that there is, for its archive."""
    chance = random.Random(7)
    lines = ["block,sex,age,white,black,aian,asian,nhopi,sor,hispanic"]
    for _ in range(60):
        block = chance.choice(("010730051031000", "010730051031001", "010730052001000"))
        races = chance.choice(("1,0,0,0,0,0", "0,1,0,0,0,0", "1,0,0,1,0,0"))
        lines.append(
            f"{block},{chance.choice(('male', 'female'))},{chance.randint(0, 110)},{races},{chance.randint(0, 1)}"
        )
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")


def done(run: Run, scratch: Path) -> Said:
    """What a run said and wrote; it and the runs that it comes after are done once in a folder, whoever asks."""
    for name in run.after.split():
        done(EVERY[name], scratch)
    told = scratch / ".done" / f"{run.name}.json"
    told.parent.mkdir(exist_ok=True)
    with locked(told.with_suffix(".lock")):
        if not told.exists():
            shutil.rmtree(scratch / run.name, ignore_errors=True)
            text = json.dumps(_do(run, scratch))
            told.write_text(text, encoding="utf-8")
    found: Said = json.loads(told.read_text(encoding="utf-8"))
    return found


def _do(run: Run, scratch: Path) -> Said:
    arguments, out = run.arguments.split(), scratch / run.name
    if f" {run.name}/" in run.arguments:
        out.mkdir()
    with chdir(scratch):
        ended = tool(*arguments, *(["--json"] if run.json else []))
    found: Said = {"arguments": run.arguments, "code": ended.code}
    hidden = _hidden(out) | {str(scratch): "SCRATCH"}
    if run.json and ended.out and ended.code < 2:
        found["keys"] = parts(timeless(json.loads(_shown(ended.out, hidden))))
    if files := dict(written(out, hidden)):
        found["files"] = files
    return found


# What is taken down


def digest(content: bytes | str) -> str:
    return sha256(content.encode() if isinstance(content, str) else content).hexdigest()


def brief(value: Any) -> str:
    """A short hash of a part, to say which part differs."""
    return digest(json.dumps(steady(value), sort_keys=True, default=repr))[:10]


def steady(value: Any) -> Any:
    """The same with fractions to nine digits, which do not depend on the processor."""
    if isinstance(value, dict):
        return {key: steady(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [steady(one) for one in value]
    if isinstance(value, str) and FRACTION.fullmatch(value):
        value = float(value)
    if isinstance(value, float) and math.isfinite(value):
        return 0.0 if abs(value) < NOTHING else float(f"{value:.9g}")
    return value


def has_fractions(value: Any) -> bool:
    """Is there a fraction in it, as a number or spelt out?"""
    if isinstance(value, dict):
        return any(map(has_fractions, value.values()))
    if isinstance(value, list | tuple):
        return any(map(has_fractions, value))
    return isinstance(value, float) or (isinstance(value, str) and bool(FRACTION.fullmatch(value)))


def parts(told: Any) -> Any:
    """The keys of an object, each with a short hash of what it has."""
    return {key: brief(value) for key, value in told.items()} if isinstance(told, dict) else len(told)


def timeless(told: Any) -> Any:
    """Without what a clock said."""
    if isinstance(told, dict):
        return {key: timeless(value) for key, value in told.items() if key not in ("wall_seconds", "cpu_seconds")}
    return [timeless(one) for one in told] if isinstance(told, list) else told


def _hidden(out: Path) -> dict[str, str]:
    """The hash of the code and the keys of runs, as the manifests below a folder say them, and words instead."""
    found = {}
    for path in sorted(out.rglob("*manifest.json")):
        told = json.loads(path.read_text(encoding="utf-8"))
        found |= {told[key]: word for key, word in (("code", "CODE"), ("key", "RUN")) if key in told}
    return found


def _shown(text: str, hidden: Mapping[str, str]) -> str:
    for secret, word in hidden.items():
        text = text.replace(secret, word)
    return text


def written(out: Path, hidden: Mapping[str, str]) -> Iterator[tuple[str, Said]]:
    """Every data file below a folder."""
    for path in sorted(path for path in out.rglob("*") if path.is_file()):
        name = path.relative_to(out).as_posix()
        if not (name.endswith(("manifest.json", ".vipr")) or path.name == "timings.parquet" or "ledger/" in name):
            yield name, file_said(path, hidden)


def file_said(path: Path, hidden: Mapping[str, str]) -> Said:
    """The hash of a data file, and of its parts; of a rendering, that it is there."""
    content = path.read_bytes()
    if path.suffix == ".parquet":
        frame = pl.read_parquet(path)
        values = {name: frame[name].to_list() for name in frame.columns}
        columns = {name: brief([str(frame[name].dtype), some]) for name, some in values.items()}
        said: Said = {"rows": frame.height, "order": frame.columns, "columns": columns}
        return said if has_fractions(values) else said | {"sha256": digest(content)}
    if path.suffix in RENDERINGS:
        return {}
    if path.suffix == ".zip":
        return {"sha256": digest(content)}
    if path.suffix == ".gz":
        content = gzip.decompress(content)
    text = content.decode()
    shown = _shown(text, hidden)
    said, values = {}, {}
    if ".csv" in path.suffixes:
        head, *rows = csv.reader(text.splitlines())
        values = {name: [row[column] for row in rows] for column, name in enumerate(head)}
        said = {"rows": len(rows), "order": head, "columns": {name: brief(some) for name, some in values.items()}}
    if path.suffix == ".json":
        values = json.loads(shown)
        said = {"keys": parts(values)}
    return said if has_fractions(values) else said | {"sha256": digest(path.read_bytes() if shown == text else shown)}


# Comparing, and keeping the record


def versions() -> dict[str, str]:
    return {name: metadata.version(name) for name in LIBRARIES}


def differences(run: str, before: Said, now: Said, *, same_libraries: bool = True) -> dict[str, str]:
    """What differs between two runs: `run/file` or `run: field`, and in which parts. Keys may be added to the JSON."""
    found = {}
    if before["code"] != now["code"]:
        found[f"{run}: code"] = f"{before['code']}, now {now['code']}"
    told, said = before.get("keys", {}), now.get("keys", {})
    if unlike := _unlike(told, {key: said[key] for key in told if key in said}):
        found[f"{run}: keys"] = unlike
    old, new = before.get("files", {}), now.get("files", {})
    for name in sorted(old.keys() | new.keys()):
        if name not in new or name not in old:
            found[f"{run}/{name}"] = "is no longer written" if name in old else "was not written before"
        elif unlike := _file_differs(name, old[name], new[name], same_libraries):
            found[f"{run}/{name}"] = unlike
    return found


def _file_differs(name: str, old: Said, new: Said, same_libraries: bool) -> str:
    said = [f"{field} {old[field]}, now {new.get(field)}" for field in ("rows", "order")
            if field in old and old[field] != new.get(field)]  # fmt: skip
    said += [f"{field}: {unlike}" for field in ("columns", "keys")
             if (unlike := _unlike(old.get(field), new.get(field)))]  # fmt: skip
    by_parts = name.endswith(".parquet") and not same_libraries
    if not said and not by_parts and old.get("sha256") != new.get("sha256"):
        said = ["other bytes" + (", the same in every part" if len(old) > 1 else "")]
    return "; ".join(said)


def _unlike(old: Any, new: Any) -> str:
    """Which keys differ."""
    if old == new:
        return ""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return f"{old}, now {new}"
    told = (("gone", old.keys() - new.keys()), ("new", new.keys() - old.keys()),
            ("changed", {key for key in old.keys() & new.keys() if old[key] != new[key]}))  # fmt: skip
    return "; ".join(f"{word} {', '.join(sorted(keys))}" for word, keys in told if keys)


def recorded() -> Said:
    if not RECORD.exists():
        return {"mended": {}, "runs": {}, "versions": versions()}
    found: Said = json.loads(RECORD.read_text(encoding="utf-8"))
    return found


def laid_out(value: Any, depth: int = 0) -> str:
    """JSON with sorted keys, a line for each file of a run."""
    if depth == 4 or not isinstance(value, dict) or not value:
        return json.dumps(value, sort_keys=True, ensure_ascii=False)
    space = " " * (depth + 1)
    lines = [f"{space}{json.dumps(key)}: {laid_out(value[key], depth + 1)}" for key in sorted(value)]
    return "{\n" + ",\n".join(lines) + "\n" + " " * depth + "}"


def main(arguments: Sequence[str]) -> int:
    """Do the runs; make the record, say what differs from it, or take that into it."""
    because = arguments[1] if arguments[:1] == ["--because"] else ""
    names = arguments[2:] if because else arguments
    record = recorded()
    fresh: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        prepare(scratch)
        for run in [EVERY[name] for name in names] or EVERY.values():
            now = done(run, scratch)
            before = record["runs"].setdefault(run.name, now)
            fresh |= differences(run.name, before, now)
            record["runs"][run.name] = now
    for what, how in fresh.items():
        print(f"{what}: {how}")
    if fresh and not because:
        print('differs from the record, which stays as it is; with --because "..." it is changed')
        return 1
    record["mended"] |= dict.fromkeys(fresh, because)
    record["versions"] = versions()
    record["runs"] = {name: said for name, said in record["runs"].items() if name in EVERY}
    RECORD.write_text(laid_out(record) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
