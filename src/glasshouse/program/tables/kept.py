"""Were these tables compiled before? Then what was worked out is read from disk (`store`) and checked, not made again.

Only what follows from the scenario and from which of its numbers were published is kept: cells and rows. No number of
a release is ever part of it. Tables that are compiled in milliseconds are not kept.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from glasshouse.model.release import Table
from glasshouse.model.schema import Predicate, Schema
from glasshouse.program.tables import store
from glasshouse.program.tables.cells import Cells
from glasshouse.program.tables.histogram import Compiled, compile_tables
from glasshouse.program.tables.recipe import Recipe
from glasshouse.program.tables.rows import Rows

WORTH = 200  # published numbers, for compiling them to take longer than reading
_MATRICES = ("sums", "combine", "members")
_RECIPE = ("home", "starts", "to", "times", "row")


def compiled_tables(
    schema: Schema,
    tables: Sequence[Table],
    present: Collection[str],
    *,
    around: Sequence[Table] = (),
    around_present: Collection[str] = (),
    told_apart: Collection[Predicate] = (),
    finest: bool = False,
) -> Compiled:
    """As `compile_tables`, of which it gives the answer; kept for the next time it is asked."""
    more: dict[str, Any] = {
        "around": around, "around_present": around_present, "told_apart": told_apart, "finest": finest,
    }  # fmt: skip
    if len(present) + len(around_present) < WORTH or store.folder() is None:
        return compile_tables(schema, tables, present, **more)
    key = store.key_of(
        (schema, tuple(tables), frozenset(present), tuple(around), frozenset(around_present), tuple(told_apart), finest)
    )
    found = store.read(key)
    compiled = None if found is None else _compiled(schema, found)
    if compiled is None:
        compiled = compile_tables(schema, tables, present, **more)
        store.write(key, _kept(compiled))
    return compiled


def _kept(compiled: Compiled) -> store.Kept:
    """What was compiled, as plain arrays."""
    cells = compiled.cells
    arrays: dict[str, NDArray[Any]] = {"codes": cells.codes, "sizes": cells.sizes}
    arrays |= {f"classes {number}": classes for number, classes in enumerate(cells.classes)}
    about: dict[str, Any] = {"total_known": compiled.total_known}
    for name, rows in (("own", compiled.own), ("around", compiled.around)):
        if rows is not None:
            arrays |= {f"{name} partial": rows.partial, f"{name} set_of": rows.set_of}
            for matrix in _MATRICES:
                some = getattr(rows, matrix)
                arrays |= {f"{name} {matrix} {part}": getattr(some, part) for part in ("data", "indices", "indptr")}
            arrays |= {f"{name} recipe {part}": getattr(rows.recipe, part) for part in _RECIPE}
            about[name] = {"variables": rows.variables, "differences": rows.differences}
    return store.Kept(arrays, about)


def _compiled(schema: Schema, found: store.Kept) -> Compiled | None:
    """What was compiled, from plain arrays; None where they do not belong together."""
    try:
        classes = tuple(found.arrays[f"classes {number}"] for number in range(len(schema.attributes)))
        cells = Cells(schema, classes, found.arrays["codes"], found.arrays["sizes"])
        _expect([len(of) for of in classes] == [len(attribute) for attribute in schema.attributes])
        _expect(all(of.dtype == np.int64 and of.min() == 0 for of in classes) and cells.sizes.dtype == np.int64)
        _expect(cells.codes.shape == (len(cells.sizes), len(classes)) and cells.codes.dtype == np.int16)
        _expect(bool((cells.codes >= 0).all()))
        _expect(bool((cells.codes <= [of.max() for of in classes]).all()) and bool((cells.sizes > 0).all()))
        _expect(isinstance(found.about["total_known"], bool))
        around = _rows("around", found, len(cells)) if "around" in found.about else None
        return Compiled(cells, _rows("own", found, len(cells)), around, found.about["total_known"])
    except (KeyError, TypeError, ValueError, IndexError):
        return None


def _rows(name: str, found: store.Kept, cells: int) -> Rows:
    about: Mapping[str, Any] = found.about[name]
    variables, differences = tuple(about["variables"]), about["differences"]
    _expect(all(isinstance(variable, str) for variable in variables) and isinstance(differences, int))
    partial, set_of = found.arrays[f"{name} partial"], found.arrays[f"{name} set_of"]
    sets = int(set_of.max(initial=-1)) + 1
    sums = _matrix(f"{name} sums", found, len(variables))
    combine, members = _matrix(f"{name} combine", found, sets), _matrix(f"{name} members", found, cells)
    _expect(partial.dtype == np.bool_ and set_of.dtype == np.int64 and bool((np.diff(set_of, prepend=0) >= 0).all()))
    _expect(len(partial) == len(set_of) == sums.shape[0] and len(np.unique(set_of)) == sets)
    _expect(0 <= differences <= combine.shape[0] and members.shape[0] == differences + sets)
    recipe = _recipe(name, found, len(variables), differences, combine.shape[0] + len(partial) - sets)
    return Rows(variables, sums, partial, set_of, combine, members, recipe)


def _recipe(name: str, found: store.Kept, variables: int, differences: int, rows: int) -> Recipe:
    """How differences are made; every node adds to later ones only, and each row is one of them."""
    home, starts, to, times, row = (found.arrays[f"{name} recipe {part}"] for part in _RECIPE)
    _expect(all(array.dtype == np.int32 for array in (home, starts, to, times, row)))
    _expect(len(starts) == len(row) + 1 and starts[0] == 0 and starts[-1] == len(to) == len(times))
    _expect(bool((np.diff(starts) >= 0).all()) and len(home) == variables)
    node = np.repeat(np.arange(len(row)), np.diff(starts))
    _expect(bool((to > node).all() and (to < len(row)).all() and (home >= 0).all() and (home < len(row)).all()))
    _expect(bool((np.sort(row[row >= 0]) == np.arange(rows)).all()))
    return Recipe(home, starts, to, times, row, differences, rows)


def _matrix(name: str, found: store.Kept, width: int) -> sparse.csr_matrix:
    data, indices, indptr = (found.arrays[f"{name} {part}"] for part in ("data", "indices", "indptr"))
    _expect(data.dtype == np.int64 and indices.dtype == indptr.dtype)
    matrix = sparse.csr_matrix((data, indices, indptr), shape=(len(indptr) - 1, width))
    matrix.check_format(full_check=True)  # every entry lies inside
    return matrix


def _expect(fine: bool) -> None:
    if not fine:
        raise ValueError("arrays do not belong together")
