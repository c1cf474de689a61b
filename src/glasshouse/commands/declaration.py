"""What does a command take? Its signature says it, once; the terminal, a configuration and the reference follow.

Every keyword of a command is `Annotated` with an `Opt`, which holds what a type cannot say. Options that several
commands share are fields of a frozen dataclass (a group); callers give them flat, as if each were a keyword of its own.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass, replace
from fractions import Fraction
from functools import cache, wraps
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, ParamSpec, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from glasshouse.commands.door import Door, Filed, Frame
from glasshouse.errors import InputError, unknown

P = ParamSpec("P")
R = TypeVar("R")


# a value; a tuple of them; values by name (NAME=VALUE); or in order, each with a name or without ([NAME=]VALUE)
Shape = Literal["one", "many", "named", "pairs"]


@dataclass(frozen=True)
class Opt:
    """What must be known of a keyword besides its type and default."""

    help: str
    flag: str = ""  # on the command line; default: its name with dashes
    short: str = ""
    metavar: str = ""
    least: float | None = None
    most: float | None = None
    repeated: bool = False  # a tuple whose parts are given by repeating the flag, not between commas
    writes: bool = False  # a further file that the command writes


@dataclass(frozen=True)
class Option:
    """One keyword of a command, read from its signature."""

    name: str
    opt: Opt
    kind: Any  # the type inside: str, int, float, Fraction, bool, Path, or the type of a tuple's parts
    shape: Shape
    choices: tuple[str, ...]
    default: Any  # MISSING: it must be given
    positional: bool
    group: str = ""  # the parameter of the function that holds it, if it is a field of a group

    @property
    def flag(self) -> str:
        return self.opt.flag or "--" + self.name.replace("_", "-")

    @property
    def required(self) -> bool:
        return self.default is MISSING

    def told(self, value: object) -> str:
        """How the option is called in a complaint."""
        return f"{self.flag} {value}" if not self.positional else f"{self.name} {value}"


@dataclass(frozen=True)
class Declared:
    """A command as it is declared: its name, the question it answers, its options in order, an example."""

    name: str
    says: str
    options: tuple[Option, ...]
    groups: Mapping[str, type]
    example: str
    instead: Mapping[str, tuple[str, Callable[..., Any]]] = field(default_factory=dict)

    @property
    def by_name(self) -> dict[str, Option]:
        return {option.name: option for option in self.options}

    @property
    def by_flag(self) -> dict[str, Option]:
        """As they stand on a command line and in a configuration, without dashes before."""
        return {option.flag.removeprefix("--"): option for option in self.options if not option.positional}


def command(
    *, name: str = "", example: str = "", instead: Mapping[str, tuple[str, Callable[..., Any]]] | None = None
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Declare a function as a command.

    Its arguments are checked and brought into the form that it declares: text becomes paths, frames become files that
    are gone afterwards, flat keywords go into their groups. `instead`: flags of the command line that call another
    function with the same arguments (a dry run, a plan that is only shown).
    """

    def declare(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def called(*args: Any, **kwargs: Any) -> R:
            declared = declaration(cast(Callable[..., Any], called))
            with Door() as door:
                checked = _checked(declared, args, kwargs, door)
                written = {option.name for option in declared.options if option.name == "out" or option.opt.writes}
                door.look(value for name, value in checked.items() if name not in written)
                given = _grouped(declared, checked)
                positional = [given.pop(option.name) for option in declared.options if option.positional]
                result = function(*positional, **given)
            ended = getattr(result, "ended", None)
            if ended is not None and isinstance(asked := given.get("scenario"), str):
                return replace(result, ended=replace(ended, scenario=asked))  # type: ignore[type-var]  # a Result
            return result

        setattr(called, "__command__", (name or function.__name__.rstrip("_"), example, dict(instead or {})))  # noqa: B010
        return cast(Callable[P, R], called)

    return declare


@cache
def declaration(function: Callable[..., Any]) -> Declared:
    """What a command declares."""
    name, example, instead = function.__command__  # type: ignore[attr-defined]  # set by @command
    inner = inspect.unwrap(function)
    hints = get_type_hints(inner, include_extras=True)
    options: list[Option] = []
    groups: dict[str, type] = {}
    for one in inspect.signature(inner).parameters.values():
        hint = hints[one.name]
        if is_dataclass(hint):
            groups[one.name] = cast(type, hint)
            within = get_type_hints(hint, include_extras=True)
            options += [_option(f.name, within[f.name], _default(f), group=one.name) for f in fields(hint)]
        else:
            default = MISSING if one.default is inspect.Parameter.empty else one.default
            positional = one.kind is not inspect.Parameter.KEYWORD_ONLY
            options.append(_option(one.name, hint, default, positional=positional))
    return Declared(name, inspect.getdoc(inner) or "", tuple(options), groups, example, instead)


def _default(one: Field[Any]) -> Any:
    return one.default if one.default_factory is MISSING else one.default_factory()


def _option(name: str, hint: Any, default: Any, *, positional: bool = False, group: str = "") -> Option:
    if get_origin(hint) is not Annotated:
        raise TypeError(f"{name}: expected Annotated[TYPE, Opt(...)]")
    kind, *about = get_args(hint)
    opt = next(one for one in about if isinstance(one, Opt))
    kind = _first(kind)
    shape: Shape = "one"
    choices: tuple[str, ...] = ()
    if get_origin(kind) is tuple:
        kind, shape = _first(get_args(kind)[0]), "many"
        if get_origin(kind) is tuple:
            kind, shape = get_args(kind)[1], "pairs"
    elif get_origin(kind) in (Mapping, dict):
        kind, shape = _first(get_args(kind)[1]), "named"
    if get_origin(kind) is Literal:
        kind, choices = str, get_args(kind)
    return Option(name, opt, kind, shape, choices, default, positional, group)


def _first(kind: Any) -> Any:
    """Of several types that a value may have, the one it is brought into: the first, besides None."""
    if get_origin(kind) in (Union, UnionType):
        return next(one for one in get_args(kind) if one is not NoneType)
    return kind


def _checked(declared: Declared, args: Sequence[Any], kwargs: Mapping[str, Any], door: Door) -> dict[str, Any]:
    """Every argument by its name, checked and brought into the declared form; a group given whole is opened."""
    given = dict(kwargs)
    for group, kind in declared.groups.items():
        if isinstance(given.get(group), kind):
            whole = given.pop(group)
            given = {f.name: getattr(whole, f.name) for f in fields(whole)} | given
    places = [option.name for option in declared.options if option.positional]
    if len(args) > len(places):
        raise InputError(f"{declared.name} takes {', '.join(places) or 'no argument'}; give the rest by name")
    given |= dict(zip(places, args, strict=False))
    for name in given:
        if name not in declared.by_name:
            raise unknown(f"argument of {declared.name}", name, declared.by_name)
    for value in list(given.values()):  # tables that were read say how
        for name, known in door.said_by(value).items():
            if name in declared.by_name and given.get(name) is None:
                given[name] = known
    found = {}
    for option in declared.options:
        value = given.get(option.name, option.default)
        if value is MISSING:
            raise InputError(f"{option.flag if not option.positional else option.name} is missing: {option.opt.help}")
        found[option.name] = value if value is option.default else _formed(option, value, door)
    return found


def _grouped(declared: Declared, given: dict[str, Any]) -> dict[str, Any]:
    """The arguments as the function takes them: those of a group together."""
    for group, kind in declared.groups.items():
        given[group] = kind(**{f.name: given.pop(f.name) for f in fields(kind)})
    return given


def formed(option: Option, value: object) -> Any:
    """A value of a configuration, checked and brought into the form that the option declares."""
    if option.kind is str and isinstance(value, (int, float)) and not isinstance(value, bool):
        value = str(value)  # as on a command line, where all is text
    with Door() as door:
        return _formed(option, value, door)


def _formed(option: Option, value: Any, door: Door) -> Any:
    if value is None:
        return None
    if option.shape == "named":
        return dict(_pairs(option, value, door))
    if option.shape == "pairs":
        return _pairs(option, value, door)
    if option.shape == "many":
        whole = isinstance(value, (str, Path)) and (option.positional or option.opt.repeated)  # no commas there
        return tuple(_one(option, part, door) for part in ([value] if whole else _listed(option, value)))
    return _one(option, value, door)


def _listed(option: Option, value: Any) -> Iterable[Any]:
    """Several values: texts between commas, any collection, NAME=VALUE of a mapping; one alone will do."""
    if isinstance(value, (str, Path)):
        return [part.strip() for part in str(value).split(",") if part.strip()]
    if isinstance(value, Mapping):
        return [f"{name}={part}" for name, part in value.items()]
    file = option.kind is Path and isinstance(value, (Filed, Frame))  # a column of texts is several
    alone = file or not isinstance(value, Iterable)
    return [value] if alone else value


def _pairs(option: Option, value: Any, door: Door) -> tuple[tuple[str, Any], ...]:
    """Values with their names: a mapping, or texts such as NAME=FILE; what has no name has an empty one."""
    if isinstance(value, Mapping):
        return tuple((str(name), _one(option, part, door)) for name, part in value.items())
    several = value if isinstance(value, (list, tuple)) else [value]
    found: list[tuple[str, Any]] = []
    for part in several:
        if isinstance(part, tuple) and len(part) == 2:
            found.append((str(part[0]), _one(option, part[1], door)))
            continue
        name, equals, rest = str(part).partition("=") if isinstance(part, (str, Path)) else ("", "", "")
        expected = f"expected {option.opt.metavar or 'NAME=VALUE'}"
        if not equals and option.shape == "named":
            raise InputError(f"{option.told(part)}: {expected}")
        if equals and not (name and rest):
            what = f"'{name}' cannot be a name" if not name else "nothing stands behind ="
            raise InputError(f"{option.told(part)}: {what}; {expected}")
        if option.shape == "named" and name in dict(found):
            raise InputError(f"{option.told(part)}: the name {name} is given twice; expected different ones")
        found.append((name if equals else "", _one(option, rest if equals else part, door)))
    return tuple(found)


def _one(option: Option, value: Any, door: Door) -> Any:
    if option.kind is Path:
        return door.path(value, option.name)
    if option.choices:
        if value not in option.choices and not (value == "" and option.default == ""):
            raise unknown(option.flag, str(value), [choice for choice in option.choices if choice])
        return value
    if option.kind is bool:
        if not isinstance(value, bool):
            raise InputError(f"{option.told(value)}: expected True or False")
        return value
    if option.kind is str:
        return door.text(value, option.name)
    if option.kind is Fraction:
        return _exact(option, value)
    return _number(option, value)


def _exact(option: Option, value: Any) -> Fraction:
    """A number that is read exactly: 0.1 is a tenth."""
    from glasshouse.mechanism.account import fraction  # late: it is heavy

    known = isinstance(value, (int, float, Fraction)) and not isinstance(value, bool)
    return fraction(str(value) if known else value, option.flag)


def _number(option: Option, value: Any) -> Any:
    whole = option.kind is int
    try:
        number = option.kind(value)
    except (TypeError, ValueError):
        number = None
    if number is None or isinstance(value, bool) or (whole and number != float(value)):
        raise InputError(f"{option.told(value)}: expected a {'whole ' if whole else ''}number")
    least, most = option.opt.least, option.opt.most
    if (least is not None and number < least) or (most is not None and number > most):
        ends = f"{least:g} to {most:g}" if least is not None and most is not None else f"{least:g} or more"
        raise InputError(f"{option.told(value)}: expected {ends if least is not None else f'{most:g} or less'}")
    return number
