"""The command line: what users type, what they see, and how it ends (exit codes are a contract)."""

from __future__ import annotations

import errno
import json
import sys
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from glasshouse import NAMESPACES, VERBS
from glasshouse.cli.derive import OnceGroup, add, add_group
from glasshouse.cli.output import Stopped, flushed, say, take_any_terminal
from glasshouse.commands.result import BAD_INPUT, DONE, INTERRUPTED, OUR_BUG
from glasshouse.errors import InputError, refuse_few_addresses
from glasshouse.limits import ADDRESSES
from glasshouse.text import plain

STOPPED = "interrupted; nothing was left behind; the same command starts over"
NO_MEMORY = (
    "there is not enough memory; give the same command fewer --workers, fewer tables (--tables) or a machine with more "
    "memory; a folder of results resumes where it stopped"
)
TERMINAL = {**VERBS, "scenarios": "glasshouse.commands.scenarios"}  # in Python that is a package; gh.scenario loads one


def application(words: Sequence[str] = ()) -> typer.Typer:
    """The terminal's commands: those of the library, as it is now; a user's own protection may have come since.

    If the words begin with the name of a command, it is the only one: to derive all takes longer than many a command.
    """
    app = typer.Typer(
        name="glasshouse",
        cls=OnceGroup,
        help="Shows a statistical office what its published tables give away.\n\n"
        "Glasshouse is a tool of defence: use it on your own tables, on synthetic data, or on data already published.",
        epilog="Example:  glasshouse check tables.csv.gz --scenario sf1-person",
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    first, second = (word.replace("-", "_") for word in [*words, "", ""][:2])
    asked = {first} & {*TERMINAL, *NAMESPACES}
    for verb, where in TERMINAL.items():
        if not asked or verb in asked:
            add(app, getattr(import_module(where), verb))
    for name, group in NAMESPACES.items():
        if not asked or name in asked:
            add_group(app, name, group, second)
    app.callback(invoke_without_command=True)(_root)
    return app


def _root(
    ctx: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.", is_eager=True)] = False,
) -> None:
    if version:
        from importlib.metadata import version as installed

        print(f"glasshouse {installed('glasshouse')}")
        raise typer.Exit()
    if ctx.invoked_subcommand is None:
        print(ctx.get_help())


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code; every ending has its own."""
    given = sys.argv[1:] if arguments is None else arguments
    fail: Callable[..., int] = partial(_fail, as_json="--json" in given)
    try:
        refuse_few_addresses(ADDRESSES, "this program")
        result = application(given)(args=given, prog_name="glasshouse", standalone_mode=False)
        if result == INTERRUPTED:  # how typer passes on Ctrl-C
            return fail(STOPPED, code=INTERRUPTED)
        return result if isinstance(result, int) else DONE
    except typer.Exit as error:
        return error.exit_code
    except typer.TyperException as error:
        return fail(f"{error.format_message()} (glasshouse COMMAND --help lists its options)", code=BAD_INPUT)
    except InputError as error:
        return fail(*error.args, code=BAD_INPUT)
    except Stopped as error:
        return fail(str(error), code=INTERRUPTED)
    except (KeyboardInterrupt, typer.Abort):
        return fail(STOPPED, code=INTERRUPTED)
    except BrokenPipeError:  # elsewhere than in what is printed, which bears it
        return DONE
    except SystemExit:
        raise
    except BaseException as error:  # a panic in Polars, too, which is no Exception
        if _for_want_of_memory(error):
            return fail(NO_MEMORY, code=BAD_INPUT)
        if isinstance(error, OSError):
            return fail(f"{error.filename or 'output'}: {error.strerror or error}", code=BAD_INPUT)
        # the last resort: say that it is our fault, without the data an exception may carry
        if "--verbose" in given or "-v" in given:
            say(*(line.rstrip() for line in traceback.format_tb(error.__traceback__)))
        at = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(at.filename).name}:{at.lineno}"
        return fail(
            f"a bug of ours ({type(error).__name__} at {place}); please report it, with --verbose for the details",
            code=OUR_BUG,
        )


def _for_want_of_memory(error: BaseException) -> bool:
    """Was there too little memory? NumPy, Arrow, HiGHS and Numba raise a MemoryError; the system says it otherwise."""
    system = isinstance(error, OSError) and error.errno == errno.ENOMEM
    threads = isinstance(error, RuntimeError) and "can't start new thread" in str(error)
    return isinstance(error, MemoryError) or system or threads


def _fail(*mistakes: str, code: int, as_json: bool) -> int:
    """Say what went wrong, on one line for each mistake."""
    lines = [plain(str(mistake)) for mistake in mistakes]
    say(*(f"glasshouse: {line}" for line in lines))
    if as_json:
        print(json.dumps({"error": "\n".join(lines), "exit_code": code}))
    return code


def entry() -> None:
    """What the installed command calls."""
    take_any_terminal()
    code = main()
    sys.exit(code if flushed() else BAD_INPUT)
