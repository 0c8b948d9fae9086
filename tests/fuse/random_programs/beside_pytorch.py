#!/usr/bin/env python3
"""[DEVICE=cuda] beside_pytorch.py MAKER PROGRAMS [SEED] [--examples N]

Random programs on PyTorch and on Tessera, in one process, statement by statement: what is made or
written must agree within the rounding of one operator, and where one of them raises, so must the
other. After each statement Tessera's tensors are given PyTorch's numbers, in their memory, so that
what is seen is what that statement did. That deferral changes nothing is shown by MAKER
itself (bin/fuse_random), bit for bit.

Status 1 if anything disagrees; the kinds of disagreement are counted, with an example of each.
"""

import argparse
import os
import pickle
import re
import subprocess
import sys
import warnings

import numpy
import torch
from pytorch_differs import REFUSED, reasons_for

import tessera

# Programs in one process: PyTorch crashes after some hundred of them.
TOGETHER = {"cpu": 20, "cuda": 100}

# Of one operator: relative, and how much of the largest operand where sums are made.
ROUNDING = {"float64": 1e-8, "float32": 3e-5, "float16": 4e-3, "bfloat16": 3e-2}
ROUNDING |= {"complex128": ROUNDING["float64"], "complex64": ROUNDING["float32"]}
SMALLEST = {"float64": 1e-300, "float32": 1e-36, "float16": 1e-6, "bfloat16": 1e-36}
SMALLEST |= {"complex128": 1e-300, "complex64": 1e-36}

OPS = {path: op for op in tessera._C.all_ops() for path in (op["name"], *op["paths"])}
CALL = re.compile(r"(?:= |: |^|four\()(?:torch\.(?P<path>[\w.]+)|t\d+\.(?P<method>\w+))\(")


def dtype_name(t):
    return str(t.dtype).removeprefix("torch.").removeprefix("tessera.")


def elements(t):
    """In their order, in numpy; it has no bfloat16, so of those the bits."""
    flat = t.detach().cpu().resolve_conj().resolve_neg().contiguous().reshape(-1)
    if dtype_name(t) == "bfloat16":
        flat = flat.view(torch.int16 if isinstance(t, torch.Tensor) else tessera.int16)
    return flat.clone().numpy()  # of zeros without memory, which PyTorch's gradients may be, too


def numbers(t):
    found = elements(t)
    if dtype_name(t) == "bfloat16":
        return (found.astype(numpy.uint32) << 16).view(numpy.float32)
    return found


def parts(values):
    """Complex numbers as pairs: a NaN in one part says nothing of the other."""
    return values.view(values.real.dtype) if numpy.iscomplexobj(values) else values


def can_be_asked(t):
    """One of several views, after a write to another of them, raises at every question."""
    try:
        return t.is_leaf in (True, False)
    except RuntimeError:
        return False


class Side:
    """One of the two, with its variables."""

    def __init__(self, module):
        self.module = module
        nothing = lambda *a: None
        self.names = dict(torch=module, data=self.data, foreign_data=self.data, four=self.four)
        self.names |= dict(poke=nothing, switch_stream=nothing, synchronize=nothing)

    def data(self, raw, dtype, shape):
        if not raw:
            return self.module.empty(shape, dtype=dtype)
        return self.module.frombuffer(bytearray(raw), dtype=dtype).reshape(shape).clone()

    def four(self, made):
        return (list(made) + [None] * 4)[:4]

    def run(self, statement):
        """What it raises."""
        try:
            exec(statement, self.names)
        except Exception as error:
            return error

    def tensors(self):
        kind = self.module.Tensor
        found = {n: v for n, v in self.names.items() if n[0] == "t" and isinstance(v, kind)}
        for name in [n for n, v in found.items() if not can_be_asked(v)]:
            del found[name], self.names[name]
        return found


class Judge:
    def __init__(self, examples):
        self.counts, self.examples, self.most = {}, {}, examples
        self.program, self.known, self.alone = 0, {}, 0

    def found(self, op, kind, text):
        text = f"in program {self.program}\n{text}"
        key = (op, kind)
        self.counts[key] = self.counts.get(key, 0) + 1
        if len(self.examples.setdefault(key, [])) < self.most:
            self.examples[key].append(text)

    def add(self, other):
        for key, count in other.counts.items():
            self.counts[key] = self.counts.get(key, 0) + count
            kept = self.examples.setdefault(key, [])
            kept += other.examples[key][: self.most - len(kept)]
        for why, count in other.known.items():
            self.known[why] = self.known.get(why, 0) + count
        self.alone += other.alone

    def report(self):
        for key, count in sorted(self.counts.items(), key=lambda item: -item[1]):
            print(f"{count:6d}  {key[0]}: {key[1]}")
            for text in self.examples[key]:
                print("        " + text.replace("\n", "\n        "))


