"""All checks and times on the GPU: `python -m benchmarks.cuda [--quick] [--out FOLDER]`.

Checks: CUDA against the CPU for all bundled robots, forward and gradients; the same bits in every run, batch size and
launch shape; PyTorch tensors without a copy; no leaks; two streams. Times: launch shapes, batch sizes, rollouts of 32 steps
forward and backward, the start of a new process, memory.

Needs an NVIDIA driver, NumPy and llvmlite; PyTorch for its own parts. Each result is one line. Each part runs in a separate
process: the failure of one is reported and the others continue. The Laikago stands or stumbles as in `benchmarks.contact`.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import multiprocessing
import os
import platform
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import llvmlite
import numpy as np

import artigrad as ag
from artigrad.compiler import Cuda
from artigrad.compiler.cuda import driver

STEPS = 32
BIG, SMALL = 65536, 4096
FLOATS = {"f64": np.float64, "f32": np.float32}
TOLERANCE = {"f64": 1e-10, "f32": 1e-4}
NOISE = {"standing": 0.0, "stumbling": 0.1}  # rad, on the controls of the Laikago; a fifth on those of the humanoid
# million robot-steps/s at BIG, standing
TARGETS = {"laikago": {"forward": 130.0, "gradient": 60.0}, "humanoid": {"forward": 15.0, "gradient": 10.0}}
LIMIT, PART_LIMIT = 330.0, 150.0  # s, after which no new part starts, and a part is ended
START = float(os.environ.get("ARTIGRAD_BENCHMARK_START", time.time()))


# -- robots and inputs -------------------------------------------------------------------------------------------------
def robots() -> dict[str, Callable[[], ag.Model]]:
    """Return all bundled robots."""
    r = ag.robots
    dh = [(0.3, 0.0, np.pi / 2), (0.0, 0.4, 0.0), (0.0, 0.3, 0.0)]
    return {
        "laikago": r.laikago,
        "humanoid": r.humanoid,
        "ant": r.ant,
        "hopper": r.hopper,
        "ball": lambda: r.ball(floor=True),
        "quadruped": r.quadruped,
        "cartpole": r.cartpole,
        "pendulum": lambda: r.pendulum(3),
        "chain": lambda: r.chain(8, free=True),
        "arm_dh": lambda: r.arm_dh(dh),
        "random_tree": lambda: r.random_tree(3, 9),
    }


def inputs(model: ag.Model, batch: int, steps: int, dtype: str, seed: int = 0) -> tuple[ag.State, np.ndarray]:
    """Return states around the keyframe, and controls around those that hold it."""
    rng, kind = np.random.default_rng(seed), FLOATS[dtype]
    q, v = (np.repeat(x[None], batch, 0) for x in model.keyframe())
    v = v + 0.1 * rng.normal(size=v.shape)
    u = model.keyframe_control() + 0.1 * rng.normal(size=(batch, steps, model.nu))
    return ag.State(q.astype(kind), v.astype(kind)), u.astype(kind)


def motion(model: ag.Model, name: str, batch: int, steps: int, dtype: str) -> tuple[ag.State, np.ndarray]:
    """Return robots at different times of standing or stumbling, and their next controls."""
    rng, kind, hold, length, some = np.random.default_rng(0), FLOATS[dtype], 50, 1000, 64
    noise = rng.normal(size=(some, (length + steps) // hold + 1, model.nu))
    size = NOISE[name] * (0.2 if model.name == "humanoid" else 1.0)
    u = (model.keyframe_control() + size * np.repeat(noise, hold, axis=1)).astype(kind)
    sim = ag.Simulator(model, 1e-3)
    traj = sim.rollout(sim.reset(batch=some), u[:, :length])
    robot, moment = rng.integers(some, size=batch), rng.integers(200, length, size=batch)
    controls = u[robot[:, None], moment[:, None] + np.arange(steps)]
    state = ag.State(traj.q[robot, moment].astype(kind), traj.v[robot, moment].astype(kind))
    return state, controls


def numpy(x: Any) -> np.ndarray:
    """Return an array of any kind on the host."""
    return x.cpu().numpy() if hasattr(x, "cpu") else np.asarray(x)


def difference(a: Any, b: Any) -> float:
    """Return the largest difference of two arrays, relative to the largest entry of each robot (row)."""
    a, b = np.atleast_2d(numpy(a).astype(float)), np.atleast_2d(numpy(b).astype(float))
    a, b = a.reshape(len(a), -1), b.reshape(len(b), -1)
    if a.size == 0:
        return 0.0
    gap = np.abs(a - b).max(1) / np.maximum(np.abs(a).max(1), 1e-3)
    return float(gap.max()) if np.isfinite(gap).all() else float("inf")


# -- the record --------------------------------------------------------------------------------------------------------
class Record:
    """Results, printed and written to files."""

    def __init__(self, out: Path | None):
        self.out, self.parts = out, dict[str, list[dict[str, Any]]]()
        self.failed: dict[str, str] = {}
        self.best: dict[str, Any] = {}
        self.part_name, self.into = "", Path(os.devnull)

    def say(self, text: str) -> None:
        print(f"[{time.time() - START:6.1f} s] {text}", flush=True)

    def add(self, what: str, ok: bool | None = None, **numbers: Any) -> None:
        """Add one result; ok is None if it is not checked."""
        self.parts.setdefault(self.part_name, []).append({"what": what, "ok": ok, **numbers})
        mark = {None: "    ", True: "ok  ", False: "FAIL"}[ok]
        self.say(f"{mark} {self.part_name}: {what}: " + ", ".join(f"{k} {short(v)}" for k, v in numbers.items()))
        self.hand_over()

    def part(self, name: str, flags: list[str]) -> None:
        """Run one part in a separate process; its failure does not stop the others."""
        left = LIMIT - (time.time() - START)
        if left < 0:
            self.failed[name] = "no time left"
        else:
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder) / "part.json"
                call = [sys.executable, "-m", "benchmarks.cuda", *flags, "--part", name, "--into", str(file)]
                env = os.environ | {
                    "ARTIGRAD_BENCHMARK_START": str(START),
                    "ARTIGRAD_BENCHMARK_BEST": json.dumps(self.best),
                }
                try:
                    code = subprocess.run(call, env=env, timeout=min(PART_LIMIT, left + 30)).returncode
                    if code:
                        self.failed[name] = f"exit status {code}"
                except subprocess.TimeoutExpired:
                    self.failed[name] = "took too long"
                if file.exists():
                    found = json.loads(file.read_text())
                    self.parts |= found["parts"]
                    self.failed |= found["failed"]
                    self.best = found["best"]
        if name in self.failed:
            self.say(f"FAIL {name}: {self.failed[name]}")
        self.write()

    def run(self, name: str, run: Callable[[Record, bool], None], quick: bool, into: Path) -> None:
        """Run one part in this process."""
        self.part_name, self.into = name, into
        try:
            run(self, quick)
        except Exception as e:
            self.failed[name] = f"{type(e).__name__}: {e}"
            self.say(f"FAIL {name}: {traceback.format_exc()}")
        self.hand_over()

    def hand_over(self) -> None:
        """Write the results so far for the parent process."""
        best = {name: vars(launch) for name, launch in BEST.items()}
        content = {"parts": self.parts, "failed": self.failed, "best": best}
        self.into.write_text(json.dumps(content, default=str))

    def write(self) -> None:
        if self.out is None:
            return
        self.out.mkdir(parents=True, exist_ok=True)
        content = {"machine": machine(), "parts": self.parts, "failed": self.failed}
        (self.out / "cuda.json").write_text(json.dumps(content, indent=1, default=str) + "\n")
        lines = ["# CUDA", "", "`python -m benchmarks.cuda`", ""]
        lines += [f"- {k}: {v}" for k, v in content["machine"].items()] + [""]
        for name, rows in self.parts.items():
            lines += [f"## {name}", "", "| | | |", "| :-- | :-- | :-- |"]
            for row in rows:
                rest = ", ".join(f"{k} {short(v)}" for k, v in row.items() if k not in ("what", "ok"))
                lines.append(f"| {row['what']} | {rest} | {({None: '', True: 'ok', False: '**FAIL**'})[row['ok']]} |")
            lines.append("")
        lines += [f"- **{name} failed**: {text}" for name, text in self.failed.items()]
        (self.out / "cuda.md").write_text("\n".join(lines) + "\n")


def short(x: Any) -> str:
    return f"{x:.4g}" if isinstance(x, float) else str(x)


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def machine() -> dict[str, Any]:
    device = driver.device(0)
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "gpu": f"{device.name}, capability {device.capability}, {device.multiprocessors} multiprocessors",
        "memory": f"{device.total / 2**30:.0f} GiB",
        "driver": f"CUDA {device.driver_version // 1000}.{device.driver_version % 1000 // 10}",
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "llvmlite": llvmlite.__version__,
        "torch": _version("torch"),
        "artigrad": ag.__version__,
    }


# -- checks ------------------------------------------------------------------------------------------------------------
def compare(job: tuple[str, str, dict[str, Any], dict[str, Any]]) -> dict[str, Any]:
    """Compare one robot on both devices, forward and gradients; called in a separate process."""
    name, dtype, options, extra = job
    try:
        return _compare(name, dtype, options, extra)
    except BaseException:
        return {"what": f"{name} {dtype} {options} {extra}", "error": traceback.format_exc()}


def _compare(name: str, dtype: str, options: dict[str, Any], extra: dict[str, Any]) -> dict[str, Any]:
    model = robots()[name]()
    batch, steps = 70, 8
    state, u = inputs(model, batch, steps, dtype)
    more: dict[str, Any] = {}
    rng = np.random.default_rng(1)
    if extra.get("own"):
        more["params"] = model.params.replace(mass=model.params.mass * rng.uniform(0.9, 1.1, (batch, model.nb)))
    if extra.get("wrench"):
        more["wrench"] = rng.normal(size=(batch, steps, model.nb, 6)).astype(FLOATS[dtype])
    if extra.get("every"):
        more["checkpoints"] = ag.EveryKth(3)
    q_bar = rng.normal(size=state.q.shape).astype(FLOATS[dtype])
    v_bar = rng.normal(size=state.v.shape).astype(FLOATS[dtype])
    found, taken = [], {}
    for device in ("cpu", "cuda"):
        start = time.perf_counter()
        sim = ag.Simulator(model, 1e-3, dtype=dtype, device=device, **options)
        traj = sim.rollout(state, u, **more)
        grad = sim.vjp(traj, q_bar=q_bar, v_bar=v_bar)
        assert grad.params is not None
        arrays = [numpy(x) for x in (*traj.final, grad.q0, grad.v0, grad.u, grad.params.flat)]
        found.append(arrays)
        taken[device] = time.perf_counter() - start
    forward = max(difference(a, b) for a, b in zip(found[0][:2], found[1][:2], strict=True))
    backward = max(difference(a, b) for a, b in zip(found[0][2:5], found[1][2:5], strict=True))
    bits = all(np.array_equal(a, b) for a, b in zip(found[0][:5], found[1][:5], strict=True))
    label = " ".join([name, dtype, *(f"{k}={v}" for k, v in (options | extra).items())])
    result = {"what": label, "forward": forward, "gradient": backward}
    result["params"] = difference(found[0][5], found[1][5])
    return result | {"same_bits": bits, "first_use_s": taken["cuda"]}


def check_agreement(record: Record, quick: bool) -> None:
    """Compare CUDA with the CPU."""
    hard = {"law": "hard"}
    swept = {"law": ag.HardOptions(solver="gauss_seidel", sweeps=20, gradient="reverse")}
    none: dict[str, Any] = {}
    if quick:
        jobs = [("laikago", "f32", none, none), ("laikago", "f64", none, none), ("hopper", "f64", swept, none)]
    else:
        jobs = [(name, dtype, none, none) for name in robots() for dtype in FLOATS]
        jobs += [(name, "f64", law, none) for name in ("laikago", "hopper") for law in (hard, swept)]
        jobs += [("humanoid", "f64", {"cone": "elliptic"}, none)]
        jobs += [("ant", "f64", {"integrator": name}, none) for name in ("implicitfast", "implicit", "rk4")]
        jobs += [("hopper", "f64", none, {key: True}) for key in ("own", "wrench", "every")]
        jobs += [("quadruped", "f64", {"integrator": "rk4"}, none), ("quadruped", "f64", {"factor": "sparse"}, none)]
    workers = min(len(jobs), max(1, len(os.sched_getaffinity(0)) - 2), 12)
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        for result in pool.map(compare, jobs):
            if "error" in result:
                record.add(result["what"], False, error=result["error"])
                continue
            dtype = result["what"].split()[1]
            worst = max(result["forward"], result["gradient"], result["params"])
            record.add(result.pop("what"), worst <= TOLERANCE[dtype], **result)


def check_bits(record: Record, quick: bool) -> None:
    """Check that a robot has the same bits in every run, batch size and launch shape."""
    model = ag.robots.laikago()
    sim = ag.Simulator(model, dtype="f32", device="cuda")
    state, u = motion(model, "stumbling", 2000, 8, "f32")

    def run(n: int) -> list[np.ndarray]:
        traj = sim.rollout(ag.State(state.q[:n], state.v[:n]), u[:n])
        grad = sim.vjp(traj, q_bar=state.q[:n], v_bar=state.v[:n], with_params=False)
        return [numpy(x) for x in (*traj.final, grad.q0, grad.v0, grad.u)]

    def same(n: int) -> bool:
        return all(np.array_equal(a[:n], b) for a, b in zip(whole, run(n), strict=True))

    whole = run(2000)
    record.add("every run", all(same(2000) for _ in range(3)))
    for n in (1, 31, 33, 1000):
        record.add(f"batch {n}", same(n))
    for launch in (Cuda(block=32, threads=32), Cuda(block=128, threads=512)):
        sim.launch = launch
        record.add(f"block {launch.block}, {launch.threads} threads", same(2000))
    sim.launch = Cuda()
    grads = [sim.vjp(sim.rollout(state, u), q_bar=state.q, v_bar=state.v).params for _ in range(2)]
    record.add("gradient of shared Params, every run", np.array_equal(grads[0].flat, grads[1].flat))


def check_torch(record: Record, quick: bool) -> None:
    """Check tensors in and out without a copy, on PyTorch's stream; two simulators on two streams."""
    import torch

    model = ag.robots.laikago()
    sim = ag.Simulator(model, dtype="f32", device="cuda")
    state, u = motion(model, "stumbling", 3000, 16, "f32")
    there = ag.State(torch.tensor(state.q, device="cuda"), torch.tensor(state.v, device="cuda"))
    u_there = torch.tensor(u, device="cuda")
    traj = sim.rollout(there, u_there)
    grad = sim.vjp(traj, q_bar=traj.final.q, v_bar=traj.final.v, with_params=False)
    torch.cuda.synchronize()
    record.add("results are tensors", all(isinstance(x, torch.Tensor) for x in (traj.q, traj.final.q, grad.u, grad.q0)))
    record.add("controls are not copied", traj.u.pointer == u_there.data_ptr())
    own = sim.rollout(state, u)
    record.add("same bits as with arrays of the host", np.array_equal(numpy(own.final.q), numpy(traj.final.q)))
    view = torch.as_tensor(own.final.q, device="cuda")
    record.add("DeviceArray to torch without a copy", view.data_ptr() == own.final.q.pointer)
    record.add("health", None, finite=bool(grad.health.finite.all()), violation=float(grad.health.violation.max()))

    streams = [torch.cuda.Stream() for _ in range(2)]
    models = (model, ag.robots.hopper())
    jobs = []
    for m in models:
        s, c = inputs(m, 3000, 64, "f32")
        start = ag.State(torch.tensor(s.q, device="cuda"), torch.tensor(s.v, device="cuda"))
        jobs.append((ag.Simulator(m, dtype="f32", device="cuda"), start, torch.tensor(c, device="cuda")))

    def work(k: int) -> list[Any]:
        sim, start, controls = jobs[k]
        traj = sim.rollout(start, controls)
        g = sim.vjp(traj, q_bar=traj.final.q, v_bar=traj.final.v, with_params=False)
        return [traj.final.q, g.q0, g.u]

    alone = [[x.clone() for x in work(k)] for k in range(2)]
    torch.cuda.synchronize()
    together: list[list[list[Any]]] = [[], []]
    for _ in range(5):
        for k in range(2):
            with torch.cuda.stream(streams[k]):
                together[k].append(work(k))
    torch.cuda.synchronize()
    fine = all(torch.equal(a, b) for k in range(2) for got in together[k] for a, b in zip(alone[k], got, strict=True))
    record.add("two simulators on two streams", fine)

    policy = torch.nn.Sequential(
        torch.nn.Linear(model.nq + model.nv, 64), torch.nn.Tanh(), torch.nn.Linear(64, model.nu)
    )
    policy = policy.cuda()
    hold = torch.tensor(model.keyframe_control(), dtype=torch.float32, device="cuda")
    with torch.no_grad():
        at = there
        for turn in range(30):
            if turn == 10:
                torch.cuda.synchronize()
                start_s = time.perf_counter()
            at = sim.step(at, hold + 0.01 * policy(torch.cat(tuple(at), 1)))
        torch.cuda.synchronize()
    taken = (time.perf_counter() - start_s) / 20
    record.add("closed loop with a policy", bool(torch.isfinite(at.q).all()), us_per_step=1e6 * taken, batch=len(at.q))


