#!/usr/bin/env python3
"""Calls operators with arguments that are nearly valid, in child processes, and reports faults.

./dev python tools/fuzz/calls.py                        800 calls of all operators
./dev python tools/fuzz/calls.py --each 50 --private    50 calls of each private operator
./dev python tools/fuzz/calls.py --guard --each 100     with a guard page after each allocation
./dev python tools/fuzz/calls.py --seed 7 --replay 123  one call again, in this process

A valid call comes from a sample of the operator's record. A private operator (leading underscore)
has no samples: its valid calls are those that the samples of public operators make inside, as the
profiler records them. One to three arguments of a valid call are then changed: a size, the dtype,
the layout, the device, an integer, the length of a list. The call may be the in-place or the
`out=` variant, and a differentiable result is followed by backward().

Any answer is a result or an exception of a class that PyTorch raises. These are faults: a signal,
a call that uses more processor time than the limit, any other exception, an internal error.
"""

import argparse
import json
import math
import os
import random
import re
import resource
import select
import signal
import sys
import tempfile
import time
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests/python"))
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Guard pages are an option of the allocator, which reads it once.
if "--guard" in sys.argv:
    os.environ["TESSERA_GUARD_PAGES"] = "1"

from samples import Arguments, tensors_in

import tessera as torch

# SystemError is not one of them: the interpreter raises it for a broken extension.
ERRORS = (RuntimeError, TypeError, ValueError, IndexError, MemoryError, OverflowError)
ERRORS += (ZeroDivisionError, AttributeError)
INTEGERS = [0, 1, -1, 2, 3, -2, 5, 64, -5, 1000, 2**31 - 1, 2**31, -(2**31), 2**62, 2**63 - 1]
INTEGERS += [-(2**62), -(2**63), 2**64]
FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, 1e-45, 1e30, 1e308, -1e308]
FLOATS += [math.inf, -math.inf, math.nan]
DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32]
DTYPES += [torch.int8, torch.uint8, torch.bool, torch.complex64, torch.complex128]
TEXTS = ["", "x", "mean", "sum", "none", "reflect", "circular", "replicate", "constant", "L", "U"]
TEXTS += ["nearest", "bilinear", "amax", "prod", "trunc", "floor", "tanh", "reduced", "ij", "same"]
MEMORY = 4 << 30  # bytes of address space of a child, in addition to those it is forked with
BATCH = 64  # calls of a child
# Recurrences over the degree: long for a large degree, as in PyTorch.
LONG = re.compile("polynomial")


def parse_types(schema):
    """Types of the arguments of a schema, by name, and those without a name in order."""
    inside = schema[schema.index("(") + 1 : schema.rindex("->")].strip().removesuffix(")")
    types = {}
    for part in re.split(r",\s*(?![^()]*\))(?![^\"]*\"\s*[,)])", inside):
        words = part.strip().split("=")[0].split()
        if len(words) >= 2:
            types[words[-1]] = words[0]
    return types


class Template:
    """A valid call: arguments by position and by name, and the function to call."""

    def __init__(self, op, args=None, kwargs=None, sample=None):
        self.op, self.args, self.kwargs, self.sample = op, args, kwargs, sample

    def arguments(self, rng):
        if self.sample is None:
            return [make(a, rng) for a in self.args], {k: make(v, rng) for k, v in self.kwargs}
        dtype = rng.choice(["float32"] * 6 + ["float64", "int64", "bool", "bfloat16"])
        try:
            given = Arguments(torch, self.sample, dtype)
        except ERRORS:  # a sample that only exists for floating-point numbers
            given = Arguments(torch, self.sample, "float32")
        return list(given.args), dict(given.kwargs)


class Spec:
    """A tensor argument of a recorded call."""

    def __init__(self, shape, dtype):
        self.shape, self.dtype = tuple(shape), dtype


def make(value, rng):
    if isinstance(value, Spec):
        return random_tensor(rng, value.shape, value.dtype)
    if isinstance(value, list):
        return [make(v, rng) for v in value]
    return value


