"""Memory shared with other libraries: DLPack, buffers, arrays; tensors from all sorts of data."""

import array
import gc
import hashlib
import warnings

import numpy as np
import pytest

import tessera as torch

NUMPY = "bool uint8 int8 int16 int32 int64 float16 float32 float64 complex64 complex128".split()
inf, nan = float("inf"), float("nan")


# ---- DLPack -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", sorted({str(d)[6:] for d in torch._C.dtypes.values()}))
def test_dlpack_there_and_back(dtype, device):
    x = torch.tensor([[1, 0, 3], [4, 5, 6]], device=device).to(getattr(torch, dtype))
    for y in (x, x.t(), x[1:], x[:, ::2], x[0, 0], x[:0]):
        made = torch.from_dlpack(y)
        assert made.dtype == y.dtype and made.shape == y.shape and made.device == y.device
        assert made.tolist() == y.tolist()
        if y.numel():
            assert made.data_ptr() == y.data_ptr()


def test_dlpack_shares_memory(device):
    x = torch.zeros(4, device=device)
    y = torch.from_dlpack(x)
    y.add_(1)
    x.mul_(3)
    assert x.tolist() == y.tolist() == [3.0] * 4
    address = x.data_ptr()
    del x
    gc.collect()
    y += 1
    assert y.tolist() == [4.0] * 4 and y.data_ptr() == address


@pytest.mark.parametrize("dtype", [d for d in NUMPY if d != "bool"])
def test_numpy_by_dlpack(dtype):
    x = torch.tensor([[1, 2], [3, 4]]).to(getattr(torch, dtype))
    a = np.from_dlpack(x.t())
    assert a.dtype.name == dtype and a.tolist() == x.t().tolist()
    x[0, 0] = 9
    assert a[0, 0] == 9
    b = np.array([[1, 2], [3, 4]], dtype=dtype)
    y = torch.from_dlpack(b[::1].T)
    y[0, 1] = 7
    assert b[1, 0] == 7 and y.dtype == x.dtype


def test_dlpack_memory_lives_as_long_as_it_is_used():
    a = np.from_dlpack(torch.tensor([1.0, 2.0]))
    y = torch.from_dlpack(np.array([3.0, 4.0]))
    gc.collect()
    junk = [torch.zeros(2) for _ in range(100)]
    assert a.tolist() == [1.0, 2.0] and y.tolist() == [3.0, 4.0] and junk


def test_dlpack_capsules():
    from tessera.utils.dlpack import DLDeviceType, from_dlpack, to_dlpack

    x = torch.ones(3)
    assert x.__dlpack_device__() == (DLDeviceType.kDLCPU, 0)
    capsule = to_dlpack(x)
    assert '"dltensor"' in repr(capsule)
    assert from_dlpack(capsule).tolist() == [1.0] * 3 and '"used_dltensor"' in repr(capsule)
    with pytest.raises(RuntimeError, match="consumed only once"):
        from_dlpack(capsule)
    with pytest.raises(RuntimeError, match="invalid capsule"):
        torch.from_dlpack(3)
    capsule = x.__dlpack__(max_version=(1, 0))
    assert '"dltensor_versioned"' in repr(capsule)
    assert torch.from_dlpack(capsule).tolist() == [1.0] * 3
    for _ in range(3):  # capsules nobody takes
        x.__dlpack__()
        x.__dlpack__(max_version=(1, 0))
    copied = torch.from_dlpack(x, copy=True)
    copied.fill_(5)
    assert x.tolist() == [1.0] * 3


def test_dlpack_refusals():
    with pytest.raises(BufferError, match="use tensor.detach"):
        torch.ones(2, requires_grad=True).__dlpack__()
    with pytest.raises(TypeError, match="stream must be ``int`` or ``none``"):
        torch.ones(2).__dlpack__(stream="a")
    with pytest.raises(BufferError, match="no dtype"):
        torch.from_dlpack(np.array([1, 2], dtype="uint64"))
    with pytest.raises(RuntimeError, match="negative strides"):
        torch.from_dlpack(np.arange(4)[::-1])


