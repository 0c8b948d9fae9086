"""Weak references to tensors that C++ holds: .grad, saved tensors, buffers of an optimizer."""

import gc
import random
import subprocess
import sys
import threading
import weakref

import pytest

import tessera as torch


class Sub(torch.Tensor):
    pass


class Counted(torch.Tensor):
    """Counts the calls of __del__ by the number that counted() gives."""

    deleted = {}

    def __del__(self):
        key = getattr(self, "number", None)
        Counted.deleted[key] = Counted.deleted.get(key, 0) + 1


def counted(value):
    t = torch.tensor([value]).as_subclass(Counted)
    t.number = value
    return t


def tagged(value):
    t = torch.tensor([value])
    t.tag = value
    return t


# Kinds of tensors of one element.
KINDS = {
    "plain": lambda v: torch.tensor([v]),
    "attribute": tagged,
    "parameter": lambda v: torch.nn.Parameter(torch.tensor([v])),
    "subclass": lambda v: torch.tensor([v]).as_subclass(Sub),
    "del": counted,
}
each_kind = pytest.mark.parametrize("kind", KINDS)


def owner_of(x):
    """A tensor through which C++ holds x."""
    owner = torch.zeros(1)
    owner.grad = x
    return owner


@each_kind
def test_revived_tensors_are_whole(kind):
    x = KINDS[kind](3.0)
    w = weakref.ref(x)
    owner = owner_of(x)
    del x
    x = w()
    del owner
    gc.collect()
    assert x is w() and x.sigmoid().shape == (1,) and x.item() == 3
    others = [torch.full((1,), 7.0) for _ in range(50)]
    x.data += 1
    assert x.item() == 4 and all(o.item() == 7 for o in others)
    del x
    assert w() is None


def test_revived_before_its_list_is_cleared():
    held = [torch.ones(3)]
    held[0].grad = torch.ones(3) * 2
    g = weakref.ref(held[0].grad)()
    held.clear()
    assert g.tolist() == [2, 2, 2] and "undefined" not in str(g)


@each_kind
def test_callbacks_come_once_at_the_end(kind):
    Counted.deleted.clear()
    calls = []
    x = KINDS[kind](5.0)
    w = weakref.ref(x, lambda r: calls.append(r))
    owner = owner_of(x)
    for _ in range(5):
        del x
        gc.collect()
        assert not calls and w() is owner.grad and not Counted.deleted
        x = w() if _ % 2 else owner.grad
    del owner
    assert not calls and x.item() == 5
    del x
    assert calls == [w] and w() is None
    assert Counted.deleted == ({5: 1} if kind == "del" else {})


@each_kind
def test_dropped_by_the_owner_alone(kind):
    """No Python reference is left when C++ drops the last one."""
    Counted.deleted.clear()
    calls = []
    x = KINDS[kind](5.0)
    w = weakref.ref(x, calls.append)
    owner = owner_of(x)
    del x
    assert w().item() == 5  # revived for a moment
    owner.grad = None
    assert calls == [w] and w() is None
    assert Counted.deleted == ({5: 1} if kind == "del" else {})


@each_kind
def test_saved_by_a_graph(kind):
    x = KINDS[kind](2.0).requires_grad_()
    w = weakref.ref(x)
    y = (x * 3).sum()
    del x
    gc.collect()
    x = w()
    y.backward()
    del y
    assert x.item() == 2 and x.grad.item() == 3
    del x
    gc.collect()
    assert w() is None


def test_attributes_come_back():
    x = torch.nn.Parameter(torch.ones(2))
    x.note = ["kept"]
    x.register_hook(lambda g: g)
    w = weakref.ref(x)
    owner = torch.zeros(2)
    owner.grad = x
    note = x.note
    del x
    gc.collect()
    x = w()
    owner.grad = None
    assert x.note is note and type(x) is torch.nn.Parameter and x.requires_grad
    x.__class__ = Counted2
    del x
    assert w() is None and Counted2.deleted == 1


class Counted2(torch.nn.Parameter):
    deleted = 0

    def __del__(self):
        Counted2.deleted += 1


def test_del_sees_the_tensor_and_runs_once():
    seen = []

    class Kept(torch.Tensor):
        def __del__(self):
            seen.append(self.tolist())
            kept.append(self)  # comes back to life

    kept = []
    x = torch.ones(2).as_subclass(Kept)
    owner = torch.zeros(2)
    owner.grad = x
    del x
    gc.collect()
    assert not seen
    del owner
    assert seen == [[1, 1]] and kept[0].tolist() == [1, 1]
    kept.clear()
    assert seen == [[1, 1]]


