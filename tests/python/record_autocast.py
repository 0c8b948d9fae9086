"""Records which dtypes PyTorch's operators return under autocast, for tests on machines without it.

python record_autocast.py list | python-with-torch record_autocast.py record data/autocast.json

Of operators that autocast does not touch nothing is written down; where PyTorch raises the case is
"?". The GPU's answers come from PyTorch's fake tensors, which need no GPU.
"""

import contextlib
import json
import sys
from itertools import product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from record_oracle import find
from samples import Arguments, tensors_in

LOWER = {"cpu": "bfloat16", "cuda": "float16"}
# full: float32 everywhere; half: the lower precision; first, rest: only the first tensor's, or only
# that of the others.
VARIANTS = ("full", "half", "first", "rest")
# What the samples leave out: H makes tensors of the lower precision, S a symmetric one, F float32.
EXPRESSIONS = (
    *(
        f"torch.linalg.{name}(S(3))"
        for name in "cholesky inv eigvalsh svdvals qr eigh eigvals matrix_rank cond inv_ex "
        "cholesky_ex svd eig".split()
    ),
    "torch.linalg.solve(S(3), H(3, 3))",
    "torch.linalg.lstsq(S(3), H(3, 3)).solution",
    "torch.cholesky_solve(H(3, 3), S(3))",
    "torch.inverse(S(3))",
    "torch.geqrf(S(3))",
    "nn.functional.binary_cross_entropy(H(3).sigmoid(), H(3).sigmoid())",
    "nn.functional.binary_cross_entropy(F(3).sigmoid(), F(3).sigmoid())",
    "nn.functional.ctc_loss(H(5, 2, 4), torch.ones(2, 2, dtype=torch.long), (5, 5), (2, 2))",
    "nn.functional.interpolate(H(1, 1, 4, 4), scale_factor=2)",
    "nn.functional.interpolate(H(1, 1, 4, 4), scale_factor=2, mode='bilinear')",
    "nn.functional.interpolate(H(1, 1, 4, 4), scale_factor=2, mode='bicubic')",
    "nn.functional.interpolate(H(1, 1, 4), scale_factor=2, mode='linear')",
    "nn.functional.adaptive_max_pool3d(H(1, 1, 4, 4, 4), 2)",
    "nn.functional.adaptive_max_pool2d(H(1, 1, 4, 4), 2)",
    "nn.functional.fractional_max_pool2d(H(1, 1, 8, 8), 2, output_size=3)",
    "nn.functional.max_unpool2d(*nn.functional.max_pool2d(H(1, 1, 8, 8), 2, "
    "return_indices=True), 2)",
    "torch.stft(H(64), 16, window=F(16), return_complex=True)",
    "torch.cat([H(2), F(2)])",
    "torch.cat([H(2), H(2)])",
    "torch.stack([H(2), F(2)])",
    "torch.einsum('ij,jk', F(2, 3), F(3, 2))",
    "torch.einsum('ij,jk', H(2, 3), F(3, 2))",
    "torch.einsum('i,i', F(3), F(3))",
    "torch.addcmul(H(3), F(3), H(3))",
    "torch.atan2(H(3), F(3))",
    "nn.functional.multi_margin_loss(H(2, 3), torch.tensor([0, 1], device=DEVICE))",
    "nn.functional.multilabel_margin_loss(H(3), torch.tensor([0, 1, -1], device=DEVICE))",
    "nn.functional.gaussian_nll_loss(H(3), H(3), H(3).abs())",
    "nn.functional.cosine_embedding_loss(H(2, 3), H(2, 3), F(2))",
    "nn.functional.triplet_margin_with_distance_loss(H(2, 3), H(2, 3), H(2, 3))",
    "nn.functional.embedding(torch.tensor([0], device=DEVICE), F(3, 3))",
    "nn.functional.gelu(H(3))",
    "nn.functional.batch_norm(H(3, 3), F(3), F(3).abs(), training=True)",
    "nn.functional.rms_norm(H(3), (3,))",
    "nn.functional.softmax(H(3), 0, dtype=torch.float64)",
    "nn.functional.softmax(H(3), 0, dtype=LOWER)",
    "H(3).sum(dtype=LOWER)",
    "H(3).cumsum(0, dtype=torch.float64)",
    "H(3).norm()",
    "torch.norm(H(3), p=1, dim=0)",
    "H(3) ** 2",
    "2 ** H(3)",
    "1 / H(3)",
    "H(3).mean()",
    "H(3).var()",
    "F(3, 3) @ F(3, 3)",
    "F(3, 3).double() @ F(3, 3).double()",
    "torch.arange(9, device=DEVICE).view(3, 3).cumsum(0)",
    "nn.Linear(3, 4, device=DEVICE)(H(2, 3))",
    "nn.Conv2d(1, 2, 3, device=DEVICE)(H(1, 1, 5, 5))",
    "nn.LSTMCell(3, 4, device=DEVICE)(F(2, 3))",
    "nn.GRUCell(3, 4, device=DEVICE)(F(2, 3))",
    "nn.RNNCell(3, 4, device=DEVICE)(F(2, 3))",
    "nn.MultiheadAttention(4, 2, device=DEVICE)(F(3, 1, 4), F(3, 1, 4), F(3, 1, 4))",
    "nn.TransformerEncoderLayer(4, 2, 8, device=DEVICE)(F(3, 1, 4))",
)


