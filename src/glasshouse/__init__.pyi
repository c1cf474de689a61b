# Made by docs/make_reference.py from the declarations; do not edit.
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Literal

from glasshouse.commands.door import Filed, Frame
from glasshouse.commands.namespace import Namespace
from glasshouse.commands.reading import Records as Records
from glasshouse.commands.reading import Tables as Tables
from glasshouse.commands.audit import Audited as Audited
from glasshouse.commands.bounds import Bounded as Bounded
from glasshouse.commands.check import Checked as Checked
from glasshouse.commands.compare import Compared as Compared
from glasshouse.commands.describe import Described as Described
from glasshouse.commands.detect import Detected as Detected
from glasshouse.commands.infer.beliefs import NoiseFound as NoiseFound
from glasshouse.commands.infer.beliefs import PostProcessed as PostProcessed
from glasshouse.commands.infer.beliefs import PosteriorFound as PosteriorFound
from glasshouse.commands.infer.budgets import Plans as Plans
from glasshouse.commands.infer.figures import Figures as Figures
from glasshouse.commands.infer.persons import ExposureFound as ExposureFound
from glasshouse.commands.infer.releases import Decided as Decided
from glasshouse.commands.infer.releases import Risk as Risk
from glasshouse.commands.infer.sweep import Sweep as Sweep
from glasshouse.commands.infer.whole import EpsilonFound as EpsilonFound
from glasshouse.commands.protect.intervals import Intervals as Intervals
from glasshouse.commands.protect.noise import NoisyTables as NoisyTables
from glasshouse.commands.protect.properties import NoisyProperties as NoisyProperties
from glasshouse.commands.protect.relocate import RelocatedRecords as RelocatedRecords
from glasshouse.commands.protect.swap import Swapped as Swapped
from glasshouse.commands.protect.topdown import ToppedDown as ToppedDown
from glasshouse.commands.proving.check_proof import ProofsChecked as ProofsChecked
from glasshouse.commands.proving.prove import Proved as Proved
from glasshouse.commands.reconstruct import Reconstructed as Reconstructed
from glasshouse.commands.reidentify import Reidentified as Reidentified
from glasshouse.commands.status import Status as Status
from glasshouse.commands.synthesize import Furnished as Furnished
from glasshouse.commands.synthesize import Synthesized as Synthesized
from glasshouse.commands.tabulate import Tabulated as Tabulated
from glasshouse.commands.tradeoff import Tradeoff as Tradeoff
from glasshouse.commands.vary import Varied as Varied
from glasshouse.commands.verify import Verified as Verified
from glasshouse.engine.progress import aloud as aloud
from glasshouse.errors import GlasshouseBug as GlasshouseBug
from glasshouse.errors import InputError as InputError
from glasshouse.scenarios.load import Scenario as Scenario

File = str | Path | Frame | Filed
VERBS: Mapping[str, str]
NAMESPACES: Mapping[str, Namespace]