def test_errors_in_del_are_not_raised(capsys):
    class Bad(torch.Tensor):
        def __del__(self):
            raise ValueError("from __del__")

    hook, sys.unraisablehook = sys.unraisablehook, lambda u: errors.append(str(u.exc_value))
    errors = []
    try:
        x = torch.ones(1).as_subclass(Bad)
        owner = owner_of(x)
        del x
        del owner
    finally:
        sys.unraisablehook = hook
    assert errors == ["from __del__"]


def test_super_del():
    class Calls(torch.Tensor):
        count = 0

        def __del__(self):
            Calls.count += 1
            super().__del__()

    torch.ones(1).as_subclass(Calls)
    assert Calls.count == 1
    x = torch.ones(1).as_subclass(Calls)
    owner = owner_of(x)
    x.__del__()  # an ordinary call while it lives
    w = weakref.ref(x)
    del x
    assert owner.grad is w()
    del owner
    assert w() is None


def test_weak_dictionaries():
    values, keys = weakref.WeakValueDictionary(), weakref.WeakKeyDictionary()
    owners = []
    for i in range(20):
        x = list(KINDS.values())[i % 5](float(i))
        values[i] = x
        keys[Key(x)] = i
        owners.append(owner_of(x))
        del x
    gc.collect()
    assert sorted(values) == list(range(20)) and len(keys) == 0
    some = {i: values[i] for i in range(0, 20, 3)}
    owners.clear()
    assert sorted(values) == sorted(some)
    assert all(x.item() == i for i, x in some.items())
    some.clear()
    gc.collect()
    assert not values


class Key:
    def __init__(self, tensor):
        self.tensor = tensor


def test_a_dictionary_by_identity():
    """As in WeakTensorKeyDictionary: weak references as keys, removed by their callbacks."""
    table = {}

    def put(x, value):
        number = id(x)
        table[number] = (weakref.ref(x, lambda _: table.pop(number)), value)

    owners = []
    for i in range(10):
        x = torch.nn.Parameter(torch.tensor([float(i)]))
        put(x, i)
        owners.append(owner_of(x))
    del x
    gc.collect()
    for owner in owners:
        assert table[id(owner.grad)][1] == owner.grad.item()
    held = [ref() for ref, _ in table.values()][:4]
    del owner
    owners.clear()
    assert len(table) == 4 and sorted(v for _, v in table.values()) == [0, 1, 2, 3]
    assert [x.item() for x in held] == [0, 1, 2, 3]
    held.clear()
    assert not table


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "plain"])
def test_cycles(kind):
    Counted.deleted.clear()
    x = KINDS[kind](4.0)
    x.me = x
    x.note = "kept"
    owner = owner_of(x)
    del x
    gc.collect()
    again = owner.grad
    assert again.item() == 4 and again.note == "kept" and again.me is again
    assert not Counted.deleted
    w = weakref.ref(again)
    del owner, again
    assert w() is not None  # until the collector comes
    gc.collect()
    assert w() is None and Counted.deleted == ({4: 1} if kind == "del" else {})


def test_a_callback_that_takes_the_owner():
    """The callback of the dying object asks C++ for tensors."""
    found = []
    x = torch.nn.Parameter(torch.ones(1))
    owner = owner_of(x)
    w = weakref.ref(x, lambda _: found.append(owner.grad))
    del x
    owner.grad = None
    assert found == [None] and w() is None


def test_randomly_against_a_model():
    rng = random.Random(0)
    for _ in range(12):
        play(rng, 150)
        gc.collect()


class Life:
    """State of one tensor in the model."""

    def __init__(self, value, kind, x):
        self.value, self.kind, self.type = value, kind, type(x)
        self.calls = []
        self.weak = weakref.ref(x, self.calls.append)
        self.holders = set()  # names of Python variables and C++ owners


