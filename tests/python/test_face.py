"""What programs expect to find beside operators: limits, flags, versions, devices, older names."""

import sys

import pytest

import tessera as torch

# ---- versions and builds -----------------------------------------------------------------------


def test_version():
    from tessera.torch_version import TorchVersion

    major, minor = torch.__version__.split(".")[:2]
    assert (int(major), int(minor)) >= (2, 0) and isinstance(torch.__version__, str)
    assert torch.__version__ >= "1.13" and torch.__version__ > (2, 1) and torch.__version__ >= "2.2"
    assert (
        torch.version.__version__ == torch.__version__
        and torch.version.tessera in torch.__version__
    )
    assert torch.version.hip is None and torch.version.debug is False
    if not torch.cuda.is_available():
        assert torch.version.cuda is None
    assert TorchVersion("1.10.0") > "1.9.1" and TorchVersion("2.0.0a0") < "2.0"
    assert TorchVersion("2.0") == "2.0.0" and TorchVersion("2.1") != "2.0"
    assert hash(TorchVersion("1.0")) == hash("1.0")


def test_finfo():
    f = torch.finfo(torch.float32)
    assert (f.bits, f.eps, f.max, f.min) == (32, 2.0**-23, 3.4028234663852886e38, -f.max)
    assert f.tiny == f.smallest_normal == 1.1754943508222875e-38 and f.resolution == 1e-06
    assert f.dtype == "float32" and torch.finfo() == f
    assert repr(f) == (
        "finfo(resolution=1e-06, min=-3.40282e+38, max=3.40282e+38, eps=1.19209e-07, "
        "smallest_normal=1.17549e-38, tiny=1.17549e-38, dtype=float32)"
    )
    assert torch.finfo(torch.float64).max == sys.float_info.max
    assert torch.finfo(torch.float64).eps == sys.float_info.epsilon
    assert torch.finfo(torch.float16).max == 65504 and torch.finfo(torch.float16).eps == 2.0**-10
    assert torch.finfo(torch.bfloat16).max == 3.3895313892515355e38
    assert torch.finfo(torch.complex64) == f
    with pytest.raises(TypeError, match="floating point input type"):
        torch.finfo(torch.int32)
    with pytest.raises(TypeError, match="must be torch.dtype, not str"):
        torch.finfo("float32")


def test_iinfo():
    assert [torch.iinfo(d).max for d in (torch.uint8, torch.int8, torch.int64)] == [
        255,
        127,
        2**63 - 1,
    ]
    assert [torch.iinfo(d).min for d in (torch.uint8, torch.int16)] == [0, -32768]
    assert torch.iinfo(torch.int32).bits == 32 and torch.iinfo(torch.int32).dtype == "int32"
    assert repr(torch.iinfo(torch.uint8)) == "iinfo(min=0, max=255, dtype=uint8)"
    for bad in (torch.float32, torch.bool):
        with pytest.raises(TypeError):
            torch.iinfo(bad)


def test_size():
    s = torch.Size([2, 3])
    assert s.numel() == 6 and s == (2, 3) and isinstance(s, tuple) and hash(s) == hash((2, 3))
    for t in (s + (4,), s * 2, s[:1]):
        assert isinstance(t, torch.Size)
    assert repr(s) == "torch.Size([2, 3])" and s[1] == 3 and s.index(3) == 1 and s.count(2) == 1
    assert torch.Size() == () and torch.Size(range(2)) == (0, 1)
    assert torch.Size([torch.tensor(2)]) == (2,) and type(torch.Size([torch.tensor(2)])[0]) is int
    with pytest.raises(TypeError, match=r"takes an iterable of 'int' \(item 1 is 'float'\)"):
        torch.Size([1, 2.5])


# ---- flags --------------------------------------------------------------------------------------


