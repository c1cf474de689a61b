"""Are areas read where they lie? Outlines and points as written, refusals that say where, thinning that lasts."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glasshouse.errors import InputError
from glasshouse.files import geometry
from glasshouse.files.geometry import Outline, Ring, Shapes, read_shapes, thinned
from glasshouse.model.geography import Geography

US = Geography(
    {"state": 2, "county": 5, "tract": 11, "block": 15},
    place="block",
    unit="tract",
    compose=((("state", 2), ("county", 3), ("tract", 6), ("block", 4)),),
)
TRACT, OTHER = "01001000100", "01001000200"
SQUARE = [[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]]
HOLE = [[1, 1], [2, 1], [2, 2], [1, 1]]


def ring(points: list[list[int]]) -> Ring:
    return tuple((float(x), float(y)) for x, y in points)


def feature(code: Any = TRACT, name: str = "GEOID", geometry: Any = None, **more: Any) -> dict[str, Any]:
    shape = geometry or {"type": "Polygon", "coordinates": [SQUARE]}
    return {"type": "Feature", "properties": {name: code}, "geometry": shape, **more}


def written(folder: Path, *features: Any) -> Path:
    path = folder / "areas.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return path


# GeoJSON


def test_polygons_holes_and_points_are_read(tmp_path: Path) -> None:
    many = {"type": "MultiPolygon", "coordinates": [[SQUARE, HOLE], [HOLE]]}
    path = written(
        tmp_path,
        feature(),
        feature(OTHER, geometry=many),
        feature("01001000300", geometry={"type": "Point", "coordinates": [-83.5, 39.9, 12]}),
    )
    found = read_shapes(path, US)
    assert found.level == "tract"
    assert found.outlines == {
        TRACT: Outline(rings=(ring(SQUARE),)),
        OTHER: Outline(rings=(ring(SQUARE), ring(HOLE), ring(HOLE))),
        "01001000300": Outline(point=(-83.5, 39.9)),
    }


@pytest.mark.parametrize("name", ["GEOID", "GEOID10", "GEOID20", "geoid", "GEO_ID", "tract", "TRACT"])
def test_the_code_has_many_names(name: str, tmp_path: Path) -> None:
    assert list(read_shapes(written(tmp_path, feature(name=name)), US).outlines) == [TRACT]


def test_the_code_may_be_the_id_or_long_and_parts_beside_it_do_not_matter(tmp_path: Path) -> None:
    assert list(read_shapes(written(tmp_path, feature(name="NAME", id=TRACT)), US).outlines) == [TRACT]
    assert list(read_shapes(written(tmp_path, feature(f"1400000US{TRACT}", "GEO_ID")), US).outlines) == [TRACT]
    parts = feature()
    parts["properties"] |= {"STATE": "01", "COUNTY": "001", "TRACT": "000100"}
    assert list(read_shapes(written(tmp_path, parts), US).outlines) == [TRACT]


def test_a_mapped_level_is_known_by_its_name(tmp_path: Path) -> None:
    geography = US.with_mapping("district", {})
    found = read_shapes(written(tmp_path, feature("North", "district")), geography)
    assert (found.level, list(found.outlines)) == ("district", ["North"])


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ([feature(), feature(1001000200)], "feature 2: 'geoid' is a number; codes are text.*quotes"),
        ([feature("1001000100")], "feature 1: tract '1001000100' has 10 digits .* a leading zero"),
        ([feature("0100100010")], "feature 1: tract '0100100010' has 10 digits"),
        ([feature("x" * 7)], "feature 1: the code 'xxxxxxx' has 7 characters; expected .* 11 .tract.*as text"),
        ([feature(None)], "feature 1: the code '' has 0 characters"),
        ([feature("000100", "tract")], "feature 1: tract '000100' has 6 characters; a tract code has 11"),
        ([feature(name="NAME")], "feature 1: no code; expected a property 'block' or 'GEOID', or an id; found: name"),
        ([feature(), feature("01001")], "feature 2: '01001' is the code of a county.*one level"),
        ([feature(), feature()], "feature 2: tract '01001000100' is there twice; expected once"),
        ([feature(geometry={"type": "LineString", "coordinates": SQUARE})], "type 'LineString'; expected Polygon"),
        ([{**feature(), "geometry": None}], "feature 1: no geometry; expected Polygon"),
        ([feature(geometry={"type": "Point", "coordinates": [1]})], "no pair of finite numbers"),
        ([feature(geometry={"type": "Point", "coordinates": [math.nan, 1]})], "no pair of finite numbers"),
        ([feature(geometry={"type": "Point", "coordinates": [1, math.inf]})], "no pair of finite numbers"),
        ([feature(geometry={"type": "Point", "coordinates": [10**400, 1]})], "no pair of finite numbers"),
        ([feature(geometry={"type": "Point", "coordinates": [True, "1"]})], "no pair of finite numbers"),
        (
            [feature(geometry={"type": "Polygon", "coordinates": [SQUARE[:-1]]})],
            "a ring of 4 points that is not closed",
        ),
        ([feature(geometry={"type": "Polygon", "coordinates": [[[0, 0], [1, 1], [0, 0]]]})], "a ring of 3 points"),
        ([feature(geometry={"type": "Polygon", "coordinates": []})], "hold no rings"),
        ([feature(geometry={"type": "MultiPolygon", "coordinates": 7})], "hold no polygons"),
        ([7], "feature 1: expected an object of type 'Feature'"),
        ([], "no areas; expected at least one"),
    ],
)
def test_a_feature_that_is_wrong_is_refused_in_one_line(features: list[Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read_shapes(written(tmp_path, *features), US)
    assert str(caught.value).startswith("areas.geojson") and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "line 1: not JSON"),
        ("[]", "found list; expected a GeoJSON FeatureCollection"),
        ('{"type": "Topology"}', "found Topology; expected"),
        ('{"type": "FeatureCollection"}', "found FeatureCollection; expected"),
        ("[" * 200_000, "nested too deeply"),
        ("1" * 5000, "a number cannot be read"),
        ("\udcff", "not UTF-8"),
    ],
)
def test_a_file_that_is_no_geojson_is_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "areas.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(InputError, match=message):
        read_shapes(path, US)


def test_limits_and_missing_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, feature(), feature(OTHER))
    monkeypatch.setattr(geometry, "MOST_AREAS", 1)
    with pytest.raises(InputError, match="feature 2: more than 1 areas"):
        read_shapes(path, US)
    monkeypatch.setattr(geometry, "MOST_BYTES", 10)
    with pytest.raises(InputError, match="MB; expected at most"):
        read_shapes(path, US)
    for name in ("none.geojson", "none.csv"):
        with pytest.raises(InputError, match="no such file"):
            read_shapes(tmp_path / name, US)


# CSV and Parquet


@pytest.mark.parametrize(
    "names",
    [("x", "y"), ("lon", "lat"), ("Longitude", "Latitude"), ("INTPTLON", "INTPTLAT"), ("INTPTLON10", "INTPTLAT10")],
)
def test_points_stand_in_columns(names: tuple[str, str], tmp_path: Path) -> None:
    path = tmp_path / "areas.csv"
    path.write_text(f"GEOID,{names[1]},{names[0]}\n{TRACT},+39.9500,-083.5\n{OTHER},40,1e1\n")
    found = read_shapes(path, US)
    assert found == Shapes("tract", {TRACT: Outline((-83.5, 39.95)), OTHER: Outline((10.0, 40.0))})


def test_blocks_as_synthesize_writes_them(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {"block": [f"{TRACT}1000", f"{TRACT}1001"], "tract": [TRACT] * 2, "x": [1.5, 2.5], "y": [0, 1]}
    )
    frame.write_parquet(tmp_path / "blocks.parquet")
    found = read_shapes(tmp_path / "blocks.parquet", US)
    assert found.level == "block"
    assert found.outlines == {f"{TRACT}1000": Outline((1.5, 0.0)), f"{TRACT}1001": Outline((2.5, 1.0))}


def test_codes_may_stand_in_parts(tmp_path: Path) -> None:
    path = tmp_path / "areas.csv"
    path.write_text("state,county,tract,block,x,y\n1,1,100,1000,0,0\n")
    assert list(read_shapes(path, US).outlines) == [f"{TRACT}1000"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            f"tract,x\n{TRACT},1\n",
            "no columns say where an area lies; expected x and y, or lon and lat; found: tract, x",
        ),
        ("x,y\n1,1\n", "no column says which place"),
        (f"geoid,x,y\n{TRACT},1,1\n{OTHER},,1\n", "line 3: x is ''; expected a number"),
        (f"geoid,x,y\n{TRACT},1,north\n", "line 2: y is 'north'; expected a number"),
        (f"geoid,x,y\n{TRACT},nan,1\n", "line 2: x is 'nan'; expected a number"),
        (f"geoid,x,y\n{TRACT},1,1e400\n", "line 2: y is '1e400'; expected a number"),
        (f"geoid,x,y\n{TRACT},1,1\n{TRACT},1,1\n", "line 3: tract '01001000100' is there twice"),
        ("geoid,x,y\n1001000100,1,1\n", "line 2: tract '1001000100' .* a leading zero"),
        ("geoid,x,y\n,1,1\n", "line 2: the code '' has 0 characters"),
        ("tract,x,y\n01001,1,1\n", "line 2: tract '01001' has 5 characters; a tract code has 11"),
    ],
)
def test_a_row_that_is_wrong_is_refused_in_one_line(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "areas.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        read_shapes(path, US)
    assert str(caught.value).startswith("areas.csv") and "\n" not in str(caught.value)


# Fewer points


def away(point: tuple[float, float], line: Ring) -> float:
    """How far a point is from a line of segments, one by one."""
    least = math.inf
    for (ax, ay), (bx, by) in pairwise(line):
        length = (bx - ax) ** 2 + (by - ay) ** 2
        share = 0.0 if not length else ((point[0] - ax) * (bx - ax) + (point[1] - ay) * (by - ay)) / length
        share = min(1.0, max(0.0, share))
        least = min(least, math.dist(point, (ax + share * (bx - ax), ay + share * (by - ay))))
    return least


points = st.tuples(st.integers(-50, 50), st.integers(-50, 50)).map(lambda p: (float(p[0]), float(p[1])))


@given(st.lists(points, min_size=3, max_size=40), st.floats(0, 30))
def test_thinning_keeps_every_point_near_the_line(found: list[tuple[float, float]], tolerance: float) -> None:
    closed = (*found, found[0])
    for thin in thinned([closed], tolerance):
        assert thin[0] == thin[-1] and len(thin) >= 4
        assert set(thin) <= set(closed)
        if len(thin) > 4:  # else it may be the triangle that stands for what is too small to be seen
            assert max(away(point, thin) for point in closed) <= tolerance + 1e-9


def test_a_circle_loses_most_of_its_points_and_corners_stay() -> None:
    circle = [(math.cos(step * math.tau / 2000), math.sin(step * math.tau / 2000)) for step in range(2000)]
    (thin,) = thinned([(*circle, circle[0])], 2 / 2000)
    assert 30 < len(thin) < 150
    assert thinned([ring(SQUARE)], 0.5) == (ring(SQUARE),)


def test_small_rings_go_but_never_the_last() -> None:
    island = ring([[100, 100], [101, 100], [101, 101], [100, 100]])
    assert thinned([ring(SQUARE), island], 2) == (ring(SQUARE),)
    (alone,) = thinned([island], 50)
    assert len(alone) == 4 and alone[0] == alone[-1]
    assert thinned([], 1) == ()


def test_a_county_of_2000_polygons_stays_under_a_megabyte() -> None:
    outlines = {}
    for number in range(2000):
        x, y = number % 50, number // 50
        turn = [step * math.tau / 300 for step in range(300)]
        edge = [(x + 0.5 * math.cos(a) + 0.003 * math.cos(37 * a), y + 0.5 * math.sin(a)) for a in turn]
        outlines[str(number)] = Outline(rings=((*edge, edge[0]),))
    thin = Shapes("tract", outlines).thinned()
    assert thin.outlines.keys() == outlines.keys()
    assert len(json.dumps({code: one.rings for code, one in thin.outlines.items()})) < 1_000_000
    x, y = zip(*(point for one in thin.outlines.values() for point in one.points()), strict=True)
    assert max(x) - min(x) == pytest.approx(50, abs=0.1) and max(y) - min(y) == pytest.approx(40, abs=0.1)


def test_points_are_shortened_and_one_point_stays() -> None:
    two = Shapes("tract", {"a": Outline((0.0, 1 / 3)), "b": Outline((1.0, 0.0))}).thinned()
    assert two.outlines["a"].point == (0.0, 0.33333)
    one = Shapes("tract", {"a": Outline((1 / 3, 1 / 3))})
    assert one.thinned() == one