def random_tensor(rng, shape, dtype):
    count = math.prod(shape)
    if dtype == torch.bool:
        values = [rng.random() < 0.5 for _ in range(count)]
    elif dtype.is_floating_point or dtype.is_complex:
        values = [rng.randint(-60, 60) / 16 for _ in range(count)]
    else:
        values = [rng.randint(0, 2) for _ in range(count)]
    return torch.tensor(values, dtype=dtype).reshape(shape)


ELEMENTS = {
    "float": torch.float32,
    "double": torch.float64,
    "long int": torch.int64,
    "bool": torch.bool,
    "int": torch.int32,
    "c10::Half": torch.float16,
    "c10::BFloat16": torch.bfloat16,
    "c10::complex<float>": torch.complex64,
    "c10::complex<double>": torch.complex128,
    "unsigned char": torch.uint8,
    "signed char": torch.int8,
}


def is_private(op):
    return op["paths"][0].split(".")[-1].startswith("_")


# Programs that call operators which no sample of a record calls.
PROGRAMS = """
F.cross_entropy(W(3, 4), I([0, 1, 3])); F.cross_entropy(W(3, 4), W(3, 4).softmax(1))
F.cross_entropy(W(2, 4, 5), I([[0, 1, 3, 2, 1]] * 2), torch.ones(4), reduction="sum")
F.ctc_loss(W(5, 2, 4).log_softmax(2), I([[1, 2], [3, 1]]), (5, 4), (2, 1))
F.ctc_loss(W(5, 4).log_softmax(1), I([1, 2]), (5,), (2,))
F.binary_cross_entropy(W(3).sigmoid(), torch.ones(3))
F.max_unpool1d(*F.max_pool1d(W(1, 2, 6), 2, return_indices=True), 2)
F.max_unpool2d(*F.max_pool2d(W(1, 2, 4, 4), 2, return_indices=True), 2)
F.max_unpool3d(*F.max_pool3d(W(1, 2, 4, 4, 4), 2, return_indices=True), 2)
F.adaptive_max_pool2d(W(1, 2, 5, 5), 3); F.adaptive_max_pool3d(W(1, 2, 5, 5, 5), 2)
F.fractional_max_pool2d(W(1, 2, 6, 6), 2, output_size=3)
F.fractional_max_pool3d(W(1, 2, 6, 6, 6), 2, output_size=3)
F.interpolate(W(1, 2, 5), scale_factor=2.0, mode="linear")
F.interpolate(W(1, 2, 5, 5), size=(3, 7), mode="bilinear", antialias=True)
F.interpolate(W(1, 2, 5, 5), scale_factor=1.5, mode="bicubic")
F.interpolate(W(1, 2, 3, 3, 3), size=5, mode="trilinear"); F.interpolate(W(1, 2, 5), size=3)
F.embedding_bag(I([[0, 1], [1, 0]]), W(3, 4), mode="max")
F.batch_norm(W(3, 4), torch.zeros(4), torch.ones(4), W(4), W(4), True)
torch.native_batch_norm(W(3, 4), W(4), W(4), None, None, True, 0.1, 1e-5)
torch.cholesky_solve(W(3, 2), torch.eye(3)); torch.lu_solve(W(3, 2), *torch.linalg.lu_factor(S()))
torch.linalg.eigh(S()); torch.linalg.eig(S() + W(3, 3)); torch.linalg.svd(W(4, 3))
torch.linalg.lstsq(W(4, 3), W(4, 2)); torch.linalg.ldl_factor(S()); torch.linalg.pinv(W(4, 3))
torch.linalg.solve(S(), W(3, 2)); torch.linalg.solve_triangular(S(), W(3, 2), upper=True)
torch.addmm(W(4), W(3, 5), W(5, 4)); F.linear(W(3, 5), W(4, 5), W(4))
torch.cdist(W(30, 3), W(2, 3))
torch.unique(I([1, 2, 1]), return_inverse=True); torch.unique(I([[1, 2]]), dim=0)
torch.unique_consecutive(I([1, 1, 2])); torch.histogramdd(W(5, 2), (2, 3))
torch.nn.LSTM(3, 4)(W(5, 2, 3)); torch.nn.GRU(3, 4, 2, bidirectional=True)(W(5, 2, 3))
torch.nn.RNN(3, 4, batch_first=True)(W(5, 2, 3)); torch.nn.LSTM(3, 4, proj_size=2)(W(5, 2, 3))
torch.nn.MultiheadAttention(4, 2)(W(3, 2, 4), W(3, 2, 4), W(3, 2, 4))
W(3, 4)[I([0, 2])]; W(3, 4)[I([0, 2]), I([1, 1])]; W(4, 4).as_strided((2, 2), (4, 1), 1)
torch.empty(5).exponential_(); torch.empty(5).cauchy_(); torch.empty(5).geometric_(0.5)
torch.empty(5).log_normal_(); torch.bernoulli(torch.rand(5)); torch.stft(W(20), 8, W(8))
torch.istft(torch.stft(W(20), 8, window=torch.ones(8), return_complex=True), 8, torch.ones(8))
torch._foreach_add([W(3), W(2)], 1); torch.segment_reduce(W(4), "max", lengths=I([1, 3]))
"""
OPTIMIZERS = [{}, {"momentum": 0.9}, {"amsgrad": True}, {"weight_decay": 0.1}, {"nesterov": True}]
OPTIMIZERS += [{"centered": True}, {"maximize": True}, {"decoupled_weight_decay": True}]


