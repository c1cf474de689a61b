"""Is the house still the house of the design? Imports go up only, one importer per solver, names say something."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from glasshouse.scenarios.load import known_scenarios

SRC = Path(__file__).resolve().parents[1] / "src" / "glasshouse"

# A module imports only from modules before it; those on one line do not know each other.
ORDER: list[set[str]] = [
    {"errors"},
    {"model"},
    {"scenarios"},
    {"files"},
    {"population"},
    {"program"},
    {"mechanism"},
    {"attack", "protection"},
    {"assess"},
    {"report"},
    {"engine"},
    {"commands", "cli"},
]
RANK = {name: rank for rank, names in enumerate(ORDER) for name in names}
ONE_IMPORTER = {
    "highspy": "program/highs.py",
    "ortools": "program/cpsat.py",
    "opendp": None,
    "dask": "engine/dask.py",
    "distributed": "engine/dask.py",
    "xlsxwriter": "report/workbook.py",
    "jinja2": "report/templates.py",
}
MODULES = sorted(SRC.rglob("*.py"))


def noun(path: Path) -> str:
    """The part of the house that a file belongs to."""
    return path.relative_to(SRC).parts[0].removesuffix(".py")


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


@cache
def imports(path: Path) -> set[str]:
    found = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}: imports are absolute"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SRC)))
def test_imports_go_up_only(path: Path) -> None:
    if noun(path) in ("__init__", "__main__"):
        return
    assert noun(path) in RANK, f"{noun(path)} has no place in the order of the design"
    for name in imports(path):
        if name.startswith("glasshouse."):
            other = name.split(".")[1]
            together = {other, noun(path)} == {"commands", "cli"}  # until commands are functions
            assert other == noun(path) or together or RANK[other] < RANK[noun(path)], f"{path.name} imports {name}"


def module_of(path: Path) -> str:
    name = ".".join(path.relative_to(SRC.parent).with_suffix("").parts)
    return name.removesuffix(".__init__")


def own_imports(path: Path, known: set[str]) -> set[str]:
    """The modules of the house that a module imports, wherever it does so; what is for the type checker alone is not.

    A name for an annotation makes nobody call anybody, so imports under TYPE_CHECKING do not count.
    """
    found, skipped = set(), set[ast.AST]()
    for node in nodes(path):  # outer ones come before inner ones
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            skipped.update(node.body)
        elif node in skipped:
            continue
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= names & known or {node.module}
    return found & known


# Modules that still import each other, each circle to be mended where it is.
CIRCLES = (
    {"engine.dask", "engine.workers"},
    {"cli.audit", "cli.calling", "cli.compare", "cli.main", "commands.auditing.findings", "commands.auditing.steps",
     "commands.auditing.writing", "commands.work.compare"},
)  # fmt: skip


def test_no_module_imports_itself_by_way_of_others() -> None:
    known = {module_of(path): path for path in MODULES}
    used = {name: own_imports(path, set(known)) - {name} for name, path in known.items()}
    reached: dict[str, set[str]] = {}
    for name in used:
        open_, met = [name], set[str]()
        while open_:
            fresh = used[open_.pop()] - met
            met |= fresh
            open_ += fresh
        reached[name] = met
    circles = {frozenset(other for other in reached[name] if name in reached[other]) for name in used} - {frozenset()}
    named = [{f"glasshouse.{name}" for name in circle} for circle in CIRCLES]
    assert not [sorted(circle) for circle in circles if not any(circle <= known for known in named)]


@pytest.mark.parametrize("library", ONE_IMPORTER)
def test_each_solver_has_one_importer(library: str) -> None:
    importers = [p for p in MODULES if any(name.split(".")[0] == library for name in imports(p))]
    assert len(importers) <= 1, f"{library} is imported by {importers}"
    expected = ONE_IMPORTER[library]
    if importers and expected:
        assert importers[0] == SRC / expected


def test_no_scenario_is_named_in_code_outside_the_command_line() -> None:
    """Convention 3: a new country's tables are a new folder, not new code."""
    for path in MODULES:
        if not path.is_relative_to(SRC / "cli"):
            text = path.read_text(encoding="utf-8")
            assert not [name for name in known_scenarios() if name in text], path


def test_scenarios_are_data() -> None:
    found = {path.suffix for path in (SRC / "scenarios" / "data").rglob("*") if path.is_file()}
    assert found <= {".toml", ".csv"}


def test_names_say_something_and_files_stay_short() -> None:
    for path in MODULES:
        assert not re.search(r"(utils?|common|misc|helpers?)\.py$", path.name), path
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 450, f"{path}: which second noun hides in it?"


def test_every_module_answers_a_question() -> None:
    for path in MODULES:
        docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
        assert docstring, f"{path} has no docstring"


def test_nothing_executes_or_unpickles_data() -> None:
    """Convention 9: no code from a configuration, no pickle from disk, no network."""
    banned = {"pickle", "shelve", "marshal", "socket", "urllib", "http", "requests", "subprocess"}
    for path in MODULES:
        assert not {name.split(".")[0] for name in imports(path)} & banned, path
        calls = [n.func.id for n in nodes(path) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)]
        assert not {"eval", "exec", "compile", "__import__"} & set(calls), path
