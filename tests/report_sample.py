"""A report with every kind of block and every kind of cell, with invented numbers, for the tests of its renderings."""

from __future__ import annotations

from math import cos, pi, sin

from glasshouse.assess.rates import wilson
from glasshouse.report.description import (
    HIDDEN,
    Block,
    Cell,
    Chart,
    Column,
    Count,
    Definition,
    Explorer,
    Map,
    Measure,
    Noise,
    Report,
    Section,
    Series,
    Shape,
    Share,
    Table,
    Verdict,
    Version,
    Words,
)

EVIL = "</script><img src=x onerror=alert(1)>"
SIZES = ("1-9", "10-29", "30-49", "50-99", "100-249", "250-499", "500 and more")


def estimate(part: int, whole: int) -> Share:
    low, high = wilson(part, whole)
    return Share(part, whole, float(low), float(high))


def hexagon(x: float, y: float) -> tuple[tuple[float, float], ...]:
    """A ring of degrees around a place, closed as in a GeoJSON file."""
    turns = [pi / 3 * k + pi / 6 for k in range(6)]
    ring = [(x + 0.052 * cos(turn) / cos(60 * pi / 180), y + 0.052 * sin(turn)) for turn in turns]
    return (*ring, ring[0])


def where() -> tuple[Block, ...]:
    rows: list[tuple[Cell, ...]] = []
    shapes = {}
    for number in range(30):
        code = f"28-{number + 1:02}"
        persons = 180 + 977 * (number * 7 % 30)
        part = persons * (number * number * 11 % 83) // 130
        row, place = divmod(number, 6)
        shapes[code] = Shape(rings=(hexagon(21.9 + 0.18 * (place + row % 2 / 2), 59.8 + 0.078 * row),))
        found: Cell = HIDDEN if number == 7 else None if number == 19 else estimate(part, persons)
        rows.append((code, f"District {number + 1}", HIDDEN if number == 7 else Count(persons), found))
    rows.sort(key=lambda row: -row[3].value if isinstance(row[3], Share) else 1)
    columns = (Column("Code"), Column("Area"), Column("Persons", "persons"), Column("Certain", "certain"))
    table = Table(
        "areas",
        "Persons whose record is certain, by area",
        columns,
        tuple(rows),
        "areas.parquet of the reconstruction, counted by district",
        ("Districts are ranked by their share.",),
        keys=2,
        shown=12,
    )
    drawn = Map(
        "areas-map",
        "Where records are certain",
        "The share is highest in the small districts of the north-east, where tables are thin.",
        table,
        3,
        shapes,
        "persons whose record is certain",
    )
    ranked = Chart(
        "areas-ranked",
        "The ten districts that give away most",
        "Ten districts hold a third of all certain records; their intervals do not reach the median district.",
        table,
        (Series(3, "certain", "bar"),),
        "share of persons whose record is certain",
        most=10,
    )
    return drawn, ranked


def who() -> tuple[Block, ...]:
    groups: tuple[tuple[str, Cell, Cell, Cell], ...] = (
        ("Everyone", estimate(9876, 28211), estimate(5011, 9876), Measure(0.174, 28211, "share")),
        (
            "Alone in their block by age and sex",
            estimate(2810, 3011),
            estimate(2401, 2810),
            Measure(0.122, 3011, "share"),
        ),
        (
            "Not of the block's most common origin",
            estimate(930, 2280),
            estimate(702, 930),
            Measure(0.081, 2280, "share"),
        ),
        ("Children under 5", estimate(611, 1711), estimate(290, 611), Measure(0.163, 1711, "share")),
        ("Seventeen-year-olds in households of seven persons and more", HIDDEN, HIDDEN, HIDDEN),
        (EVIL, estimate(3, 40), None, Measure(0.05, 40, "share")),
    )
    columns = (
        Column("Group"),
        Column("Confirmed among persons", "confirmed"),
        Column("Precision", "precision"),
        Column("Modal guesser", "guesser"),
    )
    table = Table("groups", "Re-identified by group", columns, groups, "links.parquet, joined with the truth")
    series = (Series(1, "confirmed", "dot"), Series(2, "precision", "dot"), Series(3, "modal guesser", "tick"))
    says = "People who are rare where they live are confirmed most; guessing does not explain it."
    return (Chart("groups-chart", "Who is re-identified", says, table, series, "share"),)


def why() -> tuple[Block, ...]:
    rows = (
        ("Age in single years by sex, in every block", Count(28112), Share(28112, 40000)),
        ("Household type by size", Count(8812), Share(8812, 40000)),
        ("Origin by age group", Count(2101), Share(2101, 40000)),
        ("Totals alone", Count(975), Share(975, 40000)),
    )
    columns = (Column("Table"), Column("Records made certain", "certain"), Column("Part of all", "certain"))
    table = Table("reasons", "Which table makes records certain", columns, rows, "reasons.csv")
    series = (Series(1, "records", "bar"),)
    says = "One table does most of it: single years of age in every block."
    return (Chart("reasons-chart", "Why records are certain", says, table, series, "records made certain"),)