def run_programs():
    """The programs, each forward and backward."""

    def W(*shape):
        return torch.randn(shape, requires_grad=True)

    def S():
        return (torch.eye(3) * 3 + 0.5).requires_grad_()

    scope = {"torch": torch, "F": torch.nn.functional, "W": W, "S": S, "I": torch.tensor}
    for program in PROGRAMS.replace("\n", ";").split(";"):
        try:
            backward(eval(program.strip(), scope), None) if program.strip() else None
        except ERRORS:
            pass
    for op in torch._C.all_ops():
        try:
            eval(op["example"] or "None", {"torch": torch})
        except (*ERRORS, SyntaxError):
            pass


def workloads():
    """Runs what calls private operators: the samples of all public ones, and the optimizers."""
    run_programs()
    for op in torch._C.all_ops():
        if is_private(op) or not op["samples"]:
            continue
        function = find_function(op, "function")
        for sample in op["samples"]:
            for grad in (True, False):
                try:
                    given = Arguments(torch, sample, "float32", requires_grad=grad)
                    out = function(*given.args, **given.kwargs)
                    if grad:
                        backward(out, None, double=True)
                except ERRORS:
                    pass
    for name in dir(torch.optim):
        kind = getattr(torch.optim, name)
        if not isinstance(kind, type) or name in ("Optimizer", "LBFGS", "SparseAdam"):
            continue
        for more in OPTIMIZERS:
            weight = torch.nn.Parameter(torch.ones(3, 4))
            weight.grad = torch.ones(3, 4)
            try:
                kind([weight], lr=0.1, **more).step()
            except ERRORS:
                pass


def recorded_templates(per_op=6):
    """Calls of operators without samples, as the profiler records them inside others."""
    by_name = {}
    for op in torch._C.all_ops():
        if not op["samples"]:
            for name in {op["name"], op["aten"] or op["name"]}:
                by_name.setdefault(name, []).append(op)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        # In a process of its own: a fault may already be in a sample.
        pid = os.fork()
        if pid == 0:
            with torch.profiler.profile(record_shapes=True) as profile:
                workloads()
            profile.export_chrome_trace(path)
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        if status != 0:
            print(f"the samples themselves end with status {status}: no recorded calls", flush=True)
            return {}
        with open(path) as file:
            events = json.load(file)["traceEvents"]
    found, seen = {}, set()
    for event in events:
        given = event.get("args", {})
        name = event.get("name", "").removeprefix("aten::")
        if name not in by_name or "Input Dims" not in given:
            continue
        key = json.dumps([name, given["Input Dims"], given["Concrete Inputs"]])
        if key in seen:
            continue
        seen.add(key)
        for op in by_name[name]:
            if len(op["args"]) != len(given["Input Dims"]):
                continue
            arguments = read_arguments(op, given)
            if arguments is not None:
                found.setdefault((op["name"], op["schema"]), []).append(Template(op, arguments, []))
    return {key: spread(all_, per_op) for key, all_ in found.items()}


