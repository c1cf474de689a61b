"""What is `gh.protect`? Functions that go by one name, each imported when it is used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


class Namespace:
    """Functions by name, as in `gh.protect.swap`; `members` says where each is: module, or module:function."""

    def __init__(self, name: str, members: Mapping[str, str]) -> None:
        self._name, self._members = name, members

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_") or name not in self._members:
            known = ", ".join(self._members)
            raise AttributeError(f"'{self._name}' has no function '{name}'; known: {known}")
        return found(name, self._members[name])

    def __dir__(self) -> list[str]:
        return list(self._members)

    def __repr__(self) -> str:
        return f"<glasshouse.{self._name}: {', '.join(self._members)}>"


def found(name: str, where: str) -> Callable[..., Any]:
    """The function of a name: in a module, where it may go by another one (module:function)."""
    module, _, function = where.partition(":")
    called: Callable[..., Any] = getattr(import_module(module), function or name)
    return called
