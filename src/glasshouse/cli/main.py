"""The command line: what users type, what they see, and how it ends (exit codes are a contract)."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from glasshouse import VERBS
from glasshouse.cli.audit import app as audit_app
from glasshouse.cli.derive import add
from glasshouse.cli.detect import app as detect_app
from glasshouse.cli.infer import app as infer_app
from glasshouse.cli.options import Interrupted as OldInterrupted
from glasshouse.cli.population import app as population_app
from glasshouse.cli.telling import Stopped, say
from glasshouse.cli.tradeoff import app as tradeoff_app
from glasshouse.cli.verify import app as verify_app
from glasshouse.commands.protect.register import protections
from glasshouse.commands.result import BAD_INPUT, DONE, INTERRUPTED, OUR_BUG
from glasshouse.errors import InputError

STOPPED = "interrupted; nothing was left behind; the same command starts over"

app = typer.Typer(
    name="glasshouse",
    help="Shows a statistical office what its published tables give away.\n\n"
    "Glasshouse is a tool of defence: use it on your own tables, on synthetic data, or on data already published.",
    epilog="Example:  glasshouse check tables.csv.gz --scenario sf1-person",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


protect_app = typer.Typer(rich_markup_mode=None, no_args_is_help=True)

for verb, where in {**VERBS, "scenarios": "glasshouse.commands.scenarios"}.items():
    add(app, getattr(import_module(where), verb))
app.add_typer(population_app)
app.add_typer(verify_app)
app.add_typer(detect_app)
app.add_typer(tradeoff_app)
app.add_typer(protect_app, name="protect")
app.add_typer(infer_app)
app.add_typer(audit_app)


@app.callback(invoke_without_command=True)
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


def _printable(text: str) -> str:
    """Text in which a stray line end or escape sequence of a file is spelt out."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def main(arguments: list[str] | None = None, *, aloud: bool = True) -> int:
    """Run the command line and return its exit code; every ending has its own. Not `aloud`: another command says it."""
    given = sys.argv[1:] if arguments is None else arguments
    _offer_protections()
    fail: Callable[..., int] = partial(_fail, as_json="--json" in given, aloud=aloud)
    try:
        result = app(args=given, prog_name="glasshouse", standalone_mode=False)
        if result == INTERRUPTED:  # how typer passes on Ctrl-C
            return fail(STOPPED, code=INTERRUPTED)
        return result if isinstance(result, int) else DONE
    except typer.Exit as error:
        return error.exit_code
    except typer.TyperException as error:
        return fail(f"{error.format_message()} (glasshouse COMMAND --help lists its options)", code=BAD_INPUT)
    except InputError as error:
        return fail(*error.args, code=BAD_INPUT)
    except (Stopped, OldInterrupted) as error:
        return fail(str(error), code=INTERRUPTED)
    except (KeyboardInterrupt, typer.Abort):
        return fail(STOPPED, code=INTERRUPTED)
    except BrokenPipeError:
        return DONE
    except OSError as error:
        return fail(f"{error.filename or 'output'}: {error.strerror or error}", code=BAD_INPUT)
    except Exception as error:  # the last resort: say that it is our fault, without the data an exception may carry
        if "--verbose" in given or "-v" in given:
            say(*(line.rstrip() for line in traceback.format_tb(error.__traceback__)))
        at = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(at.filename).name}:{at.lineno}"
        return fail(
            f"a bug of ours ({type(error).__name__} at {place}); please report it, with --verbose for the details",
            code=OUR_BUG,
        )


def _offer_protections() -> None:
    """Every protection of the register is a command of protect; a user's own may have come since."""
    records, tables, others = (
        ", ".join(one.name for one in protections(of)) for of in ("records", "tables", "properties")
    )
    protect_app.info.help = f"Protect records ({records}), tables ({tables}) or statistics of properties ({others})."
    protect_app.registered_commands.clear()
    for one in protections():
        add(protect_app, one.function)


def _fail(*mistakes: str, code: int, as_json: bool, aloud: bool) -> int:
    """Say what went wrong, on one line for each mistake."""
    lines = [_printable(str(mistake)) for mistake in mistakes]
    if aloud:
        say(*(f"glasshouse: {line}" for line in lines))
    if as_json:
        print(json.dumps({"error": "\n".join(lines), "exit_code": code}))
    return code


def entry() -> None:
    """What the installed command calls."""
    sys.exit(main())