def test_threads():
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        assert torch.get_num_threads() == 1
        assert (torch.ones(100000) + 1).sum().item() == 200000
    finally:
        torch.set_num_threads(before)
    assert torch.get_num_threads() == before
    with pytest.raises(RuntimeError, match="positive integer"):
        torch.set_num_threads(0)
    with pytest.raises(TypeError):
        torch.set_num_threads(1.5)
    assert torch.get_num_interop_threads() > 0


def test_determinism_and_precision():
    assert not torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    assert torch.are_deterministic_algorithms_enabled()
    assert torch.is_deterministic_algorithms_warn_only_enabled()
    assert torch.get_deterministic_debug_mode() == 1
    torch.set_deterministic_debug_mode("error")
    assert torch.get_deterministic_debug_mode() == 2
    torch.use_deterministic_algorithms(False)
    assert torch.get_deterministic_debug_mode() == 0
    with pytest.raises(RuntimeError, match="invalid value of debug_mode"):
        torch.set_deterministic_debug_mode(3)
    assert torch.get_float32_matmul_precision() == "highest"
    torch.set_float32_matmul_precision("high")
    assert torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = False
    assert torch.get_float32_matmul_precision() == "highest"
    with pytest.raises(RuntimeError, match="'highest', 'high', or 'medium'"):
        torch.set_float32_matmul_precision("low")


def test_backends():
    for name in "cuda cudnn mps mkl openmp mkldnn xpu".split():
        module = getattr(torch.backends, name)
        if name == "cuda":
            assert isinstance(module.is_built(), bool)
        elif name == "cudnn":
            assert isinstance(module.is_available(), bool)
        else:
            assert module.is_available() is False
    cudnn = torch.backends.cudnn
    cudnn.benchmark = True
    with cudnn.flags(enabled=False, benchmark=False, deterministic=True):
        assert not cudnn.enabled and not cudnn.benchmark and cudnn.deterministic
    assert cudnn.enabled and cudnn.benchmark and not cudnn.deterministic
    cudnn.benchmark = False
    cudnn.allow_tf32 = cudnn.allow_tf32
    assert torch.backends.cpu.get_cpu_capability() in ("DEFAULT", "AVX2", "AVX512")
    with torch.backends.cuda.sdp_kernel(enable_flash=False):
        assert not torch.backends.cuda.flash_sdp_enabled()
    assert torch.backends.cuda.flash_sdp_enabled()


# ---- devices ------------------------------------------------------------------------------------


def test_cuda_without_a_device():
    if torch.cuda.is_available():
        pytest.skip("there is one")
    assert torch.cuda.device_count() == 0 and not torch.cuda.is_initialized()
    assert not torch.cuda.is_bf16_supported() and torch.cuda.get_arch_list() == []
    torch.cuda.manual_seed(1)
    torch.cuda.manual_seed_all(1)
    torch.cuda.seed_all()
    torch.cuda.empty_cache()
    torch.cuda.ipc_collect()
    assert torch.cuda.get_rng_state_all() == [] and torch.cuda.default_generators == ()
    for use in (
        torch.cuda.current_device,
        torch.cuda.get_device_name,
        torch.cuda.synchronize,
        torch.cuda.init,
        torch.cuda._lazy_init,
        lambda: torch.ones(1).cuda(),
        lambda: torch.ones(1, device="cuda"),
        lambda: torch.cuda.FloatTensor([1]),
    ):
        with pytest.raises((RuntimeError, AssertionError)):
            use()
    assert torch.accelerator.current_accelerator() is None
    assert not torch.accelerator.is_available() and torch.accelerator.device_count() == 0


def test_cuda_with_a_device(accelerator):
    assert torch.accelerator.current_accelerator() == torch.device("cuda")
    assert torch.accelerator.current_device_index() == 0 and torch.cuda.is_bf16_supported()
    state = torch.cuda.get_rng_state()
    a = torch.rand(3, device="cuda")
    torch.cuda.set_rng_state(state)
    assert torch.rand(3, device="cuda").tolist() == a.tolist()
    assert isinstance(torch.cuda.FloatTensor([1]), torch.cuda.FloatTensor)
    assert len(torch.cuda.default_generators) == torch.cuda.device_count()


