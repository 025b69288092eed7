"""Browser, if there is one, and trajectories to show."""

import io
import shutil

import numpy as np
import pytest
from PIL import Image

import artigrad as ag

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)
# software WebGL, and nothing that calls out
FLAGS = [
    "--no-sandbox",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
TIMEOUT = 15_000  # ms, of everything a test waits for


@pytest.fixture(scope="session")
def chromium():
    """Chromium without a window."""
    if CHROMIUM is None:
        pytest.skip("no chromium here: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS, timeout=TIMEOUT)
        yield browser
        browser.close()


class Page:
    """Page in the browser, its console messages, and its requests."""

    def __init__(self, tab):
        self.tab, self.complaints, self.requests = tab, [], []
        tab.set_default_timeout(TIMEOUT)
        tab.on("console", lambda m: m.type == "error" and self.complaints.append(m.text))
        tab.on("pageerror", lambda e: self.complaints.append(str(e)))
        tab.on("request", lambda r: self.requests.append(r.url))

    def pixels(self) -> np.ndarray:
        """Return the middle of the page without messages and controls, (height, width, 3)."""
        data = self.tab.screenshot(timeout=TIMEOUT, clip={"x": 100, "y": 150, "width": 230, "height": 190})
        return np.asarray(Image.open(io.BytesIO(data)).convert("RGB")).astype(int)

    def wait_until(self, check, what: str):
        """Return the first true result of a check."""
        for _ in range(TIMEOUT // 250):
            result = check()
            if result is not None and result is not False:
                return result
            self.tab.wait_for_timeout(250)
        raise AssertionError(f"not within {TIMEOUT} ms: {what}; the page complained: {self.complaints}")


@pytest.fixture
def page(chromium):
    tab = chromium.new_page(viewport={"width": 640, "height": 420})
    yield Page(tab)
    tab.close()


@pytest.fixture(scope="session")
def fall():
    """Return three quadrupeds that are dropped, 0.4 s."""
    model = ag.robots.laikago()
    sim = ag.Simulator(model, dt=2e-3)
    state = sim.reset(batch=3)
    state.q[:, 2] += [0.1, 0.2, 0.3]
    return sim.rollout(state, np.tile(model.keyframe_control(), (200, 1)))


class Pushes:
    """The fall with artificial forces on one foot."""

    def __init__(self, traj):
        from artigrad.view.frames import Forces, frames_of, framing
        from artigrad.view.scenery import scene_of

        model = traj.simulator.model
        motion, foot = frames_of(traj, 0, 50), model.body("rr_toe") + 1
        forces = [Forces(p[None, foot], np.array([[0.0, 0.0, 60.0]])) for p in motion.position]
        self.motion = motion._replace(forces=forces)
        self.scene = scene_of(model, model.params)
        self.framing = framing(self.scene, self.motion)

    def save_page(self, path):
        from artigrad.view.page import save_page

        save_page(path, "pushes", self.scene, self.motion, self.framing)


@pytest.fixture(scope="session")
def pushes(fall):
    return Pushes(fall)
