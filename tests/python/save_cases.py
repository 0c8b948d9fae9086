"""What is saved in the tests and in the cross check, built alike by PyTorch and by Tessera."""

from collections import Counter, OrderedDict

DTYPES = (
    "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128"
).split()


def numbers(torch, count, dtype):
    """Values that every dtype holds, and for floating ones some that are not finite."""
    x = torch.arange(count, dtype=torch.float64).remainder(97).sub(3)
    if dtype == "bool":
        return x.remainder(3).eq(0)
    if dtype == "uint8":
        x = x.abs()
    if "float" in dtype:
        x = x.div(8)
        x[count // 2] = float("inf")
        if dtype != "bfloat16":  # conversion to it makes another NaN in PyTorch
            x[count // 3] = float("nan")
        x[count // 4] = -0.0
    if "complex" in dtype:
        return torch.complex(x, x.flip(0).mul(-0.5)).to(getattr(torch, dtype))
    return x.to(getattr(torch, dtype))


def cases(torch):
    """Objects by name."""
    nn = torch.nn
    out = {}
    for dtype in DTYPES:
        x = numbers(torch, 24, dtype)
        out[f"dtype_{dtype}"] = {"x": x.reshape(2, 3, 4), "one": x[5], "none": x[:0].reshape(0, 2)}
    x = numbers(torch, 24, "float32").reshape(4, 6)
    out["layouts"] = [
        x.t(),
        x[1:3, ::2],
        x.expand(2, 4, 6),
        x[2],
        x.reshape(1, 2, 3, 4).contiguous(memory_format=torch.channels_last),
        torch.zeros(3, 0, 2),
        torch.tensor(2.5),
    ]
    base = torch.arange(10)
    out["shared"] = {"base": base, "part": base[2:5], "again": base, "list": [base, base[::3]]}
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
    with torch.no_grad():
        for i, p in enumerate(model.parameters()):
            p.copy_(numbers(torch, p.numel(), "int64").add(i).reshape(p.shape).float() / 64)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.125, amsgrad=True)
    for p in model.parameters():
        p.grad = torch.zeros_like(p)
    optimizer.step()
    out["model"] = model.state_dict()
    state = optimizer.state_dict()
    for group in state["param_groups"]:  # options differ between versions
        for name in set(group) - {"lr", "betas", "eps", "amsgrad", "params"}:
            del group[name]
    out["checkpoint"] = {
        "epoch": 3,
        "model": model.state_dict(),
        "optimizer": state,
        "parameters": list(model.parameters()),
        "frozen": nn.Parameter(torch.ones(2), requires_grad=False),
        "wants": torch.ones(2, requires_grad=True),
    }
    out["plain"] = {
        "none": None,
        "bools": (True, False),
        "ints": [0, -1, 255, 256, 65536, -(2**31), 2**31, 2**63 - 1, -(2**63), 2**63, -(2**100)],
        "floats": [0.5, -0.0, float("inf"), 1e-300],
        "complex": 1.5 - 2j,
        "text": ["", "word", "größer 中文 \U0001f600", "a" * 300],
        "bytes": [b"", b"\x00\xff", bytearray(b"\x80a")],
        "sets": [{1, 2, 3}, set(), frozenset({"a"})],
        "nested": {"a": {"b": [({},), ()]}, 1: "int", (1, 2): "pair", 2.5: "float", None: 0},
        "ordered": OrderedDict([("z", 1), ("a", 2)]),
        "counter": Counter("hello"),
        "size": torch.Size([2, 3]),
        "device": [torch.device("cpu"), torch.device("cuda", 1)],
        "dtypes": [torch.float32, torch.bfloat16, torch.bool],
        "long": list(range(3000)),
        "wide": {str(i): i for i in range(1500)},
    }
    circle = [1]
    circle.append(circle)
    out["circle"] = circle
    return out


def bits(torch, t):
    """A tensor's values as bytes; NaNs and zeros keep their signs."""
    t = t.detach()
    if t.is_complex():
        t = torch.view_as_real(t)
    return t.contiguous().reshape(-1).view(torch.uint8).tolist()


def difference(torch, a, b, at="", seen=()):
    """Where two objects differ, in words; None where they do not."""
    if type(a) is not type(b):
        return f"{at}: {type(a).__name__} and {type(b).__name__}"
    if id(a) in seen:
        return None
    if isinstance(a, torch.Tensor):
        for name in ("dtype", "shape", "device", "requires_grad", "is_leaf"):
            if getattr(a, name) != getattr(b, name):
                return f"{at}.{name}: {getattr(a, name)} and {getattr(b, name)}"
        if a.stride() != b.stride() or a.storage_offset() != b.storage_offset():
            return f"{at}: another geometry"
        if bits(torch, a) != bits(torch, b):
            return f"{at}: {a} and {b}"
        return difference(torch, vars(a), vars(b), at + ".__dict__", seen)
    seen = (*seen, id(a))
    if isinstance(a, dict):
        if list(a) != list(b):
            return f"{at}: keys {list(a)} and {list(b)}"
        pairs = [(f"[{k!r}]", a[k], b[k]) for k in a]
        if vars(a) if hasattr(a, "__dict__") else None:
            pairs.append((".__dict__", vars(a), vars(b)))
    elif isinstance(a, (list, tuple)):
        if len(a) != len(b):
            return f"{at}: lengths {len(a)} and {len(b)}"
        pairs = [(f"[{i}]", x, y) for i, (x, y) in enumerate(zip(a, b, strict=True))]
    else:
        return None if repr(a) == repr(b) or a == b else f"{at}: {a!r} and {b!r}"
    for name, x, y in pairs:
        found = difference(torch, x, y, at + name, seen)
        if found:
            return found
    return None
