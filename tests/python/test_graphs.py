"""Captured graphs: what they hold, what they draw, where their memory is, and what they refuse."""

import gc
import weakref

import pytest
from graphs import captured, model_and_data, same

import tessera as torch
from tessera import nn

# ---- replays -------------------------------------------------------------------------------------


def test_replay_reads_what_the_inputs_hold_now(cuda):
    x = torch.arange(6.0, device=cuda)
    w = torch.randn(6, 4, device=cuda)
    g, y = captured(lambda: torch.relu(x @ w + 1).sum(0, keepdim=True) * 2)
    for k in range(3):
        x.copy_(torch.arange(6.0) * k - 1)
        g.replay()
        assert same(y, torch.relu(x @ w + 1).sum(0, keepdim=True) * 2)


def test_nothing_runs_during_the_capture(cuda):
    x = torch.zeros(4, device=cuda)
    before = x + 1  # pending when the capture begins: it is not part of it
    g, _ = captured(lambda: x.add_(1))
    assert x.tolist() == [0] * 4 and before.tolist() == [1] * 4
    g.replay()
    g.replay()
    assert x.tolist() == [2] * 4 and before.tolist() == [1] * 4


def test_pending_work_is_done_before_a_replay(cuda):
    x = torch.ones(4, device=cuda)
    g, y = captured(lambda: x * 2)
    g.replay()
    seen = y + 1  # reads the first result
    x.mul_(5)
    g.replay()
    assert seen.tolist() == [3] * 4 and y.tolist() == [10] * 4


@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_a_whole_training_step(cuda, dropout, optimizer):
    """Twenty replays give the bits of twenty plain steps, dropout masks included."""

    def make():
        model, data = model_and_data(cuda, dropout)
        if optimizer == "sgd":
            o = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-3)
        else:
            o = torch.optim.Adam(model.parameters(), lr=0.01, capturable=True)
        return model, o, data

    def step(model, o, x, t):
        o.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(model(x), t)
        loss.backward()
        o.step()
        return loss

    plain, o, data = make()
    torch.cuda.manual_seed(5)
    losses = [step(plain, o, x, t).item() for x, t in data]

    model, o, data = make()
    x, t = data[0][0].clone(), data[0][1].clone()
    torch.cuda.manual_seed(5)
    # The first steps run as they are: they make the optimizer's state.
    graphed = [step(model, o, *pair).item() for pair in data[:3]]
    o.zero_grad(set_to_none=True)
    g, loss = captured(lambda: step(model, o, x, t))
    for new_x, new_t in data[3:]:
        x.copy_(new_x)
        t.copy_(new_t)
        g.replay()
        graphed.append(loss.item())
    assert graphed == losses
    for a, b in zip(plain.parameters(), model.parameters()):
        assert same(a, b)


def test_two_streams_in_one_capture(cuda):
    x = torch.arange(1000.0, device=cuda)
    main, side = torch.cuda.Stream(), torch.cuda.Stream()
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g, stream=main):
        a = x * 2
        side.wait_stream(main)
        with torch.cuda.stream(side):
            b = a + 1
        c = a - 1
        main.wait_stream(side)
        d = b * c
    for k in range(3):
        x.fill_(k)
        g.replay()
        assert same(d, torch.full((1000,), float((2 * k + 1) * (2 * k - 1))))
    assert not torch.cuda.is_current_stream_capturing()


def test_a_stream_that_is_not_waited_for(cuda):
    x = torch.ones(10, device=cuda)
    main, side = torch.cuda.Stream(), torch.cuda.Stream()
    g = torch.cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="joined"), torch.cuda.graph(g, stream=main):
        side.wait_stream(main)
        with torch.cuda.stream(side):
            (x + 1).data_ptr()
    with torch.cuda.stream(side):
        assert (x + 2).tolist() == [3] * 10
    with torch.cuda.stream(main):
        assert (x + 3).tolist() == [4] * 10


def test_replay_on_another_stream(cuda):
    x = torch.ones(10, device=cuda)
    g, y = captured(lambda: x + 1)
    s = torch.cuda.Stream()
    s.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(s):
        g.replay()
    torch.cuda.current_stream().wait_stream(s)
    assert y.tolist() == [2] * 10


