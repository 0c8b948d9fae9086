#!/usr/bin/env python3
"""Builds, then runs every check and test; the last line is `N passed, M failed`.

Run it through `./dev test`. Words name the sections to run (a section runs if its name starts with
one): format, lint, binaries, c++, allocator, python, conformance, examples, random, emulated; with
--full also kills, asan, tsan, random-long, and all of the Python tests in emulated.
`-k WORD` narrows the C++ and the Python tests to those whose names contain the word.
"""

import argparse
import concurrent.futures
import os
import platform
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RELEASE = ROOT / "build" / "release"
VIRTUAL = {"DEVICE": "virtual", "TESSERA_VIRTUAL_GPU": "2x2GiB"}
# What shows most of the CUDA backend in the least time.
EMULATED_FILES = (
    "test_autograd.py",
    "test_construct.py",
    "test_copies.py",
    "test_copy_bits.py",
    "test_cuda.py",
    "test_cuda_conv.py",
    "test_cuda_faults.py",
    "test_cuda_fft.py",
    "test_cuda_indexing.py",
    "test_cuda_launch.py",
    "test_cuda_linalg.py",
    "test_cuda_moves.py",
    "test_cuda_pack.py",
    "test_cuda_pool.py",
    "test_cuda_search.py",
    "test_cuda_sorting.py",
    "test_cuda_special.py",
    "test_distributed.py",
    "test_dropout_and_norms.py",
    "test_failed_collectives.py",
    "test_fuse.py",
    "test_fuse_bounds.py",
    "test_grad_scaler.py",
    "test_interpret.py",
    "test_norms.py",
    "test_optim.py",
    "test_optimizers.py",
    "test_philox.py",
    "test_pointwise.py",
    "test_products.py",
    "test_random.py",
    "test_thread_programs.py",
    "test_transposed.py",
    "test_views.py",
)
CHECKS = ("includes", "sizes", "enumerates", "words")

Counts = tuple[int, int]  # passed, failed


class Skip(Exception):
    """Raised by a section that cannot run here; says why."""


class Runner:
    """Runs sections one after another and adds up what they report."""

    def __init__(self, options: argparse.Namespace):
        self.options = options
        self.passed = self.failed = 0
        self.trouble: list[str] = []

    def wants(self, name: str) -> bool:
        words = self.options.sections
        return not words or any(name.startswith(word) for word in words)

    def section(self, name: str, work: Callable[[], Counts]) -> None:
        if not self.wants(name):
            return
        print(f"\n== {name}", flush=True)
        began = time.monotonic()
        try:
            passed, failed = work()
        except Skip as reason:
            print(f"-- {name}: skipped: {reason}", flush=True)
            return
        self.passed += passed
        self.failed += failed
        if failed:
            self.trouble.append(f"{name} ({failed})")
        seconds = time.monotonic() - began
        print(f"-- {name}: {passed} passed, {failed} failed ({seconds:.1f} s)", flush=True)

    def finish(self) -> None:
        print()
        if self.trouble:
            print("failed: " + ", ".join(self.trouble))
        if not self.passed and not self.failed:
            self.failed = 1
            print("nothing was run")
        print(f"{self.passed} passed, {self.failed} failed", flush=True)
        sys.exit(1 if self.failed else 0)


