"""Command line interface."""

import json
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request

from typer.testing import CliRunner

from artigrad import Trajectory, __version__
from artigrad.cli import app


def test_demo_throws_and_leaves_plots_and_animation(tmp_path):
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "demo")])
    assert result.exit_code == 0, result.output
    for words in ("relative error", "all 8 starts within 0.001", "MuJoCo", " run golf"):
        assert words in " ".join(result.output.split())
    for name in ("result.json", "curves.png", "motion.html", "motion.gif"):
        assert (tmp_path / "demo" / name).stat().st_size > 500


def test_version():
    result = CliRunner().invoke(app, ["--version"])
    assert result.exit_code == 0 and result.output == f"artigrad {__version__}\n"


def test_a_missing_package_is_named_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules["artigrad.optimize.minimize"], "find_spec", lambda name: None)
    result = CliRunner().invoke(app, ["run", "throw", "--method", "lbfgs", "--out", str(tmp_path / "out")])
    assert result.exit_code == 1 and "pip install 'artigrad[optimize]'" in result.output
    assert not (tmp_path / "out").exists()


def test_too_few_iterations_fail_honestly(tmp_path):
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path), "--iterations", "2"])
    assert result.exit_code == 1
    assert "does not arrive" in result.output and "0 of 8 starts" in result.output


def test_run_compares_with_cma_es_and_writes_its_folder(tmp_path):
    command = ["run", "racecar", "--starts", "2", "--out", str(tmp_path / "deep" / "folder")]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert "cma-es: all 2 starts" in result.output and "simulations" in result.output
    assert (tmp_path / "deep" / "folder" / "landscape.png").exists()


def test_run_shows_the_best_trajectory(tmp_path, monkeypatch):
    shown = []
    monkeypatch.setattr(Trajectory, "show", lambda traj: shown.append(traj.simulator.model.name))
    command = ["run", "pendulum", "--starts", "2", "--no-compare", "--show", "--out", str(tmp_path)]
    assert CliRunner().invoke(app, command).exit_code == 0
    assert shown == ["loaded-links-3"]


def test_unknown_task_is_a_one_line_error(tmp_path):
    for command in (["run", "chess"], ["run", "pendulum", "--method", "newton", "--out", str(tmp_path)]):
        result = CliRunner().invoke(app, command)
        assert result.exit_code == 1
        assert "error: " in result.output and "Traceback" not in result.output


def test_run_is_interrupted_and_resumed(tmp_path):
    """Ctrl-C during a long CMA-ES run; then again with --resume."""
    out, code = tmp_path / "run", "from artigrad.cli import app; app()"
    task = ["run", "cartpole", "--method", "cma-es", "--starts", "1", "--out", str(out)]
    command = [sys.executable, "-c", code, *task, "--iterations", "100000", "--seed", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        limit = threading.Timer(90, process.kill)
        limit.start()
        try:
            while not (out / "cma-es.npz").exists():  # saved every few seconds
                assert process.poll() is None, process.communicate()
                time.sleep(0.1)
            process.send_signal(signal.SIGINT)
            output, errors = process.communicate(timeout=60)
        finally:
            limit.cancel()
            process.kill()
    assert process.returncode == 130 and "Traceback" not in errors, errors
    assert "--resume goes on" in " ".join(output.split()) and "saving the results so far" in " ".join(output.split())
    before = json.loads((out / "result.json").read_text())["methods"]["cma-es"]["iterations"]
    again = CliRunner().invoke(app, [*task, "--seed", "1", "--resume", "--iterations", str(before + 2)])
    assert again.exit_code in (0, 1) and "Traceback" not in again.output
    assert json.loads((out / "result.json").read_text())["methods"]["cma-es"]["iterations"] == before + 2


def test_interrupt_while_saving_names_the_complete_files(tmp_path, monkeypatch):
    def stop(self, path, **_):
        raise KeyboardInterrupt

    monkeypatch.setattr("artigrad.Trajectory.save", stop)
    result = CliRunner().invoke(app, ["run", "racecar", "--starts", "1", "--no-compare", "--out", str(tmp_path)])
    said = " ".join(result.output.split())
    assert (
        result.exit_code == 130 and "interrupted while saving motion.html" in said and "result.json, curves.png" in said
    )
    assert {"result.json", "curves.png"} <= {file.name for file in tmp_path.iterdir()}


def test_as_a_module():
    done = subprocess.run([sys.executable, "-m", "artigrad", "--version"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout == f"artigrad {__version__}\n"


def test_help():
    result = CliRunner().invoke(app, ["--help"])
    assert result.exit_code == 0 and "demo" in result.output


def test_unknown_robot_is_a_one_line_error():
    result = CliRunner().invoke(app, ["view", "no such robot"])
    assert result.exit_code == 1
    assert "no such robot" in result.output and "Traceback" not in result.output


def test_view_serves_a_page_until_interrupted():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-c", "from artigrad.cli import app; app()", "view", "pendulum", "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        limit = threading.Timer(60, process.kill)
        limit.start()
        try:
            assert any("Ctrl-C ends it" in line for line in process.stdout)  # it waits from here on
            with urllib.request.urlopen(f"http://127.0.0.1:{port}", timeout=10) as answer:
                page = answer.read().decode()
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=20)
        finally:
            limit.cancel()
            process.kill()
    assert "<html" in page.lower()
    assert process.returncode == 0 and "Traceback" not in errors, errors


ARM = """<mujoco model="arm"><worldbody><body name="arm"><joint name="hinge" range="-90 90"/><geom size="0.1" pos="0.3 0 0"
    mass="2"/></body></worldbody></mujoco>"""


def test_info_shows_the_robot_and_unsupported_features(tmp_path):
    (tmp_path / "arm.xml").write_text(
        ARM.replace("<worldbody>", '<option><flag multiccd="disable"/></option><worldbody>')
    )
    result = CliRunner().invoke(app, ["info", str(tmp_path / "arm.xml")])
    assert result.exit_code == 0, result.output
    for text in ("arm 2 kg revolute hinge", "degrees of freedom", "one point for each pair"):
        assert text in result.output


def test_check_compares_gradients(tmp_path):
    (tmp_path / "arm.xml").write_text(ARM)
    for more in ([], ["--motors"]):
        result = CliRunner().invoke(app, ["check", str(tmp_path / "arm.xml"), "--samples", "1", *more])
        assert result.exit_code == 0 and "all gradients agree" in result.output
        assert (" u " in result.output) == bool(more)  # there are no controls without motors


def test_wrong_robot_names():
    result = CliRunner().invoke(app, ["info", "laikag"])
    assert result.exit_code == 1 and "laikago" in result.output
    result = CliRunner().invoke(app, ["info", "laikago", "--motors"])
    assert result.exit_code == 1 and "bundled" in result.output


def test_a_missing_file():
    result = CliRunner().invoke(app, ["info", "no/such/robot.urdf"])
    assert result.exit_code == 1 and result.output.startswith("error: there is no file")
