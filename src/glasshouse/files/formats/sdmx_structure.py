"""What do the codes of an SDMX file mean? Its structure message: dimensions, attributes, and code lists.

Data messages name codes only. The structure comes in a second file, as registers hand it out; it is looked for beside
the data, as `NAME.dsd.xml`, `NAME_dsd.xml`, `NAME.structure.xml` or `NAME_structure.xml`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from glasshouse.errors import InputError
from glasshouse.files.crossed import Category, Dimension, Role
from glasshouse.files.formats import markup
from glasshouse.files.formats.crossing import shown
from glasshouse.limits import CATEGORIES, NAME_LENGTH

BESIDE = (".dsd.xml", "_dsd.xml", ".structure.xml", "_structure.xml")
STATUS_NAMES = ("OBS_STATUS", "OBS_FLAG", "CONF_STATUS")  # marks beside a number, the first that there is
# Attributes that the content-oriented guidelines name: never a dimension, even where no structure tells so
KNOWN_ATTRIBUTES = frozenset({
    *STATUS_NAMES, "OBS_CONF", "OBS_PRE_BREAK", "OBS_COM", "COMMENT_OBS", "COMMENT_TS", "COMMENT_DSET", "COMMENT",
    "UNIT_MULT", "DECIMALS", "TITLE", "TITLE_COMPL", "TIME_FORMAT", "COLLECTION", "COMPILING_ORG", "EMBARGO_TIME",
    "BASE_PER", "PRE_BREAK_VALUE", "LAST_UPDATE",
})  # fmt: skip
_GEO = frozenset({"GEO", "REF_AREA", "GEOGRAPHY", "GEO_AREA"})


@dataclass(frozen=True)
class Structure:
    """What a structure message says of the columns of data: their names, and the codes of each."""

    dimensions: tuple[str, ...] = ()
    attributes: frozenset[str] = frozenset()
    labels: Mapping[str, str] = field(default_factory=dict)  # of dimensions and attributes
    codes: Mapping[str, tuple[Category, ...]] = field(default_factory=dict)  # of dimensions and attributes

    def dimension(self, name: str, categories: tuple[Category, ...] = ()) -> Dimension:
        """A dimension with what is known of it; `categories` as the data name them, where nothing else does."""
        return Dimension(name, self.labels.get(name, ""), self.codes.get(name, categories), role_of(name))

    def marks(self, status: str | None) -> dict[str, str]:
        """What the codes of the status mean."""
        return {code.code: code.label for code in self.codes.get(status or "", ()) if code.label}


def role_of(name: str) -> Role:
    """What SDMX itself says of a column by its name: TIME_PERIOD is the time; guidelines call the place REF_AREA."""
    return "time" if name.upper() == "TIME_PERIOD" else "geo" if name.upper() in _GEO else ""


def structure_beside(path: Path, identifiers: frozenset[str] = frozenset()) -> Structure:
    """The structure that lies beside a file of data; an empty one if there is none."""
    stem = re.sub(r"(\.sdmx)?\.(xml|csv)(\.gz)?$", "", path.name, flags=re.IGNORECASE)
    found = [beside for ending in BESIDE if (beside := path.parent / f"{stem}{ending}").is_file() and beside != path]
    if len(found) > 1:
        raise InputError(f"{path.name}: found {found[0].name} and {found[1].name} beside it; expected one structure")
    return read_structure(found[0], identifiers) if found else Structure()


def read_structure(path: Path, identifiers: frozenset[str] = frozenset()) -> Structure:
    """A structure message; of several data structures the one that the data name."""
    told = _Structures(path.name)
    markup.read_file(path, told)
    if not told.structures and not told.codes:
        raise InputError(f"{path.name}: no data structure and no code list; expected an SDMX structure message")
    names = [name for name in told.structures if name in identifiers] or list(told.structures)
    if len(names) > 1:
        known = ", ".join(names[:5])
        raise InputError(f"{path.name}: holds the data structures {known}; expected the one of the data; keep that one")
    if not names:
        return Structure()
    parts = told.structures[names[0]]
    codes = {one.name: told.codes[one.list] for one in parts if one.list in told.codes}
    labels = {one.name: told.concepts[one.concept] for one in parts if one.concept in told.concepts}
    dimensions = tuple(one.name for one in parts if one.kind == "Dimension")
    return Structure(dimensions, frozenset(one.name for one in parts if one.kind == "Attribute"), labels, codes)


@dataclass
class _Part:
    kind: str
    name: str
    list: str = ""
    concept: str = ""


_KINDS = {"Dimension": "Dimension", "TimeDimension": "Dimension", "MeasureDimension": "Dimension",
          "Attribute": "Attribute", "PrimaryMeasure": "Measure", "Measure": "Measure"}  # fmt: skip


class _Structures:
    """Listens to a structure message."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.codes: dict[str, tuple[Category, ...]] = {}
        self.concepts: dict[str, str] = {}
        self.structures: dict[str, list[_Part]] = {}
        self.path: list[str] = []
        self.list = self.structure = ""
        self.members: list[list[str]] = []  # code, label, parent
        self.concept: list[str] = []
        self.part: _Part | None = None
        self.total = 0
        self.english = False

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        above = self.path[-1] if self.path else ""
        self.path.append(name)
        identifier = attributes.get("id", "")
        if name == "Codelist":
            self.list, self.members = identifier, []
        elif name == "Code" and above == "Codelist":
            self.total += 1
            if self.total > CATEGORIES:
                raise InputError(f"{self.where}: more than {CATEGORIES:,} codes; keep the lists of one table")
            self.members.append([identifier or attributes.get("value", ""), "", attributes.get("parentCode", "")])
        elif name == "Concept" and above == "ConceptScheme":
            self.concept = [identifier, ""]
        elif name == "DataStructure":
            self.structure = identifier
            self.structures.setdefault(identifier, [])
        elif name in _KINDS and above.endswith(("List", "Measures", "DimensionDescriptor")):
            self.part = _Part(_KINDS[name], identifier)
        elif name == "Ref":
            self._refers(attributes)
        elif name == "Name":
            self.english = _language(attributes) in ("", "en")

    def _refers(self, attributes: Mapping[str, str]) -> None:
        identifier = attributes.get("id", "")
        if "Parent" in self.path[-2:] and self.members:
            self.members[-1][2] = identifier
        elif self.part is not None and "ConceptIdentity" in self.path:
            self.part.concept = identifier
            self.part.name = self.part.name or identifier
        elif self.part is not None and "Enumeration" in self.path:
            self.part.list = identifier

    def end(self, name: str, text: str) -> None:
        self.path.pop()
        above = self.path[-1] if self.path else ""
        if name == "Name" and above == "Code" and self.members:
            if self.english or not self.members[-1][1]:
                self.members[-1][1] = " ".join(text.split())[:NAME_LENGTH]
        elif name == "Name" and above == "Concept" and self.concept:
            if self.english or not self.concept[1]:
                self.concept[1] = " ".join(text.split())[:NAME_LENGTH]
        elif name == "Codelist":
            known = {code for code, _, _ in self.members}
            found = [
                Category(code, label, up if up in known and up != code else "") for code, label, up in self.members
            ]
            if len(known) < len(found) or "" in known:
                raise InputError(
                    f"{self.where}: a code of the list '{shown(self.list)}' stands twice or is empty; expected "
                    "different codes; mend the structure"
                )
            self.codes[self.list] = tuple(found)
        elif name == "Concept" and self.concept:
            self.concepts[self.concept[0]] = self.concept[1]
            self.concept = []
        elif name in ("ConceptIdentity", "Enumeration") and self.part is not None and text.startswith("urn:"):
            identifier = text.rpartition("=")[2]  # SDMX 3: a reference is a name in full
            if name == "Enumeration":
                self.part.list = identifier.rpartition(":")[2].partition("(")[0]
            else:
                self.part.concept = identifier.rpartition(".")[2]
        elif name in _KINDS and self.part is not None and above.endswith(("List", "Measures", "DimensionDescriptor")):
            if self.part.name and all(one.name != self.part.name for one in self.structures.get(self.structure, ())):
                self.structures.setdefault(self.structure, []).append(self.part)
            self.part = None


def _language(attributes: Mapping[str, str]) -> str:
    return next((text for name, text in attributes.items() if name.rpartition(":")[2] == "lang"), "")
