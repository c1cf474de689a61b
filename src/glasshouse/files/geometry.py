"""Where do areas lie? Outlines or points from the user's own file, to draw a map of them.

GeoJSON (polygons or points, a feature for each area), or CSV or Parquet with the area's code and a point. Coordinates
are drawn as they are: across and up. No map service is asked.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from glasshouse.errors import InputError
from glasshouse.files.frames import open_source
from glasshouse.files.places import check_codes, place_columns, read_codes
from glasshouse.limits import GEOMETRY_BYTES
from glasshouse.model.geography import Geography

Point = tuple[float, float]
Ring = tuple[Point, ...]
Floats = NDArray[np.float64]

MOST_BYTES = 200 * 10**6
MOST_AREAS = 200_000
_FARTHEST = 1e12  # a coordinate: finite, and so is what is computed from it
_TABLES = (".csv", ".csv.gz", ".parquet")
_CODES = ("geoid", "geoid10", "geoid20", "geo_id")
_POINTS = (("x", "y"), ("lon", "lat"), ("longitude", "latitude"), ("intptlon", "intptlat"),
           ("intptlon10", "intptlat10"), ("intptlon20", "intptlat20"))  # fmt: skip


@dataclass(frozen=True)
class Outline:
    """Where an area lies: a point, or closed rings (the first of each polygon outside, the others holes)."""

    point: Point | None = None
    rings: tuple[Ring, ...] = ()

    def points(self) -> Iterator[Point]:
        if self.point is not None:
            yield self.point
        for ring in self.rings:
            yield from ring


@dataclass(frozen=True)
class Shapes:
    """Areas of one level, by their codes."""

    level: str
    outlines: Mapping[str, Outline]

    def thinned(self, share: float = 1 / 2000) -> Shapes:
        """The same areas with fewer points, none of which moves the picture by more than this share of its extent."""
        ends = np.array([point for outline in self.outlines.values() for point in outline.points()])
        extent = float(np.ptp(ends, axis=0).max()) if len(ends) else 0.0
        if extent <= 0:
            return self
        digits = math.ceil(-math.log10(extent * share)) + 1
        return Shapes(
            self.level,
            {
                code: Outline(
                    None if one.point is None else _short(one.point, digits),
                    tuple(
                        tuple(_short(point, digits) for point in ring) for ring in thinned(one.rings, extent * share)
                    ),
                )
                for code, one in self.outlines.items()
            },
        )


def read_shapes(path: Path, geography: Geography) -> Shapes:
    """Read where areas lie; their level is told by the name of the code's field, or by the codes' length."""
    if path.is_file() and path.stat().st_size > MOST_BYTES:
        raise InputError(
            f"{path.name}: {path.stat().st_size / 1e6:,.0f} MB; expected at most {MOST_BYTES // 10**6} MB; "
            "keep only the areas of the release, or simplify their outlines"
        )
    if path.name.lower().endswith((".geojson", ".json")):
        return _collected(path, _features(path, geography), geography)
    if not path.name.lower().endswith(_TABLES):
        raise InputError(
            f"{path.name}: unknown kind of file; known: .geojson, {', '.join(_TABLES)}; other formats (shapefiles) "
            "can be saved as GeoJSON by any GIS"
        )
    return _collected(path, _rows(path, geography), geography)


def _collected(path: Path, found: Iterator[tuple[str, str, str, Outline]], geography: Geography) -> Shapes:
    """Areas by code: each once, all of one level, not too many. What is found comes with where it stands."""
    outlines: dict[str, Outline] = {}
    first = ""
    for where, level, code, outline in found:
        first = first or level
        if level != first:
            raise InputError(
                f"{where}: '{code[:40]}' is the code of a {level}, those before are of a {first}; "
                "expected areas of one level; write a file for each level"
            )
        if code in outlines:
            raise InputError(f"{where}: {level} '{code}' is there twice; expected once; join its parts to one area")
        if len(outlines) == MOST_AREAS:
            raise InputError(
                f"{where}: more than {MOST_AREAS:,} areas; expected at most that; keep those of the release"
            )
        outlines[code] = outline
    if not outlines:
        raise InputError(f"{path.name}: no areas; expected at least one; choose a file of {geography.place} outlines")
    return Shapes(first, outlines)


def _level(where: str, code: str, geography: Geography) -> str:
    """The level of a code, by its length."""
    for level, length in geography.lengths.items():
        if len(code) == length and geography.fault(code, level) is None:
            return level
    near = next((level for level, length in geography.lengths.items() if len(code) == length - 1), None)
    if near is not None:
        raise InputError(f"{where}: {near} '{code[:40]}' {geography.fault(code, near)}")
    told = ", ".join(f"{length} ({level})" for level, length in geography.lengths.items())
    raise InputError(
        f"{where}: the code '{code[:40]}' has {len(code)} characters; expected letters or digits, as many as a level "
        f"has: {told}; write whole codes, as text"
    )


# CSV and Parquet


def _rows(path: Path, geography: Geography) -> Iterator[tuple[str, str, str, Outline]]:
    source = open_source(path)
    place = place_columns(source, geography)
    actual = {name.lower(): name for name in source.columns}
    pair = next((pair for pair in _POINTS if all(name in actual for name in pair)), None)
    if pair is None:
        raise InputError(
            f"{path.name}: no columns say where an area lies; expected x and y, or lon and lat; found: {source.told}"
        )
    across, up = (actual[name] for name in pair)
    for chunk in source.chunks(dict.fromkeys((*place.names, across, up))):
        codes = read_codes(source, chunk, place)
        if place.level is not None:
            check_codes(source, chunk.first, codes, geography, place.level)
        ends = (chunk.frame[name].cast(pl.String).str.strip_chars().str.strip_prefix("+") for name in (across, up))
        for line, (code, *point) in enumerate(zip(codes, *ends, strict=True), start=chunk.first):
            where = source.where(line)
            level = place.level or _level(where, code or "", geography)
            yield where, level, code, Outline(point=(_number(where, point[0], across), _number(where, point[1], up)))


def _number(where: str, value: str | None, column: str) -> float:
    try:
        number = float(value or "")
    except ValueError:
        number = math.nan
    if not abs(number) <= _FARTHEST:
        raise InputError(f"{where}: {column} is '{(value or '')[:40]}'; expected a number; correct or remove the row")
    return number


# GeoJSON


def _features(path: Path, geography: Geography) -> Iterator[tuple[str, str, str, Outline]]:
    for number, feature in enumerate(_collection(path), start=1):
        where = f"{path.name}, feature {number}"
        if not isinstance(feature, dict) or feature.get("type") != "Feature":
            raise InputError(f"{where}: expected an object of type 'Feature'; export the file as GeoJSON again")
        level, code = _code(where, feature, geography)
        yield where, level, code, _outline(where, feature.get("geometry"))


def _collection(path: Path) -> list[Any]:
    if not path.is_file():
        raise InputError(f"{path}: there is no such file; name a GeoJSON, CSV or Parquet file of areas")
    if path.stat().st_size > GEOMETRY_BYTES:
        raise InputError(f"{path.name}: more than {GEOMETRY_BYTES >> 20:,} MiB; expected less: simplify the outlines")
    try:
        whole = json.loads(path.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError:
        raise InputError(f"{path.name}: not UTF-8 text; expected GeoJSON; export it again") from None
    except json.JSONDecodeError as error:
        raise InputError(
            f"{path.name}, line {error.lineno}: not JSON ({error.msg}); expected a FeatureCollection; export it again"
        ) from None
    except RecursionError:
        raise InputError(f"{path.name}: nested too deeply; expected a FeatureCollection; export it again") from None
    except ValueError:  # a number of thousands of digits
        raise InputError(f"{path.name}: a number cannot be read; expected coordinates; export it again") from None
    kind = whole.get("type") if isinstance(whole, dict) else type(whole).__name__
    features = whole.get("features") if isinstance(whole, dict) else None
    if kind != "FeatureCollection" or not isinstance(features, list):
        raise InputError(
            f"{path.name}: found {str(kind)[:40]}; expected a GeoJSON FeatureCollection with a list of features; "
            "export the layer of areas as GeoJSON"
        )
    return features


def _code(where: str, feature: Mapping[str, Any], geography: Geography) -> tuple[str, str]:
    """The level and the code of a feature: from a whole code, a property named as a level (the finest), or its id."""
    given = feature.get("properties")
    properties = {str(name).lower(): value for name, value in given.items()} if isinstance(given, dict) else {}
    named: list[tuple[str, str | None]] = [(name, None) for name in _CODES if name in properties]
    named += [(level, level) for level in reversed(geography.levels) if level.lower() in properties]
    candidates = [(name, level, properties[name.lower()]) for name, level in named]
    candidates += [("id", None, feature["id"])] if "id" in feature else []
    if not candidates:
        raise InputError(
            f"{where}: no code; expected a property '{geography.place}' or 'GEOID', or an id; "
            f"found: {', '.join(list(properties)[:12]) or 'no properties'}; add the code of each area"
        )
    name, level, value = candidates[0]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        raise InputError(
            f"{where}: '{name}' is a number; codes are text, or their leading zeros are lost; write it in quotes"
        )
    code = value.strip() if isinstance(value, str) else ""
    if name in (*_CODES, "id") and "US" in code:
        code = code.rpartition("US")[2]  # the long form of the Census: 1400000US39059977200
    if level is None:
        return _level(where, code, geography), code
    fault = geography.fault(code, level)
    if fault is not None:
        raise InputError(f"{where}: {level} '{code[:40]}' {fault}")
    return level, code


def _outline(where: str, geometry: Any) -> Outline:
    kind = geometry.get("type") if isinstance(geometry, dict) else None
    given = geometry.get("coordinates") if isinstance(geometry, dict) else None
    if kind == "Point":
        return Outline(point=_point(where, given))
    if kind == "Polygon":
        return Outline(rings=_polygon(where, given))
    if kind == "MultiPolygon":
        polygons = _list(where, given, "polygons")
        return Outline(rings=tuple(ring for polygon in polygons for ring in _polygon(where, polygon)))
    found = "no geometry" if geometry is None else f"a geometry of type '{str(kind)[:40]}'"
    raise InputError(f"{where}: {found}; expected Polygon, MultiPolygon or Point; remove it or give it one")


def _list(where: str, given: Any, what: str) -> list[Any]:
    if not isinstance(given, list) or not given:
        raise InputError(f"{where}: the coordinates hold no {what}; expected a list of them; export the file again")
    return given


def _polygon(where: str, given: Any) -> tuple[Ring, ...]:
    rings = tuple(
        tuple(_point(where, point) for point in _list(where, ring, "points")) for ring in _list(where, given, "rings")
    )
    for ring in rings:
        if len(ring) < 4 or ring[0] != ring[-1]:
            raise InputError(
                f"{where}: a ring of {len(ring)} points that is not closed or has no inside; expected 4 or more, the "
                "last as the first; export the file again"
            )
    return rings


def _point(where: str, given: Any) -> Point:
    numbers = given[:2] if isinstance(given, list) else []
    fine = len(numbers) == 2 and all(isinstance(one, (int, float)) and not isinstance(one, bool) for one in numbers)
    if not fine or not all(abs(one) <= _FARTHEST for one in numbers):
        raise InputError(f"{where}: a point is no pair of finite numbers; expected [across, up]; export the file again")
    return float(numbers[0]), float(numbers[1])


# Fewer points


def thinned(rings: Sequence[Ring], tolerance: float) -> tuple[Ring, ...]:
    """Rings with the points that matter (Douglas and Peucker): no point left out is farther from the line than that.

    Rings too small to be seen are left out, but never all: the largest stays, with three corners at least.
    """
    thin = [_thin_ring(ring, tolerance) for ring in rings]
    kept = tuple(ring for ring in thin if len(ring) > 3)
    if kept or not rings:
        return kept
    largest = max(rings, key=lambda ring: float(np.ptp(np.array(ring), axis=0).max()))
    return (_corners(largest),)


def _thin_ring(ring: Ring, tolerance: float) -> Ring:
    """A closed ring, thinned in two halves: from its start to the point farthest from there, and back."""
    points = np.array(ring)
    far = int(np.hypot(*(points - points[0]).T).argmax())
    keep = np.zeros(len(points), bool)
    keep[[0, far, -1]] = True
    open_ends = [(0, far), (far, len(points) - 1)]
    while open_ends:
        first, last = open_ends.pop()
        if last - first < 2:
            continue
        away = _distance(points[first + 1 : last], points[first], points[last])
        worst = int(away.argmax())
        if away[worst] > tolerance:
            middle = first + 1 + worst
            keep[middle] = True
            open_ends += [(first, middle), (middle, last)]
    return tuple(point for point, stays in zip(ring, keep, strict=True) if stays)


def _distance(points: Floats, start: Floats, end: Floats) -> Floats:
    """How far points are from the segment between two others."""
    along = end - start
    length = float(along @ along)
    share = np.clip((points - start) @ along / length, 0, 1) if length else np.zeros(len(points))
    away: Floats = np.hypot(*(points - start - share[:, None] * along).T)
    return away


def _corners(ring: Ring) -> Ring:
    """A triangle in place of a ring: its start, the point farthest from there, the one farthest from both."""
    points = np.array(ring)
    second = int(np.hypot(*(points - points[0]).T).argmax())
    third = int(_distance(points, points[0], points[second]).argmax())
    return ring[0], ring[second], ring[third], ring[0]


def _short(point: Point, digits: int) -> Point:
    return round(point[0], digits), round(point[1], digits)