def certainty() -> tuple[Block, ...]:
    values = ((12, 60), (300, 811), (702, 911), (1890, 1950), (2212, 2240), (1805, 1809), (990, 991))
    published = (0.021, 0.054, 0.101, 0.126, None, 0.31, 0.44)
    rows: list[tuple[Cell, ...]] = [
        (f"{size} persons", estimate(*value), None if other is None else Measure(other, 5000, "share"))
        for size, value, other in zip(SIZES, values, published, strict=True)
    ]
    columns = (Column("Block size"), Column("Certain", "certain"), Column("Published 2010", "certain", published=True))
    table = Table(
        "sizes", "Certainty by size of block", columns, tuple(rows), "blocks.parquet; 2010: paper 004, table 2"
    )
    series = (Series(1, "certain", "dot"), Series(2, "published 2010", "ring"))
    says = "Larger blocks are more certain here, as in 2010, but from a much higher level."
    return (Chart("sizes-chart", "Certainty by size of block", says, table, series, "share of blocks", up=True),)


def reidentification() -> tuple[Block, ...]:
    rows: list[tuple[Cell, ...]] = []
    for attacker, factor in (("Commercial file", 0.8), ("Every name and address", 1.0)):
        for step, size in enumerate(SIZES[:5]):
            whole = 400 + 310 * step
            part = int(whole * factor * (0.86 - 0.11 * step))
            cells: tuple[Cell, ...] = (estimate(part, whole), Measure(0.41 - 0.05 * step, whole, "share"))
            rows.append(
                (attacker, f"{size} persons", *cells) if step else (attacker, f"{size} persons", HIDDEN, HIDDEN)
            )
    columns = (
        Column("Attacker"),
        Column("Block size"),
        Column("Precision", "precision"),
        Column("Modal guesser", "guesser"),
    )
    table = Table("attackers", "Precision by attacker", columns, tuple(rows), "links.parquet", keys=2)
    series = (Series(2, "precision", "dot"), Series(3, "modal guesser", "tick"))
    says = "Either attacker is right about twice as often as one who guesses the most common value."
    return (
        Chart("attackers-chart", "How often a link is right", says, table, series, "precision", panel=0),
        Chart("attackers-up", "The same, by size", says, table, series, "precision", up=True, panel=0),
    )


def claims() -> tuple[Block, ...]:
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            f"In block 28-21-{number:03} lives exactly one woman of {20 + number} years",
            "true in every solution",
            Count(1),
        )
        for number in range(31)
    )
    columns = (Column("Sentence"), Column("Verified", "verified"), Column("Persons", "persons"))
    source = "claims.parquet"
    return (Table("claims", "Sentences that the tables prove", columns, rows, source, records=True, shown=8),)


def noise() -> tuple[Block, ...]:
    levels = (("Nation", 0.52), ("County", 0.11), ("Tract", 0.07), ("Block group", 0.031), ("Block", 0.008))
    rows = tuple((name, Measure(rho, 0, "number"), Measure(0.5 + rho / 4, 0, "share")) for name, rho in levels)
    columns = (Column("Level"), Column("Rho", "rho"), Column("Average posterior at prior 0.5", "posterior"))
    table = Table("budget", "The budget as it stands", columns, rows, "budget.toml")
    says = "At the budget's levels one count alone moves a belief little; move the sliders to your own."
    return (Noise("noise-sliders", "What one noisy count gives away", says, table, levels, 0.5, 0.11, 0.5),)


def tradeoff() -> tuple[Block, ...]:
    settings = (
        ("As published", "none", 0.351, 0.507, 2100, 0.0, 0.0, 0.0),
        ("Swap 2%", "swapping", 0.322, 0.461, 1840, 0.004, 0.9, 0.002),
        ("Swap 10%", "swapping", 0.241, 0.352, 1010, 0.019, 3.1, 0.011),
        ("Swap 30%", "swapping", 0.133, 0.221, 310, 0.061, 8.4, 0.043),
        ("Round to 3", "rounding", 0.281, 0.411, 1502, 0.008, 1.2, 0.004),
        ("Round to 5", "rounding", 0.202, 0.301, 712, 0.022, 2.0, 0.009),
        ("Noise, rho 1", "noise", 0.211, 0.282, 640, 0.013, 1.4, 0.006),
        ("Noise, rho 0.1", "noise", 0.104, 0.171, 120, 0.052, 5.2, 0.021),
        ("Noise, rho 0.01", "noise", 0.071, 0.118, 14, 0.181, 21.3, 0.094),
        ("Suppress below 3", "suppression", 0.262, 0.398, 1330, 0.103, 4.4, 0.061),
    )
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            name,
            kind,
            estimate(round(certain * 28211), 28211),
            estimate(round(confirmed * 9876), 9876),
            HIDDEN if sentences < 20 else Count(sentences),
            Measure(error, 28211, "share", max(error - 0.003, 0), error + 0.003),
            Measure(mean, 28211, "number"),
            Measure(bias, 28211, "points"),
            Measure(0.082, 28211, "share"),
        )
        for name, kind, certain, confirmed, sentences, error, mean, bias in settings
    )
    columns = (
        Column("Setting"),
        Column("Protection"),
        Column("Certain", "certain"),
        Column("Confirmed", "confirmed"),
        Column("Sentences", "verified"),
        Column("Relative error", "error"),
        Column("Mean error", "error"),
        Column("Bias", "bias"),
        Column("Guessing", "guesser"),
    )
    table = Table("settings", "Ten settings", columns, rows, "settings.csv, each attacked as the others", keys=2)
    says = "Below an error of 2% noise takes away more than swapping or rounding do."
    return (Explorer("settings-explorer", "What protection costs", says, table, (2, 3, 4), (5, 6, 7), {2: 8, 3: 8}),)


