"""How does a typed summary become JSON, and JSON a typed summary again? And what does a file of ours say?

A field with the default None is said only if there is something to say; every other field is always said. A field
whose name would be a word of Python's own ends in an underscore, which is not said (`lambda_` is "lambda" in JSON).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

from glasshouse.errors import MachineFailed

T = TypeVar("T")
WORDS_OF_PYTHON = {"alias_generator": lambda name: name.removesuffix("_")}  # the __pydantic_config__ of such a summary
Plain = Mapping[str, object]  # what JSON can hold, by name
Json = dict[str, Any]  # an object of JSON, as it was read


def plain(value: Any) -> Any:
    """The same as JSON has it: objects, lists, text, numbers."""
    if is_dataclass(value) and not isinstance(value, type):
        said = {one.name: getattr(value, one.name) for one in fields(value)}
        unsaid = {one.name for one in fields(value) if one.default is None and said[one.name] is None}
        return {name.removesuffix("_"): plain(part) for name, part in said.items() if name not in unsaid}
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, Enum):
        return plain(value.value)
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    return str(value) if isinstance(value, Path) else value


def read_json(path: Path) -> Json | None:
    """What a file of ours says: None if it is not there, nothing if it is damaged or none of ours.

    Nothing is concluded from a disk that fails: the file may say that a budget is spent, or that a run goes on.
    """
    try:
        told = json.loads(path.read_bytes())
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        return None
    except OSError as error:
        raise MachineFailed(f"{path}: cannot be read ({error.strerror}); run the same command again") from None
    except (ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}


def typed(kind: type[T], told: Plain) -> T:
    """A summary of this kind from what JSON told; what it does not know is left aside."""
    from pydantic import TypeAdapter  # late: only a result that was there before is read back

    return TypeAdapter(kind).validate_python(dict(told))
