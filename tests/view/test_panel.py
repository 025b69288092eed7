"""Messages between a page and the program, without a browser; messages of a page may be invalid."""

import http.client
import itertools
import json
import socket
import threading
import time
import urllib.error
import urllib.request

import numpy as np
import pytest

import artigrad as ag
from artigrad.view import browser
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
            control.receive(value)
        assert isinstance(box.value, bool) and 0.0 <= slider.value <= 2.0
        assert choice.value == "home" and vector.value == (0.0, 0.0, 1.0) and note.value == ""
    choice.receive("zero")
    vector.receive([1, 2, 3])
    assert choice.value == "zero" and vector.value == (1.0, 2.0, 3.0)
    json.dumps([panel.described(), panel.values()])
    count = len(changes)
    box.value = box.value
    assert len(changes) == count  # nothing new


@pytest.fixture
def viewer():
    viewer = ag.interact(ag.Simulator(ag.robots.pendulum(2)), block=False)
    yield viewer
    viewer.stop()


def post(viewer, data, **headers):
    request = urllib.request.Request(viewer.url.replace("localhost", "127.0.0.1") + "/act", data, headers)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return answer.status


def test_messages_of_a_page(viewer):
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


def test_page_receives_the_latest_state(viewer):
    viewer.live.play.value = False
    told = viewer.messages()
    first = next(told)
    assert {"pose", "values"} <= set(first)
    viewer.live.u[:] = 1.0
    viewer.live.advance(0.01)
    assert next(told)["pose"] != first["pose"]
    viewer.live.keyframe.receive("zero")
    assert "values" in next(told)


def status(viewer, method, path, host):
    connection = http.client.HTTPConnection("127.0.0.1", int(viewer.url.rsplit(":", 1)[1]), timeout=10)
    connection.request(method, path, b"[]" if method == "POST" else None, {"Host": host, "Origin": f"http://{host}"})
    code = connection.getresponse().status
    connection.close()
    return code


def test_requests_under_another_host_name_are_refused(viewer):
    port = viewer.url.rsplit(":", 1)[1]
    for name in (f"elsewhere.example:{port}", "localhost.elsewhere.example", "[", ""):
        assert status(viewer, "POST", "/act", name) == status(viewer, "GET", "/", name) == 403
    for name in (f"localhost:{port}", f"127.0.0.1:{port}", "localhost:9000", f"[::1]:{port}"):  # 9000: forwarded by ssh
        assert status(viewer, "POST", "/act", name) == status(viewer, "GET", "/", name) == 200


def test_a_client_that_does_not_read_is_disconnected(viewer, monkeypatch):
    monkeypatch.setattr(browser._Request, "timeout", 0.3)
    monkeypatch.setattr(viewer, "messages", lambda: itertools.repeat({"text": "x" * 100_000}))
    before = threading.active_count()
    with socket.create_connection(("127.0.0.1", int(viewer.url.rsplit(":", 1)[1]))) as client:
        client.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert client.recv(15) == b"HTTP/1.1 200 OK"
        assert wait_until(lambda: threading.active_count() == before)


def test_live_physics_survives_a_step_that_raises(viewer, monkeypatch):
    live = viewer.live

    def full(*args, **kwargs):
        raise ag.ContactError("9 contacts, room for 8")

    with monkeypatch.context() as patch:
        patch.setattr(ag.Simulator, "rollout", full)
        assert wait_until(lambda: live.note.visible)
    assert "9 contacts" in live.note.value and not live.play.value
    live.reset()
    assert not live.note.visible and live.play.value
    live.u[:] = 1.0
    assert wait_until(lambda: live.state.q.any())  # the thread that moves it is still there


@pytest.mark.parametrize("call", ["reset", "outputs"])
def test_errors_outside_a_step_are_shown(viewer, monkeypatch, call):
    def fail(*args, **kwargs):
        raise ag.InputError("no such state")

    live = viewer.live
    grab = {"drag": {"body": 0, "place": [0, 0, 0], "target": [1, 0, 0]}}
    with monkeypatch.context() as patch:
        patch.setattr(ag.Simulator, call, fail)
        for message in ({"control": live.reset_button._panel.controls.index(live.reset_button)}, grab):
            viewer.receive(message)
    assert "no such state" in live.note.value
    viewer.receive({"drag": 3})
    viewer.receive({"control": live.reset_button._panel.controls.index(live.reset_button)})
    assert not live.note.visible


def wait_until(check):
    for _ in range(100):
        if check():
            return True
        time.sleep(0.1)
    return False
