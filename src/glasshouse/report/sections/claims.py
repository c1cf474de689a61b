"""What do verified claims look like? Who is singled out by how many columns, how surprising it is, which columns.

Pictures and tables hold sums over blocks only: never a block's code, never a description. A box of a picture
stands for ten claims or more.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from glasshouse.assess.claims import SINGLETON, SURPRISING, Results
from glasshouse.model.geography import plural
from glasshouse.report.beside import write_tables
from glasshouse.report.description import Cell, Chart, Column, Count, Measure, Series, Share, Table, Tiles
from glasshouse.report.figure import Figure
from glasshouse.report.sections.claims_tables import Names, tables, whom
from glasshouse.report.words import phrase, table

LEAST = 10  # claims behind a box
_BOX = ("median", "whisker_low", "q1", "q3", "whisker_high", "max")


def picture(by_columns: pl.DataFrame, baselines: pl.DataFrame, names: Names = Names()) -> Figure:  # noqa: B008  # frozen
    """Figures 3 and 5: blocks with verified claims by k, and how probable those claims were under each prior.

    A prior without claims enough for a box has no panel.
    """
    words = {name: word for name, word in _about(names).items() if name in by_columns["multiplicity"]}
    charts = [_known(by_columns, words, names)]
    drawn = baselines.filter(pl.col("claims") >= LEAST)
    if drawn.height:
        charts.append(_probable(drawn, words))
    return Figure(_headline(by_columns, names), tuple(charts))


def _about(names: Names) -> dict[str, str]:
    """Whom claims are about, in words of the language."""
    return {name: phrase(f"claims.about.{name}", **names.fields) for name in table("claims.about")}


def _known(by_columns: pl.DataFrame, words: dict[str, str], names: Names) -> Chart:
    """Bars of places where somebody is known for certain."""
    place = names.place
    rows: list[tuple[Cell, ...]] = []
    for (k,), part in by_columns.group_by("k", maintain_order=True):
        known = {row["multiplicity"]: row for row in part.iter_rows(named=True)}
        cells = [
            Share(row["blocks_with_claim"], row["blocks"], row["block_share_low"], row["block_share_high"])
            if (row := known.get(name)) is not None and row["blocks"] else None
            for name in words
        ]  # fmt: skip
        rows.append((str(k), *cells))
    blocks = by_columns["blocks"][0] if by_columns.height else 0
    title = phrase("claims.known", places=plural(place))
    found = Table(
        "claims-known", title, (Column(phrase("claims.k")), *(Column(word, "claims") for word in words.values())),
        tuple(rows), "summary.json: by_columns",
    )  # fmt: skip
    says = phrase("claims.known_says", blocks=blocks, places=plural(place), number=names.counted(by_columns))
    series = tuple(Series(1 + at, word, "bar") for at, word in enumerate(words.values()))
    return Chart("known", title, says, found, series, phrase("claims.share", places=plural(place)), up=True)


def _probable(drawn: pl.DataFrame, words: dict[str, str]) -> Chart:
    """Boxes of how probable claims were, a panel for each prior."""
    rows: list[tuple[Cell, ...]] = []
    for (prior, k), part in drawn.group_by("prior", "k", maintain_order=True):
        known = {row["multiplicity"]: row for row in part.iter_rows(named=True)}
        cells: list[Cell] = []
        for name in words:
            row = known.get(name)
            cells.append(None if row is None else Count(row["claims"]))
            cells += [None if row is None else Measure(row[number], row["claims"], "share") for number in _BOX]
        rows.append((phrase("claims.prior", prior=str(prior)), str(k), *cells))
    inside = table("claims.box")
    columns = [Column(""), Column(phrase("claims.k"))]
    for word in words.values():
        columns += [Column(phrase("claims.number"), above=(word,))]
        columns += [Column(inside[number], above=(word,)) for number in _BOX]
    title = phrase("claims.probable")
    found = Table("claims-probable", title, tuple(columns), tuple(rows), "summary.json: baselines", keys=2)
    wide = 1 + len(_BOX)
    series = tuple(
        Series(3 + wide * at, word, "box", tuple(range(4 + wide * at, 4 + wide * at + len(_BOX) - 1)))
        for at, word in enumerate(words.values())
    )
    says = phrase("claims.probable_says", surprising=SURPRISING, least=LEAST)
    return Chart(
        "probable", title, says, found, series, phrase("claims.probability"), up=True, panel=0, scale="root",
        rule=SURPRISING,
    )  # fmt: skip


def _headline(by_columns: pl.DataFrame, names: Names) -> str:
    """What the first bar says, in a sentence."""
    single = by_columns.filter(multiplicity=SINGLETON).sort("k")
    if single.is_empty():
        return phrase("claims.nothing", **names.fields)
    k, share = single.select("k", "block_share").row(0)
    return phrase("claims.headline", share=share, k=k, **names.fields)


def columns_picture(columns_used: pl.DataFrame, names: Names = Names()) -> Figure:  # noqa: B008  # frozen
    """Figure 4: which columns the verified claims of k columns name; below, what it would be if all were alike."""
    named = columns_used["column"].unique(maintain_order=True).to_list()
    title = phrase("claims.rarest", column=_rarest(columns_used)) if named else phrase("claims.no_claim")
    words, rows = _about(names), []
    for (multiplicity, k), part in columns_used.group_by("multiplicity", "k", maintain_order=True):
        panel = phrase("claims.panel", about=words[str(multiplicity)])
        shares = dict(part.select("column", "share").iter_rows())
        claims = int(part["claims"].max() or 0)  # type: ignore[arg-type]  # a column of numbers
        rows += [(panel, str(k), name, Measure(shares[name], claims, "share")) for name in named if name in shares]
        rows.append((panel, str(k), phrase("claims.alike"), Measure(int(str(k)) / max(len(named), 1), 0, "share")))
    columns = (Column(""), Column(phrase("claims.k")), Column(phrase("claims.column")), Column(phrase("claims.named")))
    found = Table("claims-columns", title, columns, tuple(rows), "summary.json: columns_used", keys=3)
    tiles = Tiles("columns-used", title, phrase("claims.columns_says"), found, 3, 1, 2, phrase("claims.named"), panel=0)
    return Figure.of(tiles)


def _rarest(columns_used: pl.DataFrame) -> str:
    """The column in the fewest claims that single somebody out, or in the fewest of all if none do."""
    first = columns_used.filter(pl.col("multiplicity") == pl.col("multiplicity").first())
    counted = first.group_by("column", maintain_order=True).agg(pl.col("hits").sum())
    return str(counted["column"][counted["hits"].arg_min() or 0])


def write(
    folder: Path, results: Results, about: Sequence[str], names: Names = Names()  # noqa: B008  # frozen
) -> list[str]:  # fmt: skip
    """Write the tables of a run, for the office and for everyone; the names of the files."""
    made = tables(results, names)
    return write_tables(made, folder, about, whom(made, results))
