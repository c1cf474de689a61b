"""How are tables of tau-Argus read as tables of any format, and written so that tau-Argus reads them?

What their files look like is in `tau_table` (tables, hierarchies), `tau_metadata` (what columns mean) and `tau_records`
(microdata).
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from decimal import Decimal
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl

from glasshouse.errors import InputError
from glasshouse.files.crossed import LINE, STATUS, VALUE, Category, Crossed, Dimension
from glasshouse.files.formats import tau_metadata as rda
from glasshouse.files.formats.tau_metadata import LEAD, Variable, lines_of
from glasshouse.files.formats.tau_table import (
    BESIDES,
    SHOWN,
    UNSAFE,
    Layout,
    Nodes,
    TauTable,
    hierarchy_of,
    rows_of,
    statuses,
)
from glasshouse.limits import NAME_LENGTH, WAYS
from glasshouse.text import harmful


def is_table(path: Path) -> bool:
    """Does it look like a table of tau-Argus? The `.rda` beside it says so, or a first line that is no header."""
    if path.suffix.lower() not in (".txt", ".tab", ".csv", ".asc") or not path.is_file():
        return False
    try:
        metadata = rda.metadata_beside(path)
    except InputError:
        return path.suffix.lower() != ".asc"  # whoever reads it is told what is wrong
    if metadata is not None:
        return not metadata.of_records
    with path.open("rb") as stream:
        line = stream.readline(4096).decode("utf-8-sig", errors="replace").strip()
    return re.fullmatch(r'("[^"]*",){1,12}(-|\d+(\.\d+)?),([1-9]|1[0-4])', line) is not None


def read(path: Path) -> Crossed:
    """A table as any other: dimensions with what is above each code, and the statuses as the file writes them."""
    content, metadata = rda.content_of(path), rda.metadata_beside(path)
    if metadata is not None and metadata.of_records:
        raise InputError(
            f"{path.name}: {metadata.where} gives its columns a width, so it is microdata; expected a table; add the "
            "records up to one first (docs/tau-argus.md)"
        )
    if metadata is None:
        ways = _ways(content, path.name)
        layout = Layout.plain(ways)
        variables = tuple(Variable(f"variable {way + 1}") for way in range(ways))
    else:
        layout, variables = Layout.told(metadata), metadata.codes
    if wrong := next((one.name for one in variables if one.name in (VALUE, STATUS, LINE)), None):
        raise InputError(f"{path.name}: a variable is called '{wrong}', as a column of every table is; rename it")
    rows, lines = rows_of(content, path.name, layout)
    marks = metadata.marks if metadata is not None else rda.USUAL_MARKS
    if layout.status is not None:
        statuses([row[layout.status] for row in rows], lines, path.name, marks)
    codes = {one.name: [row[at] for row in rows] for one, at in zip(variables, layout.codes, strict=True)}
    status = None if layout.status is None else [row[layout.status] for row in rows]
    columns = {**codes, VALUE: [row[layout.value] for row in rows], STATUS: status}
    frame = pl.DataFrame(
        {**columns, LINE: lines}, schema={**dict.fromkeys(columns, pl.String), LINE: pl.Int64}
    ).with_columns(pl.col(VALUE).replace("-", "0"))
    dimensions = tuple(_dimension(path, one, codes[one.name]) for one in variables)
    twice = frame.filter(~pl.struct(*(one.name for one in variables)).is_first_distinct())
    if twice.height:
        raise InputError(
            f"{path.name}, line {twice[LINE][0]}: its codes stand in a line before; expected different codes; where "
            "one code is two things in the hierarchy, rename one of them in both files"
        )
    meaning = {marks[rda.SAFE]: "shown", marks[rda.UNSAFE]: "hidden", marks[rda.PROTECT]: "shown"}
    meaning |= {str(one): "shown" if one in SHOWN else "hidden" for one in sorted(SHOWN | UNSAFE | BESIDES)}
    return Crossed(path, path.stem, dimensions, lambda: iter([frame]), "line", meaning)


def _ways(content: bytes, where: str) -> int:
    """How many codes a line has, where nothing else says so."""
    number, line = next(lines_of(content, where), (1, ""))
    ways = line.count(",") - 1
    if not 1 <= ways <= WAYS:
        raise InputError(f"{where}, line {number}: expected 1 to {WAYS} codes, a value and a status, parted by commas")
    return ways


def _dimension(path: Path, variable: Variable, codes: Sequence[str]) -> Dimension:
    """A variable with its codes in the order of the file, what each is a part of, and what it means."""
    sequence = tuple(dict.fromkeys(codes))
    total = variable.total if variable.total in sequence else sequence[0]  # totals stand first
    known = hierarchy_of(path, variable, (total, *(code for code in sequence if code != total))) or ()
    parents: dict[str, str] = {}
    above: list[str] = [total]
    for code, depth in known:
        del above[depth:]
        if parents.setdefault(code, above[-1]) != above[-1] and code in sequence:
            raise InputError(
                f"{path.name}: the code '{code}' of {variable.name} is part of {parents[code]} and of {above[-1]}; "
                "expected different codes; rename one of them in the hierarchy and in the table"
            )
        above.append(code)
    labels = _labels(path, variable)
    categories = []
    for code in sequence:
        parent = "" if code == total else parents.get(code, total)
        while parent and parent not in sequence:  # the table has not this level
            parent = parents.get(parent, total)
        categories.append(Category(code, labels.get(code, ""), parent))
    return Dimension(variable.name, categories=tuple(categories))


def _labels(path: Path, variable: Variable) -> dict[str, str]:
    """What codes mean (`.cdl`: code,label); a file that is not there is no harm."""
    try:
        found = rda.beside(path, variable.labels, "labels") if variable.labels else None
    except InputError:
        return {}
    if found is None:
        return {}
    pairs = (line.partition(",") for _, line in lines_of(rda.content_of(found), found.name))
    return {code.strip(): label.strip()[:NAME_LENGTH] for code, _, label in pairs if harmful(label) is None}


# Out again


def written(table: TauTable, stem: str, *, marks: bool = False) -> dict[str, bytes]:
    """The files of a table: `.tab`, its `.rda`, and a `.hrc` for each variable that has levels; they are read alike.

    Statuses are numbers; with `marks` they are S, U and P, which tau-Argus reads: why a cell is hidden is then lost.
    """
    names = table.labels or tuple(f"variable {way + 1}" for way in range(len(table.variables)))
    files: dict[str, bytes] = {}
    variables = []
    for way, (name, nodes) in enumerate(zip(names, table.variables, strict=True), 1):
        said = {rda.CODE: "", "TOTCODE": nodes.codes[0]}
        if (nodes.parent > 0).any():
            hierarchy = f"{stem}_{way}.hrc"
            files[hierarchy] = _tree(nodes)
            said |= {"HIERARCHICAL": "", "HIERCODELIST": hierarchy, "HIERLEADSTRING": LEAD}
        variables.append(Variable(name, said=said))
    variables.append(Variable(_free("value", names), said={rda.NUMBER: "", "DECIMALS": str(table.decimals)}))
    columns = [[_spelt(int(value), table.decimals) for value in table.value]]
    if table.contributors is not None:
        variables.append(Variable(_free("contributors", names), said={rda.NUMBER: "", rda.FREQUENCY: ""}))
        columns.append([str(count) for count in table.contributors])
    for rank, values in enumerate(() if table.largest is None else table.largest.T, 1):
        variables.append(Variable(_free(f"largest {rank}", names), said={rda.NUMBER: "", rda.LARGEST: ""}))
        columns.append([_spelt(int(value), table.decimals) for value in values])
    variables.append(Variable(_free("status", names), said={rda.STATUS: ""}))
    columns.append([_mark(int(status)) if marks else str(status) for status in table.status])
    out = io.StringIO()
    for at, codes in enumerate(product(*(nodes.codes for nodes in table.variables))):
        line = io.StringIO()
        csv.writer(line, quoting=csv.QUOTE_ALL, lineterminator="").writerow(codes)
        out.write(",".join([line.getvalue(), *(column[at] for column in columns)]) + "\n")
    files[f"{stem}.tab"] = out.getvalue().encode()
    files[f"{stem}.rda"] = rda.written(variables, ",", rda.USUAL_MARKS)
    return files


def _free(name: str, taken: Sequence[str]) -> str:
    """A name that no variable of the table has."""
    while name in taken:
        name += "_"
    return name


def _tree(nodes: Nodes) -> bytes:
    """A hierarchy as it is read."""
    if wrong := next((code for code in nodes.codes if code.startswith(LEAD)), None):
        raise InputError(f"the code '{wrong}' begins with {LEAD}, which says in a hierarchy how deep a code lies")
    depth = np.zeros(len(nodes.codes), np.int64)
    lines = []
    for at in range(1, len(nodes.codes)):
        depth[at] = depth[nodes.parent[at]] + 1
        lines.append(LEAD * int(depth[at] - 1) + nodes.codes[at])
    return ("\n".join(lines) + "\n").encode()


def _spelt(value: int, decimals: int) -> str:
    return str(Decimal(value).scaleb(-decimals)) if decimals else str(value)


def _mark(status: int) -> str:
    mark = rda.PROTECT if status == 10 else rda.SAFE if status in SHOWN else rda.UNSAFE
    return rda.USUAL_MARKS[mark]
