"""Are all texts of the report in one file a language? A second language shows what was left behind."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping
from html import unescape
from pathlib import Path
from string import Formatter

import pytest

from glasshouse.commands.auditing.config import read_config
from glasshouse.errors import GlasshouseBug, InputError
from glasshouse.report.description import HIDDEN, Count, Measure, Said, Share, literal, said, text
from glasshouse.report.publish import publish
from glasshouse.report.render.drawing import drawing
from glasshouse.report.render.page import page
from glasshouse.report.render.sheets import sheets
from glasshouse.report.words import columns, joined, language, languages, phrase, plain, say, several, table
from tests.report_sample import sample
from tests.test_audit import found_in, tiny

__all__ = ["tiny"]  # a fixture

REPORT = Path(__file__).resolve().parents[1] / "src" / "glasshouse" / "report"
ENGLISH = REPORT / "text" / "en.toml"
NAMED = (
    "left out", "exactly one ", "any number of ", "claims undecided", "21 to 50", "51 to 100",
    "more than 100", " known as a whole", "not known",
)  # fmt: skip
NAMES = ("term", "page", "worse", "language", "units")  # keys of a definition, or of the page, that are no texts


def translated(told: str) -> str:
    """A text in letters of another language: those of fields stay."""
    found = ""
    for before, field, spec, _ in Formatter().parse(told):
        found += "".join(chr(ord(c) + 0xFEE0) if c.isascii() and c.isalpha() else c for c in literal(before))
        if field is not None:
            found += f"{{{field}{':' if spec else ''}{spec}}}"
    return found


def written(value: object, name: str = "") -> str:
    """TOML: JSON's strings and lists are its own."""
    if isinstance(value, list):
        return f"[{', '.join(written(one, name) for one in value)}]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f'"{key}" = {written(one, key)}' for key, one in value.items()) + "}"
    assert isinstance(value, str)
    done = value if name in NAMES and not re.search(r" |\{", value) else translated(value)
    return '"' + done.replace("\\", "\\\\").replace('"', '\\"') + '"'


@pytest.fixture(scope="session")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A second language: every text a marked copy."""
    told = tomllib.loads(ENGLISH.read_text(encoding="utf-8"))
    path = tmp_path_factory.mktemp("text") / "xx.toml"
    path.write_text("\n".join(f'"{key}" = {written(value, key)}' for key, value in told.items()), encoding="utf-8")
    return path


def texts(told: object) -> Iterator[str]:
    if isinstance(told, str):
        yield told
    elif isinstance(told, Mapping):
        for name, one in told.items():
            if name not in NAMES:
                yield from texts(one)
    elif isinstance(told, list):
        for one in told:
            yield from texts(one)


def sentences() -> set[str]:
    """What stands between the fields of every text, where it is long enough to be told from names and data."""
    found = set()
    for told in texts(tomllib.loads(ENGLISH.read_text(encoding="utf-8"))):
        found |= {before.strip() for before, *_ in Formatter().parse(told)}
    return {one for one in found if len(one) >= 16 and " " in one}


def test_the_translation_has_the_same_keys_and_fields(other: Path) -> None:
    mine, theirs = (tomllib.loads(path.read_text(encoding="utf-8")) for path in (ENGLISH, other))

    def shape(told: object) -> object:
        if isinstance(told, Mapping):
            return {key: shape(one) for key, one in told.items()}
        if isinstance(told, list):
            return [shape(one) for one in told]
        return [(field, spec) for _, field, spec, _ in Formatter().parse(str(told)) if field is not None]

    assert shape(mine) == shape(theirs)
    assert len(sentences()) > 200


def test_the_audit_speaks_another_language(tiny: Path, other: Path) -> None:
    """No sentence of the first language is left in the page, the workbook or the pictures of an audit."""
    with language(other):
        report = found_in(read_config(tiny / "tiny.toml"), tiny / "out").report
        for version in (report, publish(report, 10)):
            shown = unescape(page(version))
            assert not [one for one in sentences() if one in shown]
            assert sheets(version).startswith(b"PK")
        for section in report.sections:
            assert not re.search(r"[a-z]{3}", section.title), section.title  # all of them are moved
        for one in report.verdicts:
            assert not re.search(r"[A-Za-z]{3,}", one.title)
    english = found_in(read_config(tiny / "tiny.toml"), tiny / "out").report
    shown = unescape(page(english))
    known = [one for one in sentences() if one in shown]
    assert len(known) > 100  # the search sees them where they are


def test_the_page_and_the_workbook_have_no_texts_of_their_own(other: Path) -> None:
    with language(other):
        shown = unescape(page(sample()))
    own = str(sample())  # its texts are data here
    assert not [one for one in sentences() if one in shown and one not in own]
    template = (REPORT / "render" / "page.html.j2").read_text(encoding="utf-8")
    bare = re.sub(r"<style>.*?</style>|\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}|<!--.*?-->", " ", template, flags=re.DOTALL)
    between = re.sub(r"<[^>]*>", " ", bare)
    assert set(re.findall(r"[A-Za-z]{2,}", between)) <= {"Glasshouse", "auto"}
    labels = re.findall(r'(?:aria-label|title)="([^"]*)"', bare)
    assert not [one for one in labels if re.search(r"[A-Za-z]{2,}", one)]


MOVED = sorted((REPORT / "sections").glob("*.py"))


@pytest.mark.parametrize("path", MOVED, ids=lambda path: path.stem)
def test_sections_have_no_sentences_in_python(path: Path) -> None:
    """A translator needs no Python: what is said is in the text file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    quiet: set[int] = set()
    for node in ast.walk(tree):
        documented = isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node)
        inside = [node.body[0]] if documented else [node] if isinstance(node, ast.Raise) else []  # type: ignore[attr-defined]
        quiet |= {id(one) for some in inside for one in ast.walk(some)}
    prose = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in quiet
        and re.search(r"[A-Za-z]{2,},? [a-z]{2,}", node.value)
    ]  # fmt: skip
    # names of a table and of rows, which stand in data files too: the same in every language
    assert {one for one in prose if one not in NAMED and not one.startswith("Claims about {}")} == set()


