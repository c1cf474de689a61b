"""Is the house still the house of the design? Imports go up only, one importer per solver, names say something."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from glasshouse.scenarios.load import known_scenarios

SRC = Path(__file__).resolve().parents[1] / "src" / "glasshouse"

# A module imports only from modules before it; those on one line do not know each other.
ORDER: list[set[str]] = [
    {"limits", "text"},
    {"errors"},
    {"model"},
    {"scenarios"},
    {"files"},
    {"population"},
    {"program"},
    {"mechanism"},
    {"attack", "protection"},
    {"proofs"},
    {"assess"},
    {"report"},
    {"engine"},
    {"commands"},
    {"cli"},
]
RANK = {name: rank for rank, names in enumerate(ORDER) for name in names}
ONE_IMPORTER = {
    "highspy": "program/highs.py",
    "ortools": "program/cpsat.py",
    "opendp": None,
    "dask": "engine/wire.py",
    "distributed": "engine/wire.py",
    "msgpack": "engine/wire.py",
    "xlsxwriter": "report/render/sheets.py",
    "jinja2": "report/render/templates.py",
    "vl_convert": "report/render/vega.py",
    "xml": "files/formats/markup.py",  # where entities and depth are kept in check
}
MODULES = sorted(SRC.rglob("*.py"))


def noun(path: Path) -> str:
    """The part of the house that a file belongs to."""
    return path.relative_to(SRC).parts[0].removesuffix(".py")


def nodes_of(text: str) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(text)))


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    return nodes_of(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module", autouse=True)
def _put_away() -> Iterator[None]:
    """A million nodes are no burden to the tests after these."""
    yield
    nodes.cache_clear()


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
            if other.isupper():  # the verbs that the package itself lists
                continue
            assert other == noun(path) or RANK[other] < RANK[noun(path)], f"{path.name} imports {name}"


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
    assert not [sorted(circle) for circle in circles]


@pytest.mark.parametrize("library", ONE_IMPORTER)
def test_each_solver_has_one_importer(library: str) -> None:
    importers = [p for p in MODULES if any(name.split(".")[0] == library for name in imports(p))]
    assert len(importers) <= 1, f"{library} is imported by {importers}"
    expected = ONE_IMPORTER[library]
    if importers and expected:
        assert importers[0] == SRC / expected


def test_no_scenario_is_named_in_code_outside_examples() -> None:
    """Convention 3: a new country's tables are a new folder, not new code. Examples of commands may name one."""
    known = known_scenarios()
    for path in MODULES:
        told = {id(inner) for call in nodes(path) if _tells(call) for inner in ast.walk(call)}
        told |= {id(default) for node in nodes(path) for default in _defaults(node)}
        for node in nodes(path):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told:
                named = [name for name in known if name in node.value]
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
        most = 523 if path.name == "check_proof.py" else 450  # the checker is one file on purpose: strangers read it
        assert len(path.read_text(encoding="utf-8").splitlines()) <= most, f"{path}: which second noun hides in it?"


def test_a_folder_is_seen_at_a_glance() -> None:
    for folder in {path.parent for path in MODULES}:
        assert len(list(folder.glob("*.py"))) <= 26, f"{folder}: which rooms hide in it?"  # 25, and what it is for


def test_what_is_handed_over_has_a_type() -> None:
    """Results, jobs and options are dataclasses; what is left are the words of JSON, TOML and keywords."""
    loose = {path: path.read_text(encoding="utf-8").count("dict[str, Any]") for path in MODULES}
    assert sum(loose.values()) < 30, sorted((number, str(path)) for path, number in loose.items() if number)
    for path in MODULES:
        if path.name == "compare_plan.py":  # the settings of a plan are keywords by name
            continue
        assert not re.search(r"\boptions(\[|\.get\()[\"']", path.read_text(encoding="utf-8")), (
            f"{path}: an option by text"
        )


def test_every_module_answers_a_question() -> None:
    for path in MODULES:
        tree = nodes(path)[0]
        assert isinstance(tree, ast.Module)
        docstring = ast.get_docstring(tree)
        assert docstring, f"{path} has no docstring"