def strides(t):
    """Where they say something."""
    return [s for n, s in zip(t.shape, t.stride()) if n > 1] if t.numel() else []


def excused(op, theirs, ours, kind, read, shape):
    """Elements for which a reason is known, and the reasons."""
    places = numpy.zeros(theirs.shape, bool)
    reasons = []
    elements_there = []
    for t in read.values():
        try:
            values = numbers(t.expand(shape))
        except RuntimeError:  # a reduction's: all of it stands for every place
            values = numbers(t)
        values = parts(values).astype(numpy.float64)
        if values.shape != theirs.shape:
            values = numpy.array([abs(values).max() if values.size else 0.0])
        elements_there.append(values)
    indices = kind == "int64" and all(dtype_name(t) != "int64" for t in read.values())
    for found, why in reasons_for(op, theirs, ours, elements_there, "index" if indices else kind):
        places |= found
        reasons.append(why)
    return places, reasons


def span(t):
    if t.numel() == 0:
        return t.data.reshape(-1)
    last = sum((n - 1) * s for n, s in zip(t.shape, t.stride()))
    return t.data.as_strided((last + 1,), (1,), t.storage_offset())


def difference(op, name, theirs, ours, allowance, read, written):
    """What of two tensors is not the same, or None."""
    if dtype_name(theirs) == "complex32":
        return "known", "complex numbers of 16 bits"
    if dtype_name(theirs) != dtype_name(ours):
        return "dtype", f"{name}: {theirs.dtype} and {ours.dtype}"
    if tuple(theirs.shape) != tuple(ours.shape):
        return "shape", f"{name}: {tuple(theirs.shape)} and {tuple(ours.shape)}"
    if strides(theirs) != strides(ours):
        if op in ("where", "nonzero", "argwhere", "msort", "pow"):
            return "known", "strides of indices, of what is sorted, of powers of a number"
        return "strides", f"{name}: of {tuple(ours.shape)} {theirs.stride()} and {ours.stride()}"
    if theirs.requires_grad != ours.requires_grad:
        if theirs._is_view() or re.fullmatch(
            r"(eq|ne|lt|le|gt|ge)_|\w+_copy|normal|adjoint|conj", op
        ):
            return "known", "requires_grad of views made in no_grad, of comparisons, of copies"
        return "requires_grad", f"{name}: {theirs.requires_grad} and {ours.requires_grad}"
    a, b = parts(numbers(theirs)), parts(numbers(ours))
    kind = dtype_name(theirs)
    x, y = a.astype(numpy.float64), b.astype(numpy.float64)
    if a.dtype.kind not in "fc":
        wrong = a != b
    else:
        with numpy.errstate(all="ignore"):
            rounding = max(ROUNDING[kind], allowance[1])
            near = abs(x - y) <= SMALLEST[kind] + rounding * (abs(x) + allowance[0])
        wrong = ~(near | (x == y) | (numpy.isnan(x) & numpy.isnan(y)))
    if wrong.any():
        others = [
            t for t in written.values() if dtype_name(t) in ROUNDING and dtype_name(t) != kind
        ]
        if name not in written and any(numpy.isnan(numbers(t)).any() for t in others):
            return "known", "the bits of a NaN, seen as another dtype"
        places, reasons = excused(op, x, y, kind, read, theirs.shape)
        if not (wrong & ~places).any():
            return "known", reasons[0]
        wrong &= ~places
        i = int(numpy.flatnonzero(wrong)[0])
        where = f"{name}, {dtype_name(theirs)} {tuple(theirs.shape)}"
        text = f"{where}: {wrong.sum()} of {a.size}, [{i}] {a[i]!r} and {b[i]!r}"
        return "values", operands_near(read, i * theirs.numel() // a.size, theirs.shape) + text
    return None


def operands(statement, names):
    """Copies of the tensors that a statement reads."""
    found = dict.fromkeys(re.findall(r"\bt\d+\b", statement.split(" = ", 1)[-1]))
    return {n: names[n].detach().clone() for n in found if isinstance(names.get(n), torch.Tensor)}


def operands_near(read, at, shape):
    try:
        return operands_text(read, at, shape)
    except RuntimeError:
        return operands_text(read)


def operands_text(read, at=None, shape=None):
    """Whole, or what lies at an element of a result to whose shape they are broadcast."""
    text = ""
    for name, t in read.items():
        text += f"{name}: {dtype_name(t)} {tuple(t.shape)} {t.stride()}"
        if at is not None and torch.broadcast_shapes(t.shape, shape) == shape:
            text += f" there {t.expand(shape).reshape(-1)[at].item()!r}"
        elif t.numel() <= 24:
            text += f" = {t.tolist()}"
        text += "\n"
    return text


def precision(statement, names):
    """The largest of its operands' finite numbers: sums in another order differ by a fraction of
    it; and the rounding of the operand that has the fewest digits."""
    most = rounding = 0.0
    for name in dict.fromkeys(re.findall(r"\bt\d+\b", statement)):
        t = names.get(name)
        if not isinstance(t, torch.Tensor) or t.dtype == torch.bool or not t.numel():
            continue
        values = abs(parts(numbers(t)).astype(numpy.float64))
        values = values[numpy.isfinite(values)]
        most = max(most, float(values.max()) if values.size else 0.0)
        # A float is what an integer becomes.
        rounding = max(rounding, ROUNDING.get(dtype_name(t), ROUNDING["float32"]))
    return most, rounding


class Run:
    """One program on both."""

    def __init__(self, judge, theirs):
        self.judge, self.over, self.seen = judge, False, []
        self.theirs, self.ours = Side(theirs), Side(tessera)

    def statement(self, text):
        match = CALL.search(text)
        op = (match.group("path") or match.group("method")) if match else text.split("(")[0]
        record = OPS.get(op) or OPS.get(op.rstrip("_")) or {}
        if "torch._C." in text or op.startswith("_"):
            return self.ours_alone(text)
        if self.is_not_said(op, text):
            return
        sums = record.get("kind", "") != "pointwise"
        largest, rounding = precision(text, self.theirs.names)
        allowance = (largest if sums else 0.0), rounding
        before = operands(text, self.theirs.names)
        errors = self.theirs.run(text), self.ours.run(text)
        if any(isinstance(e, NameError) for e in errors):
            return
        if any(errors):
            self.compare_errors(op, text, before, *errors)
            return
        self.compare(op, text, before, allowance, record.get("random"))

    def is_not_said(self, op, text):
        """Does PyTorch leave open what comes out?"""
        names = re.findall(r"\bt\d+\b", text.split(" = ")[-1])
        if re.fullmatch(r"clamp_?", op):  # a number and a tensor as bounds
            return len(names) == 2
        if op.startswith("unsafe_"):  # views that are none
            return True
        written = re.search(r"out=(t\d+)", text)
        if not written:
            return False
        shared = [self.theirs.names.get(n) for n in names]
        at = [t.untyped_storage().data_ptr() for t in shared if isinstance(t, torch.Tensor)]
        return len(set(at)) < len(at)  # a result over its own operand

    def compare_errors(self, op, text, before, theirs, ours):
        if theirs and ours:
            # PyTorch has then resized a result, or written half of it; Tessera leaves it alone.
            self.over = self.drop_unlike()
            return self.give(self.theirs, self.ours)
        self.over = True  # what follows is another program on each of them
        if theirs:
            self.judge.alone += 1
        elif not isinstance(ours, NotImplementedError) and not any(w in str(ours) for w in REFUSED):
            said = f"{type(ours).__name__}: {str(ours)[:300]}"
            self.judge.found(op, "Tessera alone raises", f"{operands_text(before)}{text}\n{said}")

    def ours_alone(self, text):
        """An operator that PyTorch has not: what it makes is given to PyTorch."""
        before = set(self.ours.names)
        if self.ours.run(text) is not None:
            return
        for name in set(self.ours.names) - before:
            t = self.ours.names[name]
            if not isinstance(t, tessera.Tensor):
                continue
            t = self.ours.names[name] = t.detach().clone().contiguous()
            raw = elements(t).tobytes()
            kind = getattr(torch, dtype_name(t))
            self.theirs.names[name] = self.theirs.data(raw, kind, tuple(t.shape)).to(str(t.device))
        self.give(self.ours, self.theirs)

    def forget_all_but_common(self):
        """What one of them alone has made or deleted is nobody's."""
        for one, other in ((self.theirs, self.ours), (self.ours, self.theirs)):
            for name in one.tensors().keys() - other.tensors().keys():
                del one.names[name]

    def give(self, source, target):
        """Every tensor of `target` gets the numbers of `source`, without a trace in its history."""
        given = target.tensors()
        for name, t in source.tensors().items():
            to = given.get(name)
            if to is None or dtype_name(to) != dtype_name(t) or strides(to) != strides(t):
                continue
            # The memory from the first to the last element: elements may share places.
            memory = span(t), span(to)
            raw = elements(memory[0]).tobytes()
            if raw:
                memory[1].copy_(target.data(raw, to.dtype, tuple(memory[1].shape)))

    def compare(self, op, text, before, allowance, random):
        for name, t in self.theirs.tensors().items():
            if t.is_conj() or t.is_neg():  # Tessera computes them at once
                self.theirs.names[name] = t.resolve_conj().resolve_neg()
        ours = self.ours.tensors()
        unlike = False
        seen = self.theirs.tensors()
        written = {n: seen[n] for n in re.findall(r"\bt\d+\b", text) if n in seen}
        for name, t in self.theirs.tensors().items():
            if name not in ours:
                self.judge.found(
                    op, "no tensor", f"{operands_text(before)}{text}\n{name} = {ours.get(name)!r}"
                )
                continue
            pairs = [(name, t, ours[name])]
            if t.is_leaf and (t.grad is not None or ours[name].grad is not None):
                pairs.append((name + ".grad", t.grad, ours[name].grad))
            for label, x, y in pairs:
                if x is None or y is None:
                    self.judge.found(
                        op,
                        "gradient missing",
                        f"{operands_text(before)}{text}\n{label}: {x} and {y}",
                    )
                    continue
                if label != name and x.numel():  # through sums of what has any sign
                    finite = abs(parts(numbers(x)).astype(numpy.float64))
                    largest = finite[numpy.isfinite(finite)].max(initial=0.0)
                    backward = max([ROUNDING.get(dtype_name(v), 0.0) for v in self.seen], default=0)
                    found = difference("backward", label, x, y, (largest, backward), {name: t}, {})
                    y.data.copy_(self.ours.data(elements(x).tobytes(), y.dtype, tuple(y.shape)))
                else:
                    found = difference(op, label, x, y, allowance, before, written)
                if found and found[0] == "known":
                    self.judge.known[found[1]] = self.judge.known.get(found[1], 0) + 1
                elif found and not (random and found[0] == "values"):
                    self.judge.found(op, found[0], f"{text}\n{found[1]}")
                unlike |= bool(found)
        self.forget_all_but_common()
        self.seen += [t for n, t in self.theirs.tensors().items() if n not in before]
        if unlike:
            self.drop_unlike()
        self.give(self.theirs, self.ours)

    def drop_unlike(self):
        """Later statements cannot be compared where dtype or geometry differ."""
        ours, before = self.ours.tensors(), len(self.ours.names)
        for name, t in self.theirs.tensors().items():
            o = ours[name]
            same = (dtype_name(t), tuple(t.shape), strides(t), t.requires_grad)
            if same != (dtype_name(o), tuple(o.shape), strides(o), o.requires_grad):
                del self.theirs.names[name], self.ours.names[name]
        return len(self.ours.names) < before


def programs(maker, count, seed, device):
    made = subprocess.run(
        [maker, "--print", str(count), "--seed", str(seed), "--device", device],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
    for part in made.split("# program ")[1:]:
        number, *lines = part.splitlines()
        yield int(number), [line for line in lines if not line.startswith("#")]


def run_programs(part, o, theirs):
    judge, statements = Judge(o.examples), 0
    for number, lines in part:
        run, judge.program = Run(judge, theirs), number
        for line in lines:
            try:
                run.statement(line)
            except Exception as error:
                judge.found("this script", type(error).__name__, f"{line[:300]}\n{error}")
                break
            statements += 1
            if run.over:
                break
    return statements, judge


def in_a_process(function, *arguments):
    """What it returns, or None where its process ended: PyTorch crashes in some programs."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        with os.fdopen(writing, "wb") as out:
            pickle.dump(function(*arguments), out)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as told:
        text = told.read()
    _, status = os.waitpid(child, 0)
    return pickle.loads(text) if status == 0 else None


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[2])
    options.add_argument("maker", help="bin/fuse_random of a build")
    options.add_argument("programs", type=int)
    options.add_argument("seed", type=int, nargs="?", default=1)
    options.add_argument("--examples", type=int, default=1, help="of each kind of disagreement")
    o = options.parse_args()
    o.device = os.environ.get("DEVICE", "cpu")
    together = TOGETHER[o.device]
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    tessera.set_num_threads(1)
    judge, ran, statements, crashed = Judge(o.examples), 0, 0, 0
    made = list(programs(o.maker, o.programs, o.seed, o.device))
    for start in range(0, len(made), together):
        part = made[start : start + together]
        told = in_a_process(run_programs, part, o, torch)
        if told is None:
            whose = "PyTorch" if in_a_process(run_programs, part, o, tessera) else "Tessera"
            crashed += whose == "Tessera"
            print(f"{whose} crashed in programs {part[0][0]} to {part[-1][0]}", flush=True)
            continue
        ran += len(part)
        statements += told[0]
        judge.add(told[1])
    judge.report()
    for why, count in judge.known.items():
        print(f"{count:6d}  known: {why}")
    print(f"{judge.alone:6d}  programs ended where PyTorch raises and Tessera does not")
    total = sum(judge.counts.values()) + crashed
    beside = f"{statements} statements beside PyTorch {torch.__version__}"
    print(f"{ran} programs, {beside}, {total} disagreements")
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