def spread(items, count):
    """At most count of the items, evenly."""
    if len(items) <= count:
        return items
    return [items[i * len(items) // count] for i in range(count)]


def read_arguments(op, given):
    """The arguments of an event of a trace; None if they cannot be those of the operator."""
    types = list(parse_types(op["schema"]).items())
    if len(types) != len(given["Input Dims"]):
        return None
    out = []
    for (name, kind), dims, text, element in zip(
        types, given["Input Dims"], given["Concrete Inputs"], given["Input type"], strict=True
    ):
        if element in ELEMENTS:
            if not kind.startswith("Tensor"):
                return None
            out.append(Spec(dims, ELEMENTS[element]))
        elif element == "TensorList":
            out.append([Spec(d, torch.float32) for d in dims])
        elif text:
            try:
                out.append(eval(text, {"inf": math.inf, "nan": math.nan}))
            except (SyntaxError, NameError):
                return None
        elif kind.endswith("?"):
            out.append(None)
        else:
            out.append(stand_in(op, name, kind))
    return out


def stand_in(op, name, kind):
    """A value of a type that a trace does not record."""
    if name in op["defaults"]:
        return eval(op["defaults"][name], {"torch": torch})
    kinds = {"str": "reflect", "dtype": torch.float32, "device": "cpu", "float[]": [1.0]}
    kinds |= {"Tensor": Spec((2, 3), torch.float32), "Tensor[]": [Spec((2, 3), torch.float32)]}
    kinds |= {"int": 1, "int[]": [1], "bool": False, "float": 0.5, "Scalar": 1}
    if name == "UPLO":
        return "L"
    return kinds.get(kind.rstrip("?"), 1)


def generic_templates(op):
    """Guesses, for an operator without a recorded call."""
    out = []
    for shape in ((2, 3), (2, 3, 4), (2, 3, 4, 4), (4,), (3, 3)):
        args = []
        for name, kind in parse_types(op["schema"]).items():
            value = stand_in(op, name, kind)
            if isinstance(value, Spec):
                integer = re.search("indices|index|ids|pivots|starts|bounds|target", name)
                value = Spec(shape, torch.int64 if integer else torch.float32)
            args.append(value)
        out.append(Template(op, args, []))
    return out


def templates(families=(), operators=(), private=True, public=True):
    """Valid calls of the operators, as lists, one for each operator."""
    all_ = []
    recorded = recorded_templates()
    for op in torch._C.all_ops():
        if families and op["family"] not in families:
            continue
        if operators and op["name"] not in operators:
            continue
        if not (private if is_private(op) else public):
            continue
        if op["samples"]:
            all_.append([Template(op, sample=s) for s in op["samples"]])
        else:
            known = recorded.get((op["name"], op["schema"]), [])
            all_.append(known + generic_templates(op)[: 2 if known else 5])
    return all_


def find_function(op, form):
    path = op["paths"][0]
    function = torch._C.ops.get(path + ("_" if form == "inplace" else ""))
    return function or getattr(torch.Tensor, op["name"] + ("_" if form == "inplace" else ""))


def changed_shape(rng, shape):
    shape = list(shape)
    how = rng.randrange(7)
    if how == 0 or not shape:
        return shape + [rng.choice([1, 2, 3, 0])]
    at = rng.randrange(len(shape))
    if how == 1:
        shape[at] = 0
    elif how == 2:
        shape[at] += 1
    elif how == 3:
        shape[at] = max(0, shape[at] - 1)
    elif how == 4:
        del shape[at]
    elif how == 5:
        return []
    else:
        shape.insert(at, rng.choice([1, 2, 0]))
    return shape


def changed_tensor(rng, t, others):
    how = rng.randrange(16)
    if how <= 5:
        return random_tensor(rng, changed_shape(rng, t.shape), t.dtype)
    if how <= 7:
        return t.to(rng.choice(DTYPES)) if not t.is_complex() else t.real.to(rng.choice(DTYPES))
    if how == 8:  # other values
        if t.dtype == torch.bool:
            return torch.ones_like(t)
        if t.is_complex() or t.is_floating_point():
            return torch.full_like(t, rng.choice(FLOATS))
        limits = torch.iinfo(t.dtype)
        big = rng.choice([-1, limits.max, limits.min, 100, t.numel(), -t.numel() - 1])
        return torch.full_like(t, max(limits.min, min(limits.max, big)))
    if how == 9 and not (t.dtype == torch.bool or t.is_complex() or t.is_floating_point()):
        one = t.clone()  # a single element
        if one.numel():
            flat = one.reshape(-1)
            flat[rng.randrange(one.numel())] = rng.choice([-1, 100, 3, -100])
            return flat.reshape(t.shape)
        return one
    if how <= 10:
        return t.transpose(0, -1).contiguous().transpose(0, -1) if t.dim() > 1 else t[::2]
    if how == 11 and t.dim() and t.shape[0]:
        return t[:1].expand(t.shape[0] + rng.randrange(2), *t.shape[1:])
    if how == 12:
        return t.to("meta")
    if how == 13:
        return rng.choice([None, 1, 2.5, [], [t], "x"])
    if how == 14 and others:
        return rng.choice(others)
    return random_tensor(rng, [rng.choice([0, 1, 2, 5]) for _ in range(rng.randrange(6))], t.dtype)


def changed(rng, value, others=()):
    """A value that an argument of this kind could have by mistake."""
    if isinstance(value, torch.Tensor):
        return changed_tensor(rng, value, others)
    if value is None:
        return rng.choice([0, 1, -1, 0.5, [], [1], "x", True, torch.ones(2), *others])
    if isinstance(value, bool):
        return rng.choice([not value, not value, not value, None, 2])
    if isinstance(value, int):
        near = [value + 1, value - 1, -value, 2 * value]
        return rng.choice([*near, *INTEGERS, None, 0.5, math.nan])
    if isinstance(value, float):
        return rng.choice([-value, *FLOATS, *FLOATS, None, 2**62, 1j])
    if isinstance(value, str):
        return rng.choice([*TEXTS, None, 1])
    if isinstance(value, (list, tuple)):
        kind, items = type(value), list(value)
        how = rng.randrange(7)
        if how == 0 or not items:
            return kind([]) if items else kind([rng.choice([0, 1, 2, -1, 2**62])])
        if how == 1:
            return kind(items[:-1])
        if how == 2:
            return kind(items + [items[-1]])
        if how == 3:
            return rng.choice([None, items[0], kind([None] * len(items))])
        at = rng.randrange(len(items))
        items[at] = changed(rng, items[at], others)
        return kind(items) if type(value) in (list, tuple) else items
    if isinstance(value, torch.dtype):
        return rng.choice([*DTYPES, None, "x"])
    return rng.choice([None, 0, value])


def shown(value):
    if isinstance(value, torch.Tensor):
        kind = str(value.dtype).removeprefix("torch.")
        more = "" if value.is_contiguous() else f", strides={tuple(value.stride())}"
        more += ", requires_grad" if value.requires_grad else ""
        where = "" if value.device.type == "cpu" else f", {value.device}"
        values = ""
        if value.device.type == "cpu" and not kind.startswith(("float", "bfloat", "complex")):
            values = f", {value.reshape(-1)[:8].tolist()}"
        return f"tensor({tuple(value.shape)}, {kind}{values}{more}{where})"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(shown, value)) + "]"
    return repr(value)[:60]


class Call:
    """Call `index` of a seed: the same in every process."""

    def __init__(self, all_templates, seed, index):
        rng = self.rng = random.Random(f"{seed}:{index}")
        template = rng.choice(all_templates[index % len(all_templates)])
        self.op = op = template.op
        args, kwargs = template.arguments(rng)
        names = op["args"]
        for name, text in op["defaults"].items():  # an argument that the sample leaves out
            if rng.random() < 0.15 and name not in kwargs and names.index(name) >= len(args):
                try:
                    kwargs[name] = eval(text, {"torch": torch})
                except (NameError, SyntaxError):
                    pass
        others = tensors_in(args)
        count = rng.choice([0, 1, 1, 1, 1, 2, 2, 3])
        for _ in range(count):
            places = [*range(len(args)), *kwargs]
            if not places:
                break
            at = rng.choice(places)
            try:
                if isinstance(at, int):
                    args[at] = changed(rng, args[at], others)
                else:
                    kwargs[at] = changed(rng, kwargs[at], others)
            except ERRORS:
                pass
        self.form = rng.choice(["function"] * 6 + [f for f in op["forms"] if f != "method"])
        if "function" not in op["forms"] and self.form == "function":
            self.form = "method"
        if self.form == "out":
            kwargs["out"] = self.make_out(rng, others)
        self.grad = rng.random() < 0.5 and self.form == "function"
        if self.grad:
            args = [self.wanting(a) for a in args]
            kwargs = {k: self.wanting(v) for k, v in kwargs.items()}
        self.args, self.kwargs = args, kwargs

    def make_out(self, rng, others):
        kind = rng.randrange(5)
        if kind == 0 and others:
            return rng.choice(others)
        if kind == 1 and others and others[0].numel():
            return others[0].reshape(-1)[: max(1, others[0].numel() - 1)]
        if kind == 2:
            return torch.zeros(1).expand(3)
        if kind == 3:
            return (torch.empty(0), torch.empty(0))
        return torch.empty(rng.choice([0, 3]), dtype=rng.choice(DTYPES))

    def wanting(self, value):
        if isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex()):
            return value.detach().requires_grad_()
        if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
            return type(value)(self.wanting(v) for v in value)
        return value

    def __str__(self):
        given = [shown(a) for a in self.args] + [f"{k}={shown(v)}" for k, v in self.kwargs.items()]
        name = self.op["paths"][0] + ("_" if self.form == "inplace" else "")
        return f"{name}({', '.join(given)}){'.sum().backward()' if self.grad else ''}"

    def run(self):
        out = find_function(self.op, self.form)(*self.args, **self.kwargs)
        if self.grad:
            backward(out, self.rng)
        for t in [*tensors_in(out), *tensors_in(self.args)]:  # runs what was deferred
            if t.device.type == "cpu" and t.numel() < 1 << 20:
                t.detach().reshape(-1)[-1:].tolist()