def run(
    command: Iterable[object],
    env: dict[str, str] | None = None,
    limit: float = 1800,
    show: Callable[[str], bool] = lambda line: True,
    folder: str | Path = ROOT,
) -> tuple[int, list[str]]:
    """Runs a command, passing on the lines that `show` wants; returns its status and all lines.

    A command past its limit of seconds is killed and counts as failed.
    """
    words = [str(word) for word in command]
    process = subprocess.Popen(
        words,
        cwd=folder,
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    timer = threading.Timer(limit, process.kill)
    timer.start()
    lines = []
    for line in process.stdout:
        lines.append(line.rstrip("\n"))
        if show(line):
            print(line, end="", flush=True)
    status = process.wait()
    if not timer.is_alive():
        print(f"stopped after {limit:.0f} s: {' '.join(words)}", flush=True)
        status = status or 1
    timer.cancel()
    return status, lines


def one(
    command: Iterable[object], env: dict[str, str] | None = None, limit=1800, folder=ROOT
) -> Counts:
    """A command that counts as one test and speaks only when it fails."""
    status, lines = run(command, env, limit, show=lambda line: False, folder=folder)
    if status == 0:
        return 1, 0
    print("\n".join(lines[-200:]), flush=True)
    return 0, 1


def add(counts: Iterable[Counts]) -> Counts:
    passed = failed = 0
    for p, f in counts:
        passed, failed = passed + p, failed + f
    return passed, failed


def need(path: Path, what: str) -> Path:
    if not path.exists():
        raise Skip(f"{what} is not there")
    return path


def build(preset: str) -> bool:
    print(f"\n== build {preset}", flush=True)
    began = time.monotonic()
    status, _ = run([ROOT / "dev", "build", preset, "--tests"], limit=7200)
    print(f"-- build {preset}: {'failed' if status else 'done'} ({time.monotonic() - began:.1f} s)")
    return status == 0


# ---- sections ------------------------------------------------------------------------------------


def format_check() -> Counts:
    return one([sys.executable, ROOT / "tools/dev/style.py", "--check"])


def lint() -> Counts:
    results = []
    if run([sys.executable, "-m", "ruff", "--version"], show=lambda line: False)[0] == 0:
        results.append(one([sys.executable, "-m", "ruff", "check", "--output-format=concise", "."]))
    else:
        print("ruff is not here")
    for name in CHECKS:
        results.append(one([sys.executable, ROOT / "tools/check" / f"{name}.py"]))
    return add(results)


def binaries() -> Counts:
    """Search paths and hardening of every library and program of the build."""
    return one([sys.executable, ROOT / "tools/check/elf.py", need(RELEASE, "build/release")])


def cpp_tests(folder: Path, word: str, env: dict[str, str], wrap: Iterable[str] = ()) -> Counts:
    program = need(folder / "bin" / "tessera_tests", "tessera_tests")
    command = [*wrap, program, "--gtest_color=no"]
    if word:
        command.append(f"--gtest_filter=*{word}*")
    routine = re.compile(r"^(\[ RUN      \]|\[       OK \]|\[-{10}\]|$)")
    status, lines = run(command, env, show=lambda line: not routine.match(line))
    passed = sum(line.startswith("[       OK ]") for line in lines)
    # Each failure is named where it happens, with its time, and once more at the end.
    named = [line for line in lines if re.match(r"\[  FAILED  \] \S+(,| \()", line)]
    failed = len({line.split()[3] for line in named})
    if status and not failed:
        started = [line for line in lines if line.startswith("[ RUN      ]")]
        print(f"ended with status {status}; the last test was {started[-1] if started else 'none'}")
        failed = 1
    return passed, failed


def python_tests(
    word: str, env: dict[str, str], names: Iterable[str] = (), options: Iterable[str] = ()
) -> Counts:
    """All of tests/python, or the files named."""
    folder = need(ROOT / "tests" / "python", "tests/python")
    need(RELEASE / "python" / "tessera", "the built Python package")
    if run([sys.executable, "-c", "import pytest"], show=lambda line: False)[0]:
        raise Skip("pytest is not here")
    files = [folder / name for name in names] or [folder]
    command = [sys.executable, "-m", "pytest", "-q", "--color=no", *options, *files]
    if word:
        command += ["-k", word]
    status, lines = run(command, env)
    last = next((line for line in reversed(lines) if re.search(r" in [\d.]+s", line)), "")
    number = {key: int(n) for n, key in re.findall(r"(\d+) (passed|failed|errors?)", last)}
    failed = number.get("failed", 0) + number.get("error", 0) + number.get("errors", 0)
    if status not in (0, 5) and not failed:  # 5: no test was collected
        failed = 1
    return number.get("passed", 0), failed


def conformance(device: str, env: dict[str, str]) -> Counts:
    program = need(ROOT / "tests" / "conformance" / "run.py", "tests/conformance")
    status, lines = run([sys.executable, program, "--device", device], env, limit=1800)
    last = re.search(r"(\d+) passed, (\d+) failed", lines[-1] if lines else "")
    if not last or (status and last[2] == "0"):
        return 0, 1
    return int(last[1]), int(last[2])


def example(command: Iterable[object], env: dict[str, str]) -> Counts:
    """An example that says it misses a package, which ./dev could not install, does not count."""
    status, lines = run(command, env, limit=300, show=lambda line: False)
    if status and lines and lines[-1].startswith("missing: "):
        print(f"   left out; {lines[-1]}", flush=True)
        return 0, 0
    if status:
        print("\n".join(lines[-200:]), flush=True)
    return (0, 1) if status else (1, 0)


def examples(env: dict[str, str]) -> Counts:
    results = []
    programs = sorted((ROOT / "examples" / "python").glob("*.py"))
    if programs and (RELEASE / "python" / "tessera" / "__main__.py").exists():
        for program in programs:
            print(f"   {program.relative_to(ROOT)}", flush=True)
            command = [sys.executable, "-m", "tessera", "run", program]
            results.append(example(command, env))
    for program in sorted((RELEASE / "examples").glob("*")):
        if program.is_file() and os.access(program, os.X_OK):
            print(f"   {program.relative_to(ROOT)}", flush=True)
            with tempfile.TemporaryDirectory() as folder:  # some write a file
                results.append(one([program], env, limit=300, folder=folder))
    if not results:
        raise Skip("no example is there")
    return add(results)


def random_programs(count: int, device: str, env: dict[str, str]) -> Counts:
    program = need(RELEASE / "bin" / "fuse_random", "fuse_random")
    shards = min(os.cpu_count() or 1, 8)
    command = [program, "--programs", count, "--device", device, "--shards", shards]
    status, lines = run(command, env, limit=7200, show=lambda line: False)
    print("\n".join(lines[-(60 if status else 3) :]), flush=True)
    return (0, 1) if status else (1, 0)


def allocator(count: int) -> Counts:
    """Against its model, by two processes with seeds of their own; then threads and streams."""
    program = need(RELEASE / "bin" / "allocator_model", "allocator_model")
    commands = [[program, "--ops", count // 2, "--seed", seed] for seed in (1, 100001)]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        results = list(
            pool.map(lambda c: run(c, {}, limit=3600, show=lambda line: False), commands)
        )
    canaries = need(RELEASE / "bin" / "stream_canaries", "stream_canaries")
    small = [canaries, "--ops", count // 50, "--largest", 14]
    results.append(
        run(small, {"TESSERA_VIRTUAL_GPU": "1x2GiB"}, limit=600, show=lambda line: False)
    )
    for _, lines in results:
        print("\n".join(lines[-3:]), flush=True)
    return add([(0, 1) if status else (1, 0) for status, _ in results])


def without_randomised_addresses() -> list[str]:
    """GCC's thread sanitizer cannot place itself where the kernel randomises addresses widely."""
    wrap = ["setarch", platform.machine(), "-R"]
    try:
        works = subprocess.run([*wrap, "true"], capture_output=True).returncode == 0
    except OSError:
        works = False
    return wrap if works else []


def gpu_present() -> bool:
    if not (RELEASE / "lib" / "libtessera_cuda.so").exists():
        return False
    try:
        return subprocess.run(["nvidia-smi", "-L"], capture_output=True).returncode == 0
    except OSError:
        return False


def emulated_gpu(options: str) -> dict[str, str]:
    """Has the CUDA backend open the libraries of tools/emulator instead of CUDA's."""
    folder = str(need(RELEASE / "emulator", "the emulated GPU"))
    others = os.environ.get("LD_LIBRARY_PATH")
    return {
        "DEVICE": "cuda",
        "LD_LIBRARY_PATH": f"{folder}:{others}" if others else folder,
        "TESSERA_CACHE_DIR": str(ROOT / "build" / "emulator-cache"),
        "TESSERA_CACHE_MB": "2048",
        "TESSERA_EMULATOR": options,
    }


def emulated(runner: Runner) -> None:
    word, everything = runner.options.k, runner.options.full

    def itself() -> Counts:
        return one([need(RELEASE / "bin" / "emulator_check", "emulator_check")])

    def cpp() -> Counts:
        mode = {"TESSERA_LAUNCH": "graph"}
        return cpp_tests(RELEASE, f"CudaDevice*{word}", emulated_gpu("1x4GiB,shuffle") | mode)

    def python() -> Counts:
        return python_tests(word, emulated_gpu("2x4GiB"), () if everything else EMULATED_FILES)

    def random() -> Counts:
        return random_programs(25, "cuda", emulated_gpu("async,shuffle"))

    def interpreted() -> Counts:
        mode = {"TESSERA_INTERPRET": "always", "TESSERA_KERNEL_BUDGET": "1000000000"}
        mode["TESSERA_LAUNCH"] = "graph"
        always = random_programs(4000 if everything else 300, "cuda", emulated_gpu("async") | mode)
        # Where kernels are too many from the start, some groups are interpreted and others refused.
        mode = {"TESSERA_INTERPRET": "1", "TESSERA_KERNEL_BUDGET": "0"}
        few = random_programs(1000 if everything else 60, "cuda", emulated_gpu("async") | mode)
        return add([always, few])

    def layouts() -> Counts:
        program = ROOT / "tests" / "cuda" / "layouts.py"
        return one([sys.executable, program, 3000], emulated_gpu("1x4GiB,async,shuffle,exact"))

    if not word:
        runner.section("emulated gpu", itself)
    runner.section("emulated c++", cpp)
    runner.section("emulated python", python)
    if not word:
        runner.section("emulated interpreter", interpreted)
    if everything and not word:
        runner.section("emulated random", random)
        runner.section("emulated layouts", layouts)


def full(runner: Runner) -> None:
    word = runner.options.k
    suppressions = ROOT / "tools" / "dev" / "tsan.supp"
    asan = {
        "ASAN_OPTIONS": "detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1",
        "LSAN_OPTIONS": f"suppressions={ROOT / 'tools' / 'dev' / 'lsan.supp'}:print_suppressions=0",
        "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
        "TESSERA_FULL": "1",
    }
    tsan = {
        "TSAN_OPTIONS": f"halt_on_error=0:suppressions={suppressions}",
        "OPENBLAS_NUM_THREADS": "1",
    }
    if not word:
        runner.section("kills", lambda: python_tests("killed", {"TESSERA_FULL": "1"}))
    for preset, env, wrap in (
        ("asan", asan, []),
        ("tsan", tsan, without_randomised_addresses()),
    ):
        if runner.wants(preset):
            if build(preset):
                folder = ROOT / "build" / preset
                runner.section(preset, lambda f=folder, e=env, w=wrap: cpp_tests(f, word, e, w))
            else:
                runner.section(preset, lambda: (0, 1))
    runner.section("random-long cpu", lambda: random_programs(1_000_000, "cpu", {}))
    runner.section("random-long virtual", lambda: random_programs(200_000, "virtual", VIRTUAL))


def main() -> None:
    parser = argparse.ArgumentParser(prog="./dev test", description=__doc__.split("\n\n")[0])
    parser.add_argument("--full", action="store_true", help="sanitizers and long random runs too")
    parser.add_argument("-k", default="", metavar="WORD", help="only tests whose names contain it")
    parser.add_argument("sections", nargs="*", metavar="SECTION", help="only these sections")
    runner = Runner(parser.parse_args())
    word = runner.options.k

    stylistic = ("format", "lint")
    only_style = runner.options.sections and all(
        any(name.startswith(w) for name in stylistic) for w in runner.options.sections
    )
    built = only_style or build("release")
    runner.section("format", format_check)
    runner.section("lint", lint)
    if not built:
        runner.failed += 1
        runner.trouble.append("build")
        runner.finish()

    runner.section("binaries", binaries)
    runner.section("c++", lambda: cpp_tests(RELEASE, word, {}))
    if not word:
        runner.section("allocator", lambda: allocator(10_000_000))
    runner.section("python cpu", lambda: python_tests(word, {"DEVICE": "cpu"}))
    runner.section("python virtual", lambda: python_tests(word, VIRTUAL))
    if not word:
        runner.section("conformance", lambda: conformance("cpu", {}))
    runner.section("examples", lambda: examples({}))
    runner.section("random cpu", lambda: random_programs(30000, "cpu", {}))
    runner.section("random virtual", lambda: random_programs(5000, "virtual", VIRTUAL))
    if not only_style:
        emulated(runner)
    if gpu_present():
        cuda = {"DEVICE": "cuda"}
        runner.section("c++ cuda", lambda: cpp_tests(RELEASE, word, cuda))
        runner.section("python cuda", lambda: python_tests(word, cuda))
        runner.section("random cuda", lambda: random_programs(2000, "cuda", cuda))
    elif not only_style:
        print("\nno GPU here: the CUDA sections are left out")
    if runner.options.full:
        full(runner)
    runner.finish()


if __name__ == "__main__":
    main()
