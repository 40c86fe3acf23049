"""The picture of what masks earn between knowing nothing and what nobody can exceed."""

import math
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

from learning.bounds import draw_bracket, tried_masks
from learning.bounds_picture import Band, Point, draw_bounds
from wrappers.fitting.history import Record

SVG = "{http://www.w3.org/2000/svg}"


def record(action, candidate, mask, accepted, earned):
    return Record(
        action=action,
        candidate=candidate,
        accepted=accepted,
        reason="",
        mask=mask,
        mean_return=earned,
        half_width=None if earned is None else 2.0,
    )


def test_every_mask_that_was_planned_with_is_a_point():
    history = [
        record("find", ("a",), ("a",), True, None),
        record("start", ("a", "b"), ("a", "b"), True, 10.0),
        record("add", ("c", "d"), ("a", "b"), False, 11.0),
        record("add", ("c",), ("a", "b", "c"), True, 12.0),
        record("drop", ("a", "b"), ("a", "b", "c"), False, 3.0),
        record("drop", ("a",), ("b", "c"), True, 12.5),
        record("try", (), ("b", "c"), False, 0.0),
    ]
    points = tried_masks(history)
    assert [(point.size, point.mean) for point in points] == [
        *((2, 10.0), (4, 11.0), (3, 12.0), (1, 3.0), (2, 12.5), (0, 0.0)),
    ]
    assert points[0].interval == (8.0, 12.0)
    assert [point.kind for point in points[:2]] == ["kept", "not kept"]


def test_the_picture_has_all_points_between_the_bands_and_inside_the_frame():
    points = [
        Point(0, -5.0, (-8.0, -2.0), "not kept"),
        Point(40, 30.0, (20.0, 40.0), "kept"),
        Point(60, 35.0, (-math.inf, math.inf), "learned mask"),
    ]
    bands = [Band("no policy exceeds", 50.0, (49.0, 51.0)), Band("knows nothing", -5.0, (-6, -4))]
    svg = ElementTree.fromstring(draw_bounds(points, bands))
    circles = svg.findall(f"{SVG}circle")[: len(points)]
    across = [float(circle.get("cx")) for circle in circles]
    down = [float(circle.get("cy")) for circle in circles]
    assert across == sorted(across)
    assert down == sorted(down, reverse=True)
    width, height = float(svg.get("width")), float(svg.get("height"))
    for circle in svg.iter(f"{SVG}circle"):
        assert 0 < float(circle.get("cx")) < width
        assert 0 < float(circle.get("cy")) < height
    upper, blind = (float(area.get("y")) for area in svg.findall(f"{SVG}rect")[1:])
    assert upper < min(down) < blind
    texts = [text.text for text in svg.iter(f"{SVG}text")]
    assert {"no policy exceeds", "50.0 ± 1.0", "knows nothing", "-5.0 ± 1.0"} <= set(texts)


@pytest.mark.parametrize("mean", [0.0, 1e-6, -1e9])
def test_a_single_mask_can_be_drawn(mean):
    bands = [Band("no policy exceeds", mean, (mean, mean))]
    svg = draw_bounds([Point(0, mean, (mean, mean), "learned mask")], bands)
    assert "nan" not in svg
    ElementTree.fromstring(svg)


def test_without_a_policy_or_a_bound_there_is_no_picture(tmp_path):
    picture = tmp_path / "picture.svg"
    for objective in (None, SimpleNamespace(bracket=None)):
        assert not draw_bracket(SimpleNamespace(objective_=objective), None, picture)
    assert not picture.exists()
