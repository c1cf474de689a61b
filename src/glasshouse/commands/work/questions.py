"""What is asked of every place? The options that the work on a unit looks at, of the attacks that have many."""

from __future__ import annotations

from dataclasses import dataclass

# kinds of structural zeros that verify takes as known, by what --zeros says
ZEROS = {"all": ("definition", "certain", "edit rule"), "certain": ("definition", "certain"), "paper": ("definition",)}


@dataclass(frozen=True)
class AboutClaims:
    """What `verify` is asked."""

    columns: int  # claims name at least so many
    singletons: bool = False  # only claims about exactly one record
    absent: int = 0  # descriptions of up to so many columns that nobody fits
    cannot: tuple[int, ...] = ()  # counts to be ruled out
    why: int = 0  # so many claims of a place are explained
    leaks: str = ""  # what each table gives away, alone or with its family
    drop: tuple[int, ...] = ()  # published numbers with these values are left out
    used: tuple[str, ...] = ()  # the tables taken as published, where others may be added; none: all
    units: bool = False  # N and priors count records that are reported apart too
    uniform: bool = False  # how probable a claim is where all values are equally likely
    reconstructions: tuple[int, ...] = ()  # what so many data sets that are drawn agree on


@dataclass(frozen=True)
class AboutOccupancy:
    """What `detect` is asked."""

    model: str  # how the numbers are read
    why: bool = False  # the numbers that leave no other possibility than a violation
    solutions: int = 0  # so many of the most likely data sets
    everywhere: bool = False  # of every place that fits, not only of certain ones
    solvar: bool = False  # how different other data sets can be
    nearest: bool = False  # the closest data set, where nothing fits
    ties: str = "any"  # which of equally likely data sets come first
    truth: bool = False  # the true households are known
    among: str = "all"  # which other data sets: all that fit, or those of kinds that the sample has
    groups: bool = False  # households that are alone with their attributes, where little can be otherwise
