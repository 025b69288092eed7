"""Driver layer with a fake libcuda: every call with its arguments, every error with its message.

The fake library runs launches on this CPU, so that a whole simulation goes through the driver and is compared.
"""

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import artigrad as ag
from artigrad.compiler import Cuda
from artigrad.compiler.compile import Code
from artigrad.compiler.cuda import array, driver, total
from artigrad.compiler.cuda.stage import Staged
from artigrad.errors import DeviceError
from tests.compiler.host_device import on_host
from tests.compiler.on_devices import check, inputs

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="the fake driver needs a C compiler")
LAUNCH = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_char_p,
    ctypes.c_char_p,
    ctypes.c_uint,
    ctypes.c_uint,
    ctypes.c_void_p,
    ctypes.POINTER(ctypes.c_void_p),
)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    out = tmp_path_factory.mktemp("fake") / "libfake.so"
    source = Path(__file__).with_name("fake_libcuda.c")
    subprocess.run(["cc", "-O1", "-w", "-shared", "-fPIC", "-o", out, source], check=True)
    lib = ctypes.CDLL(str(out))
    lib.fake_log.restype = ctypes.c_char_p
    lib.fake_fail.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_int]
    return lib


class Fake:
    """Fake library in place of libcuda, and a record of its calls."""

    def __init__(self, lib, monkeypatch, folder):
        self.lib, self.folder = lib, folder
        self.staged, self.compiled, self.launches = {}, {}, []
        lib.fake_clear()
        lib.fake_machine(1, 1, 90)
        self._callback = LAUNCH(self._launch)
        lib.fake_launches(self._callback)
        monkeypatch.setenv("ARTIGRAD_CACHE", str(folder))
        monkeypatch.setattr(driver, "driver", lambda: driver.Driver(lib))
        monkeypatch.setattr(driver, "ptx", self._ptx)
        load = driver.Device.load

        def remember(device, staged, registers=0, effort=2):
            self.staged[staged.ir] = staged
            return load(device, staged, registers, effort)

        monkeypatch.setattr(driver.Device, "load", remember)
        for kept in (driver._open_device, array._copy_rows, total._loaded):
            kept.cache_clear()

    def _ptx(self, ir, *rest):
        return f"// {hash(ir)}\n// {self.staged[ir].name}"

    def _launch(self, code, name, grid, block, stream, params):
        staged = next(s for s in self.staged.values() if self._ptx(s.ir).encode() == code)
        assert staged.name == name.decode()
        if code not in self.compiled:
            made = Code(on_host(staged), 0, None)
            prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32)
            self.compiled[code] = (made, prototype(made.address(staged.name)))
        words = np.zeros(len(staged.parameters), np.int64)
        for k, (_, kind) in enumerate(staged.parameters):  # each argument by its own pointer, as the driver reads it
            size = {"i32": 4, "float": 4}.get(kind, 8)
            ctypes.memmove(words[k:].ctypes.data, params[k], size)
        self.launches.append((name.decode(), grid, block, stream))
        for thread in range(grid * block):
            self.compiled[code][1](words.ctypes.data, thread, grid * block)
        return 0

    def fail(self, call, code, n=1):
        self.lib.fake_fail(call.encode(), n, code)

    @property
    def log(self):
        return self.lib.fake_log().decode().split()


@pytest.fixture
def fake(library, monkeypatch, tmp_path):
    yield Fake(library, monkeypatch, tmp_path)
    assert library.fake_depth() == 0  # every context was popped again
    for kept in (driver._open_device, array._copy_rows, total._loaded):
        kept.cache_clear()


def kernel(name="artigrad_k"):
    ir = f"define ptx_kernel void @{name}(i32 %at.batch, ptr addrspace(1) %at.work) {{\n  ret void\n}}\n"
    return Staged(name, ir, (("at.batch", "i32"), ("at.work", "ptr addrspace(1)")), 0)


# -- it works ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("pools", [1, 0])
def test_a_simulator_through_the_driver(fake, pools):
    fake.lib.fake_machine(1, pools, 90)
    model = ag.robots.hopper()
    state, u = inputs(model, 40, 3)
    sim = ag.Simulator(model, device="cuda")
    results = check(ag.Simulator(model), sim, state, u)
    names = {name for name, *_ in fake.launches}
    assert {"artigrad_rollout", "artigrad_rollout_vjp", "artigrad_total_8_8", "artigrad_copy_rows"} <= names
    assert all(grid <= 3 * 4 for name, grid, _, _ in fake.launches if "total" not in name)
    before = driver.device(0).used()
    del results
    assert pools == 0 or driver.device(0).used() < before
    assert ("cuMemAllocAsync" in fake.log) == bool(pools) and ("cuMemAlloc_v2" in fake.log) == (not pools)


def test_work_goes_to_the_stream_of_the_simulator(fake):
    model = ag.robots.cartpole()
    sim = ag.Simulator(model, device="cuda")
    sim.stream = driver.device(0).new_stream()
    state = sim.reset(batch=2)
    fake.launches.clear()
    traj = sim.rollout(state, steps=2)
    assert {stream for *_, stream in fake.launches} == {11}
    assert traj.final.q.stream == traj.q[:, 1].stream == 11
    assert traj.final.q.__cuda_array_interface__["stream"] == 11
    waits = fake.log.count("cuStreamSynchronize")
    sim.rollout(traj.final, steps=1)
    assert fake.log.count("cuStreamSynchronize") == waits  # nothing waits for the GPU
    sim.stream = 0
    sim.rollout(traj.final, steps=1)
    assert fake.log.count("cuStreamSynchronize") > waits  # another stream: its work comes first
    waits = fake.log.count("cuStreamSynchronize")
    sim.vjp(traj, q_bar=np.ones((2, 2)), with_params=False)  # its states are of that stream too
    assert fake.log.count("cuStreamSynchronize") > waits
    sim.stream = 11
    sim.synchronize()
    driver.device(0).close_stream(sim.stream)


