"""How does a declared command become one of the terminal? Its options are read from the declaration.

On typer. cyclopts, which reads signatures itself, was tried: it takes twice as long to import (0.26 s for 0.14 s),
draws its help and errors in boxes, and does not know arguments that may be a file or a frame.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from glasshouse.cli.output import tell
from glasshouse.commands.declaration import Declared, Option, declaration
from glasshouse.commands.namespace import Namespace
from glasshouse.commands.result import Result
from glasshouse.errors import InputError

AS_JSON, QUIET, VERBOSE = "as_json", "quiet", "verbose"
_EVERYWHERE = {
    AS_JSON: typer.Option("--json", help="Print one JSON object on stdout."),
    QUIET: typer.Option("--quiet", "-q", help="No progress bar, no notes."),
    VERBOSE: typer.Option("--verbose", "-v", help="Say more on stderr; show where a bug of ours happened."),
}


class OnceCommand(TyperCommand):
    """A command that takes each option once, unless it is one to repeat: else all but the last would be dropped."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        _refuse_repeats(self, ctx, args)
        return super().parse_args(ctx, args)


class OnceGroup(TyperGroup):
    """A group of such commands, itself strict about its own options."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        _refuse_repeats(self, ctx, args)
        return super().parse_args(ctx, args)


def _refuse_repeats(command: TyperCommand | TyperGroup, ctx: Any, args: list[str]) -> None:
    """Count how often each option stands on the line, under any of its names."""
    _, _, order = command.make_parser(ctx).parse_args(args=[*args])
    for option in order:
        if order.count(option) > 1 and not getattr(option, "multiple", True):
            about = getattr(option, "help", "")
            raise InputError(f"{option.opts[0]} is given {order.count(option)} times; expected once: {about}")


def add(app: typer.Typer, function: Callable[..., Result[Any]]) -> None:
    """Add a declared function to the terminal's commands."""
    declared = declaration(function)
    epilog = f"Example:  {declared.example}" if declared.example else None
    app.command(declared.name, cls=OnceCommand, epilog=epilog)(_shown(function, declared))


def add_group(app: typer.Typer, name: str, group: Namespace, asked: str = "") -> None:
    """Add functions that belong together as a group of commands, which alone shows its help; or the one asked for."""
    commands = typer.Typer(cls=OnceGroup, rich_markup_mode=None)
    for verb in [asked] if asked in group else group:
        add(commands, getattr(group, verb))

    @commands.callback(invoke_without_command=True)
    def _alone(ctx: typer.Context) -> None:
        if ctx.invoked_subcommand is None:
            print(ctx.get_help())

    app.add_typer(commands, name=name, help=group.__doc__)


def _shown(function: Callable[..., Result[Any]], declared: Declared) -> Callable[..., int]:
    """The function as the terminal calls it: its result is told, and the exit code returned."""

    def run(**given: Any) -> int:
        as_json, quiet, _ = (bool(given.pop(name)) for name in _EVERYWHERE)
        called = function
        for flag, (_, other) in declared.instead.items():
            if given.pop(_name(flag)):
                called = other
        if called is function and not as_json and "out" in declared.by_name and given.get("out") is None:
            what = "where to write the file" if _writes_file(declared) else "which folder to write"
            nothing = "(or ask for --json alone, which keeps nothing)"
            raise InputError(f"--out is missing: say {what} {nothing}")
        options = [option for option in declared.options if option.positional]
        positional = [given.pop(option.name) for option in options]
        return tell(called, positional, given, as_json=as_json, quiet=quiet)

    parameters = [_parameter(option) for option in declared.options]
    for flag, (says, _) in declared.instead.items():
        parameters.append(_keyword(_name(flag), bool, typer.Option(flag, help=says), False))
    parameters += [_keyword(name, bool, option, False) for name, option in _EVERYWHERE.items()]
    signature = inspect.Signature(parameters, return_annotation=int)
    run.__signature__ = signature  # type: ignore[attr-defined]  # what typer reads
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    run.__doc__ = declared.says
    return run


def _writes_file(declared: Declared) -> bool:
    return "file" in declared.by_name["out"].opt.help or "." in declared.by_name["out"].opt.help.partition(":")[2]


def _name(flag: str) -> str:
    return flag.removeprefix("--").replace("-", "_")


def _keyword(name: str, kind: Any, about: Any, default: Any) -> inspect.Parameter:
    annotation = Annotated[kind, about]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _parameter(option: Option) -> inspect.Parameter:
    kind, default = _terminal_type(option)
    opt = option.opt
    said: dict[str, Any] = {"help": opt.help}
    if opt.metavar:
        said["metavar"] = opt.metavar
    if option.kind in (int, float):
        said |= {"min": opt.least, "max": opt.most}
    if option.positional:
        return _keyword(option.name, kind, typer.Argument(**said), default)
    flags = [option.flag, *([opt.short] if opt.short else [])]
    return _keyword(option.name, kind, typer.Option(*flags, **said), default)


def _terminal_type(option: Option) -> tuple[Any, Any]:
    """The type that the terminal reads, and the default it shows; the door makes of it what the function takes."""
    kind = option.kind if option.kind in (int, float, bool, Path) else str
    default = inspect.Parameter.empty if option.required else option.default
    several = () if option.required else option.default or ()
    if option.shape in ("named", "pairs"):
        return list[str], default if option.required else []
    if option.shape == "many" and (option.positional or option.opt.repeated):
        part = kind if option.kind in (int, float) else str
        return list[part], default if option.required else list(several)  # type: ignore[valid-type]  # a real type
    if option.shape == "many":
        return str, default if option.required else ",".join(map(str, several))
    if default is None:
        return kind | None, None
    return kind, default