def list_operators():
    import tessera

    keep = ("name", "paths", "samples")
    ops = [{k: op[k] for k in keep} for op in tessera._C.all_ops()]
    json.dump([op for op in ops if op["samples"]], sys.stdout)


def change(value, one):
    if isinstance(value, (tuple, list)) and not hasattr(value, "_fields"):
        return type(value)(change(v, one) for v in value)
    if isinstance(value, dict):
        return {k: change(v, one) for k, v in value.items()}
    return one(value) if hasattr(value, "is_floating_point") else value


def arguments(torch, text, device, variant):
    given = Arguments(torch, text, "float32", device)
    lower = getattr(torch, LOWER[device])
    seen = [0]

    def cast(t):
        if t.dtype != torch.float32:
            return t
        seen[0] += 1
        first = seen[0] == 1
        narrow = {"full": False, "half": True, "first": first, "rest": not first}[variant]
        return t.to(lower) if narrow else t

    args, kwargs = change(given.args, cast), change(given.kwargs, cast)
    # A variant that is another one has been seen.
    new = seen[0] > 0 and (variant in ("full", "half") or seen[0] > 1)
    return args, kwargs, new


@contextlib.contextmanager
def casting(torch, device, on):
    before = torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)
    torch.set_autocast_enabled(device, on)
    torch.set_autocast_dtype(device, getattr(torch, LOWER[device]))
    try:
        yield
    finally:
        torch.set_autocast_enabled(device, before[0])
        torch.set_autocast_dtype(device, before[1])


def dtypes(torch, function, text, device, variant, on):
    """Of the results; None where the call raises."""
    args, kwargs, new = arguments(torch, text, device, variant)
    if not new:
        return []
    with casting(torch, device, on):
        try:
            outs = tensors_in(function(*args, **kwargs))
        except Exception as error:
            return None if "unsafe to autocast" not in str(error) else "unsafe"
    return [str(t.dtype).removeprefix("torch.") for t in outs]


def expression_dtypes(torch, text, device):
    """Of the results of an expression under autocast; None where it raises."""
    lower = getattr(torch, LOWER[device])

    def F(*shape):
        return torch.ones(shape, device=device) * 0.5

    def H(*shape):
        return F(*shape).to(lower)

    def S(n):
        return (torch.eye(n, device=device) * 4 + F(n, n)).to(lower)

    scope = {"torch": torch, "nn": torch.nn, "F": F, "H": H, "S": S, "DEVICE": device}
    with casting(torch, device, True):
        try:
            outs = tensors_in(eval(text, scope | {"LOWER": lower}))
        except Exception as error:
            return None if "unsafe to autocast" not in str(error) else "unsafe"
    return ",".join(str(t.dtype).removeprefix("torch.") for t in outs)


def record(torch, ops, device):
    from torch._subclasses.fake_tensor import FakeTensorMode

    mode = FakeTensorMode if device == "cuda" else contextlib.nullcontext
    found = {}
    for op in ops:
        function = find(torch, op)
        cases, touched = {}, False
        for sample, variant in product(op["samples"][:3], VARIANTS):
            plain = cast = None
            # A sample that cannot be made there raises too.
            with mode(), contextlib.suppress(Exception):
                plain = dtypes(torch, function, sample, device, variant, False)
                cast = dtypes(torch, function, sample, device, variant, True)
            touched |= cast != plain
            if cast != []:
                word = "?" if cast is None else cast if isinstance(cast, str) else ",".join(cast)
                cases[f"{op['name']}|{sample}|{variant}"] = word
        found.update((k, v) for k, v in cases.items() if touched or v == "?")
    for text in EXPRESSIONS:
        with mode():
            found[text] = expression_dtypes(torch, text, device) or "?"
        if device == "cuda" and ("linalg" in text or "cholesky" in text):
            found[text] = "?"  # a real GPU has no such kernels
    return found


def main():
    if sys.argv[1] == "list":
        return list_operators()
    import torch

    ops = json.load(sys.stdin)
    answers = {device: record(torch, ops, device) for device in LOWER}
    text = json.dumps(answers, sort_keys=True, indent=0)
    Path(sys.argv[2]).write_text(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