def backward(out, rng, double=False):
    results = [t for t in tensors_in(out) if t.requires_grad]
    if rng and len(results) > 1 and rng.random() < 0.5:
        results = [rng.choice(results)]
    total = None
    for t in results:
        part = (t * t).sum()
        part = part.real if part.is_complex() else part
        total = part if total is None else total + part
    if total is not None:
        total.backward(create_graph=double)


def is_long(call):
    """Calls that may take long by what they are asked for."""
    return bool(LONG.search(call.op["name"]))


def perform(call):
    """A sentence on what is wrong with the answer, or None."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call.run()
    except ERRORS as error:
        text = str(error).lower()
        if "internal error" in text or "internal assert" in text or "bad_alloc" in text:
            return f"{type(error).__name__}: {str(error)[:300]}"
    except BaseException as error:  # noqa: BLE001
        return f"{type(error).__name__}: {str(error)[:300]}"
    return None


class Child:
    """A forked process that makes the calls `begin` to `end` and reports over a pipe."""

    def __init__(self, all_templates, seed, begin, end):
        read, write = os.pipe()
        self.at, self.lines, self.rest = None, [], b""
        self.pid = os.fork()
        if self.pid == 0:
            os.close(read)
            try:
                self.serve(all_templates, seed, begin, end, write)
            finally:
                os._exit(0)
        os.close(write)
        self.read = read

    def serve(self, all_templates, seed, begin, end, write):
        with open("/proc/self/statm") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        for index in range(begin, end):
            os.write(write, f"{index}\n".encode())
            try:
                call = Call(all_templates, seed, index)
            except ERRORS:
                continue  # the mutated arguments themselves cannot be made
            if is_long(call):
                continue
            text = str(call)
            fault = perform(call)
            if fault:
                line = json.dumps([index, f"{text}: {fault}"])
                os.write(write, f"F{line[:3000]}\n".encode())
        os.write(write, b"done\n")

    def seconds(self):
        """Processor time so far."""
        try:
            with open(f"/proc/{self.pid}/stat") as file:
                fields = file.read().rsplit(")", 1)[1].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        except (OSError, IndexError):
            return 0.0

    def wait(self, limit, faults):
        """Runs to the end of the child; returns how it ended: done, hang, or a signal."""
        since, began, finished = 0.0, time.monotonic(), False
        while True:
            ready, _, _ = select.select([self.read], [], [], 0.5)
            if ready:
                data = os.read(self.read, 65536)
                if not data:
                    break
                self.rest += data
                *lines, self.rest = self.rest.split(b"\n")
                for line in lines:
                    if line.startswith(b"F"):
                        faults.append(json.loads(line[1:]))
                    elif line == b"done":
                        finished = True
                    else:
                        self.at = int(line)
                since, began = self.seconds(), time.monotonic()
            elif self.seconds() - since > limit or time.monotonic() - began > 20 * limit:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                os.close(self.read)
                return f"takes more than {limit} s"
        os.close(self.read)
        _, status = os.waitpid(self.pid, 0)
        if os.WIFSIGNALED(status):
            return signal.Signals(os.WTERMSIG(status)).name
        return "done" if finished else "the process exits"


def hunt(all_templates, seed, count, limit=5.0, log=None, begin=0):
    """Makes `count` calls; a list of [index, sentence] of those that are faults."""
    faults, index = [], begin
    end = begin + count
    while index < end:
        before = len(faults)
        stop = min(end, index + BATCH)
        child = Child(all_templates, seed, index, stop)
        ended = child.wait(limit, faults)
        if ended == "done":
            index = stop
        else:
            at = child.at if child.at is not None else index
            faults.append([at, f"{describe(all_templates, seed, at)}: {ended}"])
            index = at + 1
        for fault in faults[before:]:
            if log:
                print(f"{seed}:{fault[0]} {fault[1]}", file=log, flush=True)
    return faults


def describe(all_templates, seed, index):
    try:
        return str(Call(all_templates, seed, index))
    except BaseException as error:  # noqa: BLE001
        return f"{all_templates[index % len(all_templates)][0].op['name']} ({error!r})"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--calls", type=int, default=800)
    parser.add_argument("--each", type=int, help="calls of each operator, instead of --calls")
    parser.add_argument("--begin", type=int, default=0, help="index of the first call")
    parser.add_argument("--family", nargs="*", default=())
    parser.add_argument("--operator", nargs="*", default=())
    parser.add_argument("--private", action="store_true", help="only private operators")
    parser.add_argument("--public", action="store_true", help="only public operators")
    parser.add_argument("--guard", action="store_true", help="a guard page after each allocation")
    parser.add_argument("--limit", type=float, default=5.0, help="processor seconds of a call")
    parser.add_argument("--replay", type=int, help="makes this one call in this process")
    options = parser.parse_args()
    all_templates = templates(
        options.family, options.operator, not options.public, not options.private
    )
    if not all_templates:
        parser.error("no such operator")
    if options.replay is not None:
        call = Call(all_templates, options.seed, options.replay)
        print(call, flush=True)
        print(perform(call) or "no fault")
        return 0
    count = options.each * len(all_templates) if options.each else options.calls
    faults = hunt(all_templates, options.seed, count, options.limit, sys.stdout, options.begin)
    print(f"{count} calls of {len(all_templates)} operators, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