def test_nothing_executes_or_unpickles_data() -> None:
    """Convention 9: no code from a configuration, no pickle from disk or network, no network of ours."""
    banned = {"pickle", "shelve", "marshal", "socket", "urllib", "http", "requests", "subprocess"}
    banned |= {"cloudpickle", "dill", "joblib", "yaml"}
    for path in MODULES:
        assert not {name.split(".")[0] for name in imports(path)} & banned, path
        calls = [n.func.id for n in nodes(path) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)]
        assert not {"eval", "exec", "compile", "__import__"} & set(calls), path


def test_only_a_job_is_unpickled_and_only_by_whoever_does_it() -> None:
    """Convention 9: readers that could run code are called in one place, which workers use and nobody else does."""
    loading, unpacking = set(), set()
    for path in MODULES:
        for node in nodes(path):
            if isinstance(node, ast.Attribute) and node.attr in ("loads", "load", "Unpickler"):
                owner = ast.unparse(node.value)
                if owner not in ("json", "tomllib", "msgpack"):
                    loading.add((path.relative_to(SRC).as_posix(), f"{owner}.{node.attr}"))
            if isinstance(node, ast.Call) and ast.unparse(node) == "packed.job()":
                unpacking.add(path.relative_to(SRC).as_posix())
            assert not (isinstance(node, ast.keyword) and node.arg == "allow_pickle"), path
    travels = "ForkingPickler.loads"
    assert loading == {("engine/package.py", travels)}
    assert unpacking == {"engine/dask.py", "engine/workers.py"}


# What is of one country: it may be named in scenarios, which are data, in the synthetic county, and in file formats.
COUNTRY_ROOMS = ("population", "files")
RACES = {"aian", "asian", "nhopi", "sor", "race", "races", "hispanic"}
PEOPLE = {"sex", "age", "agebin", "male", "female", "gq"}
PLACES = {"block", "tract", "county"}
MANY = {"blocks", "tracts", "counties"}
SAID = {"aian", "nhopi", "race", "races", "hispanic", "agebin", "sex", *PLACES, *MANY}  # the rest are also other words
NAMES = RACES | PEOPLE | PLACES | MANY
VERBATIM = {"38-bin", "exact-age"}
ALSO = {"white": RACES, "black": RACES, "state": PLACES}  # words with other meanings, where these are named beside them
CODE_LENGTHS = {2, 5, 11, 12, 15}
# Names of columns and keys in files of the contract that say block, whatever the place of a scenario is called.
CONTRACT = re.compile(
    r"(zero_)?(blocks|tracts)(_with_claim|_left_out)?|block_share(_low|_high|_published)?|per_block_?"
)

# What is left, by file or folder; it may only become less.
STILL_NAMED: dict[str, set[str]] = {
    # keys of summaries and columns of files that are a contract: `blocks`, a property's `block`
    "commands/auditing/": {"block", "blocks", "county", "sex"},
    "commands/compare_plan.py": {"blocks"},
    "commands/infer/budgets.py": {"block"},  # what a level is called that nobody named
    "commands/relocating/options.py": {"block"},
    "commands/synthesize.py": {"blocks", "county", "tracts"},  # our invented county
    "commands/words/": {"block", "blocks", "county"},
    "commands/work/detect.py": {"block"},
    # a place whose households two agencies speak of, in paper 004's own words
    "attack/occupancy/": {"block", "race", "races"},
    # a block of a report is a piece of the page
    "report/": {"block", "blocks", "state"},
}


