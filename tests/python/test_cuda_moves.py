"""Moving tensors, modules and optimizers between devices; pinned memory; what is said when devices
differ or a move is lost."""

import copy
import threading
import warnings
from collections import namedtuple

import pytest

import tessera as torch
from tessera import nn
from tessera.utils.data import DataLoader, TensorDataset

# ---- moves -------------------------------------------------------------------------------------


def test_tensors(accelerator):
    x = torch.arange(6.0).view(2, 3)
    for y in (
        x.to("cuda"),
        x.to(torch.device("cuda:0")),
        x.to(0),
        x.cuda(),
        x.cuda(0),
        x.cuda("cuda:0", non_blocking=True),
        x.to("cuda", non_blocking=True),
        x.to(torch.zeros(1, device="cuda")),
        x.to(device="cuda", copy=True),
        x.type(torch.cuda.FloatTensor),
        x.type("torch.cuda.FloatTensor"),
    ):
        assert y.is_cuda and y.get_device() == 0 and y.dtype == torch.float32
        assert y.cpu().tolist() == x.tolist() and y.cpu().get_device() == -1
    assert x.to("cuda", torch.float64).dtype == torch.float64
    assert x.to("cuda").t().to("cpu").stride() == (1, 3)
    assert x.to("cpu") is x and x.cpu() is x
    y = x.cuda()
    assert y.cuda() is y and y.to("cuda") is y and y.to("cuda:0") is y
    with pytest.raises(RuntimeError, match="must be cuda device"):
        x.cuda("cpu")


def test_gradients_cross_devices(accelerator):
    x = torch.ones(3, requires_grad=True)
    (x.cuda() * 2).sum().backward()
    assert x.grad.device.type == "cpu" and x.grad.tolist() == [2, 2, 2]


def test_two_devices(accelerator):
    if torch.cuda.device_count() < 2:
        pytest.skip("one device")
    x = torch.arange(4.0, device="cuda:1")
    y = x.to("cuda:0", non_blocking=True)
    assert y.get_device() == 0 and y.tolist() == [0, 1, 2, 3]
    y.copy_(x * 2)
    assert y.tolist() == [0, 2, 4, 6]


def test_copies_between_devices_are_in_order(accelerator):
    if torch.cuda.device_count() < 2:
        pytest.skip("one device")
    x = torch.zeros(1 << 18, device="cuda:0")
    side = torch.cuda.Stream("cuda:1")
    for i in range(20):
        x += 1
        y = x.to("cuda:1")
        x += 1  # after the copy has read it
        z = x.clone()
        del z
        with torch.cuda.stream(side):
            side.wait_stream(torch.cuda.default_stream(1))
            back = y.to("cuda:0")
        torch.cuda.default_stream(0).wait_stream(side)
        assert back.min().item() == back.max().item() == 2 * i + 1


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Linear(3, 2))
        self.register_buffer("scale", torch.ones(2))

    def forward(self, x):
        return self.layers(x) * self.scale


def test_modules(accelerator):
    net = Net()
    parameters = list(net.parameters())
    assert net.to("cuda") is net and net.cuda(0) is net
    assert all(p is q and p.is_cuda for p, q in zip(net.parameters(), parameters))
    assert all(b.is_cuda for b in net.buffers())
    net(torch.ones(2, 4, device="cuda")).sum().backward()
    assert net.layers[0].weight.grad.is_cuda
    net.cpu()
    assert not net.layers[0].weight.grad.is_cuda and not net.scale.is_cuda
    net.to("cuda", torch.float64)
    assert (
        net.scale.dtype == torch.float64 and net.layers[1].num_batches_tracked.dtype == torch.int64
    )
    empty = Net().to("meta").to_empty(device="cuda")
    assert all(p.is_cuda for p in empty.parameters()) and empty.scale.is_cuda


