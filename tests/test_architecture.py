"""Is the house still the house of the design? Imports go up only, one importer per solver, names say something."""

from __future__ import annotations

import ast
import re
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


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
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
            if other.isupper():  # the verbs that the package itself lists
                continue
            together = {other, noun(path)} == {"commands", "cli"}  # until commands are functions
            assert other == noun(path) or together or RANK[other] < RANK[noun(path)], f"{path.name} imports {name}"


@pytest.mark.parametrize("library", ONE_IMPORTER)
def test_each_solver_has_one_importer(library: str) -> None:
    importers = [p for p in MODULES if any(name.split(".")[0] == library for name in imports(p))]
    assert len(importers) <= 1, f"{library} is imported by {importers}"
    expected = ONE_IMPORTER[library]
    if importers and expected:
        assert importers[0] == SRC / expected


def test_no_scenario_is_named_in_code_outside_examples() -> None:
    """Convention 3: a new country's tables are a new folder, not new code. Examples of commands may name one."""
    for path in MODULES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        told = {id(inner) for call in ast.walk(tree) if _tells(call) for inner in ast.walk(call)}
        told |= {id(default) for node in ast.walk(tree) for default in _defaults(node)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told:
                named = [name for name in known_scenarios() if name in node.value]
                assert not named or path.is_relative_to(SRC / "cli"), f"{path}:{node.lineno} names {named[0]}"


def _tells(node: ast.AST) -> bool:
    """Does a node only tell people something? A docstring, or the example, the help or a default of a command."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id in ("command", "Opt")
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _defaults(node: ast.AST) -> list[ast.expr | None]:
    """What a command does when it is not told otherwise: the values after its keywords."""
    if not isinstance(node, ast.FunctionDef) or not any(_tells(one) for one in node.decorator_list):
        return []
    return node.args.kw_defaults


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
        calls = [
            n.func.id
            for n in ast.walk(ast.parse(path.read_text("utf-8")))
            if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)
        ]
        assert not {"eval", "exec", "compile", "__import__"} & set(calls), path
