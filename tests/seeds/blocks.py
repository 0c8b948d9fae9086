"""The documents' blocks: where they stand, how they run on a device, what is expected of them."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
NUMBER = re.compile(r"-?\d+\.\d+(?:e[-+]?\d+)?")
# The names of devices in words of an expected line, see README.md.
NO_GPU = (
    ".*(?:Found no NVIDIA driver on your system|No CUDA GPUs are available|no CUDA-capable|"
    "without its cuda backend).*"
)


class Block(NamedTuple):
    file: str
    document: str
    first: int
    last: int
    language: str

    @property
    def name(self):
        return self.file.partition(".")[0]


def all_blocks():
    rows = (HERE / "blocks" / "places.tsv").read_text().splitlines()[1:]
    return [Block(a, b, int(c), int(d), e) for a, b, c, d, e in (row.split("\t") for row in rows)]


def environment(kind, packages):
    """The variables with which a program sees no GPU, two virtual ones, or the real ones."""
    leave = {"TESSERA_VIRTUAL_GPU", "VIRTUAL_ENV", "PYTHONHOME"}
    if kind != "cuda":
        leave.add("CUDA_VISIBLE_DEVICES")
    env = {k: v for k, v in os.environ.items() if k not in leave}
    env["PYTHONPATH"] = str(packages)
    if kind == "cpu":
        env["CUDA_VISIBLE_DEVICES"] = ""
    if kind == "virtual":
        env["TESSERA_VIRTUAL_GPU"] = "2x2GiB"
    return env


def run(block, kind, packages, python=sys.executable, timeout=300):
    """Runs it with the Tessera of a folder; what came of it."""
    env = environment(kind, packages)
    if env.get("TESSERA_FUSE") == "check":  # everything runs twice, and is compared
        timeout *= 5
    with tempfile.TemporaryDirectory() as folder:
        env["TESSERA_TOP_DIR"] = folder  # virtual GPUs of other programs are not seen
        if block.file.endswith(".sh"):
            del env["PYTHONPATH"]
            env.update(TESSERA_PYTHON=python, TESSERA_PACKAGES=str(packages), HOME=folder)
            command = ["bash", str(HERE / "shell.sh"), block.file]
        else:
            command = [python, "-m", "tessera", "run", str(HERE / "frame.py"), block.file]
        return subprocess.run(
            command, env=env, cwd=folder, capture_output=True, text=True, timeout=timeout
        )


def expected(name, kind):
    """The lines it should print; None where nobody wrote any."""
    folders = {"cpu": ["cpu"], "virtual": ["gpu"], "cuda": ["one_gpu", "gpu"]}[kind]
    paths = [HERE / "expected" / folder / f"{name}.txt" for folder in folders]
    path = next((path for path in paths if path.exists()), None)
    if path is None:
        return None
    lines = path.read_text().rstrip("\n").split("\n")
    return lines[1:] if lines[0].startswith("# ") else lines


def same_numbers(got, want, exact):
    """To the digits shown; a float32 with the digits of a double may differ in its last two bits.

    Where the order of additions is another (`exact` is false), by a thousandth."""
    for a, b in zip(NUMBER.findall(got), NUMBER.findall(want)):
        digits = len(b.replace(".", "").lstrip("-0"))
        if exact and digits <= 7:
            if a != b:
                return False
            continue
        allowed = abs(float(b)) * 2.0**-22 if exact else abs(float(b)) * 1e-3 + 1e-4
        if abs(float(a) - float(b)) > allowed:
            return False
    return True


def same_line(got, want, gpu="", exact=True):
    """Are the words the same, and the numbers?

    <number> and <word> stand for any, <gpu> for the device's name, <no gpu> for why there is none;
    spaces for some, and a line that ends in ... may go on."""
    if "<" in want or want.endswith("..."):
        text = re.escape(want.removesuffix("..."))
        for mark, pattern in (
            ("<number>", r"[\d.,]+"),
            ("<word>", r"\S+"),
            ("<gpu>", re.escape(gpu)),
            ("<no\\ gpu>", NO_GPU),
        ):
            text = text.replace(mark, pattern)
        text = re.sub(r"(?:\\ )+", r"\\s+", text)
        return re.fullmatch(text + (".*" if want.endswith("...") else ""), got) is not None
    return NUMBER.sub("#", got) == NUMBER.sub("#", want) and same_numbers(got, want, exact)


def difference(got, want, gpu="", exact=True):
    """Where what was printed is not what was expected; None where it is. <lines> stands for any."""
    at, anywhere = 0, False
    for line in want:
        if line == "<lines>":
            anywhere = True
            continue
        while anywhere and at < len(got) and not same_line(got[at], line, gpu, exact):
            at += 1
        if at == len(got):
            return f"missing: {line}"
        if not same_line(got[at], line, gpu, exact):
            return f"expected: {line}\nprinted:  {got[at]}"
        at, anywhere = at + 1, False
    return None if anywhere or at == len(got) else f"not expected: {got[at]}"


def verdict(block, kind, packages, gpu="", **options):
    """(what to say in a table, what went wrong or "")."""
    want = expected(block.name, kind)
    if want is None:
        return "fails", f"no expected/{kind} for {block.name}"
    done = run(block, kind, packages, **options)
    got = done.stdout.rstrip("\n").split("\n") if done.stdout.strip() else []
    wrong = difference(got, want, gpu, exact=kind != "cuda")
    if done.returncode != 0 and not wrong and "<no gpu>" not in "".join(want):
        wrong = f"status {done.returncode}"
    if wrong:
        return "fails", f"{block.name} on {kind}: {wrong}\n{done.stdout}\n{done.stderr}"
    want = [line for line in want if not line.startswith("after: ")]  # the block itself has ended
    if any("<no gpu>" in line for line in want):
        return "needs a GPU, says so", ""
    if "invalid device ordinal" in "".join(want):
        return "needs two GPUs, says so", ""
    if any(re.match(r"\w+Error: ", line) for line in want):
        return "fails as written", ""
    return "runs", ""
