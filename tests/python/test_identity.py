"""One Python object per tensor: attributes, subclasses and weak references survive."""

import copy
import gc
import sys
import weakref

import tessera as torch
from tessera import nn


class Tagged(torch.Tensor):
    pass


def holder():
    """A leaf whose gradient only C++ holds, and a function that gives the gradient."""
    x = torch.ones(3, requires_grad=True)
    (x * x).sum().backward()
    return x


def test_grad_is_one_object():
    x = holder()
    assert x.grad is x.grad
    before = id(x.grad)
    x.grad.note = "kept"
    gc.collect()
    assert x.grad.note == "kept"
    assert id(x.grad) == before


def test_attributes_survive_again_and_again():
    x = holder()
    x.grad.count = 0
    for i in range(5):
        assert x.grad.count == i
        x.grad.count += 1
        gc.collect()
    del x.grad.count
    assert not hasattr(x.grad, "count")


def test_weak_references_survive_and_end():
    x = holder()
    ended = []
    ref = weakref.ref(x.grad, lambda r: ended.append(1))
    gc.collect()
    assert ref() is x.grad
    assert ref() is x.grad
    x.grad = None
    gc.collect()
    assert ref() is None and ended == [1]


def test_subclass_survives():
    x = torch.ones(3, requires_grad=True)
    x.grad = torch.ones(3).as_subclass(Tagged)
    gc.collect()
    for _ in range(3):
        assert type(x.grad) is Tagged
    x.grad.note = 1
    assert x.grad.note == 1


def test_parameter_survives_in_the_graph():
    w = nn.Parameter(torch.ones(3))
    w.note = "mine"
    loss = (w * 2).sum()
    node = loss.grad_fn
    del w
    gc.collect()
    while node.next_functions:
        node = next(n for n, _ in node.next_functions if n is not None)
    assert type(node.variable) is nn.Parameter
    assert node.variable.note == "mine"
    assert node.variable is node.variable


def test_an_object_nobody_needs_goes():
    x = torch.ones(3)
    ref = weakref.ref(x)
    x.note = 1
    del x
    assert ref() is None


def test_what_the_tensor_owned_goes_with_it():
    x = holder()
    gone = []

    class Note:
        def __del__(self):
            gone.append(1)

    x.grad.note = Note()
    assert not gone
    x.grad = None
    gc.collect()
    assert gone == [1]


def test_cycles_are_collected():
    x = torch.ones(3)
    x.me = x
    ref = weakref.ref(x)
    del x
    gc.collect()
    assert ref() is None


def test_cycle_through_a_kept_object():
    x = holder()
    x.grad.me = x.grad
    gc.collect()
    gc.collect()
    assert x.grad.me is x.grad


def test_references_do_not_leak():
    a, b = torch.ones(4), torch.ones(4)
    for _ in range(100):
        a + b
        a.add_(b)
        torch.add(a, other=b, alpha=2)
        a.view(2, 2)
        a[1:]
    before = sys.getrefcount(a), sys.getrefcount(b), sys.getrefcount(torch.Tensor)
    for _ in range(1000):
        a + b
        a.add_(b)
        torch.add(a, other=b, alpha=2)
        a.view(2, 2)
        a[1:]
        try:
            a + torch.ones(3)
        except RuntimeError:
            pass
    assert before == (sys.getrefcount(a), sys.getrefcount(b), sys.getrefcount(torch.Tensor))


def test_plain_tensors_are_not_tracked_until_they_have_attributes():
    x = torch.ones(3)
    assert not gc.is_tracked(x)
    x.note = 1
    assert gc.is_tracked(x)


def test_hash_is_identity_and_eq_is_elementwise():
    x, y = torch.ones(2), torch.ones(2)
    assert len({x, y, x}) == 2
    assert (x == y).tolist() == [True, True]


def test_inplace_and_no_op_forms_return_the_object():
    x = torch.ones(2, 2)
    assert x.add_(1) is x
    assert x.contiguous() is x and x.to(torch.float32) is x and x.cpu() is x
    y = x
    y += 1
    assert y is x


def test_parameter():
    w = nn.Parameter(torch.ones(2))
    assert w.requires_grad and w.is_leaf and isinstance(w, torch.Tensor)
    assert type(w * 2) is torch.Tensor and type(w.detach()) is torch.Tensor
    assert not nn.Parameter(torch.ones(2), requires_grad=False).requires_grad
    assert repr(w) == "Parameter containing:\ntensor([1., 1.], requires_grad=True)"


def test_deepcopy():
    w = torch.ones(2, requires_grad=True)
    w.note = [1]
    (w * 3).sum().backward()
    other = copy.deepcopy(w)
    assert type(other) is torch.Tensor and other is not w and other.requires_grad
    assert other.note == [1] and other.note is not w.note
    assert other.grad.tolist() == [3.0, 3.0] and not other._is_same_storage(w)
    # As in PyTorch, a parameter's copy starts without gradient and attributes.
    w = nn.Parameter(torch.ones(2))
    w.note = [1]
    (w * 3).sum().backward()
    other = copy.deepcopy(w)
    assert type(other) is nn.Parameter and other.requires_grad and not other._is_same_storage(w)
    assert other.grad is None and not hasattr(other, "note")
    shared = copy.deepcopy([w, w])
    assert shared[0] is shared[1]


def test_data_shares_and_can_be_replaced():
    w = nn.Parameter(torch.ones(2))
    assert w.data._is_same_storage(w) and not w.data.requires_grad
    w.data = torch.zeros(3)
    assert w.shape == (3,) and w.requires_grad
    w.data.fill_(5)
    assert w.tolist() == [5.0] * 3