def test_dlpack_of_a_virtual_gpu_is_for_us_only(accelerator):
    x = torch.ones(2, device="cuda")
    if not torch.cuda.get_device_properties(0).is_virtual:
        pytest.skip("needs a virtual GPU")
    assert x.__dlpack_device__() == (12, 0)
    assert not hasattr(x, "__cuda_array_interface__")
    with pytest.raises((BufferError, RuntimeError, TypeError)):
        np.from_dlpack(x)
    moved = torch.from_dlpack(x, device="cpu")
    assert moved.tolist() == [1.0] * 2 and moved.device.type == "cpu"


# ---- buffers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", NUMPY)
def test_memoryview(dtype):
    x = torch.tensor([[1, 0, 3], [4, 5, 6]]).to(getattr(torch, dtype))
    view = memoryview(x.t())
    assert view.shape == (3, 2) and view.itemsize == x.element_size() and not view.readonly
    assert np.asarray(view).tolist() == x.t().tolist()
    assert view.strides == tuple(s * x.element_size() for s in x.t().stride())
    np.asarray(view)[0, 0] = 0
    assert x[0, 0].item() == 0


def test_memoryview_refusals(device):
    for x in (
        torch.ones(2, requires_grad=True),
        torch.ones(2, dtype=torch.bfloat16),
        torch.ones(2, device="meta"),
    ):
        with pytest.raises(BufferError):
            memoryview(x)
    if device == "cuda":
        with pytest.raises(BufferError, match="cpu"):
            memoryview(torch.ones(2, device=device))
    with pytest.raises(BufferError, match="not contiguous"):
        hashlib.md5(torch.ones(2, 4)[:, ::2])
    assert hashlib.md5(torch.zeros(2)).digest() == hashlib.md5(bytes(8)).digest()


def test_a_view_keeps_the_memory_it_was_made_of():
    x = torch.tensor([1, 2, 3], dtype=torch.uint8)
    view = memoryview(x)
    x.data = torch.zeros(100, dtype=torch.uint8)
    gc.collect()
    assert view.tolist() == [1, 2, 3]
    del x
    gc.collect()
    assert bytes(view) == b"\1\2\3"


def test_pending_work_is_seen_through_buffers():
    x = torch.ones(3)
    y = x * 2
    view = memoryview(y)
    y.add_(1)
    assert view.tolist() == [3.0] * 3
    view[0] = 9.0
    assert (y + 1).tolist() == [10.0, 4.0, 4.0]


def test_bytes_are_the_numbers():
    assert bytes(torch.tensor([1, 2])) == b"\1\2" and bytes(torch.tensor([3])) == b"\0\0\0"


def test_frombuffer():
    data = bytearray(range(16))
    x = torch.frombuffer(data, dtype=torch.uint8)
    assert x.tolist() == list(range(16))
    x[0] = 7
    data[1] = 8
    assert data[0] == 7 and x[1].item() == 8
    with pytest.raises(BufferError):  # its memory is in use
        data.extend(b"a")
    x = torch.frombuffer(data, dtype=torch.int32, count=2, offset=4)
    assert x.tolist() == [117835012, 185207048]
    y = torch.frombuffer(array.array("d", [1, 2]), dtype=torch.float64, requires_grad=True)
    assert y.tolist() == [1.0, 2.0] and y.requires_grad and y.is_leaf
    with pytest.warns(UserWarning, match="not writable"):
        torch.frombuffer(b"abc", dtype=torch.uint8)


@pytest.mark.parametrize(
    "options, words",
    [
        ({"count": 0}, r"both buffer length \(16\) and count \(0\) must not be 0"),
        ({"offset": 16}, r"offset \(16 bytes\) must be non-negative and no greater than buffer"),
        ({"offset": -1}, r"offset \(-1 bytes\) must be non-negative"),
        ({"count": 20}, r"requested buffer length \(20 \* 8 bytes\) after offset \(0 bytes\)"),
        ({"count": 2**62}, r"requested buffer length"),
        ({"offset": 1}, r"buffer length \(15 bytes\) after offset \(1 bytes\) must be a multiple"),
    ],
)
def test_frombuffer_refusals(options, words):
    with pytest.raises(ValueError, match=words):
        torch.frombuffer(bytearray(16), dtype=torch.int64, **options)


