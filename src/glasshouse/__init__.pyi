# Made by docs/make_reference.py from the declarations; do not edit.
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from glasshouse.commands.door import Filed, Frame
from glasshouse.commands.reading import Records as Records
from glasshouse.commands.reading import Tables as Tables
from glasshouse.commands.check import Checked as Checked
from glasshouse.commands.reconstruct import Reconstructed as Reconstructed
from glasshouse.commands.reidentify import Reidentified as Reidentified
from glasshouse.commands.status import Status as Status
from glasshouse.commands.tabulate import Tabulated as Tabulated
from glasshouse.commands.vary import Varied as Varied
from glasshouse.engine.progress import aloud as aloud
from glasshouse.errors import GlasshouseBug as GlasshouseBug
from glasshouse.errors import InputError as InputError
from glasshouse.scenarios.load import Scenario as Scenario

File = str | Path | Frame | Filed
VERBS: Mapping[str, str]
NAMESPACES: Mapping[str, Mapping[str, str]]

def scenario(name: str) -> Scenario: ...
def read_tables(source: File, *, scenario: str | Scenario = ..., codebook: File | None = ..., assume_published: str = ..., mapping: Mapping[str, File] | Sequence[str] | None = ..., only: str | Sequence[str] = ...) -> Tables: ...  # noqa: E501
def read_records(source: File, *, scenario: str | Scenario = ...) -> Records: ...  # noqa: E501
def tabulate(records: File, *, scenario: str | Scenario = ..., out: File | None = ..., only: str | Sequence[str] = ..., levels: str | Sequence[str] = ..., mapping: Mapping[str, File] | Sequence[str] | None = ..., subtotals: bool = ..., overwrite: bool = ..., workers: int = ...) -> Tabulated: ...  # noqa: E501
def check(tables: File, *, scenario: str | Scenario = ..., codebook: File | None = ..., assume_published: str = ..., mapping: Mapping[str, File] | Sequence[str] | None = ..., only: str | Sequence[str] = ..., workers: int = ...) -> Checked: ...  # noqa: E501
def reconstruct(tables: File, *, scenario: str | Scenario = ..., level: str | None = ..., seed: int = ..., units: str | Sequence[str] = ..., nearest: Literal['', 'absolute', 'squared'] = ..., codebook: File | None = ..., assume_published: str = ..., mapping: Mapping[str, File] | Sequence[str] | None = ..., only: str | Sequence[str] = ..., out: File | None = ..., overwrite: bool = ..., workers: int | None = ..., executor: str | None = ..., effort: float = ..., seconds: float = ...) -> Reconstructed: ...  # noqa: E501
def vary(tables: File, *, scenario: str | Scenario = ..., level: str | None = ..., start: File | None = ..., scope: str = ..., schema: str = ..., tighten: bool = ..., uniques: File | None = ..., seed: int = ..., units: str | Sequence[str] = ..., codebook: File | None = ..., assume_published: str = ..., mapping: Mapping[str, File] | Sequence[str] | None = ..., only: str | Sequence[str] = ..., out: File | None = ..., overwrite: bool = ..., workers: int | None = ..., executor: str | None = ..., effort: float = ..., seconds: float = ...) -> Varied: ...  # noqa: E501
def reidentify(rebuilt: File | Mapping[str, File] | Sequence[File], *, truth: File, published: File, attacker: File | Mapping[str, File] | Sequence[File], vary: File | None = ..., scenario: str | Scenario = ..., links: bool = ..., leave_one_out: int = ..., swap: str = ..., seed: int = ..., out: File | None = ..., overwrite: bool = ..., workers: int | None = ..., executor: str | None = ...) -> Reidentified: ...  # noqa: E501
def status(folder: File) -> Status: ...  # noqa: E501
