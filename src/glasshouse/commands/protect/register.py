"""Which protections are there? A register: the command line, `gh.protect` and `compare` find them here.

A new protection is one file with its function, and one line here. The function takes what it protects first, then
keywords: `out`; `seed` if it leaves something to chance; of tables, `scenario`, and `values` if what is printed is not
what is published. It returns a `FileResult`, whose summary is a `Spent` if there is an account of what it cost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from glasshouse.commands.namespace import Namespace, found
from glasshouse.errors import InputError, unknown

if TYPE_CHECKING:
    from glasshouse.commands.declaration import Declared
    from glasshouse.commands.result import FileResult

_HERE = "glasshouse.commands.protect"


@dataclass(frozen=True)
class Protection:
    """A protection: its name, where its function is (module:function), and what it protects."""

    name: str
    where: str
    of: Literal["records", "tables", "properties"]
    true: bool = False  # of tables: everything it publishes stays true, so what follows from it is certain

    @property
    def function(self) -> Callable[..., FileResult[Any]]:
        return found(self.name, self.where)

    @property
    def declared(self) -> Declared:
        from glasshouse.commands.declaration import declaration

        return declaration(self.function)

    def takes(self, *names: str) -> bool:
        """Does its function have keywords of these names?"""
        return all(name in self.declared.by_name for name in names)

    @property
    def has_budget(self) -> bool:
        """Can it be made stronger and weaker by the total of a budget?"""
        return self.takes("budget", "rho")


_REGISTER: dict[str, Protection] = {}
_PLACES: dict[str, str] = {}
protect = Namespace(
    "protect",
    "Protect records (swap, topdown, relocate), tables (noise, round, suppress, cellkey) or statistics of subsidised "
    "properties (properties).",
    _PLACES,
)


def add(protection: Protection) -> None:
    """Add a protection of your own; from now on it is found as those that come with Glasshouse are."""
    other = _REGISTER.get(protection.name)
    if other is not None and other != protection:
        raise InputError(f"there is a protection '{protection.name}' already; name yours otherwise")
    _REGISTER[protection.name] = protection
    _PLACES[protection.name] = protection.where


def protections(*of: str) -> tuple[Protection, ...]:
    """All protections, or those of records, tables, properties."""
    return tuple(one for one in _REGISTER.values() if not of or one.of in of)


def protection(name: str, *of: str) -> Protection:
    """The protection of a name."""
    known = {one.name: one for one in protections(*of)}
    if name not in known:
        raise unknown("protection", name, known)
    return known[name]


add(Protection("swap", f"{_HERE}.swap", "records"))
add(Protection("topdown", f"{_HERE}.topdown", "records"))
add(Protection("relocate", f"{_HERE}.relocate", "records"))
add(Protection("noise", f"{_HERE}.noise", "tables"))
add(Protection("round", f"{_HERE}.round:round_", "tables"))
add(Protection("suppress", f"{_HERE}.suppress", "tables", true=True))
add(Protection("cellkey", f"{_HERE}.cellkey", "tables"))
add(Protection("properties", f"{_HERE}.properties", "properties"))
