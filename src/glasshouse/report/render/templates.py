"""How does a page get its text? From a template beside this file; what is put into it is escaped."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

import jinja2

from glasshouse.text import plain


def asset(name: str) -> str:
    """A file beside this one, as text."""
    return (resources.files("glasshouse") / "report" / "render" / name).read_text(encoding="utf-8")


def _printable(value: Any) -> Any:
    """What a file said, with control characters spelt out; markup of ours stays as it is."""
    return plain(value, lines=True) if type(value) is str else value


@cache
def _template(text: str) -> jinja2.Template:
    """A template made into code, once: that takes longer than to fill it in."""
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, finalize=_printable)
    return environment.from_string(text)


def render(template: str, **values: Any) -> str:
    """A template with its values; one that is missing is a bug of ours."""
    return _template(asset(template)).render(**values) + "\n"