def scenario(name: str) -> Scenario: ...
def read_tables(source: File, *, scenario: str | Scenario = ..., codebook: File | None = ..., assume_published: str = ..., missing: Literal['zero', 'hidden'] | None = ..., rounded: str | None = ..., cell_key: File | None = ..., noise_within: float | None = ..., marker: Mapping[str, str] | Sequence[str] | None = ..., thousands: str | None = ..., exact: bool = ..., all_places: File | None = ..., mapping: Mapping[str, File] | Sequence[str] | None = ..., only: str | Sequence[str] = ...) -> Tables: ...  # noqa: E501
def read_records(source: File, *, scenario: str | Scenario = ...) -> Records: ...  # noqa: E501
def describe(tables: str | Sequence[File], *, value: str = ..., status: str = ..., place: str = ..., area: str = ..., ignore: str | Sequence[str] = ..., keep: Mapping[str, str] | Sequence[str] | None = ..., attribute: Mapping[str, str] | Sequence[str] | None = ..., total: Mapping[str, str] | Sequence[str] | None = ..., group: Mapping[str, str] | Sequence[str] | None = ..., universe: Mapping[str, str] | Sequence[str] | None = ..., marker: Mapping[str, str] | Sequence[str] | None = ..., rounded: str = ..., noise_within: int | None = ..., missing: Literal['', 'zero', 'hidden'] = ..., thousands: str = ..., places: File | None = ..., levels: str | Sequence[str] = ..., title: str = ..., accept: bool = ..., out: File | None = ..., overwrite: bool = ...) -> Described: ...  # noqa: E501
def synthesize(*, persons: int = ..., seed: int = ..., out: File | None = ..., preset: str = ..., commercial: str = ..., swap_base: float = ..., swap_risky: float = ..., alpha: float = ..., subsidised: float = ..., overwrite: bool = ...) -> Synthesized: ...  # noqa: E501
def furnish(units: File, *, sample: File, properties: File, property_places: File | None = ..., scenario: str | Scenario | None = ..., alpha: float = ..., seed: int = ..., out: File | None = ..., overwrite: bool = ...) -> Furnished: ...  # noqa: E501
def tabulate(records: File, *, scenario: str | Scenario = ..., out: File | None = ..., only: str | Sequence[str] = ..., levels: str | Sequence[str] = ..., mapping: Mapping[str, File] | Sequence[str] | None = ..., subtotals: bool = ..., overwrite: bool = ..., workers: int = ...) -> Tabulated: ...  # noqa: E501
def check(tables: File, *, scenario: str | Scenario = ..., codebook: File | None = ..., assume_published: str = ..., missing: Literal['zero', 'hidden'] | None = ..., rounded: str | None = ..., cell_key: File | None = ..., noise_within: float | None = ..., marker: Mapping[str, str] | Sequence[str] | None = ..., thousands: str | None = ..., exact: bool = ..., all_places: File | None = ..., mapping: Mapping[str, File] | Sequence[str] | None = ..., only: str | Sequence[str] = ..., workers: int = ...) -> Checked: ...  # noqa: E501
def reconstruct(tables: File, *, scenario: str | Scenario = ..., level: str | None = ..., seed: int = ..., units: str | Sequence[str] = ..., nearest: Literal['', 'absolute', 'squared'] = ..., printed: File | None = ..., codebook: File | None = ..., assume_published: str = ..., missing: Literal['zero', 'hidden'] | None = ..., rounded: str | None = ..., cell_key: File | None = ..., noise_within: float | None = ..., marker: Mapping[str, str] | Sequence[str] | None = ..., thousands: str | None = ..., exact: bool = ..., all_places: File | None = ..., mapping: Mapping[str, File] | Sequence[str] | None = ..., only: str | Sequence[str] = ..., out: File | None = ..., overwrite: bool = ..., workers: int | None = ..., executor: str | None = ..., insecure: bool = ..., effort: float = ..., seconds: float = ...) -> Reconstructed: ...  # noqa: E501
def vary(tables: File, *, scenario: str | Scenario = ..., level: str | None = ..., start: File | None = ..., scope: str = ..., schema: str = ..., tighten: bool = ..., uniques: File | None = ..., seed: int = ..., units: str | Sequence[str] = ..., codebook: File | None = ..., assume_published: str = ..., missing: Literal['zero', 'hidden'] | None = ..., rounded: str | None = ..., cell_key: File | None = ..., noise_within: float | None = ..., marker: Mapping[str, str] | Sequence[str] | None = ..., thousands: str | None = ..., exact: bool = ..., all_places: File | None = ..., mapping: Mapping[str, File] | Sequence[str] | None = ..., only: str | Sequence[str] = ..., out: File | None = ..., overwrite: bool = ..., workers: int | None = ..., executor: str | None = ..., insecure: bool = ..., effort: float = ..., seconds: float = ...) -> Varied: ...  # noqa: E501
def bounds(tables: File, *, scenario: str | Scenario = ..., level: str | None = ..., width: int = ..., percent: float = ..., numbers: Literal['hidden', 'all'] = ..., count: str | Sequence[str] = ..., why: int = ..., most: float | None = ..., contributions: File | None = ..., p_percent: str | float | Fraction | None = ..., dominance: str | Sequence[str] = ..., units: str | Sequence[str] = ..., codebook: File | None = ..., assume_published: str = ..., missing: Literal['zero', 'hidden'] | None = ..., rounded: str | None = ..., cell_key: File | None = ..., noise_within: float | None = ..., marker: Mapping[str, str] | Sequence[str] | None = ..., thousands: str | None = ..., exact: bool = ..., all_places: File | None = ..., mapping: Mapping[str, File] | Sequence[str] | None = ..., only: str | Sequence[str] = ..., out: File | None = ..., overwrite: bool = ..., workers: int | None = ..., executor: str | None = ..., insecure: bool = ..., effort: float = ..., seconds: float = ...) -> Bounded: ...  # noqa: E501
def verify(tables: File, *, scenario: str | Scenario = ..., columns: int = ..., singletons: bool = ..., absent: int = ..., cannot: str | Sequence[int] = ..., why: int = ..., leaks: Literal['', 'table', 'family'] = ..., drop_cells: str | Sequence[int] = ..., zeros: Literal['all', 'certain', 'paper'] = ..., places: str | Sequence[str] = ..., pick: str = ..., truth: File | None = ..., prior_area: File | None = ..., prior_coarsest: File | None = ..., prior_uniform: bool = ..., counting: Literal['households', 'units'] = ..., reconstructions: str | Sequence[int] = ..., seed: int = ..., codebook: File | None = ..., assume_published: str = ..., missing: Literal['zero', 'hidden'] | None = ..., rounded: str | None = ..., cell_key: File | None = ..., noise_within: float | None = ..., marker: Mapping[str, str] | Sequence[str] | None = ..., thousands: str | None = ..., exact: bool = ..., all_places: File | None = ..., mapping: Mapping[str, File] | Sequence[str] | None = ..., only: str | Sequence[str] = ..., out: File | None = ..., overwrite: bool = ..., workers: int | None = ..., executor: str | None = ..., insecure: bool = ..., effort: float = ..., seconds: float = ...) -> Verified: ...  # noqa: E501
def detect(tables: File, *, properties: File, scenario: str | Scenario | None = ..., model: str = ..., property_places: File | None = ..., programs: str | Sequence[str] = ..., why: bool = ..., sample: File | None = ..., solutions: int = ..., ties: Literal['any', 'fewest'] = ..., everywhere: bool = ..., solvar: bool = ..., solvar_among: Literal['all', 'sample'] = ..., groups: bool = ..., nearest: bool = ..., truth: File | None = ..., i_am_the_data_holder: bool = ..., seed: int = ..., codebook: File | None = ..., assume_published: str = ..., missing: Literal['zero', 'hidden'] | None = ..., rounded: str | None = ..., cell_key: File | None = ..., noise_within: float | None = ..., marker: Mapping[str, str] | Sequence[str] | None = ..., thousands: str | None = ..., exact: bool = ..., all_places: File | None = ..., mapping: Mapping[str, File] | Sequence[str] | None = ..., out: File | None = ..., overwrite: bool = ..., workers: int | None = ..., executor: str | None = ..., insecure: bool = ..., effort: float = ..., seconds: float = ...) -> Detected: ...  # noqa: E501
def prove(result: File, *, tables: File, scenario: str | Scenario = ..., start: File | None = ..., facts: str | Sequence[str] = ..., properties: File | None = ..., property_places: File | None = ..., units: str | Sequence[str] = ..., codebook: File | None = ..., assume_published: str = ..., missing: Literal['zero', 'hidden'] | None = ..., rounded: str | None = ..., cell_key: File | None = ..., noise_within: float | None = ..., marker: Mapping[str, str] | Sequence[str] | None = ..., thousands: str | None = ..., exact: bool = ..., all_places: File | None = ..., mapping: Mapping[str, File] | Sequence[str] | None = ..., out: File | None = ..., overwrite: bool = ..., workers: int | None = ..., executor: str | None = ..., insecure: bool = ..., effort: float = ..., seconds: float = ...) -> Proved: ...  # noqa: E501
def check_proof(proofs: File, *, tables: File, scenario: str | Scenario = ..., properties: File | None = ..., property_places: File | None = ..., codebook: File | None = ..., assume_published: str = ..., missing: Literal['zero', 'hidden'] | None = ..., rounded: str | None = ..., cell_key: File | None = ..., noise_within: float | None = ..., marker: Mapping[str, str] | Sequence[str] | None = ..., thousands: str | None = ..., exact: bool = ..., all_places: File | None = ..., mapping: Mapping[str, File] | Sequence[str] | None = ...) -> ProofsChecked: ...  # noqa: E501
def reidentify(rebuilt: File | Mapping[str, File] | Sequence[File], *, truth: File, published: File, attacker: File | Mapping[str, File] | Sequence[File], vary: File | None = ..., scenario: str | Scenario = ..., links: bool = ..., leave_one_out: int = ..., swap: str = ..., seed: int = ..., out: File | None = ..., overwrite: bool = ..., workers: int | None = ..., executor: str | None = ..., insecure: bool = ...) -> Reidentified: ...  # noqa: E501
def tradeoff(matrix: File, *, risk: str | Sequence[int] = ..., out: File | None = ..., points: int = ..., at: str | Sequence[str] = ..., by: str | Sequence[str] = ..., attributes: str | Sequence[str] = ..., drop: Mapping[str, str] | Sequence[str] | None = ..., aggregate: Mapping[str, File] | Sequence[str] | None = ..., explain: str | Sequence[File] = ..., variables: str | Sequence[str] = ..., protected: File | Mapping[str, File] | Sequence[File] = ..., person: str = ..., place: str = ..., capacity: str = ..., weight: Literal['inverse-quadratic', 'constant', 'inverse-linear', 'inverse-cubic', 'inverse-exponential'] = ..., coverage: Literal['row-wise', 'relaxed'] = ..., near: File | None = ..., coordinates: File | None = ..., within: float = ..., degrees: bool = ..., spread: Literal['whole', 'even'] = ..., overwrite: bool = ...) -> Tradeoff: ...  # noqa: E501
def compare(folders: str | Sequence[File] = ..., *, plan: str = ..., settings: str | Sequence[str] = ..., seeds: int = ..., scenario: str | Scenario = ..., truth: File | None = ..., attackers: File | Mapping[str, File] | Sequence[File] = ..., places: File | None = ..., households: File | None = ..., properties: File | None = ..., i_am_the_data_holder: bool = ..., keep: File | None = ..., out: File | None = ..., overwrite: bool = ..., workers: int | None = ..., executor: str | None = ..., insecure: bool = ...) -> Compared: ...  # noqa: E501
def audit(*, config: File | None = ..., public: bool = ..., certificate_key: File | None = ..., out: File | None = ..., overwrite: bool = ..., workers: int | None = ..., executor: str | None = ..., insecure: bool = ...) -> Audited: ...  # noqa: E501
def status(folder: File) -> Status: ...  # noqa: E501

