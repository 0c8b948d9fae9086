"""Names that PyTorch has and Tessera lacks, and names that nobody has.

The tests name what Tessera is not likely to have soon.
"""

import abc
import importlib
import subprocess
import sys
import typing

import pytest

import tessera as torch
from tessera import _names, nn
from tessera._missing import MissingError, nearest

FUNCTION = "cudnn_grid_sampler"
METHOD = "sparse_resize_and_clear_"


def test_a_function_that_only_pytorch_has():
    with pytest.raises(MissingError, match=f"torch.{FUNCTION} is not implemented in Tessera yet"):
        getattr(torch, FUNCTION)
    with pytest.raises(NotImplementedError):
        torch.cudnn_grid_sampler(1)
    with pytest.raises(AttributeError):
        torch.cudnn_grid_sampler(1)
    assert not hasattr(torch, FUNCTION)
    assert getattr(torch, FUNCTION, None) is None


def test_a_typing_error_is_a_plain_attribute_error_with_the_nearest_name():
    with pytest.raises(AttributeError, match="module 'torch' has no attribute 'zeross'") as caught:
        torch.zeross  # noqa: B018
    assert type(caught.value) is AttributeError
    assert "torch.zeros" in str(caught.value)
    with pytest.raises(AttributeError) as caught:
        torch.foo_bar_baz
    assert type(caught.value) is AttributeError
    with pytest.raises(AttributeError, match="nearest name that exists is torch.nn.Parameter"):
        nn.Paramater


def test_the_nearest_name():
    assert nearest("zeross", ["ones", "zeros", "_zeross"]) == "zeros"
    assert nearest("RELU", ["relu"]) == "relu"
    assert nearest("xyz", ["relu"]) is None
    error = MissingError("torch", "zeroes", ["zeros"])
    assert str(error).endswith("; the nearest name that exists is torch.zeros")


def test_methods_of_tensors():
    x = torch.ones(2)
    for owner in (x, torch.Tensor, nn.Parameter(x)):
        with pytest.raises(MissingError, match=f"Tensor.{METHOD} is not implemented"):
            getattr(owner, METHOD)
        assert not hasattr(owner, METHOD)
    with pytest.raises(
        AttributeError, match="'Tensor' object has no attribute 'foo_bar'"
    ) as caught:
        x.foo_bar
    assert type(caught.value) is AttributeError


def test_a_missing_method_can_be_given(monkeypatch):
    x = torch.ones(2)
    setattr(x, METHOD, 3)
    assert getattr(x, METHOD) == 3
    monkeypatch.setattr(torch.Tensor, METHOD, lambda self: 7, raising=False)
    assert getattr(torch.ones(1), METHOD)() == 7

    class Mine(torch.Tensor):
        def __getattr__(self, name):
            return name

    assert getattr(torch.ones(1).as_subclass(Mine), "sspaddmm") == "sspaddmm"


def test_no_method_that_is_there_is_called_missing():
    x = torch.ones(2)
    for name in ("shape", "add_", "numpy", "is_leaf", "grad", "_version", "view_as"):
        getattr(x, name)


def test_from_import_gives_a_stand_in():
    from tessera import cudnn_grid_sampler as again
    from tessera import cudnn_grid_sampler as missing

    assert missing is again and "torch.cudnn_grid_sampler" in repr(missing)
    for use in (missing, bool, iter, len, lambda m: m.part(1), lambda m: m().part):
        with pytest.raises(NotImplementedError, match="torch.cudnn_grid_sampler"):
            use(missing)
    assert not hasattr(torch, FUNCTION)
    with pytest.raises(ImportError, match="cannot import name 'foo_bar'"):
        from tessera import foo_bar  # noqa: F401


def test_a_stand_in_may_be_derived_from_and_named():
    from tessera import ThroughputBenchmark as Base

    class Layer(Base, abc.ABC, option=3):
        size = 4

        def __init__(self):
            super().__init__(1)

    class Mixed(Layer, nn.Module):
        pass

    for cls in (Layer, Mixed):
        with pytest.raises(NotImplementedError, match=f"{cls.__name__} derives from torch.Thr"):
            cls()
    assert Layer.size == 4 and issubclass(Layer, Base)
    assert not isinstance(3, Base) and not isinstance(torch.ones(1), (Base, int))
    assert typing.get_args(Base | None)[0] is Base and Base[int] is Base and {Base: 1}[Base] == 1
    assert not hasattr(Base, "forward") and Base.forward is Base.forward
    with pytest.raises(NotImplementedError, match="torch.ThroughputBenchmark.forward"):
        Base.forward()


def test_stand_ins_for_exceptions_may_be_caught():
    import warnings

    import tessera.onnx.errors as errors

    from tessera.jit import TracerWarning

    with pytest.raises(ZeroDivisionError):
        try:
            1 / 0
        except errors.UnsupportedOperatorError:
            pass
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=TracerWarning)


def test_modules_that_only_pytorch_has():
    import tessera.fx as fx
    import tessera.fx.passes.shape_prop
    from tessera.fx import GraphModule, symbolic_trace

    assert fx.GraphModule is GraphModule and not hasattr(fx, "GraphModule")
    assert fx.passes.shape_prop.ShapeProp is tessera.fx.passes.shape_prop.ShapeProp
    assert "torch.fx.experimental.proxy_tensor.make_fx" in repr(
        fx.experimental.proxy_tensor.make_fx
    )
    with pytest.raises(NotImplementedError, match="torch.fx.symbolic_trace"):
        symbolic_trace(1)
    with pytest.raises(AttributeError, match="module 'torch.fx' has no attribute 'foo_bar'"):
        fx.foo_bar
    with pytest.raises(ModuleNotFoundError, match="tessera.fx.foo_bar"):
        importlib.import_module("tessera.fx.foo_bar")
    with pytest.raises(ModuleNotFoundError, match="tessera.foo_bar"):
        import tessera.foo_bar  # noqa: F401


def test_a_module_that_was_not_imported_is_missing():
    script = "\n".join(
        [
            "import tessera as torch",
            "assert not hasattr(torch, 'onnx')",
            "try: torch.onnx.export",
            "except NotImplementedError as error: assert 'torch.onnx is not' in str(error), error",
            "else: raise AssertionError",
            "import tessera.onnx",
            "print(torch.onnx.export)",
        ]
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_classes_are_found_where_pytorch_keeps_them():
    from tessera.cuda.streams import Stream

    assert Stream is torch.cuda.Stream


def test_the_lists():
    assert _names.is_module("torch.nn.modules.linear") and not _names.is_module("torch.nn.Linear")
    assert not _names.is_module("*") and not _names.is_known("torch", "foo_bar")
    assert _names.is_known("torch", "fx") and _names.is_known("torch.nn", "Linear")
    assert "sigmoid_" in _names.tensor_names()


def test_every_module_says_what_it_lacks():
    """Names of PyTorch's in all modules that both have: there, or missing in the same words."""
    import pkgutil

    ours = {m.name for m in pkgutil.walk_packages(torch.__path__, "tessera.")}
    looked_at = 0
    for name in sorted(_names._modules()):
        module_name = name.replace("torch", "tessera", 1)
        if module_name not in ours or name == "torch._C":
            continue
        module = importlib.import_module(module_name)
        for wanted in _names.names_in(name):
            try:
                getattr(module, wanted)
            except MissingError:
                pass
            looked_at += 1
    assert looked_at > 1000