def test_pictures_of_commands_speak_another_language(other: Path) -> None:
    from tests.test_claims_results import many, picture

    with language(other):
        figure = picture(many().by_columns, many().baselines)
        shown = unescape(drawing(figure.title, figure.pictures))
    assert not [one for one in sentences() if one in shown]


# What is said


def test_a_cell_in_a_sentence_stays_a_cell() -> None:
    found = say("where.lead", least=Share(1, 4), most=HIDDEN, number=1234, units="{tracts}")
    assert isinstance(found, Said) and found.cells == (Share(1, 4), HIDDEN)
    assert text(found) == "The share of records that are certain goes from 25.0% to (hidden) among 1,234 {tracts}."
    assert say("page.docs", page="a{b}.md") == "More in docs/a{b}.md."
    both = joined("One {brace}.", say("people.guessing", guess=Measure(0.5, 10, "share")))
    assert text(both) == "One {brace}. Guessing reaches 50.0% for the same people."
    assert joined("One.", "Two.") == "One. Two."


def test_what_a_language_lacks_is_a_bug_of_ours_and_an_unknown_one_a_mistake() -> None:
    assert languages() == ["en"]
    for key in ("nothing.here", "page.hidden.more", "where"):
        with pytest.raises(GlasshouseBug):
            phrase(key)
    with pytest.raises(GlasshouseBug, match="nobody fills"):
        phrase("where.ranked")
    for wrong in (several, table):
        with pytest.raises(GlasshouseBug, match="is not a"):
            wrong("page.hidden")
    with pytest.raises(InputError, match="unknown language 'xx'; known: en"), language("xx"):
        pass
    assert plain("protections.swap", "x") == "swapping" and plain("protections.mine", "mine") == "mine"
    assert [one.term for one in columns("rules.columns", *"abcdefg")] == list("abcdefg")


def test_numbers_are_written_as_the_language_writes_them(tmp_path: Path) -> None:
    path = tmp_path / "xx.toml"
    path.write_text(
        '[numbers]\nhidden = "\N{HEAVY MULTIPLICATION X}"\npoints = "{value:+.1f} P."\ninterval = "{low} bis {high}"\n',
        "utf-8",
    )
    cell = Measure(0.1, 5, "points", 0.05, 0.2)
    with language(path):
        assert said(cell) == "+10.0 P. (+5.0 P. bis +20.0 P.)" and said(HIDDEN) == "\N{HEAVY MULTIPLICATION X}"
    assert said(cell) == "+10.0 points (+5.0 points to +20.0 points)" and said(Count(3)) == "3"