class _Infer:
    @staticmethod
    def posterior(*, rho: str | Sequence[str] = ..., noisy: str | Sequence[float] = ..., prior: str = ..., known: int = ..., rho2: str | Sequence[str] = ..., others: int | None = ..., noisy2: str | Sequence[float] = ..., noisy_others: str | Sequence[float] = ..., levels: str | Sequence[str] = ..., x2_prior: str = ..., noise_sum: Literal['exact', 'approx'] = ..., mode: Literal['exact', 'printed'] = ..., neighbours: Literal['add-remove', 'change-one'] = ..., true1: int | None = ..., attack: Literal['characteristics', 'participation', 'honesty', 'attribute'] | None = ...) -> PosteriorFound: ...  # noqa: E501
    @staticmethod
    def risk(*, rho: str | Sequence[str] = ..., prior: str = ..., known: int = ..., rho2: str | Sequence[str] = ..., others: int | None = ..., true2: int | None = ..., levels: str | Sequence[str] = ..., x2_prior: str = ..., mode: Literal['exact', 'printed'] = ..., noise_sum: Literal['exact', 'approx'] = ..., neighbours: Literal['add-remove', 'change-one'] = ..., attack: Literal['characteristics', 'participation', 'honesty', 'attribute'] | None = ...) -> Risk: ...  # noqa: E501
    @staticmethod
    def decide(*, rho: str | Sequence[str] = ..., prior: str = ..., known: int = ..., true1: int | None = ..., rho2: str | Sequence[str] = ..., others: int | None = ..., true2: int | None = ..., levels: str | Sequence[str] = ..., x2_prior: str = ..., ties: Literal['strict', 'half', 'one'] = ..., mode: Literal['exact', 'printed'] = ..., noise_sum: Literal['exact', 'approx'] = ..., neighbours: Literal['add-remove', 'change-one'] = ..., attack: Literal['characteristics', 'participation', 'honesty', 'attribute'] | None = ...) -> Decided: ...  # noqa: E501
    @staticmethod
    def plan(*, posterior: str | None = ..., ratio: str | None = ..., prior: str | Sequence[str] = ..., levels: str | Sequence[str] = ..., unique: bool = ..., allocation: str | None = ..., query: str = ..., delta: float = ..., significance: float = ..., neighbours: Literal['add-remove', 'change-one'] | None = ...) -> Plans: ...  # noqa: E501
    @staticmethod
    def epsilon(*, rho: str | Sequence[str] = ..., allocation: str | None = ..., delta: float = ..., significance: float = ..., neighbours: Literal['add-remove', 'change-one'] | None = ...) -> EpsilonFound: ...  # noqa: E501
    @staticmethod
    def sweep(*, rho: str = ..., prior: str = ..., allocation: str | None = ..., query: str = ..., levels: str | Sequence[str] = ..., rho2: str | None = ..., others: int | None = ..., true2: int | None = ..., x2_prior: str = ..., ties: Literal['strict', 'half', 'one'] = ..., neighbours: Literal['add-remove', 'change-one'] = ..., out: File | None = ..., overwrite: bool = ...) -> Sweep: ...  # noqa: E501
    @staticmethod
    def noise(*, rho: str, others: int = ..., neighbours: Literal['add-remove', 'change-one'] = ...) -> NoiseFound: ...  # noqa: E501
    @staticmethod
    def data(records: File, *, scenario: str | Scenario = ..., allocation: str = ..., query: str = ..., levels: str | Sequence[str] = ..., unknown: str = ..., whole: str | None = ..., prior: str = ..., threshold: float = ..., only: str | Sequence[str] = ..., matrix: bool = ..., sample: int = ..., seed: int = ...) -> ExposureFound: ...  # noqa: E501
    @staticmethod
    def postprocess(*, rho: str, others: int, total: int, prior: str = ..., true2: int = ..., rounding: Literal['half-even', 'half-up', 'half-down'] = ..., neighbours: Literal['add-remove', 'change-one'] = ...) -> PostProcessed: ...  # noqa: E501
    @staticmethod
    def figures(*, out: File | None = ..., only: str | Sequence[str] = ...) -> Figures: ...  # noqa: E501