def check_leaks(record: Record, quick: bool) -> None:
    """Check memory after many launches with random batch sizes."""
    model, device = ag.robots.laikago(), driver.device(0)
    sim = ag.Simulator(model, dtype="f32", device="cuda")
    state, u = motion(model, "standing", 5000, 2, "f32")
    rng, turns = np.random.default_rng(0), 50 if quick else 500

    def work(n: int) -> None:
        traj = sim.rollout(ag.State(state.q[:n], state.v[:n]), u[:n])
        sim.vjp(traj, q_bar=state.q[:n], v_bar=state.v[:n], with_params=False)

    work(5000)
    sim.synchronize()
    before, free = device.used(), device.memory()[0]
    for _ in range(turns):
        work(int(rng.integers(1, 5000)))
    sim.synchronize()
    after = device.used()
    device.trim()
    less = free - device.memory()[0]
    record.add(f"{2 * turns} launches", after == before and less <= 1 << 26, leaked=after - before, less_free=less)


# -- times -------------------------------------------------------------------------------------------------------------
class Timed:
    """Robot in f32 or f64, forward and with gradient, with inputs on the device."""

    def __init__(
        self, name: str, batch: int, dtype: str = "f32", steps: int = STEPS, robot: str = "laikago", **options: Any
    ):
        self.model = robots()[robot]()
        self.sim = ag.Simulator(self.model, 1e-3, dtype=dtype, device="cuda", **options)
        state, u = motion(self.model, name, batch, steps, dtype)
        on = self.sim.engine.device.array
        self.state, self.u = ag.State(on(state.q), on(state.v)), on(u)
        self.q_bar, self.v_bar = on(state.q), on(state.v)
        self.work = batch * steps
        self.device = driver.device(0)

    def forward(self) -> Any:
        return self.sim.rollout(self.state, self.u)

    def gradient(self) -> None:
        self.sim.vjp(self.forward(), q_bar=self.q_bar, v_bar=self.v_bar, with_params=False)

    def with_params(self) -> None:
        self.sim.vjp(self.forward(), q_bar=self.q_bar, v_bar=self.v_bar)

    def speed(self, call: Callable[[], Any], rounds: int = 4) -> float:
        """Return million robot-steps per second, the best of several rounds, by device time.

        Several short calls are timed together, as in a loop: the host prepares one while the device runs another.
        """
        call()
        best, calls = float("inf"), max(1, min(8, 2_000_000 // self.work))
        for _ in range(rounds):
            with self.device.timed() as took:
                for _ in range(calls):
                    call()
            best = min(best, took[0])
        return self.work * calls / best / 1e3

    def functions(self) -> dict[str, str]:
        """Return registers and spilled bytes of the kernels in use."""
        return {
            bound.kernel.name: f"{bound.function.registers} registers {bound.function.spilled} B local "
            f"{bound.staged.chunk / 32 / 1024:.1f} KiB work"
            for bound in self.sim.engine.kernels
        }


BEST = {"forward": Cuda(), "gradient": Cuda()} | {
    name: Cuda(**shape) for name, shape in json.loads(os.environ.get("ARTIGRAD_BENCHMARK_BEST", "{}")).items()
}


def time_shapes(record: Record, quick: bool) -> None:
    """Time launch shapes."""
    record.add("default", None, shape=Cuda())
    for batch in (SMALL,) if quick else (BIG, SMALL):
        timed, tried = Timed("stumbling", batch), list[tuple[str, Cuda, float]]()
        per_sm = -(-batch // driver.device(0).multiprocessors)
        for effort, registers in ((2, 0), (0, 0)) if quick else ((2, 0), (0, 0), (2, 128), (0, 128), (0, 96), (2, 168)):
            found: dict[str, tuple[float, Cuda]] = {}
            code = f"with registers={registers}, effort={effort}"
            for block in (32, 64, 128, 256):
                for threads in (64, 128, 192, 256, 384, 512, 768):
                    useless = threads < block or threads % block or threads > 2 * per_sm
                    if (
                        useless
                        or (batch == SMALL and block > 64)
                        or ((registers or not effort) and block not in (64, 128))
                    ):
                        continue
                    if registers and threads * registers > 65536 + 8192:
                        continue
                    launch = timed.sim.launch = Cuda(0, block, threads, registers, effort)
                    for name in ("forward", "gradient"):
                        speed = timed.speed(getattr(timed, name), 1 if quick else 2)
                        found[name] = max(found.get(name, (0.0, launch)), (speed, launch), key=lambda x: x[0])
                        shape = f"block {block} threads {threads} registers {registers} effort {effort}"
                        record.say(f"     {batch} {name} {shape}: {speed:.1f} M/s")
                        tried.append((name, launch, speed))
            for name, (speed, launch) in found.items():
                best = {"block": launch.block, "threads": launch.threads}
                record.add(f"{batch}: best {name} {code}", None, million_per_s=speed, **best)
            record.add(f"{batch}: kernels {code}", None, **timed.functions())
            timed.sim.engine.clear_kernels()
        if batch == BIG or quick:
            for name in BEST:
                BEST[name] = max((x for x in tried if x[0] == name), key=lambda x: x[2])[1]


def time_batches(record: Record, quick: bool) -> None:
    """Time batch sizes, with the default launch shape and with the fastest."""
    for name in ("stumbling", "standing"):
        for batch in (1024, SMALL) if quick else (1024, SMALL, 16384, BIG, 262144):
            if name == "standing" and batch not in (SMALL, BIG):
                continue
            timed = Timed(name, batch)
            for what in ("forward", "gradient"):
                speeds = {}
                for label, launch in (("default", Cuda()), ("best", BEST[what])):
                    timed.sim.launch = launch
                    speeds[label] = timed.speed(getattr(timed, what))
                share = {BIG: 1.0, SMALL: 0.4}.get(batch) if name == "standing" else None
                ok = None if share is None or quick else speeds["default"] >= share * TARGETS["laikago"][what]
                record.add(
                    f"{name}, f32, batch {batch}, {what}", ok, million_per_s=speeds["default"], best=speeds["best"]
                )
            if batch == BIG:
                timed.sim.launch = Cuda()
                speed = timed.speed(timed.with_params)
                record.add(f"{name}, f32, batch {batch}, gradient with Params", None, million_per_s=speed)


def time_others(record: Record, quick: bool) -> None:
    """Time f64, single steps, and sweeps."""
    batch = SMALL if quick else BIG
    timed = Timed("stumbling", batch, "f64")
    for what in ("forward", "gradient"):
        record.add(f"f64, batch {batch}, {what}", None, million_per_s=timed.speed(getattr(timed, what), 2))
    if quick:
        return
    timed = Timed("stumbling", batch, steps=1)
    record.add(f"f32, batch {batch}, one step a launch", None, million_per_s=timed.speed(timed.forward))
    swept = ag.HardOptions(solver="gauss_seidel", sweeps=20)
    for label, law in {"hard law": ag.HardOptions(), "hard law, 20 sweeps": swept}.items():
        timed = Timed("stumbling", batch, law=law)
        record.add(f"f32, batch {batch}, {label}, forward", None, million_per_s=timed.speed(timed.forward, 2))


def time_humanoid(record: Record, quick: bool) -> None:
    """Time the humanoid: 35 degrees of freedom on 8 points, dry friction and limits in all joints."""
    for name in ("standing", "stumbling"):
        for batch in (SMALL,) if quick else (SMALL, BIG):
            timed = Timed(name, batch, robot="humanoid")
            for what, goal in TARGETS["humanoid"].items():
                speed = timed.speed(getattr(timed, what), 2)
                ok = speed >= goal if batch == BIG and name == "standing" else None
                record.add(f"{name}, f32, batch {batch}, {what}", ok, million_per_s=speed)
            record.add(f"{name}, batch {batch}, kernels", None, **timed.functions())


def time_memory(record: Record, quick: bool) -> None:
    """Measure peak memory beyond states and controls of all steps, as counted by PyTorch."""
    import torch

    model, batch = ag.robots.laikago(), SMALL if quick else BIG
    state, u = motion(model, "standing", batch, STEPS, "f32")
    sim = ag.Simulator(model, dtype="f32", device="cuda")
    there = ag.State(*(torch.tensor(x, device="cuda") for x in state))
    controls = torch.tensor(u, device="cuda")
    for with_params in (False, True):
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        base = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        sim.vjp(sim.rollout(there, controls), q_bar=there.q, v_bar=there.v, with_params=with_params)
        torch.cuda.synchronize()
        peak = torch.cuda.max_memory_allocated() - base
        states = (model.nq + model.nv) * STEPS * batch * 4  # controls were there before
        rest = (peak - states) / batch
        what = f"rollout and gradient of {batch} robots, {STEPS} steps" + (", with Params" if with_params else "")
        record.add(what, quick or rest <= 8192, peak_MB=peak / 1e6, bytes_per_robot_beyond_states=rest)


START_UP = """
import time, sys
begin = time.perf_counter()
import numpy as np, artigrad as ag
imported = time.perf_counter()
model = ag.robots.laikago()
sim = ag.Simulator(model, dtype="f32", device="cuda")
sim.launch = ag.Cuda(effort=int(sys.argv[1]))
opened = time.perf_counter()
state = sim.reset(batch=64)
u = np.tile(model.keyframe_control().astype(np.float32), (64, 8, 1))
traj = sim.rollout(state, u)
traj.final.q.numpy()
forward = time.perf_counter()
grad = sim.vjp(traj, q_bar=traj.final.q, v_bar=traj.final.v)
grad.q0.numpy()
end = time.perf_counter()
print(end - imported, imported - begin, opened - imported, forward - opened, end - forward)
"""


def time_start(record: Record, quick: bool) -> None:
    """Time from Simulator(device="cuda") in a new process to the first gradient."""
    for effort in (2,) if quick else (2, 0):
        with tempfile.TemporaryDirectory() as folder:
            env = os.environ | {"ARTIGRAD_CACHE": folder, "CUDA_CACHE_DISABLE": "1"}
            for label, most in (("cold", 3.0), ("warm", 1.0), ("warm again", 1.0)):
                call = [sys.executable, "-c", START_UP, str(effort)]
                done = subprocess.run(call, capture_output=True, text=True, env=env)
                if done.returncode:
                    raise RuntimeError(done.stderr)
                total, *parts = map(float, done.stdout.split()[-5:])
                names = ("import_s", "open_s", "rollout_s", "gradient_s")
                ok = total <= most if effort == Cuda().effort else None
                record.add(f"{label}, effort {effort}", ok, seconds=total, **dict(zip(names, parts, strict=True)))


PARTS: dict[str, Callable[[Record, bool], None]] = {
    "start": time_start,
    "bits": check_bits,
    "torch": check_torch,
    "agreement": check_agreement,
    "shapes": time_shapes,
    "batches": time_batches,
    "others": time_others,
    "humanoid": time_humanoid,
    "memory": time_memory,
    "leaks": check_leaks,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])  # type: ignore[union-attr]
    parser.add_argument("--quick", action="store_true", help="a minute: small batches, few robots")
    parser.add_argument("--out", type=Path, help="folder for cuda.json and cuda.md")
    parser.add_argument("--only", help=f"parts to run, with commas between: {', '.join(PARTS)}")
    parser.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    parser.add_argument("--into", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    record = Record(options.out)
    if options.part:
        record.run(options.part, PARTS[options.part], options.quick, options.into)
        return 0
    for k, v in machine().items():
        record.say(f"{k}: {v}")
    wanted = list(PARTS) if options.only is None else [x.strip() for x in options.only.split(",")]
    for name in PARTS:
        if name in wanted:
            record.part(name, ["--quick"] if options.quick else [])
    bad = [f"{name}: {row['what']}" for name, rows in record.parts.items() for row in rows if row["ok"] is False]
    record.say(f"{len(bad)} results off target, {len(record.failed)} parts failed")
    for line in [*bad, *(f"{k}: {v}" for k, v in record.failed.items())]:
        record.say(f"  {line}")
    return 1 if bad or record.failed else 0


if __name__ == "__main__":
    sys.exit(main())
