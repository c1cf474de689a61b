"""What does microdata of tau-Argus say? Records with codes and numbers, and who contributes what to a table of them.

An `.asc` file has a line for each record, its columns at the places that the `.rda` beside it says, or parted by its
separator. Numbers are whole, in units of 10 ** -decimals of each variable; a blank number is 0, as tau-Argus reads it.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl

from glasshouse.errors import InputError
from glasshouse.files.formats import tau_metadata as rda
from glasshouse.files.formats.tau_metadata import Metadata, Variable, lines_of
from glasshouse.files.formats.tau_table import Nodes, decimal
from glasshouse.model.contributions import Contributions, of_records
from glasshouse.model.records import UNLIMITED


@dataclass(frozen=True)
class TauRecords:
    """Records: a column of text for each code or name, of whole numbers for each number, and the decimals of those."""

    where: str
    metadata: Metadata
    frame: pl.DataFrame
    decimals: Mapping[str, int]

    @property
    def holding(self) -> str | None:
        """The variable that says which records are of one contributor."""
        return next((one.name for one in self.metadata.variables if one.has(rda.HOLDING)), None)

    def contributions(
        self, by: Mapping[str, Nodes], response: str, holding: str | None = None
    ) -> tuple[Contributions, ...]:
        """Who makes up each cell of a table by some variables, all crossings of their codes in order.

        Without a `holding` every record is a contributor; with one, records of the same holding are.
        """
        if response not in self.decimals:
            known = ", ".join(self.decimals)
            raise InputError(f"{self.where}: '{response}' is no number that can be added up; known: {known}")
        self.metadata.variable(holding) if holding is not None else None
        who = pl.col(holding) if holding is not None else pl.int_range(pl.len()).cast(pl.String)
        frame = self.frame.select(who.alias("who"), pl.col(response).alias("gives"), *by).with_columns(
            pl.lit(0, pl.Int64).alias("cell")
        )
        for name, nodes in by.items():
            frame = frame.join(_above(nodes, name, self.frame[name], self.where), on=name, how="left")
            frame = frame.with_columns(pl.col("cell") * len(nodes.codes) + pl.col("node")).drop("node")
        cells: list[list[tuple[str, int]]] = [[] for _ in range(int(np.prod([len(one.codes) for one in by.values()])))]
        sums = frame.group_by("cell", "who", maintain_order=True).agg(pl.col("gives").sum())
        for cell, person, value in sums.iter_rows():
            cells[cell].append((person, value))
        return tuple(of_records(given) for given in cells)

    def missing(self, by: Mapping[str, Nodes]) -> np.ndarray:
        """Which cells of such a table are about a code that means missing, which an office may declare safe."""
        found = np.zeros(1, np.bool_)
        for name, nodes in by.items():
            codes = self.metadata.variable(name).missing
            own = np.array([code in codes for code in nodes.codes], np.bool_)
            found = (found[:, None] | own[None, :]).reshape(-1)
        return found


def _above(nodes: Nodes, name: str, codes: pl.Series, where: str) -> pl.DataFrame:
    """Every code of the records with each node that adds it up."""
    leaf: dict[str, int] = {}
    for node in nodes.leaves.tolist():
        if leaf.setdefault(nodes.codes[node], node) != node:
            raise InputError(f"{where}: the code '{nodes.codes[node]}' of {name} stands at two places of its hierarchy")
    pairs: list[tuple[str, int]] = []
    for code in codes.unique().sort():
        if code not in leaf:
            raise InputError(f"{where}: {name} has the code '{code}', which is no code of the table without parts")
        node = leaf[code]
        while node >= 0:
            pairs.append((code, node))
            node = int(nodes.parent[node])
    return pl.DataFrame(pairs, schema={name: pl.String, "node": pl.Int64}, orient="row")


def open_records(path: Path) -> TauRecords:
    """Microdata, with the `.rda` of the same name beside it."""
    metadata = rda.metadata_beside(path)
    if metadata is None:
        raise InputError(
            f"{path.name}: no {path.stem}.rda beside it, which says what its columns mean; put it into the same folder"
        )
    return read_records(rda.content_of(path), path.name, metadata)


def read_records(content: bytes, where: str, metadata: Metadata) -> TauRecords:
    """Microdata, as its metadata say that it is laid out."""
    if metadata.separator is None:
        widest = max((one.start or 0) + (one.width or 0) - 1 for one in metadata.variables)
        _refuse_overlaps(metadata)
    rows: list[Sequence[str]] = []
    lines: list[int] = []
    for number, line in lines_of(content, where):
        if metadata.separator is None:
            if len(line) < widest and len(line.rstrip()) < _needed(metadata):
                raise InputError(
                    f"{where}, line {number}: {len(line)} letters; expected {widest}, as {metadata.where} says"
                )
            row = [line[one.start - 1 : one.start - 1 + (one.width or 0)] if one.start else "" for one in
                   metadata.variables]  # fmt: skip
        else:
            row = _separated(line, metadata, f"{where}, line {number}")
        rows.append([text.strip() for text in row])
        lines.append(number)
    if not rows:
        raise InputError(f"{where}: no records; expected a line for each")
    columns: dict[str, pl.Series] = {}
    decimals: dict[str, int] = {}
    for at, one in enumerate(metadata.variables):
        texts = [row[at] for row in rows]
        if one.has(rda.NUMBER):
            columns[one.name], decimals[one.name] = _whole(one, texts, lines, where)
        else:
            columns[one.name] = pl.Series(one.name, texts, dtype=pl.String)
    return TauRecords(where, metadata, pl.DataFrame(columns), decimals)


def _needed(metadata: Metadata) -> int:
    """Where the last column begins that may not be blank."""
    return max((one.start or 0) for one in metadata.variables)


def _refuse_overlaps(metadata: Metadata) -> None:
    placed = sorted((one.start or 0, one.width or 0, one.name) for one in metadata.variables)
    for (start, width, name), (after, _, other) in pairwise(placed):
        if not start or start + width > after:
            raise InputError(f"{metadata.where}: {name} and {other} overlap; expected columns side by side")


def _separated(line: str, metadata: Metadata, where: str) -> list[str]:
    try:
        (row,) = csv.reader([line], delimiter=metadata.separator or ",", strict=True)
    except (csv.Error, ValueError):
        raise InputError(f"{where}: cannot be read; expected fields parted by '{metadata.separator}'") from None
    if len(row) != len(metadata.variables):
        raise InputError(f"{where}: {len(row)} fields; expected {len(metadata.variables)}, as {metadata.where} says")
    return row


def _whole(variable: Variable, texts: Sequence[str], lines: Sequence[int], where: str) -> tuple[pl.Series, int]:
    """Numbers as whole ones, and how many decimals they have."""
    values = [
        decimal(text, f"{where}, line {line}: {variable.name}") if text else Decimal(0)
        for text, line in zip(texts, lines, strict=True)
    ]
    decimals = max(0, *(-int(value.as_tuple().exponent) for value in values))
    whole = [int(value.scaleb(decimals)) for value in values]
    if sum(whole) >= UNLIMITED:
        raise InputError(f"{where}: {variable.name} adds up to more than {UNLIMITED:,} smallest units; expected less")
    return pl.Series(variable.name, whole, dtype=pl.Int64), decimals
