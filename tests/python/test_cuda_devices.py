"""torch.device in all spellings, default devices, and what is asked of devices."""

import copy
import os
import pickle
import subprocess
import sys

import pytest

import tessera as torch


def in_process(code, **variables):
    """What a program prints that runs on its own."""
    env = {k: v for k, v in os.environ.items() if k not in ("TESSERA_VIRTUAL_GPU", "DEVICE")}
    env = {**env, "CUDA_VISIBLE_DEVICES": "", **variables}
    env = {k: v for k, v in env.items() if v is not None}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


# ---- torch.device ------------------------------------------------------------------------------


def test_spellings():
    for device in (
        torch.device("cuda:1"),
        torch.device("cuda", 1),
        torch.device(1),
        torch.device(device="cuda:1"),
        torch.device(type="cuda", index=1),
        torch.device(torch.device("cuda:1")),
    ):
        assert device == torch.device("cuda:1") and hash(device) == hash(torch.device("cuda:1"))
        assert (device.type, device.index) == ("cuda", 1)
        assert str(device) == "cuda:1" and repr(device) == "device(type='cuda', index=1)"
    assert (
        torch.device("cuda").index is None and repr(torch.device("cuda")) == "device(type='cuda')"
    )


def test_equality_is_of_what_was_written():
    assert torch.device("cuda") != torch.device("cuda:0")
    assert torch.device("cpu") != torch.device("cpu:0")
    assert torch.device("cpu:0").index == 0 and torch.device("cpu", 0) == torch.device("cpu:0")
    assert torch.zeros(1, device="cpu:0").device == torch.device("cpu")
    assert torch.device("cuda") != "cuda"
    assert {torch.device("cuda:0"): 1}[torch.device("cuda", 0)] == 1


def test_devices_that_are_only_named():
    assert torch.device("mps").type == "mps" and str(torch.device("xpu:1")) == "xpu:1"
    assert torch.device("mps") != torch.device("xpu") and torch.device("cpu") != torch.device("mps")
    with pytest.raises(RuntimeError, match="not linked with support for mps devices"):
        torch.zeros(1, device="mps")
    with pytest.raises(RuntimeError, match="not linked with support for xpu"):
        torch.zeros(1).to(torch.device("xpu"))


@pytest.mark.parametrize("text", ["cuda:-1", "cuda:", "cuda:01", "cuda:x", "cuda:1:1", "cpu:3"])
def test_texts_that_are_none(text):
    with pytest.raises(RuntimeError, match="Invalid device string"):
        torch.device(text)


@pytest.mark.parametrize("text", ["", "cuda1", "gpu", "CUDA"])
def test_kinds_that_are_none(text):
    with pytest.raises(RuntimeError, match="Expected one of cpu, cuda"):
        torch.device(text)


def test_wrong_arguments():
    with pytest.raises(RuntimeError, match="must not include an index"):
        torch.device("cuda:1", 1)
    with pytest.raises(RuntimeError, match="negative"):
        torch.device("cuda", -1)
    with pytest.raises(RuntimeError, match="negative"):
        torch.device(-1)
    with pytest.raises(RuntimeError, match="out of range"):
        torch.device("cuda", 70000)
    with pytest.raises(RuntimeError, match="out of range"):
        torch.device(70000)
    for wrong in (None, True, 1.5, []):
        with pytest.raises(TypeError, match="must be torch.device"):
            torch.device(wrong)


@pytest.mark.parametrize("text", ["cpu", "cpu:0", "cuda", "cuda:1", "meta", "mps"])
def test_copies(text):
    device = torch.device(text)
    for other in (pickle.loads(pickle.dumps(device)), copy.copy(device), copy.deepcopy(device)):
        assert other == device and str(other) == text


# ---- where tensors are made --------------------------------------------------------------------


def test_default_device(accelerator):
    assert torch.get_default_device() == torch.device("cpu")
    torch.set_default_device("cuda")
    try:
        assert torch.get_default_device() == torch.device("cuda:0")
        assert (
            torch.zeros(2).is_cuda
            and torch.tensor([1]).is_cuda
            and torch.nn.Linear(2, 2).weight.is_cuda
        )
        with torch.device("cpu"):
            assert torch.get_default_device() == torch.device("cpu")
            assert not torch.rand(2).is_cuda
            with torch.device("cuda"):
                assert torch.arange(3).is_cuda
        assert torch.ones(2).is_cuda
    finally:
        torch.set_default_device(None)
    assert not torch.ones(2).is_cuda


def test_a_function_on_a_device(accelerator):
    @torch.device("cuda")
    def make():
        return torch.ones(2)

    assert make.__name__ == "make" and make().is_cuda and not torch.ones(2).is_cuda


