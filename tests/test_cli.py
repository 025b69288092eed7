"""The command line."""

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
