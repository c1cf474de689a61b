"""What does a JSON-stat file say? Version 2 (a dataset, or a collection that holds some) and the bundles of version 1.

Numbers stand in the order of their crossings, all of them in a list or some in an object; statuses likewise. Numbers
are kept as they are spelt. A collection that only names addresses is refused: nothing is fetched.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NoReturn, cast

import numpy as np
import polars as pl

from glasshouse.errors import InputError
from glasshouse.files.crossed import Crossed, Dimension, Role
from glasshouse.files.formats.crossing import PIECE_ROWS, checked, frame, named, shown, size_of
from glasshouse.limits import DATASETS, DIMENSIONS, JSON_BYTES, JSON_ENTRIES, JSON_TEXTS, JSON_VALUES, NAME_LENGTH
from glasshouse.text import is_whole

Object = Mapping[str, object]
Listed = list[object] | Mapping[int, object] | str  # of all crossings, of some by their place, or one for all
ROLES: tuple[Role, ...] = ("geo", "time", "metric")


class _Number(str):
    """A number as it is spelt; other texts are texts."""

    __slots__ = ()


def read(path: Path) -> tuple[Crossed, ...]:
    """Every dataset of a file."""
    content = _parsed(path)
    found = _datasets(path, content)
    if not found:
        raise InputError(
            f"{path.name}: no dataset with numbers in it; expected JSON-stat: a dataset, or a collection that holds "
            "some (not only their addresses); save the dataset itself"
        )
    if len(found) > DATASETS:
        raise InputError(f"{path.name}: {len(found):,} datasets; expected at most {DATASETS:,}")
    return tuple(_dataset(path, name, one) for name, one in found)


def _parsed(path: Path) -> Object:
    if path.stat().st_size > JSON_BYTES:
        raise InputError(
            f"{path.name}: more than {JSON_BYTES >> 20} MiB; expected less; export it in parts, or as SDMX-CSV"
        )
    try:
        data = path.read_bytes()
        if data.count(b"[") + data.count(b"{") > JSON_ENTRIES or data.count(b'"') > 2 * JSON_TEXTS:
            raise InputError(f"{path.name}: too many lists, objects or texts; expected a table; export it as SDMX-CSV")
        if data.count(b",") > JSON_VALUES:
            raise InputError(f"{path.name}: more than {JSON_VALUES:,} values; expected fewer; export it as SDMX-CSV")
        content = json.loads(
            data.decode("utf-8-sig"), parse_int=_Number, parse_float=_Number, parse_constant=_no_number,
            object_pairs_hook=_once,
        )  # fmt: skip
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise InputError(f"{path.name}: not UTF-8 text; expected JSON; save it as UTF-8") from None
    except RecursionError:
        raise InputError(f"{path.name}: lists or objects lie too deep within each other; expected JSON-stat") from None
    except ValueError as error:
        raise InputError(f"{path.name}: not JSON ({shown(str(error))}); cut short or damaged: get it again") from None
    if not isinstance(content, dict):
        raise InputError(f"{path.name}: not an object; expected JSON-stat")
    return content


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number")


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]  # None
        raise ValueError(f"'{shown(twice)}' stands twice in an object")
    return found


def _datasets(path: Path, content: Object) -> list[tuple[str, Object]]:
    """The datasets with their names: one, those of a collection, or those of a bundle of version 1."""
    if content.get("class") == "collection":
        links = content.get("link")
        items = links.get("item") if isinstance(links, dict) else None
        found = [one for one in items if isinstance(one, dict)] if isinstance(items, list) else []
        return [("", one) for one in found if "dimension" in one]
    if content.get("class") not in (None, "dataset"):
        raise InputError(
            f"{path.name}: its class is '{shown(str(content['class']))}'; expected a dataset or a collection"
        )
    if "value" in content or "class" in content:
        return [("", content)]
    return [(name, one) for name, one in content.items() if isinstance(one, dict) and "dimension" in one]


def _dataset(path: Path, name: str, one: Object) -> Crossed:
    title = str(one.get("label") or name or path.stem)
    where = f"{path.name}, {shown(name)}" if name else path.name
    described = _object(where, one, "dimension")
    owner = one if "id" in one else described  # version 1 has them one step down
    ids = owner.get("id")
    sizes = owner.get("size")
    if not isinstance(ids, list) or not all(type(each) is str for each in ids) or len(ids) > DIMENSIONS:
        raise InputError(
            f"{where}: 'id' is missing or no list of names; expected the dimensions in order, at most {DIMENSIONS}"
        )
    if not isinstance(sizes, list) or len(sizes) != len(ids) or not all(_whole(each) for each in sizes):
        raise InputError(
            f"{where}: 'size' is missing or no list of whole numbers; expected one for each of {len(ids)} dimensions"
        )
    roles = _roles(where, owner.get("role"))
    dimensions = checked(
        where, [_dimension(where, each, int(size), described, roles) for each, size in zip(ids, sizes, strict=True)]
    )
    size = size_of(where, dimensions)
    values = _listed(where, one, "value", size)
    statuses = _listed(where, one, "status", size) if one.get("status") is not None else None
    if values is None:
        raise InputError(f"{where}: 'value' is missing; expected the numbers")
    return Crossed(
        path, title[:NAME_LENGTH], dimensions, _pieces(where, dimensions, size, values, statuses),
        counted_in="number", marks=_marks(one),
    )  # fmt: skip


def _whole(text: object) -> bool:
    return isinstance(text, _Number) and is_whole(text)


def _object(where: str, owner: Object, name: str) -> Object:
    found = owner.get(name)
    if not isinstance(found, dict):
        raise InputError(f"{where}: '{shown(name)}' is missing or no object; expected JSON-stat")
    return cast(Object, found)


def _roles(where: str, told: object) -> dict[str, Role]:
    roles: dict[str, Role] = {}
    for role in ROLES if isinstance(told, dict) else ():
        names = cast(Object, told).get(role)
        if names is not None and (not isinstance(names, list) or not all(isinstance(one, str) for one in names)):
            raise InputError(f"{where}: the role '{role}' is no list of dimensions")
        for name in names or []:
            roles.setdefault(name, role)
    return roles


def _dimension(where: str, name: str, size: int, described: Object, roles: Mapping[str, Role]) -> Dimension:
    own = _object(where, described, name)
    where = f"{where}, dimension '{shown(name)}'"
    category = _object(where, own, "category")
    index, labels = category.get("index"), category.get("label")
    texts = {code: text for code, text in labels.items() if isinstance(text, str)} if isinstance(labels, dict) else {}
    if index is None:  # allowed where there is one category
        codes = list(labels) if isinstance(labels, dict) and len(labels) == 1 else []
    elif isinstance(index, list) and all(type(code) is str for code in index):
        codes = index
    elif isinstance(index, dict) and all(_whole(at) for at in index.values()):
        codes = sorted(index, key=lambda code: int(index[code]))
        if [int(index[code]) for code in codes] != list(range(len(codes))):
            raise InputError(f"{where}: the places of its categories are not 0, 1, 2, ...; expected each once")
    else:
        raise InputError(f"{where}: 'index' is no list of codes and no object of their places; expected one of them")
    if len(codes) != size:
        raise InputError(f"{where}: {len(codes):,} categories and a size of {size:,}; expected as many")
    found = named(codes, {code: text[:NAME_LENGTH] for code, text in texts.items()}, _parents(category, set(codes)))
    return Dimension(name, str(own.get("label") or "")[:NAME_LENGTH], found, roles.get(name, ""))


def _parents(category: Object, known: set[str]) -> dict[str, str]:
    """What each category is a part of, where the file tells one thing only."""
    child, parents = category.get("child"), dict[str, str]()
    for parent, parts in child.items() if isinstance(child, dict) else ():
        for part in parts if isinstance(parts, list) else ():
            if parent in known and isinstance(part, str) and part != parent:
                parents[part] = parent if parents.get(part, parent) == parent else ""
    return parents


def _marks(one: Object) -> dict[str, str]:
    """What statuses mean, where an office says it in the usual extension."""
    found: object = one
    for step in ("extension", "status", "label"):
        found = found.get(step) if isinstance(found, dict) else None
    return {code: text for code, text in found.items() if isinstance(text, str)} if isinstance(found, dict) else {}


def _listed(where: str, one: Object, name: str, size: int) -> Listed | None:
    """Values or statuses: all in a list, some by their place, or one for all."""
    found = one.get(name)
    if found is None:
        return None
    if isinstance(found, str) and name == "status" and not isinstance(found, _Number):
        return found
    if isinstance(found, dict):
        if not all(is_whole(at) and int(at) < size for at in found):
            raise InputError(
                f"{where}: a place in '{name}' is no whole number below {size:,}; expected places of numbers"
            )
        places = {int(at): each for at, each in found.items()}
        if len(places) < len(found):
            raise InputError(f"{where}: two places in '{name}' are the same; expected each once")
        return places
    if isinstance(found, list) and len(found) == size:
        return found
    told = f"{len(found):,}" if isinstance(found, list) else "no list"
    raise InputError(f"{where}: '{name}' has {told}; expected {size:,}, one for each crossing, or an object of places")


def _pieces(
    where: str, dimensions: tuple[Dimension, ...], size: int, values: Listed, statuses: Listed | None
) -> Callable[[], Iterator[pl.DataFrame]]:
    def pieces() -> Iterator[pl.DataFrame]:
        if isinstance(values, list):
            places = np.arange(size, dtype=np.int64)
        else:
            told = set(values) if isinstance(values, dict) else set()
            if isinstance(statuses, dict):
                told |= statuses.keys()
            elif isinstance(statuses, list):
                told |= {place for place, mark in enumerate(statuses) if mark is not None}
            places = np.array(sorted(told), np.int64)
        for first in range(0, len(places), PIECE_ROWS):
            at = places[first : first + PIECE_ROWS]
            texts = [_text(where, _at(values, place), place) for place in at.tolist()]
            marks = None if statuses is None else [_text(where, _at(statuses, place), place) for place in at.tolist()]
            yield frame(dimensions, at, texts, marks)

    return pieces


def _at(listed: Listed, place: int) -> object:
    if isinstance(listed, str):
        return listed
    return listed[place] if isinstance(listed, list) else listed.get(place)


def _text(where: str, found: object, place: int) -> str | None:
    if found is None or found == "":
        return None
    if isinstance(found, str):
        return str(found)
    raise InputError(f"{where}, number {place + 1:,}: found neither a number nor a text; expected one of them")