def test_factories_take_a_device(device):
    like = torch.ones(2, 3, device=device)
    made = [
        torch.zeros(2, device=device),
        torch.empty(2, device=device),
        torch.full((2,), 3, device=device),
        torch.arange(3, device=device),
        torch.linspace(0, 1, 3, device=device),
        torch.logspace(0, 1, 3, device=device),
        torch.eye(3, device=device),
        torch.rand(2, device=device),
        torch.randn(2, device=device),
        torch.randint(3, (2,), device=device),
        torch.randperm(4, device=device),
        torch.tensor([1, 2], device=device),
        torch.as_tensor([1, 2], device=device),
        torch.empty_strided((2, 2), (1, 2), device=device),
        torch.tril_indices(3, 3, device=device),
        torch.hann_window(4, device=device),
        torch.fft.fftfreq(4, device=device),
        *(
            getattr(torch, f"{name}_like")(like, *more)
            for name, *more in (
                ("zeros",),
                ("ones",),
                ("empty",),
                ("full", 2),
                ("rand",),
                ("randn",),
                ("randint", 3),
            )
        ),
        like.new_zeros(2),
        like.new_ones(2),
        like.new_empty(2),
        like.new_full((2,), 1),
        like.new_tensor([1]),
    ]
    for t in made:
        assert t.device == torch.zeros(1, device=device).device
        assert torch.zeros_like(t, device="cpu").device == torch.device("cpu")
        assert t.new_zeros(1, device="cpu").device == torch.device("cpu")


def test_generators_are_of_a_device(accelerator):
    with pytest.raises(
        RuntimeError, match="Expected a 'cuda' device type for generator but found 'cpu'"
    ):
        torch.rand(2, device="cuda", generator=torch.Generator())
    with pytest.raises(
        RuntimeError, match="Expected a 'cpu' device type for generator but found 'cuda'"
    ):
        torch.rand(2, generator=torch.Generator("cuda"))


# ---- what a device says ------------------------------------------------------------------------


def test_properties(accelerator):
    p = torch.cuda.get_device_properties(0)
    assert torch.cuda.get_device_name("cuda:0") == torch.cuda.get_device_name() == p.name
    assert torch.cuda.get_device_capability() == (p.major, p.minor)
    for field in (
        "total_memory multi_processor_count is_integrated is_multi_gpu_board warp_size "
        "max_threads_per_multi_processor regs_per_multiprocessor shared_memory_per_block "
        "shared_memory_per_block_optin shared_memory_per_multiprocessor L2_cache_size "
        "pci_bus_id pci_device_id pci_domain_id clock_rate memory_clock_rate memory_bus_width"
    ).split():
        assert isinstance(getattr(p, field), int), field
    assert repr(p).startswith(f"_CudaDeviceProperties(name='{p.name}', major={p.major}, minor=")
    assert f"total_memory={p.total_memory // 2**20}MB" in repr(p) and f"uuid={p.uuid}" in repr(p)
    assert [len(part) for part in str(p.uuid).split("-")] == [8, 4, 4, 4, 12]
    for _ in range(50):  # another process may use the card between the two questions
        free, total = torch.cuda.mem_get_info()
        assert 0 < free <= total
        if torch.cuda.device_memory_used() == total - free:
            break
    else:
        pytest.fail("device_memory_used never agreed with mem_get_info")


def test_devices_that_are_not_there(accelerator):
    for ask in (torch.cuda.get_device_properties, torch.cuda.get_device_name):
        with pytest.raises(AssertionError, match="Invalid device id"):
            ask(77)
    with pytest.raises(AssertionError, match="Invalid peer device id"):
        torch.cuda.can_device_access_peer(0, 77)
    with pytest.raises(ValueError, match="Expected a cuda device, but got: cpu"):
        torch.cuda.get_device_properties("cpu")
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        torch.cuda.set_device(77)
    before = torch.cuda.current_device()
    torch.cuda.set_device(-1)
    assert torch.cuda.current_device() == before


def test_peers(accelerator):
    assert not torch.cuda.can_device_access_peer(0, 0)
    if torch.cuda.device_count() > 1:
        assert isinstance(torch.cuda.can_device_access_peer(0, 1), bool)


def test_monitor(accelerator):
    try:
        assert 0 <= torch.cuda.utilization() <= 100
    except NotImplementedError as error:  # a device that only NVML knows, and no NVML
        pytest.skip(str(error))
    for ask in (torch.cuda.temperature, torch.cuda.power_draw, torch.cuda.clock_rate):
        if torch.cuda.get_device_properties().is_virtual:
            with pytest.raises(RuntimeError, match="does not say"):
                ask()
        else:
            assert ask() > 0


