"""Builds the arguments of the records' samples, for Tessera or for PyTorch, from the same numbers.

Numbers are multiples of 1/16 in (-4, 4): exact in every dtype, so that both sides start equal.
"""

DTYPES = ("float32", "float16", "bfloat16", "int64", "bool")
LAYOUTS = ("contiguous", "transposed", "stepped", "offset", "expanded")


class Numbers:
    """The same sequence on every machine."""

    def __init__(self, seed=1):
        self.state = seed

    def next(self):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 33) % 127 - 63  # -63 .. 63

    def value(self, dtype, kind="T"):
        if dtype.startswith("complex"):
            return complex(self.value("float64", kind), self.value("float64", kind))
        if kind == "P" and dtype not in ("bool", "int64"):
            return (self.next() + 72) / 32  # 0.28 .. 4.2
        if kind == "U" and dtype not in ("bool", "int64"):
            return self.next() / 72  # -0.875 .. 0.875
        return self.any_value(dtype)

    def any_value(self, dtype):
        n = self.next()
        if dtype == "bool":
            return n % 2 == 0
        if dtype == "int64":
            return n % 11 - 5
        n = n or 1  # no zeros: samples divide
        return n / 16


def nested(shape, numbers, dtype, kind="T"):
    if not shape:
        return numbers.value(dtype, kind)
    return [nested(shape[1:], numbers, dtype, kind) for _ in range(shape[0])]


def in_layout(torch, t, layout):
    """A tensor with the values of t, laid out another way; None where that cannot be."""
    if layout == "contiguous":
        return t
    if layout == "transposed":
        if t.dim() < 2:
            return None
        return t.transpose(0, -1).contiguous().transpose(0, -1)
    if t.dim() == 0:
        return None
    if layout == "stepped":
        wide = torch.zeros((*t.shape[:-1], 2 * t.shape[-1]), dtype=t.dtype, device=t.device)
        wide[..., ::2] = t
        return wide[..., ::2]
    if layout == "offset":
        longer = torch.zeros((t.shape[0] + 2, *t.shape[1:]), dtype=t.dtype, device=t.device)
        longer[1:-1] = t
        return longer[1:-1]
    if layout == "expanded":
        return t[:1].expand(t.shape) if t.shape[0] > 1 else None
    raise ValueError(layout)


class Arguments:
    """One sample as arguments; `tensors` are those that T made, in order."""

    def __init__(self, torch, text, dtype, device="cpu", layout="contiguous", requires_grad=False):
        self.tensors = []
        self.applies = True  # does the layout exist for any of the tensors?
        numbers = Numbers()
        changed = []

        def make(kind, shape, dtype):
            t = torch.tensor(nested(shape, numbers, dtype, kind), dtype=getattr(torch, dtype))
            if 0 in shape:
                t = torch.zeros(shape, dtype=getattr(torch, dtype))
            return add(t.to(device), dtype)

        def add(t, dtype):
            other = in_layout(torch, t, layout)
            changed.append(other is not None)
            t = t if other is None else other
            differentiable = ("float", "bfloat", "complex128")
            if requires_grad and dtype.startswith(differentiable):
                t = t.detach().requires_grad_()
            self.tensors.append(t)
            return t

        def T(*shape, dtype=dtype):
            return make("T", shape, dtype)

        def P(*shape, dtype=dtype):
            """Positive numbers."""
            return make("P", shape, dtype)

        def U(*shape, dtype=dtype):
            """Numbers between -1 and 1."""
            return make("U", shape, dtype)

        def C(*shape):
            """Complex numbers, whatever the dtype."""
            wide = dtype in ("float64", "complex128")
            return make("T", shape, "complex128" if wide else "complex64")

        def V(values):
            """These numbers, in a list."""
            kind = {"int64": int, "bool": bool}.get(dtype, lambda v: v)
            t = torch.tensor([kind(v) for v in values], dtype=getattr(torch, dtype))
            return add(t.to(device), dtype)

        def B(*shape):
            """Booleans."""
            return make("T", shape, "bool")

        def indices(values, bound=None):
            """Integers, nested as a tensor of them is."""
            t = torch.tensor(values, dtype=torch.int64).to(device)
            assert bound is None or t.numel() == 0 or max(t.reshape(-1).tolist()) < bound
            return t

        def collect(*args, **kwargs):
            return args, kwargs

        class OnDevice:
            """torch, but for tensors written out in a sample, which go to the device."""

            def __getattr__(self, name):
                return getattr(torch, name)

            @staticmethod
            def tensor(*args, **kwargs):
                return torch.tensor(*args, **kwargs).to(device)

        scope = {"T": T, "P": P, "U": U, "C": C, "B": B, "I": indices, "torch": OnDevice()}
        scope.update(V=V, collect=collect)
        self.args, self.kwargs = eval(f"collect({text})", scope)
        self.applies = layout == "contiguous" or any(changed)


def reference(op, given):
    """The record's `reference` of these arguments, in float64, as a flat list and a shape."""
    import numpy as np

    def number(value):
        return np.array(flat(value)).reshape(value.shape) if hasattr(value, "dim") else value

    scope = {name: eval(text) for name, text in op["defaults"].items()}
    scope.update(zip(op["args"], given.args))
    scope.update(given.kwargs)
    scope = {name: number(value) for name, value in scope.items()}
    result = np.asarray(eval(op["reference"], {"np": np}, scope), dtype=np.float64)
    return result.reshape(-1).tolist(), list(result.shape)


def tensors_in(out):
    """The tensors of a result, in order."""
    if isinstance(out, (tuple, list)):
        return [t for one in out for t in tensors_in(one)]
    return [out] if hasattr(out, "dim") else []


def case(op, sample, dtype):
    return f"{op['name']}|{sample}|{dtype}"


def weights(torch, like):
    """Fixed numbers in the shape of a result, to make a loss of it."""
    numbers = Numbers(7)
    shape = tuple(like.shape)
    made = torch.tensor(nested(shape, numbers, "float32"), dtype=torch.float32)
    return made.reshape(shape) if 0 not in shape else torch.zeros(shape)


def flat(t):
    """All values as a flat list of Python numbers."""
    if t.is_complex():
        return t.detach().cpu().reshape(-1).tolist()
    return t.detach().cpu().double().reshape(-1).tolist()
