"""torch.compile, torch.jit and what belongs to them: accepted, and the program runs as it is."""

import copy
import pickle
import typing
import warnings

import pytest

import tessera as torch
from tessera import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)

    def forward(self, x):
        if torch.jit.is_scripting():
            raise AssertionError("nothing is scripted")
        return torch.relu(self.fc(x))

    @torch.jit.export
    def double(self, x):
        return 2 * self.forward(x)

    @torch.jit.ignore
    def helper(self):
        return "helper"

    @torch.jit.unused
    def other(self):
        return "other"


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"mode": "reduce-overhead"},
        {"mode": "max-autotune", "fullgraph": True, "dynamic": False},
        {"backend": "inductor", "options": {"triton.cudagraphs": True}},
        {"backend": lambda graph, inputs: graph.forward},
        {"disable": True},
    ],
)
def test_compiled_module_is_the_module(options):
    model, x = Net(), torch.randn(4, 3)
    compiled = torch.compile(model, **options)
    assert torch.equal(compiled(x), model(x))
    inside = "" if options.get("disable") else "_orig_mod."
    assert list(compiled.state_dict()) == [inside + "fc.weight", inside + "fc.bias"]
    compiled(x).sum().backward()
    assert model.fc.weight.grad is not None
    compiled.eval()
    assert not model.training
    model.compile(**options)
    assert model(x).shape == (4, 2)


def test_the_module_inside_a_compiled_one():
    model = Net()
    compiled = torch.compile(model)
    assert isinstance(compiled, nn.Module) and compiled._orig_mod is model
    assert compiled.fc is model.fc and compiled.helper() == "helper" and compiled
    compiled.scale = 3
    assert model.scale == 3
    compiled.fc = nn.Linear(3, 5)
    assert model.fc.out_features == 5 and compiled(torch.ones(1, 3)).shape == (1, 5)
    names = [name for name, _ in compiled.named_parameters()]
    assert names == ["_orig_mod.fc.weight", "_orig_mod.fc.bias"]
    compiled.train(False)
    assert not model.training and not compiled.training
    other = torch.compile(model)
    other.load_state_dict(compiled.state_dict())
    copied = copy.deepcopy(compiled)
    assert copied._orig_mod is not model
    assert torch.equal(copied(torch.ones(1, 3)), model(torch.ones(1, 3)))
    assert pickle.loads(pickle.dumps(compiled)).fc.out_features == 5
    seen = []
    compiled.register_forward_hook(lambda m, args, out: seen.append(type(m)))
    compiled(torch.ones(1, 3))
    assert len(seen) == 1
    del compiled.scale
    assert not hasattr(model, "scale")
    with pytest.raises(AttributeError, match="nothing"):
        compiled.nothing  # noqa: B018


def test_compiled_functions():
    @torch.compile
    def one(x):
        return x + 1

    @torch.compile(fullgraph=True, dynamic=True)
    def two(x, *, scale=2):
        return x * scale

    x = torch.ones(2)
    assert one(x).tolist() == [2, 2] and two(x, scale=3).tolist() == [3, 3]
    assert one.__name__ == "one"
    assert torch.compile(lambda x: x - 1)(x).tolist() == [0, 0]
    with pytest.raises(RuntimeError, match="Either mode or options"):
        torch.compile(one, mode="default", options={})
    with pytest.raises(RuntimeError, match="Unrecognized mode"):
        torch.compile(one, mode="fastest")
    with pytest.raises(RuntimeError):
        torch.compile(3)


def test_compiler_module():
    assert not torch.compiler.is_compiling() and not torch.compiler.is_exporting()

    @torch.compiler.disable
    def one(x):
        return x

    @torch.compiler.disable(recursive=False)
    def two(x):
        return x

    @torch.compiler.allow_in_graph
    def three(x):
        return x

    assert one(1) == two(1) == three(1) == 1
    torch.compiler.reset()
    torch.compiler.cudagraph_mark_step_begin()
    with torch.compiler.set_stance("force_eager"):
        assert one(2) == 2
    torch.compiler.config.force_disable_caches = True


def test_dynamo():
    import tessera._dynamo as dynamo

    dynamo.config.suppress_errors = True
    torch._dynamo.config.cache_size_limit = 64
    dynamo.reset()
    dynamo.mark_dynamic(torch.ones(2), 0)
    dynamo.graph_break()
    assert not dynamo.is_compiling()

    @dynamo.disable
    def one(x):
        return x

    @dynamo.optimize("eager", nopython=True)
    def two(x):
        return x

    assert one(1) == two(1) == 1
    assert isinstance(torch.compile(Net()), dynamo.OptimizedModule)
    with pytest.raises(NotImplementedError, match="torch._dynamo.explain"):
        dynamo.explain(one)


def test_script_and_trace():
    model, x = Net(), torch.randn(4, 3)
    for made in (
        torch.jit.script(model),
        torch.jit.trace(model, x),
        torch.jit.trace(model, example_inputs=(x,), check_trace=False, strict=False),
        torch.jit.trace_module(model, {"forward": x}),
        torch.jit.optimize_for_inference(torch.jit.freeze(torch.jit.script(Net().eval()))),
    ):
        assert made(x).shape == (4, 2)
        assert made.helper() == "helper" and made.other() == "other"
        assert torch.equal(made.double(x), 2 * made(x))
    with pytest.raises(RuntimeError, match="eval mode"):
        torch.jit.freeze(Net())

    @torch.jit.script
    def function(x, n: int):
        for _ in range(n):
            x = x * 2
        return x

    assert function(torch.ones(2), 3).tolist() == [8, 8]
    assert not isinstance(function, torch.jit.ScriptFunction)
    assert not isinstance(torch.jit.script(model), torch.jit.ScriptModule)


def test_words_of_jit():
    class Scripted(torch.jit.ScriptModule):
        __constants__ = ["n"]
        n: torch.jit.Final[int]

        def __init__(self):
            super().__init__()
            self.n = 3
            self.values = torch.jit.Attribute([1, 2], typing.List[int])  # noqa: UP006

        @torch.jit.script_method
        def forward(self, x):
            return x * self.n

    assert Scripted()(torch.ones(1)).item() == 3

    @torch.jit.ignore(drop=True)
    def dropped(x):
        return x

    @torch.jit.script_if_tracing
    def sometimes(x):
        return x

    assert dropped(1) == sometimes(1) == 1
    assert torch.jit.annotate(typing.List[int], []) == []  # noqa: UP006
    assert torch.jit.isinstance([1, 2], typing.List[int])  # noqa: UP006
    assert not torch.jit.isinstance([1, "2"], typing.List[int])  # noqa: UP006
    assert torch.jit.wait(torch.jit.fork(lambda x: x + 1, 1)) == 2
    assert isinstance(torch.jit.fork(lambda: 0), torch.jit.Future)
    with torch.jit.optimized_execution(False), torch.jit.fuser("fuser2"), torch.jit.strict_fusion():
        pass
    torch.jit.enable_onednn_fusion(True)
    assert torch.jit.onednn_fusion_enabled()
    torch.jit.enable_onednn_fusion(False)
    warnings.filterwarnings("ignore", category=torch.jit.TracerWarning)
    with pytest.raises(NotImplementedError, match="torch.jit.save"):
        torch.jit.save(Net(), "nowhere.pt")


def test_isinstance_of_a_union_written_with_a_bar():
    assert torch.jit.isinstance(3, int | None) and torch.jit.isinstance(None, int | None)
    assert not torch.jit.isinstance("a", int | None)
