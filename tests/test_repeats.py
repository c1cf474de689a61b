"""Does any option drop what was said before? One that takes one value is refused when it is given twice."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
import typer

from glasshouse import NAMESPACES
from glasshouse.cli.main import TERMINAL, application
from glasshouse.commands.declaration import declaration
from glasshouse.errors import InputError
from tests.running import tool

ROOT: Any = typer.main.get_command(application())


def commands(command: Any = ROOT, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, (*path, name))


ALL = list(commands())
OPTIONS = [(path, option) for path, command in ALL for option in command.params if option.param_type_name == "option"]
ONCE = [(path, option) for path, option in OPTIONS if not option.multiple]
AT = dict(ALL)


def typed(verb: str) -> str:
    """How the terminal spells it."""
    return verb.replace("_", "-")


def test_every_command_is_looked_at() -> None:
    declared = {(typed(verb),) for verb in TERMINAL} | {
        (name, verb) for name, group in NAMESPACES.items() for verb in group
    }
    assert {path for path, command in ALL if not hasattr(command, "commands")} == declared
    assert len(ONCE) > 250


@pytest.mark.parametrize("path", [path for path, _ in ALL if path], ids=" ".join)
def test_a_command_built_alone_is_the_one_among_all(path: tuple[str, ...]) -> None:
    """Only the command that is asked for is built; a group that is asked for by its name has all of its commands."""

    def described(root: Any) -> object:
        for name in path:
            root = root.commands[name]
        help_of = (inner.get_help(typer.Context(inner, info_name=inner.name)) for _, inner in commands(root))
        return [*help_of], [(one.name, one.opts, one.default) for one in root.params]

    alone: Any = typer.main.get_command(application(path))
    assert [*alone.commands] == [path[0]] and [*commands(alone)] != ALL
    assert described(alone) == described(ROOT)


def test_a_word_that_is_no_command_is_looked_for_among_all() -> None:
    for words in ((), ("--help",), ("unheard-of",)):
        alone: Any = typer.main.get_command(application(words))
        assert [*alone.commands] == [*ROOT.commands]
    protect: Any = typer.main.get_command(application(("protect", "unheard-of")))
    assert [*protect.commands["protect"].commands] == [*ROOT.commands["protect"].commands]


@pytest.mark.parametrize(("path", "option"), ONCE, ids=lambda x: x.name if hasattr(x, "name") else " ".join(x))
def test_an_option_that_is_not_to_be_repeated_is_refused_twice(path: tuple[str, ...], option: Any) -> None:
    value = [] if option.is_flag else ["1"]
    for first in option.opts:  # a short name counts as well
        with pytest.raises(InputError, match=f"^{option.opts[0]} is given 2 times; expected once"):
            AT[path].make_context("read only", [first, *value, option.opts[-1], *value])


def test_only_options_that_are_declared_so_are_repeated() -> None:
    for path, option in OPTIONS:
        if option.multiple:
            verb = path[-1].replace("-", "_")
            where = import_module(TERMINAL[verb]) if len(path) == 1 else NAMESPACES[path[0]]
            declared = declaration(getattr(where, verb)).by_name[option.name]
            assert declared.opt.repeated or declared.shape in ("named", "pairs")


@pytest.mark.parametrize(
    ("arguments", "flag"),
    [
        ("infer noise --rho 0.1 --rho 0.2", "--rho"),
        ("check t.csv -s sf1-person --scenario dhc-household", "--scenario"),
        ("vary t.csv --scenario sf1-person --tables P1 --tables P12", "--tables"),
        ("infer noise --rho=0.1 --others 2 --others=3 --json", "--others"),
        ("--version --version", "--version"),
        ("check t.csv -q -q", "--quiet"),
    ],
)
def test_the_terminal_ends_with_bad_input_and_names_the_option(arguments: str, flag: str) -> None:
    ended = tool(*arguments.split())
    assert ended.code == 2
    assert f"{flag} is given 2 times" in ended.err
    assert ("given 2 times" in ended.out) == ("--json" in arguments)
