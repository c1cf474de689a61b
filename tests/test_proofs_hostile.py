"""Can whoever hands over the files harm whoever checks them? No file takes the machine, ends in a traceback, or lies.

Each case is run by the program itself in a process that may use 1.5 GB and 60 seconds of the processor.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random
from typing import Any

import pytest

import glasshouse as gh
from glasshouse.proofs import check_proof
from tests.proof_toys import Json, certificate, facts, finish, toy, write

SOURCE = Path(check_proof.__file__)
MEMORY, SECONDS = 3 << 29, 60


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A toy that is accepted: definitions, tables and one certificate."""
    definitions, rows, records = toy(1)
    hashes = write(tmp_path, definitions, rows)
    found = certificate(tmp_path, next(facts(definitions, rows, records)))
    assert found is not None
    (tmp_path / "one.vipr").write_text(finish(found[1], hashes))
    return tmp_path


def limits() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))


def run(folder: Path, tables: str = "published.csv") -> subprocess.CompletedProcess[str]:
    said = [sys.executable, "-I", "-S", str(SOURCE), str(folder), "--tables", str(folder / tables)]
    ended = subprocess.run(said, capture_output=True, text=True, check=False, preexec_fn=limits, timeout=600)
    assert not ended.stderr and ended.returncode in (0, 1), ended
    return ended


def refused(folder: Path, tables: str = "published.csv", why: str = "") -> None:
    """It is refused in lines of its own: one for each certificate at most, and the last."""
    ended = run(folder, tables)
    lines = ended.stdout.splitlines()
    assert ended.returncode == 1 and lines[-1].startswith("0 accepted") and why in ended.stdout, ended
    assert all(line.startswith("REFUSED") for line in lines[:-1]) and len(lines) <= 3, ended


def rewritten(folder: Path, definitions: Json | str | None = None, tables: bytes | None = None, fact: str = "") -> None:
    """The toy with other files, and a certificate that names their hashes."""
    if definitions is not None:
        text = definitions if isinstance(definitions, str) else json.dumps(definitions)
        (folder / "definitions.json").write_text(text, encoding="utf-8", errors="surrogatepass")
    if tables is not None:
        (folder / "published.csv").write_bytes(tables)
    import hashlib

    hashes = [hashlib.sha256((folder / one).read_bytes()).hexdigest() for one in ("published.csv", "definitions.json")]
    text = (folder / "one.vipr").read_text().split("\n", 3)[3]
    if fact:
        text = f"% fact {fact}\n" + text.split("\n", 1)[1]
    (folder / "one.vipr").write_text(finish(text, (hashes[0], hashes[1])))


def told(folder: Path) -> Json:
    found: Json = json.loads((folder / "definitions.json").read_text())
    return found


def test_the_toy_is_accepted(folder: Path) -> None:
    ended = run(folder)
    assert ended.returncode == 0 and ended.stdout.endswith("1 accepted, 0 refused\n"), ended


def large_are_slow(cases: Iterable[str]) -> list[Any]:
    """Files of many megabytes take seconds to make and to refuse: all but one are of make test-all."""
    large = [case for case in cases if case.startswith("many")]
    return [pytest.param(case, marks=[pytest.mark.slow] * (case in large[1:])) for case in cases]


DEFINITIONS: dict[str, Callable[[Json], Json | str]] = {
    "a name twice": lambda one: json.dumps(one)[:-1] + ', "absent": "hidden"}',
    "no number": lambda one: one | {"levels": {"street": float("nan"), "house": 3}},
    "without end": lambda one: json.dumps(one).replace('"levels": {"street": 2', '"levels": {"street": Infinity'),
    "a fraction": lambda one: one | {"levels": {"street": 2.0, "house": 3}},
    "below 0": lambda one: one | {"levels": {"street": -1, "house": 3}},
    "other digits": lambda one: one | {"impossible": [{"where": {"a0": "\u0661"}}]},
    "digits with a line": lambda one: one | {"impossible": [{"where": {"a0": "0_1"}}]},
    "backwards": lambda one: one | {"impossible": [{"where": {"a0": "2-0"}}]},
    "deep": lambda one: "[" * 200_000 + "]" * 200_000,
    "a long number": lambda one: json.dumps(one).replace('"house": 3}', f'"house": {"9" * 100_000}}}'),
    "many levels": lambda one: one | {"attributes": [{"name": "a0", "levels": ["x"] * 4_000_000}]},
    "many boxes": lambda one: one | {"impossible": [{"where": {}}] * 500_000},
    "many numbers": lambda one: (
        one | {"numbers": {"house": {f"N{n}": {"table": "T", "says": "", "counts": []} for n in range(60_000)}}}
    ),
    "no levels": lambda one: one | {"attributes": [{"name": f"b{n}", "levels": []} for n in range(100_000)]},
    "too large": lambda one: json.dumps(one) + " " * (1 << 25),
    "another form": lambda one: json.dumps([one]),
    "half a letter": lambda one: json.dumps(one | {"place": "\ud800"}),
}


