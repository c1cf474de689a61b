"""How are functions of one kind offered together? As attributes of a namespace, each imported when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True, repr=False)
class Namespace:
    """Functions that belong together, by name: `gh.protect.swap(...)` is `glasshouse protect swap` in the terminal."""

    _name: str
    _says: str
    _where: Mapping[str, str]  # of each function by its name: its module, or module:function if it is called otherwise

    def __post_init__(self) -> None:
        object.__setattr__(self, "__doc__", self._says)

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        if verb.startswith("_") or verb not in self._where:
            known = "" if verb.startswith("_") else f"; known: {', '.join(self._where)}"
            raise AttributeError(f"no attribute '{verb}' here{known}")
        return found(verb, self._where[verb])

    def __iter__(self) -> Iterator[str]:
        return iter(self._where)

    def __dir__(self) -> list[str]:
        return [*self._where]

    def __repr__(self) -> str:
        return f"<glasshouse.{self._name}: {', '.join(self._where)}>"


def found(verb: str, where: str) -> Callable[..., Any]:
    """The function of a name: in a module, where it may be called otherwise (module:function)."""
    module, _, function = where.partition(":")
    called: Callable[..., Any] = getattr(import_module(module), function or verb)
    return called
