"""nn.DataParallel and the functions it is made of, over two devices."""

import threading
from collections import namedtuple

import pytest

import tessera as torch
from tessera import nn
from tessera.nn import parallel

Pair = namedtuple("Pair", "a b")


@pytest.fixture
def two(accelerator):
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two cuda devices")
    torch.manual_seed(0)
    return [0, 1]


def cuda(i):
    return torch.device("cuda", i)


def test_scatter_of_nested_inputs(two):
    x = torch.arange(10.0).view(5, 2)
    given = {"x": x, "more": [x * 2, "text", Pair(x, 3)], "n": 7, "none": None}
    first, second = parallel.scatter(given, two)
    assert first["x"].device == cuda(0) and second["x"].device == cuda(1)
    assert first["x"].tolist() == x[:3].tolist() and second["x"].tolist() == x[3:].tolist()
    assert first["more"][0].tolist() == (x[:3] * 2).tolist() and first["more"][1] == "text"
    assert isinstance(second["more"][2], Pair) and second["more"][2].b == 3
    assert second["more"][2].a.tolist() == x[3:].tolist() and first["n"] == 7
    assert first["none"] is None


def test_parts_are_even(two):
    sizes = lambda n, k: [len(p) for p in parallel.scatter(torch.zeros(n), [0, 1] * (k // 2))]
    assert sizes(5, 4) == [2, 1, 1, 1]  # PyTorch's chunks are 2, 2, 1, and a device is idle
    assert sizes(8, 4) == [2, 2, 2, 2] and sizes(3, 4) == [1, 1, 1] and sizes(7, 2) == [4, 3]
    columns = parallel.scatter(torch.zeros(2, 6), two, dim=1)
    assert [tuple(c.shape) for c in columns] == [(2, 3), (2, 3)]


def test_gather_goes_back_where_parts_came_from(two):
    a = torch.ones(2, 3, device=cuda(0), requires_grad=True)
    b = torch.ones(1, 3, device=cuda(1), requires_grad=True)
    whole = parallel.gather([{"x": a, "y": [a]}, {"x": b, "y": [b]}], 1)
    assert whole["x"].device == cuda(1) and whole["x"].shape == (3, 3)
    (whole["x"] * torch.arange(9.0, device=cuda(1)).view(3, 3)).sum().backward()
    assert a.grad.device == cuda(0) and a.grad.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert b.grad.device == cuda(1) and b.grad.tolist() == [[6, 7, 8]]
    assert parallel.gather([a, b], -1).device.type == "cpu"
    with pytest.warns(UserWarning, match="unsqueeze and return a vector"):
        assert parallel.gather([a.sum(), b.sum()], 0).tolist() == [6, 3]
    with pytest.raises(RuntimeError, match="do not fit together"):
        parallel.gather([a, b.double()], 0)
    with pytest.raises(TypeError, match="cannot gather"):
        parallel.gather([3, 4], 0)


def test_gather_needs_no_second_copy(two):
    parts = [torch.ones(1 << 18, device=cuda(i)) for i in two]  # a MiB each
    torch.cuda.synchronize(0)
    torch.cuda.reset_peak_memory_stats(0)
    before = torch.cuda.memory_allocated(0)
    whole = parallel.gather(parts, 0)
    torch.cuda.synchronize(0)
    assert whole.numel() == 1 << 19
    assert torch.cuda.max_memory_allocated(0) - before == 2 << 20


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.GELU(), nn.Dropout(0.0))
        self.rnn = nn.GRU(8, 4, batch_first=True)
        self.tied = self.body[0]
        self.scales = nn.ParameterList([nn.Parameter(torch.ones(4)), nn.Parameter(torch.zeros(4))])

    def forward(self, x, *, factor=1.0):
        self.seen = threading.current_thread().name
        h = self.body(x) * factor
        out, _ = self.rnn(h.unsqueeze(1))
        return {"out": out.squeeze(1) * self.scales[0] + self.scales[1], "device": x.new_ones(1)}


def test_a_step_is_that_of_one_device(two):
    net = Net().cuda()
    net.eval()  # batch statistics are those of a part
    x = torch.randn(7, 3)
    weights = torch.randn(7, 4, device=cuda(0))
    wanted = net(x.cuda(), factor=2.0)
    (wanted["out"] * weights).sum().backward()
    grads = {n: p.grad.clone() for n, p in net.named_parameters()}
    net.zero_grad()
    model = nn.DataParallel(net)
    assert model.device_ids == two and model.output_device == 0
    got = model(x, factor=2.0)
    torch.testing.assert_close(got["out"], wanted["out"])
    assert got["device"].shape == (2,)  # one of each replica
    (got["out"] * weights).sum().backward()
    for name, p in net.named_parameters():
        assert p.grad.device == cuda(0)
        torch.testing.assert_close(p.grad, grads[name])
    assert list(model.state_dict()) == ["module." + n for n in net.state_dict()]
    with torch.no_grad():
        assert not model(x)["out"].requires_grad
    assert nn.DataParallel(net, output_device=1)(x)["out"].device == cuda(1)
    assert nn.DataParallel(net, output_device=1)(x[:1])["out"].device == cuda(1)
    one = parallel.data_parallel(net, x, two, module_kwargs={"factor": 2.0})
    torch.testing.assert_close(one["out"], wanted["out"])


def test_inputs_get_their_gradients(two):
    x = torch.randn(5, 3, device=cuda(0), requires_grad=True)
    nn.DataParallel(nn.Linear(3, 2, bias=False).cuda())(x).sum().backward()
    assert x.grad.shape == (5, 3) and bool((x.grad == x.grad[0]).all())


def test_buffers_of_the_first_device_are_kept(two):
    net = nn.BatchNorm1d(3).cuda()
    x = torch.randn(8, 3)
    nn.DataParallel(net)(x)
    torch.testing.assert_close(net.running_mean.cpu(), 0.1 * x[:4].mean(0))
    assert net.num_batches_tracked.item() == 1


def test_replicas(two):
    net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)).cuda()
    first, second = parallel.replicate(net, two)
    assert type(second) is nn.Sequential and second[0] is not net[0]
    assert second[0].weight.device == cuda(1) and not second[0].weight.is_leaf
    assert list(second.parameters()) == [] and second[1].running_mean.device == cuda(1)
    assert first[1].running_mean.data_ptr() == net[1].running_mean.data_ptr()
    alone = parallel.replicate(net, two, detach=True)[1]
    assert not alone[0].weight.requires_grad


