"""Pickles and copies of tensors: values, geometry, shared memory, attributes, classes."""

import copy
import io
import pickle

import pytest

import tessera as torch
from tessera import nn

DTYPES = sorted({str(d).removeprefix("torch.") for d in torch._C.dtypes.values()})
PROTOCOLS = range(2, pickle.HIGHEST_PROTOCOL + 1)


class Mine(torch.Tensor):
    pass


class Slotted(torch.Tensor):
    __slots__ = ("note",)


class Stateful(torch.Tensor):
    def __getstate__(self):
        return {"kept": self.kept}

    def __setstate__(self, state):
        self.kept = state["kept"] + 1


def again(x, protocol=pickle.DEFAULT_PROTOCOL):
    return pickle.loads(pickle.dumps(x, protocol))


def same(a, b):
    assert type(a) is type(b) and a.dtype == b.dtype and a.shape == b.shape
    assert a.stride() == b.stride() and a.storage_offset() == b.storage_offset()
    assert a.device == b.device and a.requires_grad == b.requires_grad
    assert a.tolist() == b.tolist()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("make", [again, copy.copy, copy.deepcopy])
def test_every_dtype(dtype, make, device):
    for x in (
        torch.tensor([[1, 0, 3], [4, 5, 6]], device=device).to(getattr(torch, dtype)),
        torch.tensor(3, device=device).to(getattr(torch, dtype)),
        torch.zeros(0, 4, dtype=getattr(torch, dtype), device=device),
    ):
        same(make(x), x)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_geometry(protocol, device):
    x = torch.tensor([float(i) for i in range(24)], device=device).reshape(4, 6)
    for y in (x.t(), x[1:3], x[:, ::2], x[1][2], x.expand(2, 4, 6), x.requires_grad_()):
        made = again(y, protocol)
        same(made, y)
        assert made.untyped_storage().nbytes() == y.untyped_storage().nbytes()
        assert not made._is_same_storage(y)


@pytest.mark.parametrize("make", [again, copy.deepcopy])
def test_views_go_on_sharing_memory(make):
    x = torch.zeros(4)
    a, b, c = make([x, x[1:], torch.zeros(4)])
    a.fill_(7)
    assert b.tolist() == [7.0] * 3 and c.tolist() == [0.0] * 4
    assert x.tolist() == [0.0] * 4
    one, two = make((x, x))
    assert one is two


def test_a_copy_shares_memory():
    x = torch.zeros(4, requires_grad=True)
    x.note = [1]
    y = copy.copy(x)
    assert y is not x and y._is_same_storage(x) and y.requires_grad and y.is_leaf
    assert y.note is x.note


@pytest.mark.parametrize("make", [again, copy.deepcopy, copy.copy])
def test_attributes_and_classes(make):
    x = torch.ones(2)
    x.note = {"a": [1]}
    assert make(x).note == {"a": [1]}
    mine = torch.ones(2, requires_grad=True).detach().as_subclass(Mine)
    mine.note = 3
    made = make(mine)
    assert type(made) is Mine and made.note == 3 and made.is_leaf
    slotted = torch.ones(2).as_subclass(Slotted)
    slotted.note, slotted.other = 4, 5
    made = make(slotted)
    assert type(made) is Slotted and (made.note, made.other) == (4, 5)
    stateful = torch.ones(2).as_subclass(Stateful)
    stateful.kept = 1
    assert make(stateful).kept == (1 if make is copy.deepcopy else 2)


def test_parameters():
    w = nn.Parameter(torch.ones(2, 3))
    w.note = 1
    (w * 2).sum().backward()
    made = again(w)
    same(made, w)
    assert made.note == 1 and made.is_leaf and made.grad is None
    frozen = again(nn.Parameter(torch.ones(1), requires_grad=False))
    assert type(frozen) is nn.Parameter and not frozen.requires_grad
    assert copy.deepcopy(w).grad is None