def test_other_devices():
    assert (
        not torch.mps.is_available() and not torch.xpu.is_available() and torch.cpu.is_available()
    )
    assert torch.cpu.device_count() == 1 and torch.get_device_module("cpu") is torch.cpu
    torch.cpu.synchronize()
    with torch.cpu.stream(torch.cpu.current_stream()):
        pass
    assert torch.distributed.is_available() and not torch.distributed.is_initialized()


def test_default_device(device):
    assert torch.get_default_device() == torch.device("cpu")
    with torch.device("meta"):
        x = torch.ones(2)
        assert x.device.type == "meta" and torch.get_default_device().type == "meta"
        assert torch.zeros(2, device="cpu").device.type == "cpu"
        assert torch.tensor([1]).device.type == "meta" and torch.rand(2).device.type == "meta"
        with torch.device(device):
            assert torch.ones(2).device.type == device
            assert torch.as_tensor([1]).device.type == device
        assert torch.empty(2).device.type == "meta"
        assert torch.zeros_like(torch.ones(2, device="cpu")).device.type == "cpu"
    assert torch.ones(2).device.type == "cpu"
    torch.set_default_device(device)
    try:
        assert torch.full((2,), 1).device.type == device
        assert torch.get_default_device().type == device
        with torch.device("cpu"):
            assert torch.ones(1).device.type == "cpu"
        assert torch.randn(2).device.type == device
    finally:
        torch.set_default_device(None)
    assert torch.ones(2).device.type == "cpu"
    with pytest.raises(RuntimeError):
        torch.set_default_device("nowhere")


def test_default_device_is_the_threads_own():
    import threading

    found = []
    with torch.device("meta"):
        thread = threading.Thread(target=lambda: found.append(torch.ones(1).device.type))
        thread.start()
        thread.join()
    assert found == ["cpu"]


# ---- older and other names ----------------------------------------------------------------------


def test_legacy_types():
    x = torch.FloatTensor([1, 2])
    assert x.dtype == torch.float32 and x.tolist() == [1.0, 2.0] and type(x) is torch.Tensor
    assert torch.LongTensor(2, 3).shape == (2, 3) and torch.LongTensor([1.5]).tolist() == [1]
    assert torch.ByteTensor(torch.Size([2])).shape == (2,) and torch.BoolTensor().shape == (0,)
    assert isinstance(x, torch.FloatTensor) and not isinstance(x, torch.LongTensor)
    assert not isinstance(x, torch.cuda.FloatTensor) and not isinstance(3, torch.FloatTensor)
    assert repr(torch.FloatTensor) == "<class 'torch.FloatTensor'>"
    with pytest.raises(TypeError, match="data must be a sequence"):
        torch.FloatTensor(2.5)
    assert x.type() == "torch.FloatTensor" and x.type("torch.LongTensor").dtype == torch.int64
    assert x.type(torch.half).dtype == torch.float16 and x.type(float).dtype == torch.float64
    assert x.type(torch.DoubleTensor).dtype == torch.float64
    with pytest.raises(ValueError, match="invalid type: 'foo'"):
        x.type("foo")
    torch.set_default_tensor_type(torch.DoubleTensor)
    try:
        assert torch.ones(1).dtype == torch.float64
    finally:
        torch.set_default_tensor_type("torch.FloatTensor")
    with pytest.raises(TypeError, match="floating-point"):
        torch.set_default_tensor_type(torch.LongTensor)