def play(rng, steps):
    Counted.deleted.clear()
    lives, variables, owners = [], {}, {}

    def holder(place, name):
        return next((x for x in lives if (place, name) in x.holders), None)

    def forget(place, name):
        if life := holder(place, name):
            life.holders.remove((place, name))

    for step in range(steps):
        move = rng.randrange(9)
        name = rng.randrange(6)
        life = rng.choice(lives) if lives else None
        if move == 0:
            kind = rng.choice(list(KINDS))
            value = float(len(lives) + 1)
            x = KINDS[kind](value)
            forget("python", name)
            variables[name] = x
            lives.append(Life(value, kind, x))
            lives[-1].holders.add(("python", name))
            del x
        elif move == 1 and (life := holder("python", name)):
            to = rng.randrange(6)
            forget("c++", to)
            owners[to] = owner_of(variables[name])
            life.holders.add(("c++", to))
        elif move == 2 and (life := holder("python", name)):
            to = rng.randrange(6)
            forget("c++", to)
            owners[to] = variables[name].requires_grad_() * 2  # a leaf of this graph
            life.holders.add(("c++", to))
        elif move == 3:
            forget("python", name)
            variables.pop(name, None)
        elif move == 4:
            forget("c++", name)
            owners.pop(name, None)
        elif move == 5 and life and life.holders:
            forget("python", name)
            variables[name] = life.weak()
            life.holders.add(("python", name))
        elif move == 6 and (life := holder("c++", name)) and owners[name].grad_fn is None:
            to = rng.randrange(6)
            forget("python", to)
            variables[to] = owners[name].grad
            assert variables[to] is life.weak()
            life.holders.add(("python", to))
        elif move == 7 and (life := holder("python", name)):
            variables[name].extra = life.value
        elif move == 8 and rng.random() < 0.1:
            gc.collect()
        for x in lives:
            found = x.weak()
            assert (found is not None) == bool(x.holders), (step, move, x.kind, x.holders)
            assert len(x.calls) == (0 if x.holders else 1)
            if found is not None:
                assert found.item() == x.value and type(found) is x.type
                assert getattr(found, "extra", x.value) == x.value
            deleted = Counted.deleted.get(x.value, 0)
            assert deleted == (x.kind == "del" and not x.holders)
            del found
    variables.clear()
    owners.clear()
    assert all(x.weak() is None and len(x.calls) == 1 for x in lives)


THREADS = """
import faulthandler, gc, sys, threading, time, weakref
faulthandler.enable()
sys.setswitchinterval(1e-5)
import tessera as torch

stop = time.monotonic() + 4
shared = []
errors = []
hits = []

class Sub(torch.Tensor):
    pass

def work():
    leaf = torch.ones(64, requires_grad=True)
    n = 0
    while time.monotonic() < stop:
        n += 1
        x = torch.full((64,), 3.0).as_subclass(Sub)
        x.tag = n
        owner = torch.zeros(64)
        owner.grad = x
        y = (leaf * x.as_subclass(torch.Tensor)).sum()
        w = weakref.ref(x)
        shared.append((w, n))
        del x
        y.backward()
        if n % 3:
            owner.grad = None
        else:
            owner.grad = owner.grad  # to Python and back
        del owner, y

def revive():
    while time.monotonic() < stop:
        try:
            w, n = shared.pop()
        except IndexError:
            time.sleep(0)
            continue
        x = w()
        if x is None:
            continue
        for _ in range(20):
            hits.append(n)
            if not (x.tag == n and x.sum().item() == 192):
                errors.append((n, x))
        del x

def collect():
    while time.monotonic() < stop:
        gc.collect(0)
        time.sleep(0.002)

threads = [threading.Thread(target=f) for f in (work, work, revive, revive, collect)]
for t in threads: t.start()
for t in threads: t.join()
print(errors or ("fine" if hits else "no tensor was revived"))
"""


def test_threads():
    done = subprocess.run(
        [sys.executable, "-c", THREADS], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0 and done.stdout.strip() == "fine", done.stdout + done.stderr


def test_threads_of_one_process():
    """Tensors that die in a thread other than the one that made them."""
    refs = []

    def make(out):
        x = torch.nn.Parameter(torch.ones(1))
        refs.append(weakref.ref(x))
        out.append(owner_of(x))

    for _ in range(50):
        out = []
        for body in (lambda: make(out), out.clear):
            thread = threading.Thread(target=body)
            thread.start()
            thread.join(20)
    assert all(r() is None for r in refs)


EXIT = """
import weakref
import tessera as torch
x = torch.nn.Parameter(torch.ones(3))
x.note = 1
keep = weakref.ref(x)
owner = torch.zeros(3)
owner.grad = x
torch.kept_until_exit = owner
del x, owner
print(keep().tolist())
"""


def test_exit_with_a_tensor_that_c_plus_plus_holds():
    done = subprocess.run([sys.executable, "-c", EXIT], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout == "[1.0, 1.0, 1.0]\n", done.stderr