infer: _Infer

class _Protect:
    @staticmethod
    def swap(records: File, *, rate: float, nearest: int = ..., small: int = ..., coordinates: File | None = ..., group_quarters: Literal['keep', 'synthesize'] = ..., log: File | None = ..., households: File | None = ..., households_out: File | None = ..., scenario: str | Scenario = ..., seed: int = ..., out: File | None = ..., overwrite: bool = ...) -> Swapped: ...  # noqa: E501
    @staticmethod
    def topdown(records: File, *, scenario: str | Scenario = ..., budget: str = ..., rho: str | float | Fraction | None = ..., top: str = ..., bottom_up: bool = ..., hold: str | Sequence[str] = ..., absence: str | Sequence[str] = ..., places: File | None = ..., neighbours: Literal['add-remove', 'change-one'] | None = ..., seed: int | None = ..., secure: bool = ..., out: File | None = ..., overwrite: bool = ..., workers: int | None = ..., executor: str | None = ..., insecure: bool = ...) -> ToppedDown: ...  # noqa: E501
    @staticmethod
    def relocate(records: File, *, by: str | Sequence[str], at_risk: int = ..., q: float | None = ..., at: str = ..., theta: File | None = ..., theta_out: File | None = ..., spread: Literal['whole', 'even'] = ..., seed: int = ..., place: str = ..., capacity: str = ..., weight: Literal['inverse-quadratic', 'constant', 'inverse-linear', 'inverse-cubic', 'inverse-exponential'] = ..., coverage: Literal['row-wise', 'relaxed'] = ..., near: File | None = ..., coordinates: File | None = ..., within: float = ..., out: File | None = ..., overwrite: bool = ...) -> RelocatedRecords: ...  # noqa: E501
    @staticmethod
    def noise(tables: File, *, scenario: str | Scenario = ..., rho: str | float | Fraction | None = ..., budget: str = ..., neighbours: Literal['add-remove', 'change-one'] | None = ..., invariant: str | Sequence[str] = ..., postprocess: Literal['simple', 'clip', 'none'] = ..., measurements: File | None = ..., seed: int | None = ..., secure: bool = ..., codebook: File | None = ..., assume_published: str = ..., missing: Literal['zero', 'hidden'] | None = ..., rounded: str | None = ..., cell_key: File | None = ..., noise_within: float | None = ..., marker: Mapping[str, str] | Sequence[str] | None = ..., thousands: str | None = ..., exact: bool = ..., all_places: File | None = ..., mapping: Mapping[str, File] | Sequence[str] | None = ..., only: str | Sequence[str] = ..., out: File | None = ..., overwrite: bool = ...) -> NoisyTables: ...  # noqa: E501
    @staticmethod
    def round(tables: File, *, scenario: str | Scenario = ..., base: int = ..., how: Literal['random', 'nearest', 'up', 'down'] = ..., seed: int = ..., codebook: File | None = ..., assume_published: str = ..., missing: Literal['zero', 'hidden'] | None = ..., rounded: str | None = ..., cell_key: File | None = ..., noise_within: float | None = ..., marker: Mapping[str, str] | Sequence[str] | None = ..., thousands: str | None = ..., exact: bool = ..., all_places: File | None = ..., mapping: Mapping[str, File] | Sequence[str] | None = ..., only: str | Sequence[str] = ..., out: File | None = ..., overwrite: bool = ..., values: File | None = ...) -> Intervals: ...  # noqa: E501
    @staticmethod
    def suppress(tables: File, *, scenario: str | Scenario = ..., below: int = ..., zeros: Literal['show', 'hide'] = ..., also: File | None = ..., codebook: File | None = ..., assume_published: str = ..., missing: Literal['zero', 'hidden'] | None = ..., rounded: str | None = ..., cell_key: File | None = ..., noise_within: float | None = ..., marker: Mapping[str, str] | Sequence[str] | None = ..., thousands: str | None = ..., exact: bool = ..., all_places: File | None = ..., mapping: Mapping[str, File] | Sequence[str] | None = ..., only: str | Sequence[str] = ..., out: File | None = ..., overwrite: bool = ..., values: File | None = ...) -> Intervals: ...  # noqa: E501
    @staticmethod
    def cellkey(tables: File, *, scenario: str | Scenario = ..., ptable: File | None = ..., seed: int = ..., codebook: File | None = ..., assume_published: str = ..., missing: Literal['zero', 'hidden'] | None = ..., rounded: str | None = ..., cell_key: File | None = ..., noise_within: float | None = ..., marker: Mapping[str, str] | Sequence[str] | None = ..., thousands: str | None = ..., exact: bool = ..., all_places: File | None = ..., mapping: Mapping[str, File] | Sequence[str] | None = ..., only: str | Sequence[str] = ..., out: File | None = ..., overwrite: bool = ..., values: File | None = ...) -> Intervals: ...  # noqa: E501
    @staticmethod
    def properties(file: File, *, rho: str | float | Fraction, neighbours: Literal['add-remove', 'change-one'] | None = ..., seed: int | None = ..., secure: bool = ..., scenario: str | Scenario = ..., out: File | None = ..., overwrite: bool = ...) -> NoisyProperties: ...  # noqa: E501

protect: _Protect