def test_contexts(accelerator):
    if torch.cuda.device_count() < 2:
        pytest.skip("one device")
    with torch.cuda.device(1):
        assert torch.cuda.current_device() == 1 == torch.accelerator.current_device_index()
        with torch.cuda.device(-1), torch.cuda.device(None):
            assert torch.cuda.current_device() == 1
        with torch.cuda.device_of(torch.zeros(1, device="cuda:0")):
            assert torch.cuda.current_device() == 0
        with torch.cuda.device_of(torch.zeros(1)):
            assert torch.cuda.current_device() == 1
        assert torch.ones(1).cuda().get_device() == 1
    with torch.accelerator.device_index(1):
        assert torch.zeros(1, device="cuda").get_device() == 1
    assert torch.cuda.current_device() == 0


def test_accelerator():
    there = torch.cuda.is_available()
    assert torch.accelerator.is_available() == there
    assert torch.accelerator.device_count() == torch.cuda.device_count()
    assert torch.accelerator.current_accelerator() == (torch.device("cuda") if there else None)


def test_initialized_by_use():
    code = """
import tessera as torch
print(torch.cuda.is_available(), torch.cuda.device_count(), torch.cuda.is_initialized())
torch.cuda.init()
print(torch.cuda.is_initialized())
"""
    assert in_process(code, TESSERA_VIRTUAL_GPU="1x1GiB", CUDA_VISIBLE_DEVICES=None) == [
        "True 1 False",
        "True",
    ]


def test_a_forked_child_is_told(accelerator):
    code = """
import os
import tessera as torch
x = torch.ones(3, device="cuda")
torch.cuda.synchronize()
child = os.fork()
if child == 0:
    for use in (lambda: torch.ones(3, device="cuda"), lambda: x.sum().item()):
        try:
            use()
        except RuntimeError as error:
            print(error, flush=True)
    os._exit(0)
os.waitpid(child, 0)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    lines = done.stdout.splitlines()
    assert len(lines) == 2, done.stderr
    assert all("Cannot re-initialize CUDA in forked subprocess" in line for line in lines)


def test_no_device_says_why():
    code = """
import tessera as torch
for ask in (lambda: torch.zeros(1, device="cuda"), lambda: torch.zeros(1).cuda(), torch.cuda.init,
            torch.cuda.current_device, lambda: torch.zeros(1).to("cuda:0"),
            lambda: torch.nn.Linear(1, 1).cuda(), torch.cuda.Stream, torch.cuda.get_device_name):
    try:
        ask()
    except RuntimeError as error:
        print(error)
"""
    lines = in_process(code)
    assert len(lines) == 8 and len(set(lines)) == 1
    assert lines[0].startswith("CUDA is not available: ") and len(lines[0]) > 40


# ---- CUDA_VISIBLE_DEVICES ----------------------------------------------------------------------

LIST = """
import tessera as torch
print(torch.cuda.device_count())
for i in range(torch.cuda.device_count()):
    print(torch.cuda.get_device_properties(i).uuid[-2:])
"""


@pytest.mark.parametrize(
    "visible, devices",
    [
        (None, "00 01 02"),
        ("0", "00"),
        ("2,0", "02 00"),
        (" 1 , 2 ", "01 02"),
        ("1,-1,2", "01"),
        ("0,7,1", "00"),
        ("", ""),
        ("-1", ""),
        ("x", ""),
        ("1,1", ""),
        ("GPU-76697274-7561-6c2d-6770-750000000002", "02"),
        ("GPU-76697274-7561-6c2d-6770-750000000001,0", "01"),
        ("GPU-ffff", ""),
        ("GPU-7669", ""),  # of more than one device
    ],
)
def test_visible_devices(visible, devices):
    got = in_process(LIST, TESSERA_VIRTUAL_GPU="3x1GiB", CUDA_VISIBLE_DEVICES=visible)
    assert got == [str(len(devices.split())), *devices.split()]


def test_visible_devices_are_fixed_at_the_first_question():
    code = """
import os
import tessera as torch
os.environ["CUDA_VISIBLE_DEVICES"] = "1,2"
print(torch.cuda.device_count())
os.environ["CUDA_VISIBLE_DEVICES"] = "0"
print(torch.cuda.device_count(), torch.zeros(1, device="cuda:1").device)
"""
    got = in_process(code, TESSERA_VIRTUAL_GPU="3x1GiB", CUDA_VISIBLE_DEVICES=None)
    assert got == ["2", "2 cuda:1"]


def test_hidden_devices_say_so():
    code = """
import tessera as torch
try: torch.cuda.init()
except RuntimeError as error: print(error)
"""
    for visible in ("", "-1"):
        (line,) = in_process(code, TESSERA_VIRTUAL_GPU="1x1GiB", CUDA_VISIBLE_DEVICES=visible)
        assert "CUDA_VISIBLE_DEVICES" in line
