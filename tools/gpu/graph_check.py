"""Captured graphs on a GPU: their answers, and the time of a small training step by a replay.

    python3 tools/gpu/graph_check.py              both parts
    python3 tools/gpu/graph_check.py --answers    a part alone
    python3 tools/gpu/graph_check.py --times [--steps 2000]

Tessera must be importable. The status is 1 if an answer was wrong.
"""

import argparse
import functools
import gc
import sys
import time

import tessera as torch
from tessera import nn

DEVICE = "cuda"
failures = []


def check(name, good):
    print(f"{'ok  ' if good else 'WRONG'} {name}", flush=True)
    if not good:
        failures.append(name)


def same(a, b):
    return torch.equal(a.cpu(), b.cpu())


def captured(function, **options):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, **options):
        result = function()
    return graph, result


def mlp(optimizer="sgd", dropout=0.0, width=256, depth=4, batch=64):
    torch.manual_seed(1)
    layers = []
    for _ in range(depth):
        layers += [nn.Linear(width, width), nn.ReLU(), nn.Dropout(dropout)]
    model = nn.Sequential(*layers, nn.Linear(width, 10)).to(DEVICE)
    if optimizer == "sgd":
        made = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    else:
        made = torch.optim.Adam(model.parameters(), lr=1e-3, capturable=True)
    torch.manual_seed(2)
    data = [
        (torch.randn(batch, width).to(DEVICE), torch.randint(0, 10, (batch,)).to(DEVICE))
        for _ in range(24)
    ]
    return model, made, data


def step(model, optimizer, x, target):
    optimizer.zero_grad(set_to_none=True)
    loss = nn.functional.cross_entropy(model(x), target)
    loss.backward()
    optimizer.step()
    return loss


def graph_of_step(model, optimizer, data):
    """A graph of a step, the tensors it reads, and its loss; the first steps run as they are."""
    x, target = data[0][0].clone(), data[0][1].clone()
    losses = [step(model, optimizer, *pair).item() for pair in data[:3]]
    optimizer.zero_grad(set_to_none=True)
    graph, loss = captured(lambda: step(model, optimizer, x, target))
    return graph, x, target, loss, losses


def training_is_the_same():
    for optimizer in ("sgd", "adam"):
        for dropout in (0.0, 0.3):
            plain, o, data = mlp(optimizer, dropout)
            torch.cuda.manual_seed(5)
            expected = [step(plain, o, *pair).item() for pair in data]
            model, o, data = mlp(optimizer, dropout)
            torch.cuda.manual_seed(5)
            graph, x, target, loss, losses = graph_of_step(model, o, data)
            for new_x, new_target in data[3:]:
                x.copy_(new_x)
                target.copy_(new_target)
                graph.replay()
                losses.append(loss.item())
            good = losses == expected and all(
                same(a, b) for a, b in zip(plain.parameters(), model.parameters())
            )
            worst = max(abs(a - b) for a, b in zip(losses, expected))
            check(f"21 replays of a step, {optimizer}, dropout {dropout}: {worst:.1e}", good)


def random_numbers_go_on():
    draws = {
        "rand": lambda: torch.rand(100001, device=DEVICE),
        "randn double": lambda: torch.randn(1001, device=DEVICE, dtype=torch.float64),
        "randint": lambda: torch.randint(0, 1 << 40, (5000,), device=DEVICE),
        "dropout": lambda: nn.functional.dropout(torch.ones(5000, device=DEVICE), 0.5),
        "randperm": lambda: torch.randperm(5000, device=DEVICE),
        "multinomial": lambda: torch.multinomial(torch.ones(8, 50, device=DEVICE), 5),
        "poisson": lambda: torch.poisson(torch.full((500,), 4.0, device=DEVICE)),
    }
    for name, draw in draws.items():
        torch.cuda.manual_seed(7)
        plain = [draw().clone() for _ in range(3)]
        torch.cuda.manual_seed(7)
        graph, out = captured(draw)
        replayed = []
        for _ in range(3):
            graph.replay()
            replayed.append(out.clone())
        good = all(same(a, b) for a, b in zip(plain, replayed)) and not same(plain[0], plain[1])
        check(f"random numbers of replays: {name}", good)


def memory_stays_and_goes():
    gc.collect()
    torch.cuda.empty_cache()
    x = torch.ones(4 << 20, device=DEVICE)
    torch.cuda.synchronize()
    allocated, reserved = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
    graph, y = captured(lambda: (x * 3).cumsum(0).cumsum(0))
    graph.replay()
    expected = y.clone()
    good = True
    for _ in range(5):
        torch.cuda.empty_cache()
        others = [torch.full((4 << 20,), 7.0, device=DEVICE) for _ in range(6)]
        graph.replay()
        good &= same(y, expected) and all(o.sum().item() == 7.0 * (4 << 20) for o in others)
        del others
    check("memory of a graph stays where it is", good)
    del graph, y, expected
    gc.collect()
    torch.cuda.empty_cache()
    check(
        "memory is given back after the graph",
        (torch.cuda.memory_allocated(), torch.cuda.memory_reserved()) == (allocated, reserved),
    )
    pool = torch.cuda.graph_pool_handle()
    first, a = captured(lambda: (x + 1).cumsum(0)[-1:].clone(), pool=pool)
    second, b = captured(lambda: (x * a).sum(), pool=pool)
    first.replay()
    second.replay()
    check("two graphs in one pool", same(b, (x * (x + 1).cumsum(0)[-1:]).sum()))


