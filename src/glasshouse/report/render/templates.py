"""How does a page get its text? From a template beside this file; what is put into it is escaped."""

from __future__ import annotations

from importlib import resources
from typing import Any

import jinja2


def asset(name: str) -> str:
    """A file beside this one, as text."""
    return (resources.files("glasshouse") / "report" / "render" / name).read_text(encoding="utf-8")


def render(template: str, **values: Any) -> str:
    """A template with its values; one that is missing is a bug of ours."""
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    return environment.from_string(asset(template)).render(**values) + "\n"
