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