def test_copies_from_and_to_pinned_memory(cuda):
    hosts = [torch.zeros(5).pin_memory(), torch.zeros(5).pin_memory()]
    x = torch.empty(5, device=cuda)

    def work():
        x.copy_(hosts[0], non_blocking=True)
        hosts[1].copy_(x * 2, non_blocking=True)

    g, _ = captured(work)
    hosts[0].fill_(3)
    g.replay()
    torch.cuda.synchronize()
    target = hosts.pop()
    assert x.tolist() == [3] * 5 and target.tolist() == [6] * 5
    hosts.clear()  # the graph keeps what it reads
    target.zero_()
    g.replay()
    torch.cuda.synchronize()
    assert target.tolist() == [6] * 5


# ---- random numbers ------------------------------------------------------------------------------

DRAWS = [
    lambda d: torch.rand(1001, device=d),
    lambda d: torch.randn(1001, device=d, dtype=torch.float64),
    lambda d: torch.randint(0, 100, (50,), device=d),
    lambda d: torch.bernoulli(torch.full((100,), 0.3, device=d)),
    lambda d: nn.functional.dropout(torch.ones(500, device=d), 0.5),
    lambda d: torch.randperm(300, device=d),
    lambda d: torch.multinomial(torch.ones(4, 20, device=d), 3),
    lambda d: torch.multinomial(torch.ones(4, 20, device=d), 30, replacement=True),
    lambda d: torch.poisson(torch.full((64,), 4.0, device=d)),
    lambda d: torch.empty(64, device=d).normal_(1, 2),
    lambda d: torch.empty(64, device=d).exponential_(),
]


@pytest.mark.parametrize("draw", DRAWS)
def test_replays_draw_what_plain_calls_would(cuda, draw):
    torch.cuda.manual_seed(7)
    plain = [draw(cuda).tolist() for _ in range(3)]
    after = torch.rand(3, device=cuda).tolist()
    torch.cuda.manual_seed(7)
    g, out = captured(lambda: draw(cuda))
    replayed = []
    for _ in range(3):
        g.replay()
        replayed.append(out.tolist())
    assert replayed == plain and plain[0] != plain[1]
    assert torch.rand(3, device=cuda).tolist() == after


def test_a_seed_between_replays(cuda):
    g, (a, b) = captured(lambda: (torch.rand(10, device=cuda), torch.rand(10, device=cuda)))
    torch.cuda.manual_seed(3)
    g.replay()
    first = a.tolist(), b.tolist()
    g.replay()
    assert (a.tolist(), b.tolist()) != first and first[0] != first[1]
    torch.cuda.manual_seed(3)
    g.replay()
    assert (a.tolist(), b.tolist()) == first


def test_generators_of_the_program(cuda):
    mine = torch.Generator(cuda).manual_seed(4)
    with pytest.raises(RuntimeError, match="register_generator_state"):
        captured(lambda: torch.rand(5, device=cuda, generator=mine))
    g = torch.cuda.CUDAGraph()
    g.register_generator_state(mine)
    with torch.cuda.graph(g):
        x = torch.rand(5, device=cuda, generator=mine)
    g.replay()
    expected = torch.rand(5, device=cuda, generator=torch.Generator(cuda).manual_seed(4))
    assert same(x, expected)
    with pytest.raises(RuntimeError, match="state of a generator"):
        captured(torch.cuda.get_rng_state)


# ---- memory --------------------------------------------------------------------------------------


def test_memory_of_a_graph_stays_while_it_lives(cuda):
    x = torch.ones(1 << 20, device=cuda)
    g, y = captured(lambda: ((x * 3).cumsum(0) + 1).cumsum(0))
    reserved = torch.cuda.memory_reserved()
    g.replay()
    expected = y.clone()
    # Whatever is free elsewhere is taken and given back; the graph's memory is not among it.
    for _ in range(3):
        torch.cuda.empty_cache()
        others = [torch.full((1 << 20,), 7.0, device=cuda) for _ in range(8)]
        torch.cuda.synchronize()
        g.replay()
        assert same(y, expected)
        assert all(same(o[:10], torch.full((10,), 7.0)) for o in others)
        del others
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() >= reserved - (8 << 20)
    pools = {tuple(s["segment_pool_id"]) for s in torch.cuda.memory_snapshot()}
    assert g.pool() in pools


