"""Small files of every format, invented: the same six numbers, one of them hidden."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping, Sequence

GEO, SEX, STATUS = ("R1", "R2", "R3"), ("F", "M"), "OBS_STATUS"
NUMBERS: dict[tuple[str, str], tuple[str | None, str | None]] = {
    ("R1", "F"): ("12", "A"), ("R1", "M"): ("7", "A"), ("R2", "F"): (None, "Q"), ("R2", "M"): ("3", "E"),
    ("R3", "F"): ("0", "A"), ("R3", "M"): ("1048", "A"),
}  # fmt: skip

SDMX_CSV_1 = "DATAFLOW,GEO,SEX,TIME_PERIOD,OBS_VALUE,OBS_STATUS\n" + "".join(
    f"AG:POP(1.0),{geo},{sex},2021,{value or ''},{status}\n" for (geo, sex), (value, status) in NUMBERS.items()
)
SDMX_CSV_2 = (
    "STRUCTURE,STRUCTURE_ID,STRUCTURE_NAME,ACTION,GEO,Area,SEX,Sex,TIME_PERIOD,Time,OBS_VALUE,Value,OBS_STATUS,Status\n"
    + "".join(
        f"dataflow,AG:POP(1.0),People,I,{geo},Region {geo[1]},{sex},{'Women' if sex == 'F' else 'Men'},2021,2021,"
        f"{value or ''},,{status},x\n"
        for (geo, sex), (value, status) in NUMBERS.items()
    )
)
SDMX_CSV_BOTH = "DATAFLOW,GEO: Area,SEX: Sex,TIME_PERIOD: Time,OBS_VALUE: Value,OBS_STATUS: Status\n" + "".join(
    f"AG:POP(1.0): People,{geo}: Region {geo[1]},{sex}: {'Women' if sex == 'F' else 'Men'},2021,{value or ''},"
    f"{status}: x\n"
    for (geo, sex), (value, status) in NUMBERS.items()
)

_XML = '<?xml version="1.0" encoding="UTF-8"?>\n'
_AT = "http://www.sdmx.org/resources/sdmxml/schemas/v2_1"
_SPACES = f'xmlns:message="{_AT}/message" xmlns:common="{_AT}/common"'
_GENERIC = f'{_SPACES} xmlns:generic="{_AT}/data/generic"'
_STRUCTURE = f'{_SPACES} xmlns:str="{_AT}/structure"'
_SPECIFIC = (
    f'{_SPACES} xmlns:ss="{_AT}/data/structurespecific" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
    'xmlns:ns1="urn:sdmx:org.sdmx.infomodel.datastructure.DataStructure=AG:POP_DSD(1.0):ObsLevelDim:TIME_PERIOD"'
)


def _header(over: str, namespace: str = "") -> str:
    return (
        "<message:Header><message:ID>x</message:ID><message:Test>false</message:Test>"
        '<message:Prepared>2022-01-01T00:00:00</message:Prepared><message:Sender id="AG"/>'
        f'<message:Structure structureID="POP" {namespace}dimensionAtObservation="{over}"><common:Structure>'
        '<Ref agencyID="AG" id="POP_DSD" version="1.0" class="DataStructure"/></common:Structure></message:Structure>'
        "</message:Header>"
    )


def _value(name: str, text: str) -> str:
    return f'<generic:Value id="{name}" value="{text}"/>'


def _generic_observation(value: str | None, status: str | None, key: str) -> str:
    told = f'<generic:ObsValue value="{value}"/>' if value else ""
    return (
        f"<generic:Obs>{key}{told}<generic:Attributes>{_value(STATUS, status or '')}</generic:Attributes></generic:Obs>"
    )


GENERIC = (
    f'<?xml version="1.0" encoding="UTF-8"?>\n<message:GenericData {_GENERIC}>{_header("TIME_PERIOD")}\n'
    '<message:DataSet structureRef="POP" action="Information">\n'
    + "\n".join(
        f"<generic:Series><generic:SeriesKey>{_value('GEO', geo)}{_value('SEX', sex)}</generic:SeriesKey>"
        f"<generic:Attributes>{_value('UNIT_MULT', '0')}</generic:Attributes>"
        + _generic_observation(value, status, '<generic:ObsDimension value="2021"/>')
        + "</generic:Series>"
        for (geo, sex), (value, status) in NUMBERS.items()
    )
    + "\n</message:DataSet></message:GenericData>\n"
)
GENERIC_FLAT = (
    f'<?xml version="1.0" encoding="UTF-8"?>\n<message:GenericData {_GENERIC}>{_header("AllDimensions")}\n'
    '<message:DataSet structureRef="POP" action="Information">\n'
    + "\n".join(
        _generic_observation(
            value, status,
            f"<generic:ObsKey>{_value('GEO', geo)}{_value('SEX', sex)}{_value('TIME_PERIOD', '2021')}</generic:ObsKey>",
        )
        for (geo, sex), (value, status) in NUMBERS.items()
    )
    + "\n</message:DataSet></message:GenericData>\n"
)  # fmt: skip
_NAMED = 'namespace="urn:sdmx:org.sdmx.infomodel.datastructure.DataStructure=AG:POP_DSD(1.0)" '
_SET = (
    '<message:DataSet ss:structureRef="POP" xsi:type="ns1:DataSetType" ss:dataScope="DataStructure" '
    'action="Information">\n'
)


def _specific(value: str | None, status: str | None, key: str) -> str:
    return f'<Obs {key}TIME_PERIOD="2021" ' + (f'OBS_VALUE="{value}" ' if value else "") + f'OBS_STATUS="{status}"/>'


SPECIFIC = (
    f"{_XML}<message:StructureSpecificData {_SPECIFIC}>{_header('TIME_PERIOD', _NAMED)}\n"
    + _SET
    + "\n".join(
        f'<Series GEO="{geo}" SEX="{sex}" UNIT_MULT="0">{_specific(value, status, "")}</Series>'
        for (geo, sex), (value, status) in NUMBERS.items()
    )
    + "\n</message:DataSet></message:StructureSpecificData>\n"
)
SPECIFIC_FLAT = (
    f"{_XML}<message:StructureSpecificData {_SPECIFIC}>{_header('AllDimensions', _NAMED)}\n"
    + _SET
    + "\n".join(
        _specific(value, status, f'GEO="{geo}" SEX="{sex}" ') for (geo, sex), (value, status) in NUMBERS.items()
    )
    + "\n</message:DataSet></message:StructureSpecificData>\n"
)


def _list(name: str, codes: Mapping[str, tuple[str, str]]) -> str:
    return (
        f'<str:Codelist id="{name}" agencyID="AG" version="1.0"><common:Name>{name}</common:Name>'
        + "".join(
            f'<str:Code id="{code}"><common:Name xml:lang="en">{label}</common:Name>'
            f'<common:Name xml:lang="fr">({label})</common:Name>'
            + (f'<str:Parent><Ref id="{parent}"/></str:Parent>' if parent else "")
            + "</str:Code>"
            for code, (label, parent) in codes.items()
        )
        + "</str:Codelist>"
    )


def _part(kind: str, name: str, codes: str = "") -> str:
    represented = (
        "<str:LocalRepresentation><str:Enumeration>"
        f'<Ref id="{codes}" agencyID="AG" version="1.0" class="Codelist" package="codelist"/>'
        "</str:Enumeration></str:LocalRepresentation>"
        if codes
        else ""
    )
    of = '<str:AttributeRelationship><str:PrimaryMeasure><Ref id="OBS_VALUE"/></str:PrimaryMeasure>'
    of = f"{of}</str:AttributeRelationship>" if kind == "Attribute" else ""
    more = ' assignmentStatus="Conditional"' if kind == "Attribute" else ""
    return (
        f'<str:{kind} id="{name}"{more}><str:ConceptIdentity><Ref id="{name}" maintainableParentID="CS" agencyID="AG" '
        f'maintainableParentVersion="1.0" class="Concept" package="conceptscheme"/></str:ConceptIdentity>'
        f"{represented}{of}</str:{kind}>"
    )


STRUCTURE = (
    f'<?xml version="1.0" encoding="UTF-8"?>\n<message:Structure {_STRUCTURE}><message:Structures>\n<str:Codelists>'
    + _list("CL_GEO", {"ALL": ("The country", ""), **{geo: (f"Region {geo[1]}", "ALL") for geo in GEO}})
    + _list("CL_SEX", {"F": ("Women", ""), "M": ("Men", "")})
    + _list("CL_OBS_STATUS", {"A": ("Normal", ""), "Q": ("Suppressed", ""), "E": ("Estimated", "")})
    + "</str:Codelists>\n<str:Concepts><str:ConceptScheme id='CS' agencyID='AG' version='1.0'>"
    + "".join(
        f'<str:Concept id="{name}"><common:Name xml:lang="en">{label}</common:Name></str:Concept>'
        for name, label in {
            "GEO": "Area",
            "SEX": "Sex",
            "TIME_PERIOD": "Time",
            "OBS_VALUE": "Value",
            STATUS: "Status",
        }.items()
    )
    + "</str:ConceptScheme></str:Concepts>\n<str:DataStructures>"
    "<str:DataStructure id='POP_DSD' agencyID='AG' version='1.0'>"
    "<str:DataStructureComponents><str:DimensionList id='DimensionDescriptor'>"
    + _part("Dimension", "GEO", "CL_GEO")
    + _part("Dimension", "SEX", "CL_SEX")
    + _part("TimeDimension", "TIME_PERIOD")
    + "</str:DimensionList><str:AttributeList id='AttributeDescriptor'>"
    + _part("Attribute", STATUS, "CL_OBS_STATUS")
    + "</str:AttributeList><str:MeasureList id='MeasureDescriptor'>"
    + _part("PrimaryMeasure", "OBS_VALUE")
    + "</str:MeasureList></str:DataStructureComponents></str:DataStructure></str:DataStructures>"
    "</message:Structures></message:Structure>\n"
)

_CATEGORIES: dict[str, object] = {
    "GEO": {"label": "Area", "category": {"index": list(GEO), "label": {geo: f"Region {geo[1]}" for geo in GEO}}},
    "SEX": {"label": "Sex", "category": {"index": {"F": 0, "M": 1}, "label": {"F": "Women", "M": "Men"}}},
    "TIME_PERIOD": {"label": "Time", "category": {"label": {"2021": "2021"}}},
}
_SIZES = {"id": ["GEO", "SEX", "TIME_PERIOD"], "size": [3, 2, 1], "role": {"geo": ["GEO"], "time": ["TIME_PERIOD"]}}
JSONSTAT: dict[str, object] = {
    "version": "2.0", "class": "dataset", "label": "People", **_SIZES, "dimension": _CATEGORIES,
    "value": [None if value is None else int(value) for value, _ in NUMBERS.values()],
    "status": {str(at): status for at, (_, status) in enumerate(NUMBERS.values())},
    "extension": {"status": {"label": {"Q": "suppressed"}}},
}  # fmt: skip
JSONSTAT_1: dict[str, object] = {
    "people": {
        "label": "People", "dimension": {**_CATEGORIES, **_SIZES},
        "value": {str(at): int(value) for at, (value, _) in enumerate(NUMBERS.values()) if value},
        "status": [status for _, status in NUMBERS.values()],
    },
}  # fmt: skip

PX = (
    'CHARSET="ANSI";\nAXIS-VERSION="2000";\nCODEPAGE="utf-8";\nLANGUAGE="en";\nLANGUAGES="en","fr";\n'
    'TITLE="People by area "\n"and sex";\nTITLE[fr]="Gens";\nSTUB="GEO";\nHEADING="SEX","TIME_PERIOD";\n'
    'VALUES("GEO")="Region 1","Region 2",\n"Région ""; 3";\nVALUES("SEX")="Women","Men";\nVALUES[fr]("SEX")="a","b";\n'
    'VALUES("TIME_PERIOD")="2021";\nTIMEVAL("TIME_PERIOD")=TLIST(A1),"2021";\nCODES("GEO")="R1","R2","R3";\n'
    'CODES("SEX")="F","M";\nMAP("GEO")="regions";\nDATASYMBOL2="confidential";\nDATASYMBOLNIL="nil";\n'
    'DATA=\n12 7\n".." 3;\n"-" 1048;\n'
).replace('""; 3"', '; 3"')
PX_KEYS = PX.replace('MAP("GEO")', 'KEYS("GEO")=CODES;\nMAP("GEO")')
PX_KEYS = PX_KEYS[: PX_KEYS.index("DATA=")] + 'DATA=\n"R3","-" 1048\n"R1",12 7;\n'


def workbook(
    sheets: Mapping[str, Sequence[Sequence[str | float | None]]], merged: Sequence[str] = (), **replaced: str
) -> bytes:
    """A workbook with these rows; `merged` ranges of every sheet; parts may be `replaced`, by their base names."""
    texts: dict[str, int] = {}
    parts: dict[str, str] = {}
    for number, rows in enumerate(sheets.values(), 1):
        lines = []
        for at, row in enumerate(rows, 1):
            cells = []
            for column, cell in enumerate(row):
                name = f"{chr(65 + column)}{at}"
                if isinstance(cell, str):
                    cells.append(f'<c r="{name}" t="s"><v>{texts.setdefault(cell, len(texts))}</v></c>')
                elif cell is not None:
                    cells.append(f'<c r="{name}"><v>{cell}</v></c>')
            lines.append(f'<row r="{at}">{"".join(cells)}</row>')
        ranges = "".join(f'<mergeCell ref="{one}"/>' for one in merged)
        parts[f"xl/worksheets/sheet{number}.xml"] = (
            f"<worksheet><sheetData>{''.join(lines)}</sheetData><mergeCells>{ranges}</mergeCells></worksheet>"
        )
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    parts["xl/workbook.xml"] = f'<workbook xmlns:r="{office}"><sheets>' + "".join(
        f'<sheet name="{name}" sheetId="{at}" r:id="rId{at}"/>' for at, name in enumerate(sheets, 1)
    ) + "</sheets></workbook>"  # fmt: skip
    parts["xl/_rels/workbook.xml.rels"] = "<Relationships>" + "".join(
        f'<Relationship Id="rId{at}" Type="{office}/worksheet" Target="worksheets/sheet{at}.xml"/>'
        for at in range(1, len(sheets) + 1)
    ) + "</Relationships>"  # fmt: skip
    parts["xl/sharedStrings.xml"] = "<sst>" + "".join(f"<si><t>{_xml(text)}</t></si>" for text in texts) + "</sst>"
    parts |= {name: text for name in parts for base, text in replaced.items() if name.endswith(f"/{base}.xml")}
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return packed.getvalue()


def _xml(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")


TIDY: list[list[str | float | None]] = [
    ["People by area and sex"],
    [],
    ["GEO", "SEX", "TIME_PERIOD", "OBS_VALUE", "OBS_STATUS"],
    *([geo, sex, 2021, None if value is None else int(value), status]
      for (geo, sex), (value, status) in NUMBERS.items()),
    [],
    ["Q: suppressed"],
]  # fmt: skip
CROSSED: list[list[str | float | None]] = [
    ["People by area and sex, 2021"],
    ["GEO", "F", "M"],
    *([geo, *(NUMBERS[geo, sex][0] and int(NUMBERS[geo, sex][0] or 0) for sex in SEX)] for geo in GEO),
    [],
    ["Source: invented", "by us"],
]


def every() -> dict[str, bytes]:
    """Every sample, by the name of a file."""
    return {
        "one.csv": SDMX_CSV_1.encode(), "two.csv": SDMX_CSV_2.encode(), "both.csv": SDMX_CSV_BOTH.encode(),
        "generic.xml": GENERIC.encode(), "generic_flat.xml": GENERIC_FLAT.encode(), "specific.xml": SPECIFIC.encode(),
        "specific_flat.xml": SPECIFIC_FLAT.encode(), "two.json": json.dumps(JSONSTAT).encode(),
        "one.json": json.dumps(JSONSTAT_1).encode(), "dense.px": PX.encode(), "keys.px": PX_KEYS.encode(),
        "tidy.xlsx": workbook({"People": TIDY}), "crossed.xlsx": workbook({"People": CROSSED}),
    }  # fmt: skip