def test_gradients_and_graphs():
    x = torch.ones(3, requires_grad=True)
    (x * x).sum().backward()
    copied = copy.deepcopy(x)
    assert copied.grad.tolist() == [2.0] * 3 and copied.grad is not x.grad
    assert again(x).grad is None and again(x).requires_grad
    y = x * 2
    with pytest.raises(RuntimeError, match="graph leaves"):
        copy.deepcopy(y)
    made = again(y)
    assert made.requires_grad and made.is_leaf and made.tolist() == y.tolist()


def test_memo():
    x, memo = torch.ones(2), {}
    y = copy.deepcopy(x, memo)
    assert copy.deepcopy(x, memo) is y
    z = copy.deepcopy(x[1:], memo)
    assert z._is_same_storage(y)


def test_small_types():
    for o in (
        torch.float32,
        torch.bool,
        torch.device("cpu"),
        torch.device("cuda"),
        torch.device("cuda", 1),
        torch.Size([2, 3]),
        torch.strided,
        torch.preserve_format,
        torch.add,
        torch.Tensor.add_,
        torch.Tensor,
        nn.Parameter,
    ):
        for made in (again(o), copy.copy(o), copy.deepcopy(o)):
            assert made == o and type(made) is type(o)
    assert again(torch.float32) is torch.float32 and again(torch.Tensor) is torch.Tensor


def test_storages():
    x = torch.tensor([1.0, 2.0, 3.0])
    storage = x.untyped_storage()
    assert storage is x[1:].untyped_storage() and storage is not x.clone().untyped_storage()
    assert storage.nbytes() == len(storage) == storage.size() == 12 and storage.device == x.device
    assert storage.data_ptr() == x.data_ptr() and storage[:2].tolist() == [0, 0]
    assert type(storage) is torch.UntypedStorage and storage.element_size() == 1
    copied = copy.deepcopy(storage)
    assert copied.tolist() == storage.tolist() and copied is not storage
    storage.fill_(0)
    assert x.tolist() == [0.0] * 3
    storage.copy_(copied)
    storage[3] = 64
    assert x.tolist() == [4.0, 2.0, 3.0]
    typed = x.storage()
    assert typed.tolist() == [4.0, 2.0, 3.0] and len(typed) == 3 and typed[1] == 2.0
    typed[0] = 9
    assert x[0].item() == 9.0 and typed.dtype == torch.float32 and typed.nbytes() == 12
    assert typed.data_ptr() == x.data_ptr() and again(typed).tolist() == typed.tolist()
    assert repr(torch.tensor([1, 2]).storage()) == (
        " 1\n 2\n[torch.storage.TypedStorage(dtype=torch.int64, device=cpu) of size 2]"
    )
    assert torch.UntypedStorage(5).nbytes() == 5 and torch.UntypedStorage([1, 2]).tolist() == [1, 2]


def test_pending_work_is_done_before_bytes_are_read():
    x = torch.ones(5)
    y = x * 2 + 1
    y.add_(1)
    assert again(y).tolist() == [4.0] * 5
    assert y.untyped_storage().tolist() == [0, 0, 128, 64] * 5


def test_a_geometry_that_does_not_fit_is_refused():
    storage = torch.ones(4).untyped_storage()._bytes
    over = torch._C._over_storage
    for offset, size, stride in ((0, (5,), (1,)), (1, (4,), (1,)), (0, (2, 2), (3, 2))):
        with pytest.raises(RuntimeError, match="out of bounds for storage of size 16"):
            over(storage, torch.float32, offset, size, stride)
    for size, stride in (((2**62, 2), (2**62, 4)), ((-1,), (1,)), ((2,), (-1,)), ((2,), (1, 1))):
        with pytest.raises(RuntimeError):
            over(storage, torch.float32, 0, size, stride)
    assert over(storage, torch.float32, 9, (0,), (1,)).numel() == 0


def test_damaged_pickles_are_refused():
    data = pickle.dumps(torch.ones(100))
    for end in (10, len(data) // 2, len(data) - 2):
        with pytest.raises((EOFError, pickle.UnpicklingError)):
            pickle.load(io.BytesIO(data[:end]))
