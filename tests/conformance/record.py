"""Records other samples of PyTorch's operators, from an installed PyTorch, for check.py.

    python record.py OUT.zip                     samples that cases.zip does not have
    python record.py OUT.zip --kind reference    the longer lists, with infinities, NaNs and layouts
    python record.py OUT.zip --kind error        calls that it refuses
    python check.py OUT.zip --module tessera --show 50

It runs in a Python that has torch, numpy and expecttest, and records the operators of cases.zip: of
each operator and dtype at most --most samples (40); --part 0/4 takes every fourth operator. Another
PyTorch than that of cases.zip may answer otherwise: look before you believe it.
"""

import argparse
import collections
import hashlib
import io
import json
import pathlib
import signal
import warnings
import zipfile

import numpy as np
import torch

DTYPES = ["float32", "int64", "float64", "bfloat16", "float16", "bool", "complex64"]
LARGEST = 200_000  # elements


class Skip(Exception):
    """The format has no words for it."""


class Late(Exception):
    """It takes too long."""


class limited:
    """At most so many seconds for what is within."""

    def __init__(self, seconds):
        self.seconds = seconds

    def __enter__(self):
        def late(*_):
            raise Late

        signal.signal(signal.SIGALRM, late)
        signal.alarm(self.seconds)

    def __exit__(self, *_):
        signal.alarm(0)


class Recorder:
    def __init__(self, path):
        self.zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1)
        self.names, self.cases, self.left_out = set(), [], collections.Counter()

    def array(self, a):
        data = io.BytesIO()
        np.save(data, a)
        name = hashlib.sha1(data.getvalue()).hexdigest()[:20]
        if name not in self.names:
            self.names.add(name)
            self.zip.writestr(name + ".npy", data.getvalue())
        return name

    def tensor(self, t, given=False):
        if t.layout != torch.strided or t.is_quantized or t.device.type != "cpu":
            raise Skip
        if t.numel() > LARGEST:
            raise Skip
        plain = t.detach().resolve_conj().resolve_neg().contiguous()
        if t.dtype == torch.bfloat16:
            a = plain.view(torch.int16).numpy().reshape(-1)
        else:
            a = plain.numpy()
        out = {"T": self.array(a), "d": str(t.dtype)[6:], "s": list(t.shape)}
        if given and t.requires_grad:
            out["g"] = True
        if given and t.dim() >= 2 and not t.is_contiguous():
            out["nc"] = True
        return out

    def argument(self, x):
        if isinstance(x, torch.Tensor):
            return self.tensor(x, True)
        if x is None or isinstance(x, (bool, int, str)):
            return x
        if isinstance(x, float):
            return {"f": repr(x)}
        if isinstance(x, complex):
            return {"c": [repr(x.real), repr(x.imag)]}
        if isinstance(x, tuple):
            return {"t": [self.argument(y) for y in x]}
        if isinstance(x, list):
            return {"l": [self.argument(y) for y in x]}
        if isinstance(x, dict):
            return {"D": [[k, self.argument(v)] for k, v in x.items()]}
        if isinstance(x, slice):
            return {"sl": [self.argument(y) for y in (x.start, x.stop, x.step)]}
        if x is Ellipsis:
            return {"e": 1}
        if isinstance(x, torch.device):
            return {"dev": 1}
        if isinstance(x, np.generic):
            return self.argument(x.item())
        for kind, name in ((torch.dtype, "dt"), (torch.memory_format, "mf"), (torch.layout, "lay")):
            if isinstance(x, kind):
                return {name: str(x)[6:]}
        raise Skip

    def result(self, x):
        if isinstance(x, torch.Tensor):
            return self.tensor(x)
        if x is None or isinstance(x, (bool, int, str)):
            return x
        return {"f": repr(x)}  # seen to be there, not compared

    def close(self):
        self.zip.writestr("cases.json", json.dumps(self.cases))
        self.zip.close()


def flat(x):
    if isinstance(x, dict):
        x = list(x.values())
    return [z for y in x for z in flat(y)] if isinstance(x, (list, tuple)) else [x]


def made_again(x, leaves):
    """What check.py makes of what is recorded; tensors that take gradients in its order."""
    if isinstance(x, torch.Tensor):
        t = x.detach().clone(memory_format=torch.contiguous_format)
        if x.dim() >= 2 and not x.is_contiguous():
            t = t.transpose(0, -1).contiguous().transpose(0, -1)
        if x.requires_grad:
            t = t.detach().requires_grad_(True)
            leaves.append(t)
        return t
    if isinstance(x, torch.Size):
        return x
    if isinstance(x, (list, tuple)):
        return type(x)(made_again(y, leaves) for y in x)
    if isinstance(x, dict):
        return {k: made_again(v, leaves) for k, v in x.items()}
    return x