def test_compile_and_jit_give_back_what_they_are_given():
    def f(x):
        return x + 1

    assert torch.compile(f) is f and torch.compile(mode="default")(f) is f
    net = torch.nn.Linear(2, 2)
    assert torch.compile(net, fullgraph=True)._orig_mod is net and torch.jit.script(net) is net
    assert torch.jit.trace(f, torch.ones(1)) is f and torch.jit.export(f) is f
    assert torch.jit.ignore(f) is f and torch.jit.ignore(drop=True)(f) is f
    assert torch.jit.unused(f) is f and not torch.jit.is_scripting() and not torch.jit.is_tracing()
    assert torch.jit.annotate(int, 3) == 3 and torch.jit.isinstance([1], list[int])
    assert not torch.jit.isinstance([1.5], list[int])
    assert torch.compiler.disable(f) is f and not torch.compiler.is_compiling()
    with pytest.raises(RuntimeError, match="mode or options"):
        torch.compile(f, mode="a", options={})
    with pytest.raises(NotImplementedError):
        torch.jit.load("nowhere")
    with pytest.raises(NotImplementedError):
        torch.hub.load("a", "b")


def test_kinds_of_things():
    x = torch.ones(2, dtype=torch.complex64)
    assert torch.is_tensor(x) and torch.is_complex(x) and not torch.is_floating_point(x)
    assert torch.numel(x) == 2 and torch.typename(x) == "torch.ComplexFloatTensor"
    assert torch.is_storage(x.untyped_storage()) and not torch.is_storage(x)
    assert torch.typename(3) == "int" and torch.is_nonzero(torch.tensor([1]))
    assert not torch.is_conj(x) and torch.resolve_conj(x) is x
    import tessera.types as types

    assert types.Number and types.Device and types.Tensor is torch.Tensor


def test_serialization_names():
    from tessera import serialization

    with serialization.safe_globals([dict]):
        serialization.add_safe_globals([list, list])
        assert serialization.get_safe_globals() == [dict, list]
    assert serialization.get_safe_globals() == []
    serialization.set_default_load_endianness(serialization.LoadEndianness.LITTLE)
    assert serialization.get_default_load_endianness() is serialization.LoadEndianness.LITTLE
    serialization.set_default_load_endianness(None)
    with pytest.raises(TypeError):
        serialization.set_default_load_endianness("little")


def test_formats_and_layouts():
    names = "contiguous_format channels_last channels_last_3d preserve_format".split()
    for name in names:
        assert repr(getattr(torch, name)) == "torch." + name
        assert isinstance(getattr(torch, name), torch.memory_format)
    assert torch.ones(1).layout is torch.strided and isinstance(torch.strided, torch.layout)


# ---- tensors ------------------------------------------------------------------------------------


def test_what_a_tensor_says_of_itself(device):
    x = torch.ones(2, 3, device=device)
    assert x.names == (None, None) and not x.has_names() and x.dim_order() == (0, 1)
    assert x.t().dim_order() == (1, 0) and x.element_size() == x.itemsize == 4 and x.nbytes == 24
    assert x.is_shared() == (device == "cuda") and not x.is_pinned() and not x.is_inference()
    for (
        name
    ) in "is_sparse is_quantized is_meta is_mkldnn is_xpu is_mps is_nested is_vulkan".split():
        assert getattr(x, name) is False, name
    assert torch.ones(1, device="meta").is_meta
    assert x.get_device() == (0 if device == "cuda" else -1) and x.is_leaf
    assert "numel" in dir(x) and "sparse_resize_" not in dir(x)
    x.note = 1
    assert "note" in dir(x)


def test_numbers_of_tensors():
    assert complex(torch.tensor(1.5)) == 1.5 + 0j and complex(torch.tensor(2j)) == 2j
    assert [10, 20, 30][torch.tensor(1)] == 20 and int(torch.tensor(2.7)) == 2
    assert f"{torch.tensor(3):d} {torch.tensor(1.5):.3f}" == "3 1.500"
    with pytest.raises(TypeError, match="unsupported format string"):
        f"{torch.ones(2):.3f}"
    assert 2 in torch.tensor([1, 2]) and 3.0 not in torch.tensor([1, 2])
    assert torch.tensor(1) in torch.tensor([1, 2])
    with pytest.raises(RuntimeError, match="only supports Tensor or scalar"):
        "a" in torch.tensor([1])  # noqa: B015