def country_words(code: tuple[ast.AST, ...]) -> set[str]:
    """One country's attributes, levels and code lengths in the code of a module; docstrings may give examples."""
    described = {
        id(node.body[0].value)
        for node in code
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    described |= {id(inner) for node in code if _tells(node) for inner in ast.walk(node)}
    found: set[str] = set()
    perhaps: set[str] = set()
    for node in code:
        match node:
            case ast.Constant(value=str(said)) if id(node) not in described:
                if said in VERBATIM:
                    found.add(said)
                elif re.fullmatch(r"[A-Za-z]+(_[A-Za-z]*)*", said):
                    found |= set() if CONTRACT.fullmatch(said) else words_of(said) & NAMES
                    perhaps |= words_of(said) & set(ALSO)
                else:
                    found |= words_of(said) & SAID
            case ast.AnnAssign(target=ast.Name(id=name) as field) if CONTRACT.fullmatch(name):
                described.add(id(field))  # of a frozen result, which is written under the names of its fields
            case ast.keyword(arg=str(name)) if CONTRACT.fullmatch(name):
                pass
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) | ast.keyword(arg=str(name)):
                found |= set() if id(node) in described else words_of(name) & NAMES | {name} & {"STATE"}
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                found |= words_of(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)) & NAMES
            case ast.Subscript(value=what, slice=ast.Slice(lower=None, upper=ast.Constant(value=int(length)))):
                if length in CODE_LENGTHS and re.search(r"code|geoid|place|block|tract|unit|area", ast.unparse(what)):
                    found.add(f"[:{length}]")
            case ast.Compare(comparators=[ast.Constant(value=18)]):
                found.add("18")
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=18)) if name.isupper():
                found.add("18")
    return found | {word for word in perhaps if found & ALSO[word]}


def words_of(text: str) -> set[str]:
    return set(re.findall(r"[a-z]+", text.lower()))


@pytest.mark.parametrize(("text", "expected"), [
    ('RACES = ("white", "sor")', {"races", "white", "sor"}),
    ("STATE = 2", {"STATE"}),
    ("state = code[:2]", {"[:2]"}),
    ('frame["tract"]', {"tract"}),
    ('raise InputError("a block is in two rows")', {"block"}),
    ("adult = years >= 18", {"18"}),
    ("OLDEST, GROWN = 110, 17\nADULT = 18", {"18"}),
    ("def alike_in_tract(): ...", {"tract"}),
    ("class Blocks: ...", {"blocks"}),
    ('schema == "38-bin"', {"38-bin"}),
    ('{"zero_blocks": 1, "blocks": 2}', set()),
    ("class Headline:\n    blocks: int", set()),
    ("Headline(blocks=2)", set()),
    ("blocks = 2", {"blocks"}),
    ('"""The blocks of a county."""', set()),
    ("state = digest[:12]", set()),
    ('{"state": "done", "fill": "white"}', set()),
    ('LEVELS = {"state": 2, "county": 5}', {"state", "county"}),
])  # fmt: skip
def test_what_is_of_one_country_is_found(text: str, expected: set[str]) -> None:
    assert country_words(nodes_of(text)) == expected


def test_no_country_is_named_in_code() -> None:
    """Convention 3: attributes, levels and code lengths are data of a scenario."""
    left = {place: set(words) for place, words in STILL_NAMED.items()}
    for path in MODULES:
        if noun(path) in COUNTRY_ROOMS:
            continue
        name = path.relative_to(SRC).as_posix()
        place = next((place for place in STILL_NAMED if name.startswith(place)), "")
        found = country_words(nodes(path))
        assert found <= STILL_NAMED.get(place, set()), f"{name}: {found - STILL_NAMED.get(place, set())}"
        left.get(place, set()).difference_update(found)
    assert not any(left.values()), f"these are no longer named; take them off the list: {left}"


ONE_HOME = {  # what a module that is not the home of an idea would say
    "assess/one_solution.py": re.compile(r"_upper\"?[\])]+ == 0"),
    "assess/people/groups.py": re.compile(r"\"(zero-solvar-)?nonmodal-unique(-exact)?\""),
}


@pytest.mark.parametrize("home", ONE_HOME)
def test_an_idea_has_one_home(home: str) -> None:
    saying = [path for path in MODULES if ONE_HOME[home].search(path.read_text(encoding="utf-8"))]
    assert [path for path in saying if path != SRC / home] == []