def callable_of(name, kind):
    if kind == "property":
        return lambda x: getattr(x, name)
    if kind == "method":
        return lambda x, *a, **k: getattr(x, name)(*a, **k)
    f = torch
    for part in name.split("."):
        f = getattr(f, part)
    return f


def gradients(results, leaves):
    outs = [x for x in results if isinstance(x, torch.Tensor) and x.requires_grad]
    random, total = np.random.RandomState(1234), 0
    for x in outs:
        weights = torch.from_numpy(np.asarray(random.standard_normal(tuple(x.shape))))
        real = x.real if x.is_complex() else x
        total = total + (real * weights.to(real.dtype)).sum()
    return torch.autograd.grad(total, leaves, allow_unused=True) if outs else None


def record(recorder, f, sample, case, random):
    arguments = (sample.input, *sample.args)
    case["args"] = [recorder.argument(a) for a in arguments]
    case["kw"] = [[k, recorder.argument(v)] for k, v in sample.kwargs.items()]
    leaves = []
    given = [made_again(a, leaves) for a in arguments]
    named = {k: made_again(v, leaves) for k, v in sample.kwargs.items()}
    if case["dtype"] == "error":
        try:
            f(*given, **named)
        except NotImplementedError:
            raise Skip from None
        except Exception as e:
            case.update(err=type(e).__name__, msg=str(e)[:200])
            return
        raise Skip
    with limited(30):
        results = flat(f(*given, **named))
        case.update(out=[recorder.result(x) for x in results], random=random)
        if leaves and not random:
            try:
                found = gradients(results, leaves)
            except RuntimeError:
                found = None
            if found is not None:
                case["grads"] = [None if g is None else recorder.tensor(g) for g in found]


def samples(op, kind, dtype):
    torch.manual_seed(4321)
    np.random.seed(4321)
    if kind == "error":
        return [e.sample_input for e in op.error_inputs("cpu")]
    grad = op.supports_autograd and dtype in op.backward_dtypes
    grad = grad and (dtype.is_floating_point or dtype.is_complex)
    make = op.reference_inputs if kind == "reference" else op.sample_inputs
    return list(make("cpu", dtype, requires_grad=grad))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out")
    parser.add_argument("--kind", choices=["sample", "reference", "error"], default="sample")
    parser.add_argument("--part", default="0/1")
    parser.add_argument("--most", type=int, default=40)
    options = parser.parse_args()
    part, parts = map(int, options.part.split("/"))
    warnings.simplefilter("ignore")
    from torch.testing._internal.common_methods_invocations import op_db

    there = pathlib.Path(__file__).with_name("cases.zip")
    old = json.loads(zipfile.ZipFile(there).read("cases.json"))
    kinds = {(c["op"], c["v"]): (c["k"], c["random"]) for c in old if "err" not in c}
    seen = {(c["op"], c["v"], c["dtype"], c["i"]) for c in old}
    known = {(o.name, o.variant_test_name): o for o in op_db}
    recorder = Recorder(options.out)
    for name, (how, random) in sorted(kinds.items())[part::parts]:
        op = known.get(name)
        if op is None or (options.kind == "error" and op.error_inputs_func is None):
            continue
        f = callable_of(name[0], how)
        for dtype in ["error"] if options.kind == "error" else DTYPES:
            if dtype != "error" and getattr(torch, dtype) not in op.dtypes:
                continue
            try:
                with limited(60):
                    found = samples(op, options.kind, getattr(torch, dtype, None))
            except Exception as e:
                recorder.left_out[type(e).__name__] += 1
                continue
            new = [i for i in range(len(found)) if (*name, dtype, i) not in seen]
            if options.kind == "reference":
                new = list(range(len(found)))
            if len(new) > options.most:
                chosen = np.random.RandomState(5).choice(new, options.most, replace=False)
                new = sorted(chosen.tolist())
            for i in new:
                case = {"op": name[0], "v": name[1], "k": how, "dtype": dtype, "i": i}
                try:
                    record(recorder, f, found[i], case, random)
                except Exception as e:
                    recorder.left_out[type(e).__name__] += 1
                    continue
                recorder.cases.append(case)
    recorder.close()
    print(f"{len(recorder.cases)} cases in {options.out}; left out: {dict(recorder.left_out)}")


if __name__ == "__main__":
    main()
