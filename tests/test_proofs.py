"""Is what certificates say true, and does the checker refuse what is not? Toys, mutants, rubbish, and a county."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from glasshouse.proofs import check_proof
from glasshouse.proofs.check_proof import check
from tests import vipr_grammar
from tests.proof_toys import Json, Rows, certificate, extreme, facts, finish, histograms, is_true, toy, write

SOURCE = Path(check_proof.__file__)


def verdict(folder: Path, text: str) -> tuple[bool, str]:
    (folder / "one.vipr").write_text(text)
    try:
        [(_, fine, said)] = check(folder, folder / "published.csv", [folder / "one.vipr"])
    except check_proof.Refused as error:
        return False, str(error)
    return fine, said


@pytest.mark.parametrize("seed", range(12))
def test_the_sharpest_facts_of_toys_are_shown_and_accepted(seed: int, tmp_path: Path) -> None:
    definitions, rows, records = toy(seed, intervals=seed % 3 == 0)
    hashes = write(tmp_path, definitions, rows)
    for said in facts(definitions, rows, records):
        found = certificate(tmp_path, said)
        assert found is not None and found[0] == said["bound"], said
        fine, statement = verdict(tmp_path, finish(found[1], hashes))
        assert fine, statement
        assert not vipr_grammar.refused(found[1])
        assert f" {said['bound']} " in statement and "A1a" in statement


def test_a_bound_beyond_the_truth_is_never_shown(tmp_path: Path) -> None:
    for seed in range(12):
        definitions, rows, records = toy(seed)
        write(tmp_path, definitions, rows)
        for said in facts(definitions, rows, records):
            step = -1 if said["fact"] == "most" else 1
            if said["bound"] + step >= 0:
                found = certificate(tmp_path, said | {"bound": said["bound"] + step})
                assert found is None or found[0] == said["bound"], said


def test_a_contradiction_names_its_numbers_and_each_is_needed(tmp_path: Path) -> None:
    shown = 0
    for seed in range(30):
        definitions, rows, _ = toy(seed)
        rng = Random(seed)
        at = rng.randrange(len(rows))
        rows[at][3] = rows[at][4] = str(int(rows[at][3]) + rng.choice([1, 2]))
        hashes = write(tmp_path, definitions, rows)
        said: Json = {"fact": "contradiction", "places": ["A1a", "A1b"], "levels": ["house"]}
        if definitions["numbers"]["street"] and definitions["all_places"]:
            said["levels"] = ["house", "street"]
        found = certificate(tmp_path, said)
        assert (found is not None) == is_true(definitions, rows, said)
        if found is None:
            continue
        fine, statement = verdict(tmp_path, finish(found[1], hashes))
        assert fine and "without any one of them some set fits the others" in statement, statement
        assert not vipr_grammar.refused(found[1])
        shown += 1
    assert shown >= 8


def test_what_witnesses_say_is_counted_again(tmp_path: Path) -> None:
    definitions, rows, records = toy(1)
    hashes = write(tmp_path, definitions, rows)
    said = next(facts(definitions, rows, records))
    found = certificate(tmp_path, said)
    assert found is not None
    fits = {"records": {"A1a": [[1, *one] for one in records["A1a"]]}}
    more = {"records": {"A1a": [[1, *one] for one in [*records["A1a"], records["A1a"][0]]]}}
    for witness, accepted in ((fits, True), (more, False), ({"records": {"A1a": [[0, 0, 0, 0]]}}, False), ([], False)):
        text = f"% witness {json.dumps(witness)}\n" + finish(found[1], hashes)
        assert verdict(tmp_path, text)[0] is accepted


# Mutants


def mutate(definitions: Json, rows: Rows, text: str, rng: Random) -> tuple[Json, Rows, str, str]:
    """Definitions, numbers and a certificate, one of them changed a little; and which."""
    definitions, rows = json.loads(json.dumps(definitions)), [list(row) for row in rows]
    which = rng.choice(["line", "line", "word", "word", "word", "fact", "bound", "bound", "published", "definitions"])
    lines = text.split("\n")
    if which == "published":
        row = rng.choice(rows)
        if rng.random() < 0.2:
            rows.remove(row)
        else:
            at = rng.choice([3, 4, 4])
            row[at] = str(max(int(row[at] or 0) + rng.choice([-1, 1, 2]), 0))
            if rng.random() < 0.5:
                row[3] = row[4] = row[at]
    elif which == "definitions":
        some = rng.choice(["counts", "impossible", "compare", "all_places", "absent", "drop"])
        level = rng.choice([one for one in definitions["numbers"] if definitions["numbers"][one]])
        name = rng.choice(sorted(definitions["numbers"][level]))
        if some == "counts":
            definitions["numbers"][level][name]["counts"] = [{f"a{rng.randrange(3)}": str(rng.randrange(2))}]
        elif some == "impossible":
            definitions["impossible"] = [{"where": {f"a{n}": str(rng.randrange(2)) for n in range(3)}}]
        elif some == "compare":
            definitions["compare"]["a0"] = [rng.randrange(3) for _ in range(3)]
        elif some == "all_places":
            definitions["all_places"] = not definitions["all_places"]
        elif some == "absent":
            definitions["absent"] = "hidden"
        else:
            del definitions["numbers"][level][name]
    elif which == "fact":
        at = next(n for n, line in enumerate(lines) if line.startswith("% fact"))
        said = json.loads(lines[at][7:])
        some = rng.choice(["records", "levels", "where", "kind", "places"])
        if some == "records" and said.get("records"):
            some = said["records"] if isinstance(said["records"], list) else rng.choice([*said["records"].values()])
            rng.choice(some)[rng.randrange(4)] += rng.choice([-1, 1])
        elif some == "levels":
            said["levels"] = rng.choice([["house"], ["house", "street"], ["street"]])
        elif some == "where" and said.get("where"):
            said["where"] = [{f"a{rng.randrange(3)}": str(rng.randrange(2))}]
        elif some == "kind":
            said["fact"] = rng.choice(["least", "most", "overlap", "contradiction"])
        else:
            said["places"] = rng.choice([["A1b"], ["A1a", "A1b"], ["A1"]])
        lines[at] = "% fact " + json.dumps(said)
    elif which == "bound":  # everywhere, and wrong
        at = next(n for n, line in enumerate(lines) if line.startswith("% fact"))
        said = json.loads(lines[at][7:])
        was, now = said.get("bound", 0), said.get("bound", 0) + rng.choice([-1, 1])
        lines[at] = "% fact " + json.dumps(said | {"bound": now})
        sides = {f"RTP range {was} inf": f"RTP range {now} inf", f"RTP range -inf {was}": f"RTP range -inf {now}"}
        lines = [sides.get(line, line) for line in lines]
        for n in range(max(len(lines) - rng.choice([2, 3, 30]), 0), len(lines)):
            lines[n] = re.sub(rf"^(\w+ [GL]) -?{was} ", rf"\g<1> {now} ", lines[n])
    else:
        begin = next(n for n, line in enumerate(lines) if line.startswith("VER"))
        at = rng.randrange(begin, len(lines))
        if which == "line" and rng.random() < 0.5:
            del lines[at]
        elif which == "line":
            other = rng.randrange(begin, len(lines))
            lines[at], lines[other] = lines[other], lines[at]
        else:
            words = lines[at].split(" ")
            one = rng.randrange(len(words))
            if re.fullmatch(r"-?\d+(/\d+)?", words[one]):
                words[one] = rng.choice([str(rng.randrange(-2, 12)), f"{rng.randrange(-5, 6)}/2", words[one] + "0"])
            else:
                words[one] = rng.choice(["G", "L", "E", "OBJ", "asm", "uns", "rnd", "lin", "x0", "T_01", "}", "inf"])
            lines[at] = " ".join(words)
    return definitions, rows, "\n".join(lines), which


def try_mutants(folder: Path, count: int, seed: int) -> Counter[str]:
    """No mutant that is false is accepted; how many of each sort were tried, and accepted because they are true."""
    rng, tried = Random(seed), Counter[str]()
    number = seed
    while tried["all"] < count:
        number += 1
        definitions, rows, records = toy(number, intervals=number % 3 == 0)
        hashes = write(folder, definitions, rows)
        several = list(facts(definitions, rows, records))
        for said in rng.sample(several, min(len(several), 3)):
            found = certificate(folder, said)
            assert found is not None
            for _ in range(8):
                mine, numbers, text, which = mutate(definitions, rows, found[1], rng)
                hashes = write(folder, mine, numbers)
                fine, statement = verdict(folder, finish(text, hashes))
                tried["all"] += 1
                tried[which] += 1
                if fine:
                    line = next(line for line in text.split("\n") if line.startswith("% fact"))
                    assert is_true(mine, numbers, json.loads(line[7:])), (which, statement, text)
                    tried["accepted, as they are true"] += 1
            write(folder, definitions, rows)
    return tried


def test_no_mutant_that_is_false_is_accepted(tmp_path: Path) -> None:
    tried = try_mutants(tmp_path, 120, 1000)
    assert tried["all"] >= 100 and 0 < tried["accepted, as they are true"] < tried["all"] / 2


@pytest.mark.slow
def test_no_mutant_of_three_thousand_is_accepted(tmp_path: Path) -> None:
    tried = try_mutants(tmp_path, 3000, 5000)
    print(tried)
    assert tried["all"] >= 3000 and tried["accepted, as they are true"] > 100


def test_the_two_holes_of_another_checker_are_closed(tmp_path: Path) -> None:
    """A split at a number that is not whole, and a goal that says nothing."""
    definitions, _, _ = toy(3)
    definitions["numbers"] = {"house": {"T_01": {"table": "T", "says": "everybody", "counts": [{}]}}, "street": {}}
    definitions["impossible"] = []
    rows = [["house", "A1a", "T_01", "1", "1"]]
    hashes = write(tmp_path, definitions, rows)
    said: Json = {"fact": "contradiction", "places": ["A1a"], "levels": ["house"]}
    assert extreme(definitions, rows, {"fact": "least", "places": ["A1a"], "levels": ["house"], "where": [{}]}) == 1
    split = (
        f"% fact {json.dumps(said)}\nVER 1.0\nVAR 1\nx0\nINT 1\n0\nOBJ min\n0\nCON 1 0\nT_01 E 1 1 0 1\n"
        "RTP infeas\nSOL 0\nDER 5\na L 1/2 1 0 1 { asm } -1\nb G 3/2 1 0 1 { asm } -1\nc G 1 0 { lin 2 0 2 1 -2 } -1\n"
        "d G 1 0 { lin 2 2 2 0 -2 } -1\ne G 1 0 { uns 3 1 4 2 } -1\n"
    )
    assert verdict(tmp_path, finish(split, hashes)) == (
        False,
        "row 5: its cases do not cover all",
    )
    nothing = said | {"fact": "least", "where": [{}], "bound": 0}
    assert verdict(tmp_path, finish(f"% fact {json.dumps(nothing)}\nVER 1.0\n", hashes)) == (
        False,
        "the fact says nothing",
    )


@pytest.mark.parametrize("seed", range(3))
def test_rubbish_is_refused_in_one_line(seed: int, tmp_path: Path) -> None:
    definitions, rows, records = toy(seed)
    hashes = write(tmp_path, definitions, rows)
    said = next(facts(definitions, rows, records))
    found = certificate(tmp_path, said)
    assert found is not None
    good = finish(found[1], hashes).encode()
    rng = Random(seed)
    for number in range(150):
        harmed = bytearray(good)
        for _ in range(rng.choice([1, 3, 30])):
            at = rng.randrange(len(harmed))
            harmed[at : at + rng.choice([0, 1, 5])] = rng.randbytes(rng.choice([0, 1, 4]))
        if number % 10 == 0:
            harmed = bytearray(rng.randbytes(rng.randrange(200)))
        (tmp_path / "one.vipr").write_bytes(harmed)
        [(_, fine, reason)] = check(tmp_path, tmp_path / "published.csv", [tmp_path / "one.vipr"])
        assert "\n" not in reason and len(reason) < 2000
        if not fine:
            assert reason
    for name in ("definitions.json", "published.csv"):
        kept = (tmp_path / name).read_bytes()
        for _ in range(40):
            harmed = bytearray(kept)
            at = rng.randrange(len(harmed))
            harmed[at : at + rng.choice([1, 5])] = rng.randbytes(rng.choice([0, 2]))
            (tmp_path / name).write_bytes(harmed)
            fine, reason = verdict(tmp_path, good.decode())
            assert not fine and "\n" not in reason
        (tmp_path / name).write_bytes(kept)


def test_hostile_numbers_and_nesting_are_refused(tmp_path: Path) -> None:
    definitions, rows, _ = toy(2)
    hashes = write(tmp_path, definitions, rows)
    about = '"places":["A1a"],"levels":["house"]'
    facts_ = [
        "[" * 100_000,
        "1e999",
        f'{{"fact":"overlap",{about},"records":[[1e400,0,0,0]],"bound":1}}',
        f'{{"fact":"most",{about},"where":[{{"a0":"0-99999999999"}}],"bound":1}}',
        f'{{"fact":"most",{about},"where":[{{"a0":"0"}}],"bound":{"9" * 5000}}}',
    ]
    for one in facts_:
        fine, reason = verdict(tmp_path, finish(f"% fact {one}\nVER 1.0\n", hashes))
        assert not fine and reason == "fact: not of the form that is specified"


def test_the_checker_stands_alone() -> None:
    """One file, the standard library only, nothing executed."""
    source = SOURCE.read_text(encoding="utf-8")
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(str(node.module))
    assert {name.split(".")[0] for name in names} <= set(sys.stdlib_module_names)
    assert len(source.splitlines()) <= 570
    assert not re.search(r"(?<!re\.)\b(eval|exec|compile|__import__|loads_code)\(", source)


def test_the_checker_runs_without_glasshouse(tmp_path: Path) -> None:
    definitions, rows, records = toy(1)
    hashes = write(tmp_path, definitions, rows)
    found = certificate(tmp_path, next(facts(definitions, rows, records)))
    assert found is not None
    (tmp_path / "fact.vipr").write_text(finish(found[1], hashes))
    run = [sys.executable, "-I", "-S", str(SOURCE), str(tmp_path), "--tables", str(tmp_path / "published.csv")]
    ended = subprocess.run(run, capture_output=True, text=True, check=False)
    assert ended.returncode == 0 and ended.stdout.startswith("accepted fact.vipr Every set"), ended
    (tmp_path / "fact.vipr").write_text(finish(found[1], hashes).replace("% definitions ", "% definitions 0"))
    ended = subprocess.run(run, capture_output=True, text=True, check=False)
    assert ended.returncode == 1 and "REFUSED" in ended.stdout and not ended.stderr
    assert subprocess.run(run[:4], capture_output=True, check=False).returncode == 2


def test_a_count_that_divides_what_nobody_tells_apart_is_refused(tmp_path: Path) -> None:
    definitions, _, _ = toy(4)
    definitions["numbers"] = {"house": {"T_01": {"table": "T", "says": "everybody", "counts": [{}]}}, "street": {}}
    definitions["impossible"], definitions["compare"]["a0"] = [], [0, 0, 0]
    rows = [["house", "A1a", "T_01", "2", "2"]]
    hashes = write(tmp_path, definitions, rows)
    said: Json = {"fact": "least", "places": ["A1a"], "levels": ["house"], "where": [{"a0": "0"}], "bound": 2}
    text = (
        f"% fact {json.dumps(said)}\nVER 1.0\nVAR 1\nx0\nINT 1\n0\nOBJ min\n1 0 1\nCON 1 0\nT_01 E 2 1 0 1\n"
        "RTP range 2 inf\nSOL 0\nDER 1\na G 2 OBJ { lin 1 0 1 } -1\n"
    )
    assert not is_true(definitions, rows, said)
    assert verdict(tmp_path, finish(text, hashes)) == (False, "the count divides records that are not told apart")
    every = said | {"where": [{}]}
    assert verdict(tmp_path, finish(text.replace(json.dumps(said), json.dumps(every)), hashes))[0]


def test_what_is_published_must_be_in_the_file(tmp_path: Path) -> None:
    """A subtotal that no row has is not 0: the definitions may not call it published unless they say it is assumed."""
    definitions, rows, records = toy(5)
    said = next(facts(definitions, rows, records))
    definitions["numbers"]["house"]["T_02"] = {"table": "T", "says": "nobody", "counts": [{"a0": "0"}]}
    for totals, assumed, accepted in (([], [], True), (["T_02"], [], False), (["T_02"], ["T_02"], True)):
        write(tmp_path, definitions | {"totals": totals, "assumed": assumed}, rows)
        if accepted:
            check_proof.read_published(
                tmp_path / "published.csv",
                tmp_path / "second.csv",
                check_proof.Definitions((tmp_path / "definitions.json").read_bytes()),
                ["A1a"],
            )
        else:
            assert not verdict(tmp_path, finish(f"% fact {json.dumps(said)}\nVER 1.0\n", ("", "")))[0]


def test_a_place_that_only_unused_numbers_name_is_a_place(tmp_path: Path) -> None:
    """Records of an area may live there: the area's numbers are not met by the other places alone."""
    definitions, _, _ = toy(7)
    everybody = {"table": "T", "says": "everybody", "counts": [{}]}
    definitions["numbers"] = {"house": {"T_01": everybody}, "street": {"S_01": everybody | {"table": "S"}}}
    definitions |= {"impossible": [], "all_places": True, "aside": ["Q_01"]}
    rows = [["house", "A1a", "T_01", "1", "1"], ["street", "A1", "S_01", "2", "2"]]
    said: Json = {"fact": "contradiction", "places": ["A1a"], "levels": ["house", "street"]}
    write(tmp_path, definitions, rows)
    found = certificate(tmp_path, said)
    assert found is not None  # one record in the only place, and two in its street
    assert verdict(tmp_path, finish(found[1], write(tmp_path, definitions, rows)))[0]
    more = [*rows, ["house", "A1b", "Q_01", "5", "5"]]
    assert not verdict(tmp_path, finish(found[1], write(tmp_path, definitions, more)))[0]


