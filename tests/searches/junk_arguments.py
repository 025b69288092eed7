"""Wrong arguments of public functions: an error names the argument."""

import contextlib
import io
import re
import signal
import types
import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np

import artigrad as ag

from ..public_calls import GROUPS, folder
from .outcome import Outcome

SUMMARY = (
    "Public functions and methods (simulators, models, builders, files, control, fits, optimizers, PyTorch, JAX, environments, "
    "training, cameras, viewers) with one wrong argument: another type, shape or sign, NaN, huge numbers, "
    "empty arrays, paths that cannot be, damaged files. The outcome must be success or an error of artigrad that names the "
    "argument (TypeError for unknown keywords)."
)
COUNT, SAMPLE = 60_000, 1_200
ERRORS = (ag.InputError, ag.ModelError, ag.ContactError, ag.DeviceError, ag.StagingError)
LONGEST = 30  # s of one call
READERS = ("read", "load", "Player")  # calls that are given sound and damaged files
WORDS = {  # other words by which errors name an argument
    "model": ("Model", "pendulum-1"),
    "sim": ("Simulator",),
    "path": ("file", "files", "folder", "saved"),
    "traj": ("Trajectory",),
    "state": ("q", "v", "act", "activations", "states"),
    "params": ("Params", "parameter"),
    "steps": ("controls",),
    "u": ("controls",),
}
# of errors that come through XLA and Gymnasium
THROUGH = re.compile(r"INVALID_ARGUMENT: (u|x|q|v|params)|CpuCallback error|Seed must be ")
NAN, INF = float("nan"), float("inf")


class Odd:
    """Object that no function accepts."""

    def __init__(self, *_, **__):
        pass


def anything():
    """Return arguments that are wrong everywhere, by name."""
    good = ag.robots.pendulum()
    return {
        "None": None,
        "True": True,
        "0": 0,
        "1": 1,
        "-1": -1,
        "2": 2,
        "0.5": 0.5,
        "-2.5": -2.5,
        "nan": NAN,
        "inf": INF,
        "-inf": -INF,
        "1e300": 1e300,
        "10**30": 10**30,
        "-10**30": -(10**30),
        "1j": 1j,
        "1/3": Fraction(1, 3),
        "''": "",
        "'x'": "x",
        "'soft'": "soft",
        "b'x'": b"x",
        "'a\\0b'": "a\0b",
        "long text": "x" * 5000,
        "'{}'": "{}",
        "[]": [],
        "()": (),
        "{}": {},
        "[[]]": [[]],
        "[1, 2]": [1, 2],
        "['x']": ["x"],
        "{'x': 1}": {"x": 1},
        "{1: 2}": {1: 2},
        "[None]": [None],
        "[nan]": [NAN],
        "ragged": [[1.0], [1.0, 2.0]],
        "a set": {1.0, 2.0},
        "range": range(3),
        "an object": Odd(),
        "a class": Odd,
        "a module": types,
        "a function": lambda *a, **k: None,
        "...": ...,
        "a generator": (x for x in range(3)),
        "a slice": slice(3),
        "bytearray": bytearray(b"abc"),
        "zeros(0)": np.zeros(0),
        "zeros(3)": np.zeros(3),
        "zeros((2, 3, 4))": np.zeros((2, 3, 4)),
        "np.nan": np.float32(NAN),
        "zeros((0, 3))": np.zeros((0, 3)),
        "words": np.array(["a", "b"]),
        "objects": np.array([Odd(), None]),
        "np.array(3.0)": np.array(3.0),
        "complex": np.zeros(2, complex),
        "masked": np.ma.masked_equal([1.0, 2.0], 1.0),
        "dates": np.zeros(2, "M8[s]"),
        "float16": np.ones(2, "f2"),
        "another model": good,
        "its params": good.params,
        "a state": ag.State(np.zeros(1), np.zeros(1)),
        "options": ag.Options(),
        "a folder": folder(),
        "no file": folder() / "none" / "x.npz",
        "a text as a path": str(folder() / "words.xml"),
    }


