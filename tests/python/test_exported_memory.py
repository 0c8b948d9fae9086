"""Memory that NumPy and other libraries see stays alive and in place."""

import subprocess
import sys
import weakref

import numpy as np
import pytest

import tessera as torch

REFUSED = "Trying to resize storage that is not resizable"

# Each gives a buffer over the memory of a tensor of floats.
BUFFERS = {
    "numpy": lambda t: t.numpy(),
    "asarray": lambda t: np.asarray(t),
    "memoryview": lambda t: memoryview(t),
    "nditer": lambda t: np.nditer(t.numpy()),
    "frombuffer": lambda t: np.frombuffer(t, dtype=np.float32),
    "from_numpy": lambda t: torch.from_numpy(t.numpy()),
    "capsule": lambda t: t.__dlpack__(),
    "from_dlpack": lambda t: np.from_dlpack(t),
    "own_dlpack": lambda t: torch.from_dlpack(t),
}
# Each wants more memory for a tensor than it has.
GROWTHS = {
    "resize_": lambda t: t.resize_(1000),
    "resize_as_": lambda t: t.resize_as_(torch.empty(1000)),
    "out of a pointwise operator": lambda t: torch.add(torch.ones(1000), 1, out=t),
    "out of a reduction": lambda t: torch.sum(torch.ones(1000, 2), 1, out=t),
    "out of a kernel": lambda t: torch.cumsum(torch.ones(1000), 0, out=t),
    "out of a composite": lambda t: torch.cat([torch.ones(500)] * 2, out=t),
    "out in Python": lambda t: torch.tensordot(torch.ones(10, 2), torch.ones(2, 10), 1, out=t),
    "through a view": lambda t: t[:2].resize_(1000),
    "as bytes": lambda t: t.view(torch.uint8).resize_(4000),
    "untyped_storage": lambda t: t.untyped_storage().resize_(4000),
}


@pytest.mark.parametrize("growth", GROWTHS)
@pytest.mark.parametrize("buffer", BUFFERS)
def test_exported_memory_does_not_move(buffer, growth):
    t = torch.arange(4.0) * 1
    seen = BUFFERS[buffer](t)
    with pytest.raises(RuntimeError, match=REFUSED):
        GROWTHS[growth](t)
    assert t.tolist() == [0, 1, 2, 3] and t.untyped_storage().nbytes() == 16
    del seen


@pytest.mark.parametrize("buffer", BUFFERS)
def test_the_buffer_ends(buffer):
    """Unlike PyTorch, where a storage that NumPy has seen is never resizable again."""
    t = torch.arange(4.0)
    seen = BUFFERS[buffer](t)
    assert not t.untyped_storage().resizable()
    again = BUFFERS[buffer](t)
    del seen
    assert not t.untyped_storage().resizable()
    del again
    assert t.untyped_storage().resizable()
    assert t.resize_(1000)[:4].tolist() == [0, 1, 2, 3]


def test_what_needs_no_more_memory_is_allowed():
    t = torch.arange(6.0)
    seen = t.numpy()
    assert t.resize_(2).tolist() == [0, 1]
    assert t.resize_(2, 3).tolist() == [[0, 1, 2], [3, 4, 5]]
    torch.add(torch.ones(3), 1, out=t.resize_(0))
    assert seen.tolist() == [2, 2, 2, 3, 4, 5]


@pytest.mark.parametrize(
    "rebind",
    [
        lambda t: t.set_(torch.zeros(1000)),
        lambda t: t.set_(),
        lambda t: setattr(t, "data", torch.zeros(1000)),
        lambda t: t.set_(torch.zeros(1000).untyped_storage(), 0, (1000,), (1,)),
    ],
)
@pytest.mark.parametrize(
    "buffer", ["numpy", "memoryview", "frombuffer", "from_numpy", "own_dlpack"]
)
def test_a_tensor_over_other_memory_leaves_the_buffer_as_it_is(buffer, rebind):
    t = torch.arange(4.0) + 0
    seen = BUFFERS[buffer](t)
    address = t.data_ptr()
    rebind(t)
    others = [torch.full((4,), 7.0) for _ in range(50)]  # would get the memory if it were free
    assert all(o.data_ptr() != address for o in others)
    assert [float(v) for v in seen] == [0, 1, 2, 3]
    np.asarray(seen)[:] = 5
    assert all(o.tolist() == [7] * 4 for o in others)
    t.resize_(10**6)  # other memory, which nothing else sees