def test_records_of_all_places_of_an_area_are_compared_place_by_place(tmp_path: Path) -> None:
    """The least overlap of both places together, the street's numbers met exactly: shown, and not one more."""
    shown = 0
    for seed in range(40):
        definitions, rows, records = toy(seed)
        few = sum(map(len, records.values())) <= 5
        if not (few and definitions["numbers"]["street"] and definitions["all_places"]):
            continue
        compare = [definitions["compare"][f"a{n}"] for n in range(3)]

        def kinds(place: str, x: dict[tuple[str, tuple[int, ...]], int], compare: list[list[int]] = compare) -> Counter:
            found: Counter = Counter()
            for (at, one), times in x.items():
                found[tuple(of[level] for of, level in zip(compare, one, strict=True))] += times * (at == place)
            return +found

        start = {place: kinds(place, Counter((place, one) for one in some)) for place, some in records.items()}
        said: Json = {"places": list(records), "levels": ["house", "street"], "fact": "overlap"}
        listed = {place: [[times, *kind] for kind, times in sorted(some.items())] for place, some in start.items()}
        least = min(
            sum(sum((start[place] & kinds(place, x)).values()) for place in start)
            for x in histograms(definitions, rows, said)
        )
        if not least:
            continue
        hashes = write(tmp_path, definitions, rows)
        total = [f"T_01@{place}" for place in records]
        found = certificate(tmp_path, said | {"records": listed, "bound": least, "total": total})
        assert found is not None and found[0] == least
        fine, statement = verdict(tmp_path, finish(found[1], hashes))
        number = sum(map(len, records.values()))
        assert fine and f"at least {least} of the {number} records named, and {number} in all" in statement, statement
        more = certificate(tmp_path, said | {"records": listed, "bound": least + 1, "total": total})
        assert more is None or more[0] == least
        wrong = found[1].replace(f'"bound":{least}', f'"bound":{least + 1}').replace(f"range {least} ", "range 0 ")
        assert not verdict(tmp_path, finish(wrong, hashes))[0]
        half = found[1].replace(json.dumps(total, separators=(",", ":")), json.dumps(total[:1]))
        assert half != found[1] and not verdict(tmp_path, finish(half, hashes))[0]
        shown += 1
    assert shown >= 3