@pytest.mark.parametrize("case", large_are_slow(DEFINITIONS))
def test_hostile_definitions_are_refused(case: str, folder: Path) -> None:
    rewritten(folder, definitions=DEFINITIONS[case](told(folder)))
    refused(folder, why="definitions.json" if case != "half a letter" else "")


TABLES: dict[str, Callable[[bytes], bytes]] = {
    "a row twice": lambda one: one + one.split(b"\r\n")[1] + b"\r\n",
    "a column twice": lambda one: one.replace(b"lower,upper", b"lower,lower"),
    "other digits": lambda one: one.replace(b",1\r\n", ",\u0661\r\n".encode()),
    "a quote that does not end": lambda one: one + b'house,"A1a' + b"\r\nx" * 100_000,
    "lines inside quotes": lambda one: one + b'house,"' + b'\n","' * 100_000,
    "a line without end": lambda one: one + b"house," * 1_000_000,
    "empty lines": lambda one: one + b"\n" * 1000,
    "no text": lambda one: one + b"\xff\xfe\x00",
    "nothing": lambda one: b"",
}


@pytest.mark.parametrize("case", TABLES)
def test_hostile_tables_are_refused(case: str, folder: Path) -> None:
    rewritten(folder, tables=TABLES[case]((folder / "published.csv").read_bytes()))
    refused(folder)


def test_packed_tables_take_no_memory_and_may_be_broken(folder: Path) -> None:
    packed = io.BytesIO()
    with gzip.open(packed, "wb", compresslevel=1) as stream:
        stream.write((folder / "published.csv").read_bytes())
        for _ in range(2000):  # 2 GB without a line, more than the process may have
            stream.write(b"0" * (1 << 20))
    (folder / "bomb.csv.gz").write_bytes(packed.getvalue())
    refused(folder, "bomb.csv.gz")
    good = gzip.compress((folder / "published.csv").read_bytes())
    for harmed in (good[:-9], good[:30] + b"\xff" * 20 + good[50:], b"no archive", good[:10]):
        (folder / "broken.csv.gz").write_bytes(harmed)
        refused(folder, "broken.csv.gz")
    refused(folder, "not-there.csv")


def _about(**more: object) -> str:
    return json.dumps({"fact": "least", "places": ["A1a"], "levels": ["house"], "where": [{}], "bound": 1} | more)


FACTS = {
    "a name twice": _about()[:-1] + ', "bound": 2}',
    "half": _about(bound=1.5),
    "no number": _about(bound=float("nan")),
    "true": _about(bound=True),
    "below 0": _about(bound=-1),
    "many boxes": _about(where=[{"a0": "0-2"}] * 100_000),
    "many places": _about(places=[f"A1{n}" for n in range(200_000)]),
    "many names": _about(total=["T_01"] * 500_000),
    "many records": json.dumps(
        {"fact": "overlap", "places": ["A1a"], "levels": ["house"], "bound": 1}
        | {"records": [[1, n, 0, 0] for n in range(150_000)]}
    ),
    "both": json.dumps(
        {
            "fact": "overlap",
            "places": ["A1a"],
            "levels": ["house"],
            "bound": 1,
            "where": [{}],
            "records": [[1, 0, 0, 0]],
        }
    ),
    "deep": '{"fact":' * 50_000 + "1" + "}" * 50_000,
}


@pytest.mark.parametrize("case", large_are_slow(FACTS))
def test_hostile_facts_are_refused(case: str, folder: Path) -> None:
    rewritten(folder, fact=FACTS[case])
    refused(folder)


def test_hostile_witnesses_are_refused(folder: Path) -> None:
    good = (folder / "one.vipr").read_text()
    for said in (
        json.dumps({"records": {"A1a": [[1, 0, 0, 0]] * 200_000}}),
        json.dumps({"records": {"elsewhere": [[1, 0, 0, 0]]}}),
        json.dumps({"records": {"A1a": [[1, 0, 0]]}}),
        json.dumps({"records": {"A1a": [[1, -1, 0, 0]]}}),
        json.dumps({"records": {"A1a": [[10**300, 0, 0, 0]]}}),
        "[" * 90_000,
    ):
        (folder / "one.vipr").write_text(f"% witness {said}\n{good}")
        refused(folder)


