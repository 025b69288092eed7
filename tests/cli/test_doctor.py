"""`artigrad doctor` and `artigrad cache`."""

import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from artigrad.cli import app
from artigrad.compiler import disk
from artigrad.compiler.compile import host

module = sys.modules["artigrad.cli.doctor"]  # the package has its command under this name

NARROW = """
from artigrad.compiler.compile import host
dropped = {dropped!r}
host.__dict__["features"] = ",".join(f for f in host.features.split(",") if not f.startswith(tuple(dropped)))
assert host.vector_bytes == {width}, host.vector_bytes
from artigrad.cli.doctor import reference_run
print(reference_run("f64"), reference_run("f32"))
"""


def test_doctor_shows_versions_and_the_reference_bits():
    result = CliRunner().invoke(app, ["doctor"], env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.output
    for text in (
        "artigrad",
        "numpy",
        "processor",
        "GPU",
        "cache of compiled code",
        "rollout and gradient, f32 │ reference bits",
    ):
        assert text in result.output


def test_doctor_fails_where_one_bit_differs(monkeypatch):
    monkeypatch.setattr(module, "REFERENCE", module.REFERENCE | {"f64": "0" * 16})
    result = CliRunner().invoke(app, ["doctor"], env={"COLUMNS": "200"})
    assert result.exit_code == 1 and "differs from the reference" in result.output


@pytest.mark.skipif("+avx512f" not in host.features, reason="this processor has no AVX-512 to leave out")
@pytest.mark.parametrize(("width", "dropped"), [(32, ("+avx512",)), (16, ("+avx", "+vaes", "+vpclmul"))])
def test_bits_do_not_depend_on_the_width_of_vectors(width, dropped):
    code = NARROW.format(dropped=dropped, width=width)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=os.environ | {"ARTIGRAD_CACHE": "off"}
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == list(module.REFERENCE.values())


def test_cache_is_shown_and_cleared(tmp_path, monkeypatch):
    monkeypatch.setenv("ARTIGRAD_CACHE", str(tmp_path))
    disk.write(tmp_path, "a" * 64, b"code")
    (tmp_path / "notes.txt").write_text("mine")
    assert "1 files" in CliRunner().invoke(app, ["cache"]).output
    assert "removed 1 files" in CliRunner().invoke(app, ["cache", "--clear"]).output
    assert disk.read(tmp_path, "a" * 64) is None
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_the_oldest_code_is_removed_first(tmp_path, monkeypatch):
    monkeypatch.setattr(disk, "LIMIT", 300)
    for k, name in enumerate(("a" * 64, "b" * 64)):
        disk.write(tmp_path, name, bytes(100))
        os.utime(tmp_path / name, (k, k))
    assert disk.read(tmp_path, "a" * 64)  # used now
    disk.write(tmp_path, "c" * 64, bytes(100))
    assert disk.read(tmp_path, "b" * 64) is None
    assert disk.read(tmp_path, "a" * 64) and disk.read(tmp_path, "c" * 64)