def test_memory_is_given_back_after_the_graph(cuda):
    gc.collect()
    torch.cuda.empty_cache()
    x = torch.ones(1 << 20, device=cuda)
    torch.cuda.synchronize()  # it has its memory now
    allocated, reserved = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
    for _ in range(3):
        g, y = captured(lambda: (x * 2).cumsum(0).cumsum(0))
        g.replay()
        assert torch.cuda.memory_allocated() == allocated + (4 << 20)
        assert torch.cuda.memory_reserved() > reserved
        del g, y
        gc.collect()
        torch.cuda.empty_cache()
        assert torch.cuda.memory_allocated() == allocated
        assert torch.cuda.memory_reserved() == reserved


def test_results_outlive_the_graph(cuda):
    x = torch.ones(1 << 18, device=cuda)
    g, y = captured(lambda: x.cumsum(0))
    g.replay()
    del g
    gc.collect()
    torch.cuda.empty_cache()
    others = [torch.zeros(1 << 18, device=cuda) for _ in range(8)]
    assert y[-1].item() == 1 << 18 and others[0][0].item() == 0


def test_graph_outlives_its_results(cuda):
    x = torch.ones(1 << 18, device=cuda)
    total = torch.zeros((), device=cuda)
    g, y = captured(lambda: total.add_(x.cumsum(0).sum()))
    gone = weakref.ref(y)
    del y
    gc.collect()
    torch.cuda.empty_cache()
    others = [torch.zeros(1 << 18, device=cuda) for _ in range(8)]
    torch.cuda.synchronize()
    g.replay()
    g.replay()
    expected = 2 * x.cumsum(0).sum()
    assert same(total, expected) and gone() is not None  # add_ gives back `total` itself
    assert all(o.sum().item() == 0 for o in others)


def test_two_graphs_share_a_pool(cuda):
    pool = torch.cuda.graph_pool_handle()
    x = torch.ones(1 << 19, device=cuda)
    first, a = captured(lambda: (x + 1).cumsum(0).cumsum(0)[-1:].clone(), pool=pool)
    reserved = torch.cuda.memory_reserved()
    second, b = captured(lambda: (a - x).cumsum(0).cumsum(0)[-1:].clone(), pool=pool)
    # What was free in the pool is used again.
    assert torch.cuda.memory_reserved() <= reserved + (2 << 20)
    assert first.pool() == second.pool() == pool
    plain = ((x + 1).cumsum(0).cumsum(0)[-1:] - x).cumsum(0).cumsum(0)[-1:]
    for _ in range(2):
        first.replay()
        second.replay()
        assert same(b, plain)
    del first
    gc.collect()
    torch.cuda.empty_cache()
    a.copy_((x + 1).cumsum(0).cumsum(0)[-1:])
    second.replay()
    assert same(b, plain)


def test_blocks_of_other_streams_are_not_asked_for_during_a_capture(cuda):
    s = torch.cuda.Stream()
    x = torch.ones(1 << 16, device=cuda)
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        y = x * 2
        y.data_ptr()
        y.record_stream(s)
        del y
        z = x * 3
    g.replay()
    assert z.sum().item() == 3 * (1 << 16)
    del g, z
    gc.collect()
    torch.cuda.empty_cache()


# ---- what is refused -----------------------------------------------------------------------------

