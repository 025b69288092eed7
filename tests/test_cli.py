"""The command line."""

import signal
import socket
import subprocess
import sys
import threading
import urllib.request

from typer.testing import CliRunner

from artigrad.cli import app


def test_demo_swings_up_and_writes_its_plot(tmp_path):
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "plots")])
    assert result.exit_code == 0, result.output
    assert "upright" in result.output and "relative error" in result.output
    assert (tmp_path / "plots" / "swing_up.png").stat().st_size > 10_000


def test_too_few_iterations_fail_honestly(tmp_path):
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path), "--iterations", "2"])
    assert result.exit_code == 1
    assert "not upright" in result.output


def test_help():
    result = CliRunner().invoke(app, ["--help"])
    assert result.exit_code == 0 and "demo" in result.output


def test_view_of_nothing_is_one_sentence():
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
    mass="2"/></body></worldbody><equality><joint joint1="hinge"/></equality></mujoco>"""


def test_info_shows_the_robot_and_what_is_left_out(tmp_path):
    (tmp_path / "arm.xml").write_text(ARM)
    result = CliRunner().invoke(app, ["info", str(tmp_path / "arm.xml")])
    assert result.exit_code == 0, result.output
    for text in ("arm 2 kg revolute hinge", "degrees of freedom", "equality constraint", "not enforced"):
        assert text in result.output


def test_check_compares_gradients(tmp_path):
    (tmp_path / "arm.xml").write_text(ARM)
    result = CliRunner().invoke(app, ["check", str(tmp_path / "arm.xml"), "--samples", "1"])
    assert result.exit_code == 0 and "all gradients agree" in result.output


def test_a_missing_file():
    result = CliRunner().invoke(app, ["info", "no/such/robot.urdf"])
    assert result.exit_code == 1 and result.output.startswith("error: there is no file")
