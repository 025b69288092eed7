"""Viewer in a real browser: the robot is drawn, plays, scrubs, rotates, without error messages."""

import numpy as np
import pytest

import artigrad as ag


def dark(pixels: np.ndarray) -> int:
    """Return the number of pixels of the dark joints of the robot; sky and floor have none."""
    return int((pixels.max(2) < 85).sum())


def changed(a: np.ndarray, b: np.ndarray) -> int:
    return int((np.abs(a - b).max(2) > 12).sum())


@pytest.fixture
def saved(tmp_path, fall):
    path = tmp_path / "fall & <rise>.html"
    fall.save(path)
    return path


def seconds(page) -> float:
    return float(page.tab.locator("#time").inner_text().split()[0])


def scrub(page, share: float) -> np.ndarray:
    """Return the image at a fraction of the time; this pauses."""
    page.tab.locator("#scrub").evaluate("(e, x) => { e.value = x; e.dispatchEvent(new Event('input')); }", share)
    page.tab.wait_for_timeout(200)
    return page.pixels()


def test_saved_page_plays_from_disk(page, saved):
    page.tab.context.set_offline(True)
    page.tab.goto(saved.as_uri())
    page.wait_until(lambda: page.tab.locator("#time").inner_text(), "the time is shown")
    page.wait_until(lambda: dark(page.pixels()) > 100, "the robot is drawn")
    before = seconds(page)
    page.wait_until(lambda: seconds(page) != before, "time passes")

    page.tab.locator("#play").click()  # pauses
    page.tab.wait_for_timeout(200)
    still, at = page.pixels(), seconds(page)
    page.tab.wait_for_timeout(300)
    assert seconds(page) == at and changed(still, page.pixels()) == 0
    first, last = scrub(page, 0), scrub(page, 1)
    assert seconds(page) == 0.4
    assert changed(first, last) > 300
    page.tab.keyboard.press("ArrowLeft")
    page.wait_until(lambda: seconds(page) < 0.4, "the key goes back one frame")

    page.tab.locator("#speed").select_option("0.1")
    page.tab.locator("#play").click()
    page.wait_until(lambda: 0 < seconds(page) < 0.3, "it plays on, from the start")
    assert page.complaints == []
    assert all(r.startswith(("file:", "data:", "blob:")) for r in page.requests)


def test_an_error_in_a_page_is_noticed(page, saved):
    saved.write_text(saved.read_text().replace("</body>", "<script>nonsense()</script></body>"))
    page.tab.goto(saved.as_uri())
    page.wait_until(lambda: page.complaints, "the error is reported")


def test_saved_page_turns_moves_and_zooms(page, saved):
    page.tab.goto(saved.as_uri())
    page.wait_until(lambda: dark(page.pixels()) > 100, "the robot is drawn")
    first = scrub(page, 0.5)
    mouse = page.tab.mouse
    for button in ("left", "right"):
        mouse.move(320, 180)
        mouse.down(button=button)
        mouse.move(380, 200, steps=3)
        mouse.up(button=button)
        page.tab.wait_for_timeout(200)
        turned = page.pixels()
        assert changed(first, turned) > 1000, button
        first = turned
    mouse.wheel(0, -400)
    page.wait_until(lambda: changed(first, page.pixels()) > 1000, "the wheel comes nearer")
    page.tab.locator("canvas").dblclick(position={"x": 320, "y": 180})
    page.wait_until(lambda: changed(scrub(page, 0.5), first) > 1000, "a double click goes back")
    assert page.complaints == []


def test_forces_can_be_hidden(page, tmp_path, fall, pushes):
    path = tmp_path / "pushed.html"
    pushes.save_page(path)
    page.tab.goto(path.as_uri())
    page.wait_until(lambda: dark(page.pixels()) > 100, "the robot is drawn")
    first = scrub(page, 0.5)
    red = (first[..., 0] > 150) & (first[..., 1] < 90)
    assert red.sum() > 50
    page.tab.get_by_text("show", exact=True).click()
    page.tab.get_by_label("contact forces").uncheck()
    page.wait_until(lambda: not ((p := page.pixels())[..., 0] - p[..., 1] > 90).sum() > red.sum() / 2, "no arrows")
    assert page.complaints == []