def test_more_frombuffer_refusals():
    with pytest.raises(ValueError, match="must not be 0"):
        torch.frombuffer(bytearray(), dtype=torch.uint8)
    with pytest.raises(ValueError, match="does not implement Python buffer protocol"):
        torch.frombuffer([1], dtype=torch.uint8)
    with pytest.raises(TypeError, match='missing 1 required positional arguments: "dtype"'):
        torch.frombuffer(bytearray(4))
    with pytest.raises(RuntimeError, match="Only Tensors of floating point"):
        torch.frombuffer(bytearray(4), dtype=torch.uint8, requires_grad=True)


# ---- arrays -----------------------------------------------------------------------------------


def test_arrays(device):
    x = torch.tensor([1.0, 2.0])
    assert np.asarray(x).tolist() == [1.0, 2.0] and np.shares_memory(np.asarray(x), x.numpy())
    assert np.array(x, dtype="int32").dtype == np.int32
    assert np.array([x, x]).shape == (2, 2)
    assert not hasattr(x, "__array_interface__")
    y = np.sin(torch.tensor([0.0]))
    assert isinstance(y, torch.Tensor) and y.tolist() == [0.0]
    assert np.isnan(torch.tensor([nan])).dtype == torch.uint8
    with pytest.raises(RuntimeError, match="detach"):
        np.asarray(torch.ones(1, requires_grad=True))
    with pytest.raises(TypeError, match="BFloat16"):
        torch.ones(1, dtype=torch.bfloat16).numpy()
    with pytest.raises(AttributeError, match="non-CUDA tensor type: torch.FloatTensor"):
        x.__cuda_array_interface__
    if device == "cuda":
        with pytest.raises(TypeError, match="Use Tensor.cpu()"):
            np.asarray(torch.ones(1, device=device))


# ---- tensors from data ------------------------------------------------------------------------


@pytest.mark.parametrize("make", [torch.tensor, torch.as_tensor, torch.asarray])
@pytest.mark.parametrize(
    "data, expected, dtype",
    [
        (range(3), [0, 1, 2], "int64"),
        ([1, 2.5], [1.0, 2.5], "float32"),
        ([True, 2], [1, 2], "int64"),
        ([True, False], [True, False], "bool"),
        ([1j, 2], [1j, 2 + 0j], "complex64"),
        ([], [], "float32"),
        ([[], []], [[], []], "float32"),
        (torch.Size([1, 2]), [1, 2], "int64"),
        ([torch.ones(()), 2], [1.0, 2.0], "float32"),
        ([torch.ones(1), torch.zeros(1, 1)], [1.0, 0.0], "float32"),
        ([[torch.tensor(1), 2], (3, np.int64(4))], [[1, 2], [3, 4]], "int64"),
        (np.float32(2), 2.0, "float32"),
        ([np.float32(2), np.float64(3)], [2.0, 3.0], "float64"),
        ([np.int32(2), np.int8(3)], [2, 3], "int32"),
        ([np.complex64(1 + 2j)], [1 + 2j], "complex64"),
        ([np.array([1, 2]), np.array([3, 4])], [[1, 2], [3, 4]], "int64"),
        ([np.array([1.0, 2.0], dtype="float32")], [[1.0, 2.0]], "float32"),
        (np.array([[1, 2]], dtype="int16"), [[1, 2]], "int16"),
        ([inf, 1], [inf, 1.0], "float32"),
    ],
)
def test_all_sorts_of_data(make, data, expected, dtype):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x = make(data)
    assert x.tolist() == expected and str(x.dtype) == "torch." + dtype


@pytest.mark.parametrize(
    "data, error, words",
    [
        ("abc", TypeError, r"new\(\): invalid data type 'str'"),
        (b"abc", TypeError, r"new\(\): invalid data type 'bytes'"),
        (None, RuntimeError, "Could not infer dtype of NoneType"),
        ({}, RuntimeError, "Could not infer dtype of dict"),
        ({1}, RuntimeError, "Could not infer dtype of set"),
        (iter([1]), RuntimeError, "Could not infer dtype of list_iterator"),
        ([1, None], RuntimeError, "Could not infer dtype of NoneType"),
        ([1, "2"], TypeError, r"new\(\): invalid data type 'str'"),
        (["a"], ValueError, "too many dimensions 'str'"),
        ([[1], [2, 3]], ValueError, r"expected sequence of length 1 at dim 1 \(got 2\)"),
        ([1, [2]], TypeError, "'list' object cannot be interpreted as an integer"),
        ([1.0, [2]], TypeError, "must be real number, not list"),
        ([[1], 2], TypeError, "not a sequence"),
        ([torch.ones(2), torch.ones(2)], ValueError, "only one element tensors can be converted"),
        ([torch.ones(2), [1, 2]], ValueError, "only one element tensors can be converted"),
        (2**63, RuntimeError, "Overflow when unpacking long"),
        ([-(2**63) - 1], RuntimeError, "Overflow when unpacking long"),
    ],
)
def test_what_is_no_data(data, error, words):
    for make in (torch.tensor, torch.as_tensor):
        with pytest.raises(error, match=words):
            make(data)


