"""What is each column of a table? The place, an attribute, a name for another column's codes, or nothing to say."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from glasshouse.errors import InputError, unknown
from glasshouse.files.describing.asking import Inquiry
from glasshouse.files.describing.looking import Column, Look

TOTAL = re.compile(
    r"_?t|_?tot|_?totals?|total\b.*|_all|all|all (?!other).*|alle|alle .*|gesamt|insgesamt.*|ensemble|totale|totalt|"
    r"tod[oa]s(?: .*)?|tou(?:te)?s(?: .*)?|both [a-zà-ÿ]+|ambos [a-zà-ÿ]+|samtliga.*|everybody|everyone|persons|"
    r"overall|grand total|yhteensä|[a-zà-ÿ ]+(?:,| -|:) total|[a-zà-ÿ]+ total"
)
_PLACES = frozenset(
    [
        "geo",
        "geography",
        "area",
        "areas",
        "region",
        "regions",
        "district",
        "place",
        "ward",
        "municipality",
        "commune",
        "county",
        "tract",
        "block",
        "zone",
        "lad",
        "ltla",
        "utla",
        "msoa",
        "lsoa",
        "oa",
        "nuts",
        "territory",
        "gemeinde",
        "kreis",
        "bundesland",
        "kanton",
        "canton",
        "kommune",
        "län",
        "lan",
        "province",
        "provincia",
        "municipio",
        "comarca",
        "comune",
        "regione",
        "departement",
        "département",
        "meshblock",
        "town",
        "city",
        "village",
        "parish",
        "postcode",
        "zip",
        "geoid",
        "location",
        "country",
        "state",
        "cell",
        "grid",
        "statarea",
        "settlement",
        "island",
        "prefecture",
    ]
)
_NO_PLACES = re.compile(r"birth|citizen|origin|national|previous|work|language|type|size")
_TIMES = frozenset(
    [
        "time",
        "time_period",
        "year",
        "date",
        "period",
        "refdate",
        "reftime",
        "jahr",
        "année",
        "ano",
        "censusyear",
        "census_year",
    ]
)
_SAYS_NOTHING = frozenset(
    [
        "freq",
        "frequency",
        "unit",
        "unit_mult",
        "unit_measure",
        "measure",
        "measures",
        "decimals",
        "dataflow",
        "structure",
        "structure_id",
        "action",
        "stat_unit",
        "conf_status",
        "obs_conf",
        "indicator",
        "last_update",
        "statistic",
        "collection",
        "unit_of_measure",
    ]
)
_CODE = re.compile(r"[A-Z]{0,3}[0-9]{2,}[A-Z0-9]*")


@dataclass(frozen=True)
class Table:
    """A table whose columns are told apart. `above` are columns of larger areas, which follow from the place."""

    look: Look
    place: str
    above: tuple[str, ...]
    left: Mapping[str, str]  # columns that are left out, and why

    @property
    def attributes(self) -> tuple[Column, ...]:
        return tuple(one for one in self.look.columns if one.name not in (self.place, *self.above))


@contextmanager
def naming(tables: Iterable[Table]) -> Iterator[None]:
    """What is wrong with what tables say together: a complaint names their files."""
    try:
        yield
    except InputError as error:
        error.add_where(", ".join(dict.fromkeys(table.look.path.name for table in tables)))
        raise


def is_total(column: Column, code: str) -> bool:
    """Is a code called total, by itself or by its label?"""
    return any(TOTAL.fullmatch(text.strip().lower()) for text in (code, column.labels.get(code, "")) if text)


def tell_apart(looks: Sequence[Look], inquiry: Inquiry) -> tuple[Table, ...]:
    """What the columns of every table are."""
    answers = inquiry.answers
    known = {name for one in looks for name in one.by_name}
    for name in (*answers.ignore, *answers.only, *answers.attribute, *answers.total, *filter(None, [answers.place])):
        if name not in known:
            raise unknown("column", name, known)
    for name in answers.group:
        if name.partition(":")[0] not in known or ":" not in name:
            raise InputError(f"--group {name}: expected COLUMN:CODE=CODE|CODE; columns: {', '.join(sorted(known))}")
    kept = []
    for one in looks:
        for name, code in answers.only.items():
            if name in one.by_name:
                one = one.only(name, code)
        kept.append(one)
    return tuple(_told(one, kept, inquiry) for one in kept)


def _told(look: Look, looks: Sequence[Look], inquiry: Inquiry) -> Table:
    left: dict[str, str] = {}
    others = [one for one in looks if one is not look]
    for name, code in inquiry.answers.only.items():
        if name in look.by_name:
            left[name] = f"only '{code}' is kept (--only)"
    for name in inquiry.answers.ignore:
        if name in look.by_name:
            left[name] = "told so (--ignore)"
    look = _one_time(look, left, inquiry)
    for column in look.columns:
        if column.name not in left and len(column.codes) == 1 and not _stays(column, look, others, inquiry):
            left[column.name] = f"'{column.label(column.codes[0])}' throughout"
    look = look.without(left)
    look, names = _companions(look, inquiry.answers.place)
    left |= names
    place, above = _place(look, inquiry)
    if place and not above:
        for column in look.columns:  # what follows from the place, and is none: urban, the name of a province
            if (
                column.name != place
                and _follows(look, column.name, place)
                and column.name not in inquiry.answers.attribute
            ):
                left[column.name] = f"it follows from '{place}'"
    look = look.without(name for name in left if name in look.by_name)
    look.refuse_repeats()
    return Table(look, place, above, left)


def _one_time(look: Look, left: dict[str, str], inquiry: Inquiry) -> Look:
    """The rows of one time, and of one kind of number, if there are several."""
    for column in look.columns:
        if column.name in left or len(column.codes) == 1:
            continue
        if column.role == "time" or column.name.strip().lower() in _TIMES:
            latest = max(column.codes)
            inquiry.ask(
                f"{look.path.name}: '{column.name}' has {len(column.codes)} times, and a scenario is about one",
                f"--only '{column.name}={latest}'",
                latest,
            )
            look = look.only(column.name, latest)
            left[column.name] = f"only '{latest}' is kept"
        elif column.role == "metric" or column.name.strip().lower() in _SAYS_NOTHING:
            inquiry.ask(
                f"{look.path.name}: '{column.name}' has {len(column.codes)} kinds of numbers "
                f"({', '.join(column.label(code) for code in column.codes[:4])}), and one is to be described",
                f"--only '{column.name}=CODE'",
            )
            look = look.only(column.name, column.codes[0])
            left[column.name] = f"only '{column.codes[0]}' is kept"
    return look


def _stays(column: Column, look: Look, looks: Sequence[Look], inquiry: Inquiry) -> bool:
    """Does a column with one code say something? It does if another table tells more of the same codes apart."""
    name, code = column.name, column.codes[0]
    if name in inquiry.answers.attribute or name == inquiry.answers.place:
        return True
    if column.role in ("time", "metric") or name.strip().lower() in _TIMES | _SAYS_NOTHING or is_total(column, code):
        return False
    if column.role == "geo" or _called_place(name):
        return not any(
            _called_place(other.name) or other.role == "geo" for other in look.columns if len(other.codes) > 1
        )
    others = [one.by_name[name] for one in looks if name in one.by_name]
    if any(code in other.codes and len(other.codes) > 1 for other in others):
        return True
    everywhere = len(others) == len(looks) and all(one.codes == column.codes for one in others)
    inquiry.ask(
        f"{look.path.name}: '{name}' is '{column.label(code)}' throughout; does that restrict who is counted, or say "
        "nothing?",
        f"--attribute '{name}=NAME' or --ignore '{name}'",
        f"--ignore {name}" if everywhere else "",
    )
    return False


def _companions(look: Look, wanted: str) -> tuple[Look, dict[str, str]]:
    """Columns that only name the codes of another: the names become labels."""
    left: dict[str, str] = {}
    columns = {column.name: column for column in look.columns}
    for one in look.columns:
        for other in look.columns:
            if one.name >= other.name or {one.name, other.name} & set(left) or len(one.codes) != len(other.codes):
                continue
            pairs = look.frame.select(one.name, other.name).unique()
            if len(one.codes) < 2 or pairs.height != len(one.codes):
                continue
            code, name = sorted((one, other), key=lambda column: _codelike(column, wanted))[:2]
            labels = {
                code.codes[mine]: columns[name.name].codes[its]
                for mine, its in pairs.select(code.name, name.name).rows()
            }
            columns[code.name] = replace(columns[code.name], labels=labels)
            left[name.name] = f"it names the codes of '{code.name}'"
    kept = tuple(columns[column.name] for column in look.columns)
    return replace(look, columns=kept).without(left), left


def _codelike(column: Column, wanted: str) -> tuple[bool, bool, bool, float, str]:
    """Columns of places before others, and columns of codes before columns of names."""
    called = bool(re.search(r"(?:\bcode|code\b|_cd\b|cd\b|\bid\b|geoid)", column.name.lower()))
    length = sum(map(len, column.codes)) / len(column.codes)
    placed = column.role == "geo" or _called_place(column.name)
    return column.name != wanted, not placed, not called, length, column.name


def _place(look: Look, inquiry: Inquiry) -> tuple[str, tuple[str, ...]]:
    """The column of places, and those of larger areas that follow from it."""
    answers = inquiry.answers
    free = [column for column in look.columns if column.name not in answers.attribute]
    if answers.place:
        if answers.place not in look.by_name:
            raise InputError(
                f"{look.path.name} has no column '{answers.place}' (--place); found: {', '.join(look.by_name)}"
            )
        found = [look.by_name[answers.place]]
    elif answers.area:
        return "", ()
    else:
        found = [column for column in free if column.role == "geo"]
        found = found or [column for column in free if _called_place(column.name)]
    if not found:
        found = [column for column in free if len(column.codes) > 2 and all(map(_CODE.fullmatch, column.codes))]
        if found:
            inquiry.ask(
                f"{look.path.name}: the codes of '{found[0].name}' look like places", f"--place '{found[0].name}'",
                found[0].name if len(found) == 1 else "",
            )  # fmt: skip
            found = found[:1]
        else:
            inquiry.ask(
                f"{look.path.name}: no column looks like places; are all numbers of one area?",
                f"--area CODE, or --place COLUMN ({', '.join(look.by_name)})",
                "--area A",
            )
            return "", ()
    finest = max(found, key=lambda column: len(column.codes))
    above = [one for one in free if one is not finest and (one in found or _called_place(one.name))]
    other = [one.name for one in above if not _follows(look, one.name, finest.name)]
    if other and not answers.place:
        inquiry.ask(
            f"{look.path.name}: '{finest.name}' and '{other[0]}' may both be places",
            f"--place '{finest.name}' (or the other), with --attribute '{other[0]}=NAME' if that is none",
        )
    larger = sorted((one for one in above if one.name not in other), key=lambda column: len(column.codes))
    return finest.name, tuple(one.name for one in larger)


def _called_place(name: str) -> bool:
    words = re.findall(r"[a-zà-ÿ]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower().replace("_", " "))
    called = set(words) & _PLACES or words in (["code"], ["geo", "code"])
    return bool(called) and not _NO_PLACES.search(name.lower())


def _follows(look: Look, name: str, other: str) -> bool:
    """Is there one code of a column for each code of another?"""
    return look.frame.select(name, other).unique().height == len(look.by_name[other].codes)