REFUSED = {
    "item": (lambda x: x.sum().item(), "copying to the host"),
    "condition": (lambda x: bool((x > 0).all()), "copying to the host"),
    "cpu": (lambda x: x.cpu(), "copying to the host"),
    "print": (lambda x: repr(x), "copying to the host"),
    "nonzero": (lambda x: x.nonzero(), "capturing"),
    "from the host": (lambda x: x + torch.tensor([1.0] * 4).to(x.device), "from the host"),
    "synchronize": (lambda x: torch.cuda.synchronize(), r"torch.cuda.synchronize\(\)"),
    "stream": (lambda x: torch.cuda.current_stream().synchronize(), "Stream.synchronize"),
    "stream query": (lambda x: torch.cuda.current_stream().query(), "Stream.query"),
    "another capture": (lambda x: torch.cuda.CUDAGraph().capture_begin(), "another capture"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_graph_cannot_hold(cuda, name):
    work, words = REFUSED[name]
    x = torch.ones(4, device=cuda)
    g = torch.cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match=words), torch.cuda.graph(g):
        y = x * 2
        work(y)
    # The stream, the device and the graph can all be used again.
    assert not torch.cuda.is_current_stream_capturing()
    torch.cuda.synchronize()
    with pytest.raises(RuntimeError, match="without a preceding successful capture"):
        g.replay()
    with torch.cuda.graph(g):
        z = x + 1
    g.replay()
    assert z.tolist() == [2] * 4


def test_events_in_a_capture(cuda):
    event = torch.cuda.Event()
    event.record()
    torch.cuda.synchronize()
    x = torch.ones(4, device=cuda)
    for look in (event.query, event.synchronize):
        with pytest.raises(RuntimeError, match="capturing: Event"):
            captured(look)
    g, y = captured(lambda: (event.record(), x + 1)[1])
    with pytest.raises(RuntimeError, match="captur"):
        event.query()
    g.replay()
    assert y.tolist() == [2] * 4


def test_an_error_that_the_program_caught(cuda):
    """What it did then is not what a replay would do: the capture has failed."""
    x = torch.ones(4, device=cuda)
    g = torch.cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="invalidated: copying to the host"):  # noqa: SIM117
        with torch.cuda.graph(g):
            try:
                x.sum().item()
            except RuntimeError:
                x.mul_(2)
    assert x.tolist() == [1] * 4


def test_an_error_of_the_program(cuda):
    class Mine(Exception):
        pass

    x = torch.ones(4, device=cuda)
    g = torch.cuda.CUDAGraph()
    with pytest.raises(Mine), torch.cuda.graph(g):
        x.add_(1)
        raise Mine
    assert x.tolist() == [1] * 4
    with torch.cuda.graph(g):
        x.add_(1)
    g.replay()
    assert x.tolist() == [2] * 4


def test_wrong_uses(cuda):
    g = torch.cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="non-default stream"):
        g.capture_begin()
    with pytest.raises(RuntimeError, match="capture_begin"):
        g.capture_end()
    with pytest.raises(RuntimeError, match="pool"):
        g.pool()
    with (
        pytest.raises(RuntimeError, match="capture error mode"),
        torch.cuda.graph(g, capture_error_mode="strict"),
    ):
        pass
    x = torch.ones(3, device=cuda)
    with torch.cuda.graph(g):
        assert torch.cuda.is_current_stream_capturing()
        y = x + 1
    with pytest.raises(RuntimeError, match="already owns a captured graph"), torch.cuda.graph(g):
        pass
    assert isinstance(g.raw_cuda_graph_exec(), int)
    with pytest.raises(RuntimeError, match="keep_graph"):
        g.raw_cuda_graph()
    with pytest.raises(NotImplementedError):
        g.debug_dump("graph.dot")
    g.replay()
    g.reset()
    with pytest.raises(RuntimeError, match="without a preceding"):
        g.replay()
    assert y.tolist() == [2] * 3


def test_kept_graphs_are_instantiated_by_the_program(cuda):
    x = torch.ones(3, device=cuda)
    g = torch.cuda.CUDAGraph(keep_graph=True)
    with torch.cuda.graph(g, capture_error_mode="relaxed"):
        y = x + 1
    assert isinstance(g.raw_cuda_graph(), int)
    g.instantiate()
    g.replay()
    assert y.tolist() == [2] * 3


def test_optimizers_that_count_on_the_host(cuda):
    p = nn.Parameter(torch.ones(3, device=cuda))
    o = torch.optim.Adam([p])
    p.grad = torch.ones(3, device=cuda)
    o.step()
    with pytest.raises(RuntimeError, match="capturable"):
        captured(o.step)


def test_wrong_data_in_a_replay(cuda):
    x = torch.arange(5.0, device=cuda)
    index = torch.tensor([1, 2], device=cuda)
    g, y = captured(lambda: x[index])
    g.replay()
    assert y.tolist() == [1, 2]
    index.fill_(9)
    g.replay()
    with pytest.raises((IndexError, RuntimeError)):
        torch.cuda.synchronize()
    index.fill_(3)
    g.replay()
    assert y.tolist() == [3, 3]