def test_the_memory_outlives_the_tensor():
    t = torch.arange(4.0) + 0
    seen, lines = t.numpy(), memoryview(t)
    gone = weakref.ref(t)
    del t
    assert gone() is not None  # an array refers to the tensor, as in PyTorch
    others = [torch.full((4,), 7.0) for _ in range(50)]
    assert seen.tolist() == lines.tolist() == [0, 1, 2, 3]
    seen[1] = 9
    assert lines.tolist() == [0, 9, 2, 3] and others[0].tolist() == [7] * 4
    del seen, lines
    assert gone() is None


def test_tensors_over_foreign_memory_are_never_resizable():
    for t in (
        torch.from_numpy(np.zeros(4, dtype=np.float32)),
        torch.frombuffer(bytearray(16), dtype=torch.float32),
        torch.from_dlpack(np.zeros(4, dtype=np.float32)),
        torch.as_tensor(np.zeros(4, dtype=np.float32)),
    ):
        for growth in GROWTHS.values():
            with pytest.raises(RuntimeError, match=REFUSED):
                growth(t)
        assert t.tolist() == [0] * 4 and t.resize_(2).tolist() == [0, 0]


def test_data_ptr_does_not_forbid_resizing():
    """Views follow, as they do in PyTorch: the storage grows, not a copy of it."""
    t = torch.arange(4.0)
    view = t[1:3]
    t.data_ptr()
    t.resize_(1000)
    t[1] = 9
    assert view.tolist() == [9, 2] and t[:4].tolist() == [0, 9, 2, 3]
    assert view.untyped_storage().nbytes() == 4000 == t.untyped_storage().nbytes()
    assert view.untyped_storage() is t.untyped_storage()


def test_a_failed_out_changes_nothing():
    out = torch.arange(4.0)
    seen = out.numpy()
    a = torch.ones(1000)
    with pytest.raises(RuntimeError, match=REFUSED):
        torch.mul(a, 2, out=out)
    assert out.shape == (4,) and seen.tolist() == [0, 1, 2, 3]
    (out * 2).add_(1)
    assert torch.mul(a[:4], 2, out=out).tolist() == [2] * 4 == seen.tolist()


def test_pending_work_and_buffers():
    """A buffer made of a result that is still deferred, whose views have deferred writes."""
    for _ in range(20):
        t = torch.ones(5000) * 3
        view = t[::2]
        view += 1
        seen = t.numpy()
        with pytest.raises(RuntimeError, match=REFUSED):
            view.resize_(100000)
        t += 1
        assert seen[:4].tolist() == [5, 4, 5, 4]
        del seen
        late = t * 2  # deferred: reads the memory that the next line replaces
        t.resize_(100000)
        assert t[:2].tolist() == [5, 4] and late[:2].tolist() == [10, 8]


def test_a_buffer_released_in_another_thread():
    import threading

    t = torch.arange(4.0)
    held = [t.numpy(), t.__dlpack__(), memoryview(t)]
    thread = threading.Thread(target=held.clear)
    thread.start()
    thread.join(20)
    assert t.resize_(100).shape == (100,)


def test_exports_of_a_device(accelerator):
    t = torch.arange(4.0, device=accelerator)
    seen = torch.from_dlpack(t)
    with pytest.raises(RuntimeError, match=REFUSED):
        t.resize_(1000)
    with pytest.raises(RuntimeError, match=REFUSED):
        seen.resize_(1000)
    del seen
    assert t.resize_(1000)[:4].tolist() == [0, 1, 2, 3]


def test_pinned_memory_grows_after_its_copies(accelerator):
    """The device reads the old memory until the copies are done."""
    n = 1 << 20
    for i in range(5):
        x = torch.full((n,), float(i)).pin_memory()
        y = x.to(accelerator, non_blocking=True)
        x.resize_(2 * n)
        others = [torch.full((n,), -1.0).pin_memory() for _ in range(3)]
        assert x.is_pinned() and x[:n].eq(i).all() and (y == i).all().item()
        del others


PROGRAM = """
import tessera as torch
t = torch.ones(1000)
a = t.numpy()
try:
    t.resize_(10**6)
except RuntimeError as e:
    print(e)
others = [torch.full((1000,), float(i)) for i in range(100)]
a[:] = -1
print(all(o[0] == i and o[-1] == i for i, o in enumerate(others)), t[0].item())
"""


def test_other_tensors_keep_their_memory():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:2] == [REFUSED, "True -1.0"]