def test_optimizer_state_follows_parameters(accelerator):
    def step(net, optimizer, device):
        optimizer.zero_grad()
        net(torch.ones(2, 4, device=device)).sum().backward()
        optimizer.step()

    for make in (
        lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
        lambda p: torch.optim.Adam(p, lr=0.1),
    ):
        torch.manual_seed(0)
        a = nn.Linear(4, 2)
        one = make(a.parameters())
        step(a, one, "cpu")
        b = nn.Linear(4, 2).cuda()
        b.load_state_dict(a.state_dict())
        two = make(b.parameters())
        two.load_state_dict(copy.deepcopy(one.state_dict()))
        for state in two.state.values():
            for name, value in state.items():
                if name != "step" and isinstance(value, torch.Tensor):
                    assert value.is_cuda, name
        step(a, one, "cpu")
        step(b, two, "cuda")
        assert torch.allclose(a.weight, b.weight.cpu(), atol=1e-6)


def test_to_numpy_says_cpu(accelerator):
    for ask in (lambda t: t.numpy(), lambda t: t.__array__()):
        with pytest.raises(TypeError, match=r"can't convert cuda:0.*Use Tensor.cpu\(\)"):
            ask(torch.ones(2, device="cuda"))


# ---- pinned memory -----------------------------------------------------------------------------


def test_pinned_tensors(accelerator):
    x = torch.arange(6.0).view(2, 3)
    assert not x.is_pinned()
    p = x.pin_memory()
    assert p.is_pinned() and p is not x and torch.equal(p, x) and p.device == x.device
    assert p.pin_memory() is p and p[0].is_pinned() and p.view(-1).is_pinned()
    assert not p.clone().is_pinned() and not p.cuda().is_pinned()
    assert x.t().pin_memory().stride() == x.t().stride()
    assert torch.equal(x[:, ::2].pin_memory(), x[:, ::2])
    assert torch.empty(0).pin_memory().numel() == 0
    assert p.untyped_storage().is_pinned() and not x.untyped_storage().is_pinned()
    with pytest.raises(RuntimeError, match="only dense CPU tensors can be pinned"):
        x.cuda().pin_memory()


def test_factories_pin(accelerator):
    for t in (
        torch.zeros(3, pin_memory=True),
        torch.empty(3, pin_memory=True),
        torch.ones(3, pin_memory=True),
        torch.full((3,), 2.0, pin_memory=True),
        torch.rand(3, pin_memory=True),
        torch.arange(3, pin_memory=True),
        torch.tensor([1.0], pin_memory=True),
        torch.zeros_like(torch.ones(2), pin_memory=True),
    ):
        assert t.is_pinned()
    with pytest.raises(RuntimeError, match="Only dense CPU tensors can be pinned"):
        torch.zeros(1, device="cuda", pin_memory=True)


def test_pinning_without_a_device():
    if torch.cuda.is_available():
        pytest.skip("there is one")
    assert not torch.ones(1).is_pinned()
    with pytest.raises(RuntimeError, match="no|none"):
        torch.ones(1).pin_memory()


def test_copies_from_pinned_memory(accelerator):
    # The source goes at once, and its memory is used again: the device still reads what it was.
    for round in range(20):
        x = torch.full((1 << 16,), float(round)).pin_memory()
        y = x.to("cuda", non_blocking=True)
        del x
        z = torch.full((1 << 16,), -1.0).pin_memory()
        assert y.min().item() == y.max().item() == round
        del z
    x = torch.zeros(1 << 16).pin_memory()
    y = x.cuda()  # blocking: the source may be written at once
    x.fill_(5)
    assert y.max().item() == 0


Pair = namedtuple("Pair", "x y")


class Own:
    def __init__(self, x):
        self.x = x

    def pin_memory(self):
        return Own(self.x.pin_memory())