def test_data_that_contains_itself():
    data = []
    data.append(data)
    with pytest.raises(ValueError, match="too many dimensions"):
        torch.tensor(data)


def test_data_that_changes_while_it_is_read():
    class Sly:
        def __init__(self, data):
            self.data = data

        def __float__(self):
            self.data.clear()
            return 1.0

    data = [1.0, 2.0, 3.0]
    data[1] = Sly(data)
    with pytest.raises(RuntimeError):
        torch.tensor(data, dtype=torch.float32)


@pytest.mark.parametrize(
    "value, dtype, expected",
    [
        (255, "uint8", 255),
        (-1, "uint8", 255),
        (1.7, "int64", 1),
        (2, "bool", True),
        (0.5, "bool", True),
        (2**70, "float32", 2.0**70),
        (1e10, "float16", inf),
        (True, "float64", 1.0),
        (3, "complex64", 3 + 0j),
    ],
)
def test_values_of_a_given_dtype(value, dtype, expected):
    assert torch.tensor([value], dtype=getattr(torch, dtype)).tolist() == [expected]


@pytest.mark.parametrize(
    "value, dtype",
    [
        (300, "uint8"),
        (-256, "uint8"),
        (128, "int8"),
        (2**31, "int32"),
        (nan, "int64"),
        (inf, "int8"),
    ],
)
def test_values_that_do_not_fit(value, dtype):
    for data in (value, [value], [torch.tensor(value)]):
        with pytest.raises(RuntimeError, match=f"converted to type {dtype} without overflow"):
            torch.tensor(data, dtype=getattr(torch, dtype))


def test_arguments_of_tensor():
    with pytest.raises(TypeError, match=r"tensor\(\) takes 1 positional argument but 2 were given"):
        torch.tensor([1], torch.float32)
    with pytest.raises(TypeError, match=r"must be real number, not complex"):
        torch.tensor([1j], dtype=torch.float32)
    with pytest.raises(
        TypeError, match=r'tensor\(\) missing 1 required positional arguments: "data"'
    ):
        torch.tensor()
    assert torch.tensor(data=[1], names=None, pin_memory=False).tolist() == [1]
    with pytest.warns(UserWarning, match="To copy construct from a tensor"):
        torch.tensor(torch.ones(2))
    with pytest.raises(TypeError, match=r"data must be a sequence \(got float\)"):
        torch.Tensor(2.5)


def test_as_tensor_and_asarray_share():
    a = np.array([1.0, 2.0])
    for make in (torch.as_tensor, torch.asarray):
        make(a)[0] += 1
    assert a.tolist() == [3.0, 2.0]
    x = torch.ones(2, requires_grad=True)
    assert torch.as_tensor(x) is x and not torch.asarray(x).requires_grad
    assert torch.asarray(x, requires_grad=True) is x
    y = torch.ones(2)
    assert torch.asarray(y) is y and torch.asarray(y, copy=True) is not y
    assert torch.asarray(y, dtype=torch.float64).dtype == torch.float64
    assert torch.asarray([1.0], requires_grad=True).requires_grad
    data = bytearray(8)
    torch.asarray(data, dtype=torch.float32).fill_(1)
    assert bytes(data) == b"\0\0\x80\x3f" * 2
    with pytest.raises(ValueError, match="can't alias arbitrary sequence into a tensor"):
        torch.asarray([1], copy=False)
    with pytest.raises(ValueError, match="can't alias tensor with dtype"):
        torch.asarray(y, dtype=torch.float64, copy=False)
    assert torch.asarray(y.__dlpack__()).data_ptr() == y.data_ptr()
