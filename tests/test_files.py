"""Files are written atomically; invalid paths are refused."""

import ast
import os
import re
import resource
import signal
import stat
from pathlib import Path

import numpy as np
import pytest

import artigrad as ag
from artigrad.files import as_path, existing, replacing, to_write, write_text

SOURCE = Path(ag.__file__).parent


@pytest.fixture(params=[20, 1000])
def full_disk(request):
    """Limit the size of files to a number of bytes."""
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (request.param, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    signal.signal(signal.SIGXFSZ, before)


MODEL, LARGE = ag.robots.pendulum(), ag.robots.chain(9)
SIM = ag.Simulator(MODEL, threads=1)
WRITERS = {
    "model.xml": lambda path: ag.save(LARGE, path),
    "run.npz": lambda path: SIM.rollout(SIM.reset(), steps=60).save(path),
    "run.csv": lambda path: SIM.rollout(SIM.reset(), steps=60).save(path),
    "run.html": lambda path: SIM.rollout(SIM.reset(), steps=60).save(path),
    "run.gif": lambda path: SIM.rollout(SIM.reset(), steps=40).save(path, size=(32, 32)),
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_full_disk_leaves_the_old_file(tmp_path, name, full_disk):
    path = tmp_path / name
    path.write_text("as it was")
    with pytest.raises(OSError):
        WRITERS[name](path)
    assert path.read_text() == "as it was" and os.listdir(tmp_path) == [name]


def test_links_and_permissions_stay(tmp_path):
    (tmp_path / "target").write_text("old")
    (tmp_path / "target").chmod(0o640)
    (tmp_path / "link").symlink_to("target")
    write_text(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "target").read_text() == "new"
    assert stat.S_IMODE((tmp_path / "target").stat().st_mode) == 0o640
    write_text("/dev/null", "nothing")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_an_interrupted_block_leaves_nothing(tmp_path):
    with pytest.raises(KeyboardInterrupt), replacing(tmp_path / "x") as unfinished:
        unfinished.write_text("half")
        raise KeyboardInterrupt
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("path", [None, 3, b"x", "", "a\0b", ["x"], np.zeros(2)])
def test_paths_that_are_no_names(path):
    for check in (as_path, existing, to_write):
        with pytest.raises(ag.InputError, match="path is the name of a file"):
            check(path)


def test_paths_that_cannot_be_written_or_read(tmp_path):
    for path, message in (
        (tmp_path, "is a folder"),
        (tmp_path / "a" / "b", "there is no folder"),
        ("x" * 300, "File name too"),
    ):
        with pytest.raises(ag.InputError, match=message):
            to_write(path)
    for path in (tmp_path, tmp_path / "a", "x" * 300):
        with pytest.raises(ag.InputError, match="there is no file"):
            existing(path)


def test_every_file_of_the_library_is_written_by_replacing():
    """Files that grow by rows are excepted: readers ignore a truncated row."""
    writes = {"write_text", "write_bytes", "savez", "savez_compressed", "savefig", "save_gif", "save_mp4", "save_page"}
    found = 0
    for file in SOURCE.rglob("*.py"):
        if not re.search(rf"\.({'|'.join(writes)}|open|save)\(", source := file.read_text()):
            continue
        tree = ast.parse(source)
        inside = {
            call
            for block in ast.walk(tree)
            if isinstance(block, ast.With) and "'replacing'" in "".join(map(ast.dump, block.items))
            for call in ast.walk(block)
        }
        for call in ast.walk(tree):
            if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
                continue
            name, text = call.func.attr, ast.unparse(call)
            opened = name == "open" and any(mode in text for mode in ("'w'", "'wb'", "'x'", "'xb'"))
            saved = name == "save" and text.startswith(("torch.save", "np.save"))
            if name in writes or opened or saved:
                found += 1
                in_writer = file.name in ("page.py", "video.py") and "path" in text  # called by view.save, in its block
                assert call in inside or in_writer, (
                    f"{file.relative_to(SOURCE)}: {text} does not write whole or not at all"
                )
    assert found > 8