def test_trajectory_is_served(page):
    sim = ag.Simulator(ag.robots.pendulum(2), dt=1e-2)
    start = sim.reset(batch=3)
    start.q[:, 0] = (0.3, 1.0, 2.0)
    viewer = sim.rollout(start, steps=100).show(block=False)
    try:
        page.tab.goto(viewer.url)
        page.tab.get_by_role("heading", name="pendulum-2").wait_for()
        page.wait_until(lambda: dark(page.pixels()) > 20, "the robot is drawn")
        first = page.pixels()
        page.wait_until(lambda: changed(first, page.pixels()) > 100, "it plays")

        page.tab.get_by_role("button", name="pause").click()
        page.tab.wait_for_timeout(300)
        still = page.pixels()
        assert changed(still, page.pixels()) == 0
        low = scrub(page, 0)
        assert changed(still, low) > 100  # scrubbing moves it
        robot = page.tab.get_by_role("spinbutton", name="robot")
        robot.fill("1")
        robot.press("Enter")
        page.wait_until(lambda: changed(low, page.pixels()) > 100, "another robot starts higher")
        robot.fill("7")
        robot.press("Enter")
        page.tab.get_by_text("this trajectory has robots 0 to 2; not robot 7").wait_for()
        page.complaints.clear()  # the browser reports the 404
        assert page.complaints == []
    finally:
        viewer.stop()


def test_model_is_posed(page):
    viewer = ag.view(ag.robots.pendulum(2), block=False)
    try:
        page.tab.goto(viewer.url)
        page.wait_until(lambda: dark(page.pixels()) > 20, "the robot is drawn")
        page.tab.wait_for_timeout(500)
        before = page.pixels()
        page.tab.get_by_label("rod2").focus()
        page.tab.keyboard.press("Home")
        page.wait_until(lambda: changed(before, page.pixels()) > 100, "the joint moves")
        assert page.complaints == []
    finally:
        viewer.stop()


def test_physics_as_it_happens(page):
    """Play, pause, step, slider, reset, and a pull with the mouse."""
    sim = ag.Simulator(ag.robots.pendulum(2, damping=0.5), dt=2e-3)
    viewer = ag.interact(sim, block=False)
    live = viewer.live
    try:
        page.tab.goto(viewer.url)
        page.wait_until(lambda: dark(page.pixels()) > 20, "the robot is drawn")
        page.tab.wait_for_timeout(500)
        assert np.abs(live.state.q).max() < 1e-6  # it hangs at rest
        rest = page.pixels()

        page.tab.get_by_label("rod1").focus()
        page.tab.keyboard.press("End")
        page.wait_until(lambda: live.state.q[0] > 0.02, "its motor moves it")
        page.wait_until(lambda: changed(rest, page.pixels()) > 50, "and that is seen")

        page.tab.get_by_label("play").uncheck()
        page.tab.wait_for_timeout(300)
        q = live.state.q.copy()
        page.tab.wait_for_timeout(300)
        assert np.array_equal(q, live.state.q)
        page.tab.get_by_role("button", name="step").click()
        page.wait_until(lambda: not np.array_equal(q, live.state.q), "a step is made")
        assert np.abs(live.state.q - q).max() < 0.05

        page.tab.get_by_role("button", name="reset").click()
        page.wait_until(lambda: not live.state.q.any() and not live.u.any(), "it is where it began")
        page.tab.get_by_label("play").check()
        page.tab.wait_for_timeout(300)
        ys, xs = np.nonzero(page.pixels().max(2) < 85)
        x, y = 100 + int(np.median(xs)), 150 + int(ys.max()) - 4
        page.tab.mouse.move(x, y)
        page.tab.mouse.down()
        page.tab.mouse.move(x + 60, y, steps=6)
        page.wait_until(lambda: np.abs(live.state.q).max() > 0.1, "the mouse pulls at it")
        page.tab.mouse.up()
        page.wait_until(lambda: live.grip is None, "and lets go")
        assert page.complaints == []
    finally:
        viewer.stop()


def test_visual_options_are_shown(page):
    model = ag.robots.laikago(links=True)
    viewer = ag.interact(ag.Simulator(model, dt=2e-3), block=False)
    try:
        page.tab.goto(viewer.url)
        page.wait_until(lambda: (np.ptp(page.pixels(), axis=2) > 60).sum() > 20, "its blue legs are drawn")
        page.tab.get_by_label("play").uncheck()
        page.tab.get_by_text("show", exact=True).click()
        page.tab.wait_for_timeout(800)
        for label in ("collision shapes", "frames", "centers of mass", "contact points", "contact forces"):
            before = page.pixels()
            page.tab.get_by_label(label).check()
            page.wait_until(lambda before=before: changed(before, page.pixels()) > 8, f"{label} are drawn")
            page.tab.get_by_label(label).uncheck()
            page.tab.wait_for_timeout(400)
        assert page.complaints == []
        assert all(r.startswith(("data:", "blob:", viewer.url)) for r in page.requests)
        viewer.stop()
        page.tab.get_by_text("The program that shows this has ended.").wait_for()
    finally:
        viewer.stop()