def rules() -> tuple[Block, ...]:
    rows = (
        ("Counts of 1 or 2 are not shown", "k = 3", "met", Count(0, people=False)),
        ("No cell has one contributor above 85%", "p = 15%", "met", Count(0, people=False)),
        ("Noise is added to every count", "rho = 1", "not met", Count(412, people=False)),
    )
    columns = (Column("Rule"), Column("Parameter"), Column("Result"), Column("Cells against it"))
    return (Table("rules", "The office's own rules", columns, rows, "release.csv", keys=2),)


def methods() -> tuple[Block, ...]:
    return (
        Words(
            (
                "Every household microdata set that agrees with the published tables was considered, by integer "
                "programming; a record is certain if it is in all of them.",
                "A number without an interval is exact for this release.",
            ),
            ("Places where people do not live in households were left out.", "The truth was used to confirm, only."),
        ),
    )


def sample(version: Version = "internal", passed: bool = True) -> Report:
    """A report as one of a district would be."""
    definitions = (
        Definition("persons", "Persons", "Persons that the tables count.", ""),
        Definition("certain", "Certain", "The record is the same in every data set with these tables.", "higher"),
        Definition("confirmed", "Confirmed", "A link that is right, by the truth.", "higher", "reidentify.md"),
        Definition("precision", "Precision", "Confirmed among putative links.", "higher"),
        Definition("guesser", "Modal guesser", "What one reaches who guesses the most common value.", ""),
        Definition("verified", "Verified sentence", "A sentence that is true in every data set.", "higher"),
        Definition("rho", "Rho", "Privacy loss of a count under zero-concentrated privacy.", "higher"),
        Definition("posterior", "Average posterior", "Belief in the truth after the release.", "higher"),
        Definition("error", "Error", "Distance of the protected counts from the true ones.", "higher"),
        Definition("bias", "Bias", "What protection adds to small counts, on average.", "higher"),
    )
    verdicts = (
        Verdict(
            "Records the tables make certain",
            estimate(9876, 28211),
            "Without tables: none.",
            "For every third person the tables admit one record only.",
            "certain",
            "where",
            "areas.parquet",
            "bad",
        ),
        Verdict(
            "Links that are right",
            estimate(5011, 9876),
            "Guessing the most common value: 17.4%.",
            "Half of the links an attacker makes are right, three times as many as by guessing.",
            "precision",
            "reidentification",
            "links.parquet",
            "bad",
        ),
        Verdict(
            "Sentences proved",
            Count(2100),
            "Sentences tried: 40,000.",
            "So many sentences about one person follow from the tables alone.",
            "verified",
            "claims",
            "claims.parquet",
        ),
        Verdict(
            "Belief after one noisy count",
            Measure(0.527, 0, "share"),
            "Before: 50.0%.",
            "At the budget of a county one count alone gives away next to nothing.",
            "posterior",
            "noise",
            "budget.toml",
            "good",
        ),
    )
    findings = (
        "Certain records: 35.0% of persons, above the threshold of 10%.",
        "Precision of links: 50.7%, above the threshold of 40%.",
    )
    sections = (
        Section("where", "Where records are certain", "Mostly in small districts: ten hold a third.", where()),
        Section("who", "Who is re-identified", "People who are rare where they live.", who()),
        Section("why", "Why", "Single years of age in every block.", why()),
        Section("certainty", "Certainty by size", "Nearly all blocks of 50 persons and more are certain.", certainty()),
        Section("reidentification", "Re-identification", "Half of all links are right.", reidentification()),
        Section("claims", "Sentences that are proved", "2,100 sentences about one person.", claims(), records=True),
        Section("noise", "Noise", "One count alone gives away next to nothing.", noise()),
        Section("trade-off", "What protection costs", "Noise is cheapest below an error of 2%.", tradeoff()),
        Section("rules", "The office's rules", "Two of three rules are met, and records are certain still.", rules()),
        Section("methods", "Methods and limits", "What was done, and what was not.", methods()),
    )
    certificate = (
        ("Program", "glasshouse 0.1.0"),
        ("Command", "glasshouse audit --scenario district-28-21"),
        ("Data", "sha256 3f1c9a44d01f"),
        ("Seed", "20260101"),
    )
    return Report(
        f"District 28-21: what the tables give away {EVIL if version == 'public' else ''}".strip(),
        "An audit of 14 tables about 28,211 persons in 30 districts, as published on 1 March.",
        version,
        verdicts,
        findings if passed else (),
        sections,
        definitions,
        certificate,
        thresholds=4,
    )