def test_loader_pins(accelerator):
    data = TensorDataset(torch.arange(12.0).view(6, 2), torch.arange(6))
    for workers in (0, 2):
        loader = DataLoader(data, batch_size=2, pin_memory=True, num_workers=workers)
        batches = list(loader)
        assert len(batches) == 3 and all(t.is_pinned() for batch in batches for t in batch)
        assert batches[1][1].tolist() == [2, 3]

    def nested(samples):
        x = torch.stack([s[0] for s in samples])
        return {"a": [x, (x, "text")], "pair": Pair(x, 3), "own": Own(x), "number": 1.5}

    for batch in DataLoader(data, batch_size=3, collate_fn=nested, pin_memory=True):
        assert batch["a"][0].is_pinned() and batch["a"][1][0].is_pinned()
        assert batch["a"][1][1] == "text" and batch["number"] == 1.5
        assert type(batch["pair"]) is Pair and batch["pair"].x.is_pinned()
        assert batch["own"].x.is_pinned()
    DataLoader(data, pin_memory=True, pin_memory_device="cuda")
    with pytest.raises(ValueError, match="Expected a cuda device"):
        DataLoader(data, pin_memory=True, pin_memory_device="cpu")


def test_other_threads_run_while_memory_is_pinned(accelerator):
    batch = [torch.zeros(1 << 22) for _ in range(4)]
    ticks, done = [0], threading.Event()

    def tick():
        while not done.is_set():
            ticks[0] += 1

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        import sys

        before_switch = sys.getswitchinterval()
        sys.setswitchinterval(0.5)  # only who gives the lock away lets others run
        try:
            start = ticks[0]
            torch._C._pin_tensors(batch)
            seen = ticks[0] - start
        finally:
            sys.setswitchinterval(before_switch)
    finally:
        done.set()
        thread.join()
    assert seen > 0


# ---- two devices in one operator ---------------------------------------------------------------


def mismatch(call):
    with pytest.raises(RuntimeError) as info:
        call()
    text = str(info.value)
    assert text.startswith("Expected all tensors to be on the same device, but found at least two")
    return text


def test_arguments_are_named(accelerator):
    data, weight = torch.ones(2, 3), torch.ones(3, 4, device="cuda")
    text = mismatch(lambda: torch.matmul(data, weight))
    assert "In matmul()" in text and "[2, 3] is on cpu" in text and "[3, 4] is on cuda:0" in text
    text = mismatch(lambda: torch.cat([weight, weight, data]))
    assert "'tensors[0]'" in text and "'tensors[2]'" in text
    text = mismatch(lambda: weight.add_(torch.ones(3, 4)))
    assert "In add()" in text


def test_variables_are_named(accelerator):
    images, model = torch.ones(2, 4), nn.Linear(4, 3).cuda()
    try:
        model(images)
    except RuntimeError as error:
        text = str(error)
    assert "'input' of shape [2, 4] is on cpu (variable 'images')" in text
    assert "(parameter 'weight' of Linear)" in text
    assert text.endswith("images = images.to('cuda:0')")


def test_parameters_are_named_by_their_path(accelerator):
    net, x = Net().cuda(), torch.ones(2, 4)
    try:
        net(x)
    except RuntimeError as error:
        text = str(error)
    assert "parameter 'layers.0.weight' of Net" in text and text.endswith("x = x.to('cuda:0')")


def test_a_model_left_on_the_cpu(accelerator):
    net, x = Net(), torch.ones(2, 4, device="cuda")
    try:
        net(x)
    except RuntimeError as error:
        text = str(error)
    assert "parameter 'layers.0.weight' of Net" in text
    assert text.endswith("net = net.to('cuda:0')")


def test_a_buffer_left_behind(accelerator):
    net = Net().cuda()
    net.scale = net.scale.cpu()
    text = mismatch(lambda: net(torch.ones(2, 4, device="cuda")))
    assert "buffer 'scale' of Net" in text and "In mul()" in text


def test_losses_name_what_was_called(accelerator):
    logits, target = torch.zeros(2, 3, device="cuda"), torch.tensor([0, 1])
    text = mismatch(lambda: nn.functional.cross_entropy(logits, target))
    assert "'target'" in text and "'input'" in text and "[2] is on cpu" in text