def test_code_is_kept_on_disk(fake):
    device = driver.device(0)
    first = device.load(kernel())
    links = fake.log.count("cuLinkComplete")
    again = device.load(kernel())
    assert fake.log.count("cuLinkComplete") == links == 1
    assert first.registers == again.registers == 160 and first.spilled == 24
    device.load(kernel(), registers=128)
    assert fake.log.count("cuLinkComplete") == 2


def test_stored_code_that_the_driver_refuses_is_made_again(fake):
    device = driver.device(0)
    device.load(kernel())
    fake.fail("cuModuleLoadData", 209)
    device.load(kernel())
    assert fake.log.count("cuLinkComplete") == 2


def test_memory_time_and_streams(fake):
    device = driver.device(0)
    assert (device.name, device.capability, device.multiprocessors) == ("Fake GPU 0", (9, 0), 3)
    x = array.array(device, np.arange(5.0))
    used = device.used()
    assert used == 40
    np.testing.assert_array_equal(x.numpy(), np.arange(5.0))
    y = array.zeros(device, (5,), x.dtype)
    y[1:] = x[1:]
    np.testing.assert_array_equal(y, [0, 1, 2, 3, 4])
    del x, y
    assert device.used() == 0
    device.trim()
    assert device.memory()[0] == 1 << 30
    with device.timed() as took:
        device.synchronize()
    assert took == [2.5]


# -- it fails ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("call", "code", "says"),
    [
        ("cuInit", 100, "no NVIDIA GPU is visible"),
        ("cuInit", 34, "stub"),
        ("cuInit", 803, "reboot"),
        ("cuInit", 3, "spawn"),
        ("cuInit", 999, "error 999"),
        ("cuDeviceGetCount", 3, "spawn"),
        ("cuDevicePrimaryCtxRetain", 46, "nvidia-smi"),
        ("cuDevicePrimaryCtxRetain", 2, "out of memory"),
    ],
)
def test_opening_fails(fake, call, code, says):
    fake.fail(call, code)
    with pytest.raises(DeviceError, match=says):
        ag.Simulator(ag.robots.cartpole(), device="cuda")


@pytest.mark.parametrize(
    ("call", "code", "says"),
    [
        ("cuMemAllocAsync", 2, r"smaller batch"),
        ("cuLinkAddData_v2", 218, r"ptxas error: line 3"),
        ("cuLinkAddData_v2", 222, r"update the NVIDIA driver"),
        ("cuLinkComplete", 221, r"libnvidia-ptxjitcompiler"),
        ("cuLinkCreate_v2", 2, r"out of memory"),
        ("cuModuleLoadData", 209, r"compute capability"),
        ("cuModuleGetFunction", 500, r"cuModuleGetFunction returned 500"),
        ("cuLaunchKernel", 701, r"smaller block"),
        ("cuStreamSynchronize", 700, r"restart it"),
        ("cuMemcpyDtoHAsync_v2", 719, r"restart it"),
    ],
)
def test_work_fails(fake, call, code, says):
    sim = ag.Simulator(ag.robots.cartpole(), device="cuda")
    fake.fail(call, code)
    with pytest.raises(DeviceError, match=says):
        sim.step(sim.reset(batch=2)).q.numpy()
    sim.step(sim.reset(batch=2)).q.numpy()  # what failed left nothing half done


def test_machines_that_will_not_do(fake, library):
    library.fake_machine(0, 1, 90)
    with pytest.raises(DeviceError, match="no NVIDIA GPU is visible"):
        ag.Simulator(ag.robots.cartpole(), device="cuda")
    library.fake_machine(2, 1, 61)
    with pytest.raises(DeviceError, match=r"capability 6\.1; 7\.0 is needed"):
        ag.Simulator(ag.robots.cartpole(), device="cuda:1")
    with pytest.raises(DeviceError, match="this machine has 2"):
        ag.Simulator(ag.robots.cartpole(), device="cuda:5")


def test_no_library(monkeypatch):
    def missing(name):
        raise OSError

    driver.driver.cache_clear()
    monkeypatch.setattr(driver.ctypes, "CDLL", missing)
    with pytest.raises(DeviceError, match="device='cpu'"):
        driver.driver()
    driver.driver.cache_clear()


def test_a_driver_that_is_too_old():
    class Old:
        def __getattr__(self, name):
            if name == "cuMemAllocAsync":
                raise AttributeError(name)
            return lambda *arguments: 0

    with pytest.raises(DeviceError, match="too old: it has no cuMemAllocAsync"):
        driver.Driver(Old())


def test_launch_shapes(fake):
    sim = ag.Simulator(ag.robots.cartpole(), device="cuda")
    state = sim.reset(batch=70)
    shapes = {Cuda(): (3, 32), Cuda(threads=32): (3, 32), Cuda(block=32, threads=64): (3, 32)}
    for launch, shape in shapes.items():
        sim.launch = launch
        fake.launches.clear()
        sim.rollout(state, steps=1)
        assert [(grid, block) for name, grid, block, _ in fake.launches if name == "artigrad_rollout"] == [shape]
    state = sim.reset(batch=1000)
    for launch, shape in {Cuda(): (12, 64), Cuda(block=256): (3, 256), Cuda(block=128, threads=32): (3, 128)}.items():
        sim.launch = launch
        fake.launches.clear()
        sim.rollout(state, steps=1)
        assert [(grid, block) for name, grid, block, _ in fake.launches if name == "artigrad_rollout"] == [shape]