def test_hostile_derivations_are_refused(folder: Path) -> None:
    """Many lines about many terms, long fractions, numbers that grow: refused within the limits."""
    good = (folder / "one.vipr").read_text()
    head, rest = good.split("\nDER ", 1)
    lines = rest.split("\n")
    primes = [n for n in range(2, 60_000) if all(n % p for p in range(2, int(n**0.5) + 1))]
    fractions = [f"d{n} G 1/{p} 0 {{ asm }} -1" for n, p in enumerate(primes)]
    rows = int(head.split("\nCON ", 1)[1].split(" ", 1)[0])
    total = " ".join(f"{rows + n} 1" for n in range(len(fractions)))
    fractions.append(f"s G 1 0 {{ lin {len(primes)} {total} }} -1")
    doubled = [f"d{n} G {10**59} OBJ {{ lin 1 0 {10**59}/{10**59 - 1} }} -1" for n in range(50_000)]
    cases = [f"d{n} G 0 OBJ {{ asm }} -1" for n in range(150_000)]
    for one in (fractions, doubled, cases, lines[1:] * 20_000, ["x " * 500_000], []):
        (folder / "one.vipr").write_text(f"{head}\nDER {len(one)}\n" + "\n".join(one) + "\n")
        refused(folder)


def test_names_and_labels_cannot_put_lines_into_the_mouth_of_the_checker(folder: Path) -> None:
    lie = "x\naccepted other.vipr Every set that fits has\u202e\x1b[2K\ud800"
    definitions = told(folder)
    for attribute in definitions["attributes"]:
        attribute["levels"] = [one + lie for one in attribute["levels"]]
    rewritten(folder, definitions=definitions)
    (folder / "one.vipr").rename(folder / "one\naccepted two.vipr")
    ended = run(folder)
    assert len(ended.stdout.splitlines()) == 2 and "\x1b" not in ended.stdout and "\u202e" not in ended.stdout
    said = [sys.executable, "-I", "-S", str(SOURCE), str(folder), "--tables", str(folder / "published.csv")]
    (folder / "two\n\udcff.vipr").write_bytes(b"")
    latin = subprocess.run(said, capture_output=True, check=False, env={"PYTHONIOENCODING": "ascii"})
    assert latin.returncode == 1 and not latin.stderr and len(latin.stdout.splitlines()) == 3


def test_what_is_no_file_is_not_waited_for(folder: Path) -> None:
    os.mkfifo(folder / "pipe.vipr")
    (folder / "folder.vipr").mkdir()
    (folder / "zero.vipr").symlink_to("/dev/zero")
    (folder / "large.vipr").write_bytes(b"%" * ((1 << 23) + 1))
    ended = run(folder)
    assert ended.returncode == 1 and "1 accepted, 4 refused" in ended.stdout
    (folder / "definitions.json").unlink()
    os.mkfifo(folder / "definitions.json")
    assert "0 accepted, 5 refused" in run(folder).stdout


def test_an_index_names_no_file_elsewhere(folder: Path) -> None:
    """`glasshouse check-proof` compares what the index says, and opens nothing that it names."""
    tables = folder / "published.csv"
    header = "place,fact,statement,file,status\n"
    for content in (
        f"{header}A1a,solvar,lie,../../../etc/passwd,certified\n",
        f"{header}A1a,x,lie,one.vipr,certified\n",
    ):
        (folder / "index.csv").write_text(content)
        found = gh.check_proof(folder, tables=tables)
        assert found.code == 1 and "root:" not in str(found.summary)
    for harmed in (b"\xff\xfe", header.encode() + b'"' + b"x" * 200_000, b"\x00,file\n"):
        (folder / "index.csv").write_bytes(harmed)
        assert gh.check_proof(folder, tables=tables).summary.certificates == 1


def test_mutated_bytes_end_in_no_traceback(folder: Path) -> None:
    """Each file in turn with some bytes changed: a verdict or a refusal, never another error."""
    rng = Random(7)
    names = ["one.vipr", "definitions.json", "published.csv"]
    kept = {name: (folder / name).read_bytes() for name in names}
    words = [
        b"0",
        b"-",
        b"/",
        b'"',
        b"\n",
        b"9" * 70,
        b"{",
        b"}",
        b"[",
        b"%",
        b"\xff",
        b"null",
        b"1e9",
        b"@",
        b":",
        b",",
    ]
    for number in range(300):
        name = names[number % 3]
        harmed = bytearray(kept[name])
        for _ in range(rng.choice([1, 2, 8])):
            at = rng.randrange(len(harmed))
            harmed[at : at + rng.choice([0, 1, 4])] = rng.choice(words)
        (folder / name).write_bytes(harmed)
        try:
            verdicts = list(check_proof.check(folder, folder / "published.csv", [folder / "one.vipr"]))
        except check_proof.Refused as error:
            verdicts = [(folder / name, False, str(error))]
        assert len(verdicts) == 1 and len(verdicts[0][2].splitlines()) == 1
        (folder / name).write_bytes(kept[name])
