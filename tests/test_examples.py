"""Are the examples true to the letter? Every session in their pages is run and compared.

After a change of what the tool says: python -m tests.test_examples writes the sessions anew. Read the difference.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import StringIO
from itertools import product
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import pytest

from glasshouse.cli.main import main

from .test_readme import ROOT, module

EXAMPLES = ROOT / "examples"
PAGES = sorted(EXAMPLES.glob("*/README.md"))
SESSION = re.compile(r"(?<=```console\n)(.*?)(?=```)", re.DOTALL)


def run_again(page: str, folder: Path) -> str:
    """The page with what its commands print now; they are run in order, in a folder where `examples` is ours."""
    (folder / "examples").symlink_to(EXAMPLES)

    def session(shown: re.Match[str]) -> str:
        commands = [line for line in shown[0].splitlines() if line.startswith("$ ")]
        return "".join(f"{line}\n{printed(shlex.split(line)[1:])}" for line in commands)

    with chdir(folder):
        return SESSION.sub(session, page)


def printed(command: list[str]) -> str:
    """What `glasshouse ...` or `python script.py ...` prints, run in this process."""
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as said:
        if command[0] == "glasshouse":
            assert (
                main([*command[1:], *(["--workers", "1"] if command[1] in ("reconstruct", "vary", "bounds") else [])])
                == 0
            ), said.getvalue()
        else:
            assert command[0] == "python"
            module(Path(command[1])).main(*command[2:])
    return out.getvalue()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parent.name)
def test_the_sessions_of_an_example(page: Path, tmp_path: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert SESSION.search(text)
    assert run_again(text, tmp_path).splitlines() == text.splitlines()


@pytest.mark.parametrize("page", [EXAMPLES / "README.md", *PAGES], ids=lambda page: page.parent.name)
def test_links_of_an_example_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def test_examples_are_small() -> None:
    assert all(path.stat().st_size < 200_000 for path in EXAMPLES.rglob("*") if path.is_file())


def test_norland_is_made_by_its_recipe(tmp_path: Path) -> None:
    module(EXAMPLES / "own-country" / "make.py").main(tmp_path / "records.csv")
    assert (tmp_path / "records.csv").read_bytes() == (EXAMPLES / "own-country" / "records.csv").read_bytes()


# Seven people: the published answer, and a search of every block that shares nothing with ours

Person = tuple[str, str, int, bool]  # sex, race, age, married
THE_SEVEN: set[Person] = {
    ("female", "black", 8, False),
    ("male", "white", 18, False),
    ("female", "white", 24, False),
    ("male", "white", 30, True),
    ("female", "black", 36, True),
    ("female", "black", 66, True),
    ("male", "black", 84, True),
}


def test_the_seven_people_are_those_of_the_paper() -> None:
    """Golden: Garfinkel, Abowd and Martindale (2018)."""
    page = (EXAMPLES / "seven-people" / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^ +(\d+) +(female|male) +(black|white) +(single|married)$", page, re.MULTILINE)
    assert {(sex, race, int(age), status == "married") for age, sex, race, status in rows} == THE_SEVEN
    assert "7 of 7 certain: no other people fit (proved)" in page


def test_the_printed_rows_of_the_seven_are_what_is_solved() -> None:
    statistics = EXAMPLES / "seven-people" / "statistics.csv"
    solve = module(EXAMPLES / "seven-people" / "solve.py")
    lines = [f"{solve.BLOCK},{variable},{least},{most}" for variable, least, most in solve.published(statistics)]
    printed = (EXAMPLES / "seven-people" / "published.csv").read_text(encoding="utf-8")
    assert printed == "\n".join(["geoid,variable,lower,upper", *lines, ""])
    page = (EXAMPLES / "seven-people" / "README.md").read_text(encoding="utf-8")
    for line in statistics.read_text(encoding="utf-8").splitlines()[1:]:
        assert f"| {' | '.join(line.split(','))} |" in page


def blocks() -> Iterator[list[Person]]:
    """Every block with the printed counts and means by sex and race: the rest follows from those by subtraction."""
    for youngest in range(37):  # of three black women; one is 36, and 110 is the sum of their ages
        for young in range(25):  # of two white men: 72 years for the white, 134 - 110 of them a woman's
            ages = [(youngest, 36, 110 - 36 - youngest), (134 - 110,), (194 - 110,), (young, 72 - 24 - young)]
            kinds = [("female", "black"), ("female", "white"), ("male", "black"), ("male", "white")]
            people = [(sex, race, age) for (sex, race), some in zip(kinds, ages, strict=True) for age in some]
            for married in product((False, True), repeat=7):
                yield [(*person, status) for person, status in zip(people, married, strict=True)]


def fits(block: list[Person], *, even_as_counts: bool) -> bool:
    """Do the rows that are not withheld hold?"""

    def row(count: int, middle: float, mean: float, ages: list[int]) -> bool:
        if len(ages) != count or abs(sum(ages) / count - mean) > 0.05:
            return False
        if count % 2 == 0 and even_as_counts:
            return sum(age < middle for age in ages) <= count / 2 and sum(age > middle for age in ages) <= count / 2
        return median(ages) == middle

    return (
        all(age >= 15 for _, _, age, married in block if married)
        and row(4, 51, 54, [age for _, _, age, married in block if married and age >= 18])
        and row(7, 30, 38, [age for _, _, age, _ in block])
        and row(4, 30, 33.5, [age for sex, _, age, _ in block if sex == "female"])
        and row(3, 30, 44, [age for sex, _, age, _ in block if sex == "male"])
        and row(4, 51, 48.5, [age for _, race, age, _ in block if race == "black"])
        and row(3, 24, 24, [age for _, race, age, _ in block if race == "white"])
        and row(3, 36, 36.7, [age for sex, race, age, _ in block if (sex, race) == ("female", "black")])
    )


def test_no_other_seven_people_fit() -> None:
    """Oracle: every block. The rows that are withheld are not needed for it, and medians as counts leave two."""
    assert [set(block) for block in blocks() if fits(block, even_as_counts=False)] == [THE_SEVEN]
    this, other = (set(block) for block in blocks() if fits(block, even_as_counts=True))
    assert THE_SEVEN in (this, other)
    assert len(this & other) == 3


if __name__ == "__main__":
    for page in PAGES:
        with TemporaryDirectory() as folder:
            page.write_text(run_again(page.read_text(encoding="utf-8"), Path(folder)), encoding="utf-8")