def streams_join():
    x = torch.arange(100000.0, device=DEVICE)
    main, side = torch.cuda.Stream(), torch.cuda.Stream()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=main):
        a = x * 2
        side.wait_stream(main)
        with torch.cuda.stream(side):
            b = (a + 1).cumsum(0)
        c = (a - 1).cumsum(0)
        main.wait_stream(side)
        d = b - c
    good = True
    for k in range(3):
        x.fill_(k)
        graph.replay()
        good &= same(d, ((x * 2) + 1).cumsum(0) - ((x * 2) - 1).cumsum(0))
    check("two streams in one capture", good)


def errors_are_clear():
    x = torch.ones(4, device=DEVICE)
    works = {
        "copying to the host": lambda: x.sum().item(),
        "from the host": lambda: x + torch.ones(4).to(DEVICE),
        "torch.cuda.synchronize()": torch.cuda.synchronize,
        "Stream.synchronize()": lambda: torch.cuda.current_stream().synchronize(),
        "counts its steps on the host": lambda: host_count(),
    }

    def host_count():
        p = nn.Parameter(torch.ones(3, device=DEVICE))
        p.grad = torch.ones(3, device=DEVICE)
        torch.optim.RAdam([p]).step()

    for words, work in works.items():
        graph = torch.cuda.CUDAGraph()
        said = ""
        try:
            with torch.cuda.graph(graph):
                work()
        except RuntimeError as error:
            said = str(error)
        with torch.cuda.graph(graph):
            y = x + 1
        graph.replay()
        check(f"refused, and all goes on: {words}", words in said and y.tolist() == [2] * 4)


def kernels_and_libraries():
    """Convolutions, attention, sorting, reductions: what libraries and large kernels capture as."""
    torch.manual_seed(3)
    net = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(32, 10),
    ).to(DEVICE)  # fmt: skip
    layer = nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True).to(DEVICE)
    lstm = nn.LSTM(16, 32, 2, batch_first=True).to(DEVICE)
    cases = {
        "convolutions": (lambda x: net(x).softmax(1), (4, 3, 32, 32)),
        "a transformer layer": (layer, (4, 20, 64)),
        "an LSTM": (lambda x: lstm(x)[0], (4, 10, 16)),
        "sort, cumsum, topk": (lambda x: x.sort(-1)[0].cumsum(-1).topk(5)[0], (64, 1000)),
        "a large product": (lambda x: x @ x.mT, (512, 512)),
        "an FFT": (lambda x: torch.fft.rfft(x).abs(), (32, 256)),
    }
    for name, (function, shape) in cases.items():
        x = torch.randn(shape, device=DEVICE)
        with torch.no_grad():
            net.eval(), function(x)
            try:
                graph, y = captured(lambda f=function, x=x: f(x))
                good = True
                for _ in range(3):
                    x.copy_(torch.randn(shape))
                    graph.replay()
                    good &= torch.allclose(y, function(x), rtol=1e-4, atol=1e-5)
            except RuntimeError as error:
                print(error)
                good = False
        check(f"captured: {name}", good)


def compiled_is_the_same():
    plain, o, data = mlp(dropout=0.2)
    torch.cuda.manual_seed(5)
    expected = [step(plain, o, *pair).item() for pair in data]
    model, o, data = mlp(dropout=0.2)
    compiled = torch.compile(model, mode="reduce-overhead")
    torch.cuda.manual_seed(5)
    losses = [step(compiled, o, *pair).item() for pair in data]
    captured_one = any(e.captured for e in compiled._calls.entries.values())
    check("torch.compile(mode='reduce-overhead') trains as the model", losses == expected)
    check("... by a graph", captured_one)


def microseconds(work, steps):
    for _ in range(20):
        work()
    best = float("inf")
    for _ in range(3):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(steps):
            work()
        torch.cuda.synchronize()
        best = min(best, (time.perf_counter() - start) / steps * 1e6)
    return best


def times(steps):
    print(f"{'a training step of an MLP, microseconds':44} plain   graph")
    for name, optimizer, width, depth, batch in (
        ("4 x 256, batch 64, SGD", "sgd", 256, 4, 64),
        ("4 x 256, batch 64, Adam", "adam", 256, 4, 64),
        ("8 x 1024, batch 256, SGD", "sgd", 1024, 8, 256),
    ):
        model, o, data = mlp(optimizer, 0.0, width, depth, batch)
        x, target = data[0]
        plain = microseconds(functools.partial(step, model, o, x, target), max(steps // 10, 20))
        graph, *_ = graph_of_step(model, o, data)
        replayed = microseconds(graph.replay, steps)
        print(f"  {name:42} {plain:7.1f} {replayed:7.1f}", flush=True)
    model, _, data = mlp()
    x = data[0][0]
    compiled = torch.compile(model, mode="reduce-overhead")
    with torch.no_grad():
        plain = microseconds(lambda: model(x), max(steps // 10, 20))
        fast = microseconds(lambda: compiled(x), max(steps // 10, 20))
    print(f"  {'4 x 256, forward alone; graph: compiled':42} {plain:7.1f} {fast:7.1f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--answers", action="store_true")
    parser.add_argument("--times", action="store_true")
    parser.add_argument("--steps", type=int, default=2000)
    options = parser.parse_args()
    both = options.answers == options.times
    print(torch.cuda.get_device_name())
    if both or options.answers:
        for part in (
            training_is_the_same,
            random_numbers_go_on,
            memory_stays_and_goes,
            streams_join,
            errors_are_clear,
            kernels_and_libraries,
            compiled_is_the_same,
        ):
            part()
    if both or options.times:
        times(options.steps)
    print(f"{len(failures)} wrong" if failures else "all answers are right")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