def test_an_optimizer_whose_state_stayed_behind(accelerator):
    net, x = nn.Linear(2, 2), torch.ones(1, 2)
    optimizer = torch.optim.Adam(net.parameters())
    net(x).sum().backward()
    optimizer.step()
    net.cuda()
    text = mismatch(optimizer.step)
    assert "Adam's state 'exp_avg'" in text and "In Adam.step()" in text
    assert "optimizer.load_state_dict(optimizer.state_dict())" in text
    optimizer.load_state_dict(optimizer.state_dict())
    optimizer.step()


def test_outputs_elsewhere(accelerator):
    for call in (
        lambda: torch.add(torch.zeros(3), 1, out=torch.zeros(3, device="cuda")),
        lambda: torch.add(torch.zeros(3, device="cuda"), 1, out=torch.zeros(3)),
        lambda: torch.matmul(torch.ones(2, 2), torch.ones(2, 2), out=torch.ones(2, 2).cuda()),
        lambda: torch.zeros(3).add_(torch.zeros(3, device="cuda")),
    ):
        mismatch(call)


def test_numbers_may_join(accelerator):
    x = torch.ones(2, device="cuda")
    assert (x * torch.tensor(2.0)).tolist() == [2, 2] and (torch.tensor(2.0) + x).is_cuda
    with pytest.raises(RuntimeError, match="two devices"):
        x + torch.ones(1)


# ---- moves that are lost -----------------------------------------------------------------------


def warnings_of(code):
    names = {"torch": torch, "x": torch.ones(2)}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        exec(compile(code, "<program>", "exec"), names)
    return [str(w.message) for w in caught]


def test_a_dropped_move_is_warned_about_once(accelerator):
    (text,) = warnings_of("for _ in range(3):\n    x.to('cuda')")
    assert "Tensor.to() is not used" in text and "x = x.to(...)" in text
    assert len(warnings_of("x.cuda()\nx.cuda(non_blocking=True)")) == 2
    (text,) = warnings_of("y = x.cuda()\ny.cpu()")
    assert "Tensor.cpu()" in text


@pytest.mark.parametrize(
    "code",
    [
        "y = x.to('cuda')",
        "x.to('cpu')",
        "x.to(torch.float64)",
        "print(x.to('cuda').device)",
        "x = [x.cuda() for _ in range(2)]",
        "x.to('cuda').sum()",
        "torch.nn.Linear(2, 2).to('cuda')",
        "def f(): return x.cuda()\nf()",
        "y = x.is_cuda or x.cuda()",
    ],
)
def test_moves_that_are_used(accelerator, code):
    assert warnings_of(code) == []


def test_copies_into_pinned_memory_arrive_before_anyone_looks(accelerator):
    """The device is slow, the program is not: each way of looking waits."""
    n = 1 << 20
    ways = {
        "item": lambda t: t[n - 1].item(),
        "sum": lambda t: t.sum().item() / n,
        "add": lambda t: (t + 1)[-1].item() - 1,
        "numpy": lambda t: t.numpy()[-1],
        "list": lambda t: t[-3:].tolist()[-1],
        "clone": lambda t: t.clone()[-1].item(),
        "to": lambda t: t.to(torch.float64)[-1].item(),
        "inplace": lambda t: t.mul_(1)[-1].item(),
        "write": lambda t: (t[: n // 2].fill_(9), t[-1].item())[1],
        "device": lambda t: t.to(accelerator)[-1].item(),
    }
    for name, look in ways.items():
        x = torch.ones(n, device=accelerator)
        for _ in range(20):
            x = x * 1.0 + 0.0
        x = x * 7
        p = torch.zeros(n).pin_memory()
        p.copy_(x, non_blocking=True)
        assert look(p) == 7, name


def test_pinned_memory_of_a_copy_under_way_is_not_used_again(accelerator):
    x = torch.full((1 << 20,), 3.0, device=accelerator)
    for _ in range(50):
        p = torch.empty(1 << 20, pin_memory=True)
        p.copy_(x, non_blocking=True)
        del p
        q = torch.full((1 << 20,), 5.0).pin_memory()
        torch.cuda.synchronize()
        assert (q == 5).all()