def variants(value):
    """Return wrong arguments similar to a valid one, by name."""
    out = {}
    if isinstance(value, ag.State):
        for k, name in enumerate(value._fields[: len(value)]):
            for how, part in variants(value[k]).items():
                out[f"{name}: {how}"] = tuple(part if j == k else x for j, x in enumerate(value))
        return out | {"one part": (value[0],), "four parts": (*value, *value), "swapped": (value[1], None)}
    if isinstance(value, dict) and value:
        key = next(iter(value))
        out = {
            f"[{key}]: {how}": value | {key: x}
            for how, x in (variants(value[key]) | {"an object": Odd(), "None": None}).items()
        }
        return out | {"another key": {"nonsense": value[key]}, "a key more": value | {"nonsense": 1.0}}
    if isinstance(value, bool) or value is None:
        return {}
    if isinstance(value, str):
        return {"other case": value.swapcase(), "more": value + "x", "bytes": value.encode(), "in a list": [value]}
    try:
        x = np.asarray(value)
    except (ValueError, TypeError, RuntimeError):
        return {}
    if x.dtype.kind not in "fiu":
        return {}
    x = x.astype(float)
    finite = np.where(np.isfinite(x), x, 0.0)
    out = {
        "negative": -1.0 - np.abs(x),
        "huge": finite + 1e300,
        "nan": x * NAN,
        "infinite": finite + INF,
        "as text": x.astype(str),
    }
    if x.ndim:
        last = x.copy()
        last.flat[-1:] = NAN
        out |= {"one nan": last, "longer": np.concatenate([x, x]), "shorter": x[:-1], "with an axis": x[None]}
        out |= {
            "a row": x[:1],
            "transposed": x.T,
            "flat": x.ravel(),
            "integers": finite.astype(int),
            "as lists": x.tolist(),
        }
        out |= {"float32": x.astype("f4"), "backwards": x[::-1], "objects": x.astype(object), "truths": x > 0}
    return out


def paths():
    """Return files of all kinds, intact and damaged, by name."""
    return {f"file {path.name}": path for path in sorted(folder().iterdir()) if not path.name.startswith("out.")}


def cases(groups=GROUPS):
    """Return all cases: name of the call, the call, name of the argument, wrong value, and its name."""
    pool, found = anything(), []
    for group in groups:
        for name, call in group():
            for argument, right in call.arguments.items():
                near = variants(right)
                near |= paths() if name.startswith(READERS) and argument in ("path", "source") else {}
                found += [(name, call, argument, how, wrong) for how, wrong in (pool | near).items()]
            if call.keywords:
                found.append((name, call, "nonsense", "an unknown keyword", 1.0))
    return found


def outcome_of(call, argument, wrong):
    """Call with one wrong argument; return the outcome, and the reason why it is a finding, or None."""

    def late(*_):
        raise TimeoutError(f"not done after {LONGEST} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(LONGEST)
    try:
        quiet = contextlib.redirect_stdout(io.StringIO())
        with warnings.catch_warnings(), contextlib.chdir(folder()), quiet:
            warnings.simplefilter("ignore")
            call.function(**(call.arguments | {argument: wrong}))
    except ERRORS as error:
        words, text = (argument, *WORDS.get(argument, ()), *call.words.get(argument, ())), str(error)
        named = any(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) for word in words)
        named |= isinstance(error, ag.ModelError) and re.search(r"'[^']+'", text) is not None  # of a part of a model
        named |= isinstance(wrong, Path) and wrong.name in text
        return ("refused by name", None) if named else ("refused", f"does not name '{argument}': {text}")
    except TypeError as error:
        if "unexpected keyword argument" in str(error) and argument in str(error):
            return "unknown keyword", None
        return "error from inside", f"TypeError: {error}"
    except Exception as error:
        if THROUGH.search(str(error)):
            return "refused by name, as an error of XLA or Gymnasium", None
        return "error from inside", f"{type(error).__name__}: {error}"
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    return "accepted", None


def search(count, seed):
    """Draw and check `count` cases."""
    outcome, rng, every = Outcome(), np.random.default_rng(seed), cases()
    drawn = rng.permutation(len(every))[:count] if count < len(every) else range(len(every))
    for k in drawn:
        name, call, argument, how, wrong = every[k]
        ended, finding = outcome_of(call, argument, wrong)
        outcome.counts[ended] += 1
        if finding is not None:
            outcome.findings.append(f"{name}({argument}={how}) {finding}"[:400])
    return outcome