def test_each_replica_has_a_thread_and_the_callers_modes(two):
    seen = {}

    class Look(nn.Module):
        def forward(self, x):
            seen[x.device.index] = (
                threading.current_thread(),
                torch.cuda.current_device(),
                torch.is_grad_enabled(),
                (x @ x.T).dtype,
            )
            return x

    model = nn.DataParallel(Look())
    with torch.no_grad(), torch.autocast("cuda", dtype=torch.bfloat16):
        model(torch.ones(4, 3))
    assert seen[0][0] != seen[1][0]
    assert [seen[i][1:] for i in two] == [(i, False, torch.bfloat16) for i in two]


def test_errors_name_the_replica(two):
    class Fails(nn.Module):
        def forward(self, x):
            if x.device.index == 1:
                raise KeyError("not there")
            return x

    with pytest.raises(KeyError, match="KeyError in replica 1 on device cuda:1(.|\n)*Original"):
        nn.DataParallel(Fails())(torch.ones(4))
    with pytest.raises(RuntimeError, match="replica 0 on device cuda:0(.|\n)*shape"):
        nn.DataParallel(nn.Linear(3, 2).cuda())(torch.ones(4, 5))


def test_a_loop_of_training(two):
    torch.manual_seed(0)
    model = nn.DataParallel(nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1)).cuda())
    x = torch.randn(64, 4)
    y = (x[:, :1] * x[:, 1:2]).cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    losses = []
    for _ in range(40):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]


def test_comm(two):
    from tessera.nn.parallel import comm

    a, b = comm.broadcast(torch.ones(3, device=cuda(0)), two)
    assert a.device == cuda(0) and b.device == cuda(1)
    assert comm.reduce_add([a, b], 1).tolist() == [2, 2, 2]
    parts = comm.scatter(torch.arange(6.0, device=cuda(0)), two, chunk_sizes=[4, 2])
    assert [p.tolist() for p in parts] == [[0, 1, 2, 3], [4, 5]]
    assert comm.gather(parts, destination=0).tolist() == [0, 1, 2, 3, 4, 5]


def test_without_devices_it_is_the_module():
    if torch.cuda.is_available():
        with pytest.raises(AssertionError, match="Invalid device id"):
            nn.DataParallel(nn.Linear(1, 1), device_ids=[99])
        return
    net = nn.Linear(2, 1)
    x = torch.ones(3, 2)
    assert torch.equal(nn.DataParallel(net)(x), net(x))
