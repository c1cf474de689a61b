"""Which commands are there, and what do they take? Writes docs/reference.md and the library's types.

python docs/make_reference.py            # writes both
python docs/make_reference.py --check    # exit code 1 if one of them is not as it should be
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import glasshouse
from glasshouse.commands.declaration import Declared, Option, declaration

ROOT = Path(__file__).resolve().parents[1]
PAGE, STUB = ROOT / "docs" / "reference.md", ROOT / "src" / "glasshouse" / "__init__.pyi"
PLAIN = {"str": "str", "int": "int", "float": "float", "bool": "bool", "Path": "File"}


def verbs() -> Iterator[tuple[str, str, Callable[..., Any]]]:
    """Every function of the library that is a command: its namespace, its name, and the function."""
    for name in glasshouse.VERBS:
        yield "", name, getattr(glasshouse, name)
    for space, inside in glasshouse.NAMESPACES.items():
        for name in inside:
            yield space, name, getattr(inside, name)


def page() -> str:
    """The reference: every command with its options, in the terminal and in Python."""
    parts = [
        "# Reference\n\nMade by `docs/make_reference.py` from the functions themselves. In Python the names are "
        "keywords: `gh.vary(tables, scenario=..., workers=2)`. Where a file is expected, a path, a frame (polars, "
        "pandas, pyarrow) or an earlier result will do. Every command of the terminal also takes `--json`, `--quiet`, "
        "`--verbose` and `--help`.\n"
    ]
    for space, name, function in verbs():
        declared = declaration(function)
        title = f"{space} {declared.name}".strip()
        parts.append(f"## {title}\n\n{declared.says}\n\n    {_call(space, name, declared)}\n")
        parts.append("| option | in Python | default | |\n|---|---|---|---|")
        parts += [_row(option) for option in declared.options]
        parts += [f"| `{flag}` | | | {says} |" for flag, (says, _) in declared.instead.items()]
        parts.append("")
    return "\n".join(parts)


def _call(space: str, name: str, declared: Declared) -> str:
    given = [
        option.name if option.positional else f"{option.name}=..." for option in declared.options if option.required
    ]
    return f"gh.{space + '.' if space else ''}{name}({', '.join(given)})"


def _row(option: Option) -> str:
    flag = option.name.upper() if option.positional else option.flag
    default = "required" if option.required else "" if option.default in (None, "", ()) else f"`{option.default}`"
    text = option.opt.help.replace("|", "\\|")
    return f"| `{flag}` | `{option.name}` | {default} | {text} |"


def stub() -> str:
    """The types of the library, for editors and type checkers: keywords stand flat, as they are given."""
    functions = list(verbs())
    results = {_result(function) for _, _, function in functions}
    lines = [
        "# Made by docs/make_reference.py from the declarations; do not edit.",
        "from collections.abc import Mapping, Sequence",
        "from fractions import Fraction",
        "from pathlib import Path",
        "from typing import Literal",
        "",
        "from glasshouse.commands.door import Filed, Frame",
        "from glasshouse.commands.namespace import Namespace",
        "from glasshouse.commands.reading import Records as Records",
        "from glasshouse.commands.reading import Tables as Tables",
        *(f"from {module} import {name} as {name}" for module, name in sorted(results)),
        "from glasshouse.engine.progress import aloud as aloud",
        "from glasshouse.errors import GlasshouseBug as GlasshouseBug",
        "from glasshouse.errors import InputError as InputError",
        "from glasshouse.scenarios.load import Scenario as Scenario",
        "",
        "File = str | Path | Frame | Filed",
        "VERBS: Mapping[str, str]",
        "NAMESPACES: Mapping[str, Namespace]",
        "",
        "def scenario(name: str) -> Scenario: ...",
    ]
    lines += [_signature(name, getattr(glasshouse, name), "") for name in ("read_tables", "read_records")]
    spaces: dict[str, list[str]] = {}
    for space, name, function in functions:
        if space:
            spaces.setdefault(space, []).append(_signature(name, function, "    "))
        else:
            lines.append(_signature(name, function, ""))
    for space, inside in spaces.items():
        lines += [
            "",
            f"class _{space.title()}:",
            *(f"    @staticmethod\n{one}" for one in inside),
            "",
            f"{space}: _{space.title()}",
        ]
    return "\n".join(lines) + "\n"


def _result(function: Callable[..., Any]) -> tuple[str, str]:
    """The module and the name of what a function gives back."""
    inner = inspect.unwrap(function)
    kind = vars(sys.modules[inner.__module__])[inner.__annotations__["return"]]
    return kind.__module__, kind.__name__


def _signature(name: str, function: Callable[..., Any], indent: str) -> str:
    declared = declaration(function)
    positional = [_typed(option) for option in declared.options if option.positional]
    keywords = sorted((o for o in declared.options if not o.positional), key=lambda one: not one.required)
    given = ", ".join([*positional, "*", *(_typed(option) for option in keywords)] if keywords else positional)
    return f"{indent}def {name}({given}) -> {_result(function)[1]}: ...  # noqa: E501"


def _typed(option: Option) -> str:
    kind = "File" if option.kind is Path else option.kind.__name__
    if option.kind is Fraction:
        kind = "str | float | Fraction"
    if option.choices:
        kind = f"Literal[{', '.join(repr(choice) for choice in option.choices)}]"
    if option.name == "scenario":
        kind = "str | Scenario"
    if option.shape == "many":
        kind = f"str | Sequence[{kind}]"
    elif option.shape == "named":
        kind = f"Mapping[str, {kind}] | Sequence[str]"
    elif option.shape == "pairs":
        kind = f"{kind} | Mapping[str, {kind}] | Sequence[{kind}]"
    if option.required and option.name != "scenario":
        return f"{option.name}: {kind}"
    return f"{option.name}: {kind} | None = ..." if option.default is None else f"{option.name}: {kind} = ..."


if __name__ == "__main__":
    wrong = []
    for path, content in ((PAGE, page()), (STUB, stub())):
        if "--check" not in sys.argv[1:]:
            path.write_text(content, encoding="utf-8")
        elif not path.is_file() or path.read_text(encoding="utf-8") != content:
            wrong.append(str(path.relative_to(ROOT)))
    sys.exit(f"not as it should be: {', '.join(wrong)}; run python docs/make_reference.py" if wrong else 0)
