"""What a page and the program tell each other, without a browser: pages may say anything."""

import json
import urllib.error
import urllib.request

import numpy as np
import pytest

import artigrad as ag
from artigrad.view.panel import Panel

SAID = [None, 3, "x", [], {}, True, [1, 2], [1, 2, "z"], float("nan"), 1e400, -1e9, {"a": 1}]


def test_a_control_keeps_values_of_its_kind():
    changes = []
    panel = Panel(lambda: changes.append(1))
    box, slider = panel.checkbox("play", True), panel.slider("speed", 0.0, 2.0, 1.0)
    choice, vector, note = (
        panel.choice("keyframe", ["zero", "home"], "home"),
        panel.vector("at", (0.0, 0.0, 1.0), 0.1),
        panel.note(),
    )
    for value in SAID:
        for control in panel.controls:
            control.told(value)
        assert isinstance(box.value, bool) and 0.0 <= slider.value <= 2.0
        assert choice.value == "home" and vector.value == (0.0, 0.0, 1.0) and note.value == ""
    choice.told("zero")
    vector.told([1, 2, 3])
    assert choice.value == "zero" and vector.value == (1.0, 2.0, 3.0)
    json.dumps([panel.described(), panel.values()])
    count = len(changes)
    box.value = box.value
    assert len(changes) == count  # nothing new


@pytest.fixture
def viewer():
    viewer = ag.play(ag.Simulator(ag.robots.pendulum(2)), block=False)
    yield viewer
    viewer.stop()


def post(viewer, data, **headers):
    request = urllib.request.Request(viewer.url.replace("localhost", "127.0.0.1") + "/act", data, headers)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return answer.status


def test_what_a_page_posts(viewer):
    live = viewer.live
    live.play.value = False
    drags = [{"body": 0, "place": x, "target": y} for x in SAID for y in SAID] + [
        {"body": x} for x in (7, -1, "x", None)
    ]
    for messages in (
        [{"control": k, "value": x} for k in (0, 2, 99, -1, "x", None) for x in SAID[:-4]],
        [{"drag": d} for d in drags],
    ):
        assert post(viewer, json.dumps(messages).encode()) == 200
        assert live.grip is None
    for garbage in (b"", b"{", b"3", b"null", b"[1, null]"):
        assert post(viewer, garbage) == 200
    assert post(viewer, json.dumps([{"drag": {"body": 1, "place": [0, 0, -1], "target": [1, 0, -1]}}]).encode()) == 200
    assert live.grip.body == 1 and np.array_equal(live.grip.target, [1, 0, -1])
    u = live.u.copy()
    number = viewer.panel.controls.index(live.sliders[0])
    assert post(viewer, json.dumps([{"control": number, "value": 0.5}]).encode()) == 200
    assert live.u[0] == 0.5 != u[0]


def test_other_pages_cannot_post(viewer):
    with pytest.raises(urllib.error.HTTPError, match="403"):
        post(viewer, b"[]", Origin="http://elsewhere.example")
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(viewer.url + "/robot/0", timeout=10)


def test_a_page_is_told_of_the_latest_moment(viewer):
    viewer.live.play.value = False
    told = viewer.messages()
    first = next(told)
    assert {"pose", "values"} <= set(first)
    viewer.live.u[:] = 1.0
    viewer.live.advance(0.01)
    assert next(told)["pose"] != first["pose"]
    viewer.live.keyframe.told("zero")
    assert "values" in next(told)