def test_new(device):
    x = torch.ones(2, dtype=torch.float64, device=device)
    y = x.new_tensor([1, 2], requires_grad=True)
    assert y.dtype == torch.float64 and y.device == x.device and y.requires_grad
    assert x.new(3).shape == (3,) and x.new([1.0]).dtype == torch.float64
    assert x.new_tensor(torch.tensor([1])).dtype == torch.int64


def test_set():
    x, y = torch.zeros(2), torch.tensor([1.0, 2.0, 3.0, 4.0])
    assert x.set_(y) is x and x.tolist() == y.tolist() and x._is_same_storage(y)
    x.set_(y.untyped_storage(), 1, (2,), (2,))
    assert x.tolist() == [2.0, 4.0]
    x.set_(y.storage(), 0, (2, 2))
    assert x.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert x.set_().numel() == 0
    with pytest.raises(RuntimeError, match="Could not set tensor of type"):
        x.set_(torch.tensor([1]))
    with pytest.raises(RuntimeError, match="out of bounds"):
        x.set_(y.untyped_storage(), 0, (5,), (1,))


def test_apply():
    x = torch.tensor([[1, 2], [3, 4]])
    assert x.apply_(lambda v: v * 2) is x and x.tolist() == [[2, 4], [6, 8]]


def test_return_types():
    from tessera import return_types

    found = torch.var_mean(torch.tensor([1.0, 2.0]))
    if hasattr(found, "_fields") or type(found) is not tuple:
        assert type(found) is getattr(return_types, "var_mean")
    with pytest.raises(AttributeError):
        return_types.nothing


# ---- __torch_function__ -------------------------------------------------------------------------


class Watched(torch.Tensor):
    seen: list = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        Watched.seen.append(func)
        return super().__torch_function__(func, types, args, kwargs)


def test_properties_and_methods_are_handled():
    x = torch.ones(2, 2).as_subclass(Watched)
    for use, function in (
        (lambda: x.shape, torch.Tensor.shape.__get__),
        (lambda: x.dtype, torch.Tensor.dtype.__get__),
        (lambda: x.grad, torch.Tensor.grad.__get__),
        (lambda: x.T, torch.Tensor.T.__get__),
        (lambda: x.view_as(x), torch.Tensor.view_as),
        (lambda: x.type(), torch.Tensor.type),
        (lambda: x.add(1), torch.Tensor.add),
        (lambda: x.size(), torch.Tensor.size),
        (lambda: repr(x), torch.Tensor.__repr__),
    ):
        Watched.seen.clear()
        use()
        assert function in Watched.seen, function
    Watched.seen.clear()
    x.requires_grad = True
    assert torch.Tensor.requires_grad.__set__ in Watched.seen and x.requires_grad
    assert type(x.T) is Watched and type(x.shape) is torch.Size
    with torch._C.DisableTorchFunctionSubclass():
        Watched.seen.clear()
        assert x.shape == (2, 2) and not Watched.seen


def test_the_packages_version():
    import re
    from pathlib import Path

    project = Path(__file__).resolve().parents[2] / "pyproject.toml"
    assert (
        re.search(r'(?m)^version = "(.*)"', project.read_text()).group(1) == torch.version.tessera
    )


def test_import_loads_little():
    import subprocess

    def modules(imports):
        code = f"import {imports}; print(*sys.modules)"
        out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
        return set(out.split())

    loaded = modules("sys, tessera") - modules("sys")  # a site's own start may load much
    heavy = (
        "numpy typing inspect ctypes re ast difflib pickle tempfile multiprocessing tessera.cuda"
    )
    assert "tessera" in loaded
    assert not set(heavy.split()) & loaded


def test_import_costs_little():
    """Processor time, so that a busy machine does not count, beyond that of Python itself."""
    import os
    import resource
    import subprocess

    # Compiled files are kept, as they are for users.
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}

    def cost(code):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], check=True, env=kept)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    assert min(cost("import tessera") for _ in range(5)) - min(cost("") for _ in range(5)) < 0.05
