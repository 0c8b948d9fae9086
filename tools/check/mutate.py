"""Measures the tests: changes one place of the code at a time and sees whether a test fails.

    ./dev python tools/check/mutate.py draw --seed 7 --count 150 [--folder src/tessera/fuse]...
    ./dev python tools/check/mutate.py run [--only N,M] [--wide] [--minutes 60]
    ./dev python tools/check/mutate.py table

`draw` writes the sites to build/mutants/sites.json: lines of src, backends and python, with the
kinds of change that WEIGHTS names. `run` applies each to a checkout of HEAD in
build/mutants/tree, builds it, and runs the nearest tests: C++ tests of the same folder and the
Python tests that name the changed file's functions most often. With --wide, mutants that survive
these run `./dev test c++ python emulated` too. A run can be stopped and goes on where it was.
`table` prints killed, survived and timed-out mutants by folder and by kind.

A mutant that does not compile, or whose libraries are byte-equal to the original's, is replaced by
the next site. Mark one as equivalent, or as invisible here (timing, GPU), by hand: the field "note"
of its entry in sites.json; such entries do not count.
"""

import argparse
import hashlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

import common

ROOT = common.ROOT
STATE = ROOT / "build" / "mutants"
SITES, TREE = STATE / "sites.json", STATE / "tree"
FOLDERS = ("src/tessera", "backends", "python")
SPARE = 3  # sites drawn for each one wanted: some do not compile or change nothing
NEAREST_FILES = 8
NEAREST_SECONDS, WIDE_SECONDS = 600, 5400

# How often each kind of change is drawn; within a kind every line is as likely.
WEIGHTS = {
    "bound": 3, "operator": 3, "condition": 4, "check": 4, "lock": 2, "wait": 2, "statement": 4,
    "constant": 3, "arguments": 1,
}  # fmt: skip
COMPARE = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
LOCK = re.compile(
    r"^\s*std::(lock_guard|scoped_lock|unique_lock)\b.*;\s*$|^\s*with \w*lock\w*:\s*$"
)
WAIT = re.compile(
    r"^\s*(?!log_)[\w.>()-]*(wait|synchronize|stream_wait\w*|\.join)\w*\([^;{]*\);\s*$"
)
CALL = re.compile(r"^\s*[\w.:>-]+\([^;{}]*\);\s*$")
ASSIGN = re.compile(r"^\s*[\w.>\[\]-]+ (=|\+=|-=|\|=) [^;{}]*;\s*$")
PYTHON_CALL = re.compile(r"^\s+[\w.]+\(.*\)\s*$")


def replace_at(line, match, text):
    return line[: match.start()] + text + line[match.end() :]


def changes(line, python):
    """Yields (kind, new line) for every change that the line allows."""
    code = line.split("#")[0] if python else line.split("//")[0]
    stripped = code.strip()
    if not stripped or stripped.startswith(("#", '"""', "*", "import ", "from ", "using ")):
        return
    if '"' in code:  # texts stay as they are: only their surroundings change
        code = re.sub(r'"[^"]*"', lambda m: '"' + "_" * (len(m[0]) - 2) + '"', code)
    for m in re.finditer(r"(?<=[\w)\]] )(<=|>=|<|>)(?= [\w(])", code):
        yield "bound", replace_at(line, m, COMPARE[m[1]])
    for m in re.finditer(r"(?<=[\w)\]]) [+-] 1\b(?![\d.])", code):
        yield "bound", replace_at(line, m, "")
    for m in re.finditer(r"(?<=[\w)\]]) (\+|-|\*) (?=[\w(])", code):
        yield "operator", replace_at(line, m, {"+": " - ", "-": " + ", "*": " + "}[m[1]])
    for m in re.finditer(r" (==|!=) ", code):
        yield "operator", replace_at(line, m, " != " if m[1] == "==" else " == ")
    pairs = {"&&": "||", "||": "&&"} if not python else {"and": "or", "or": "and"}
    for m in re.finditer(r" (&&|\|\||and|or) ", code):
        if m[1] in pairs:
            yield "condition", replace_at(line, m, f" {pairs[m[1]]} ")
    for m in re.finditer(r"(?<=[(&|] )!(?=\w)|(?<=\()!(?=\w)|\bnot (?!in\b)", code):
        yield "condition", replace_at(line, m, "")
    if m := re.match(r"^(\s*)if \((.+?)\)( \{| return.*;| continue;| break;)\s*$", line.rstrip()):
        if not re.search(r"[^=!<>]=[^=]|;", m[2]):
            yield "condition", f"{m[1]}if (false && ({m[2]})){m[3]}"
    if python and (m := re.match(r"^(\s*)(if|elif) (.+):\s*$", line)):
        yield "condition", f"{m[1]}{m[2]} False and ({m[3]}):"
    if re.match(r"^\s*TS_CHECK\w*\(.*\);\s*$", code):
        yield "check", re.match(r"^\s*", line)[0] + ";"
    if python and re.match(r"^\s+raise \w+\(.*\)\s*$", code):
        yield "check", re.match(r"^\s*", line)[0] + "pass"
    if LOCK.match(code):
        indent = re.match(r"^\s*", line)[0]
        yield "lock", indent + ("if True:" if python else ";")
    elif WAIT.match(code):
        yield "wait", re.match(r"^\s*", line)[0] + ";"
    elif stripped.startswith("TS_CHECK"):
        return
    elif not python and (CALL.match(code) or ASSIGN.match(code)) and "return" not in code:
        yield "statement", re.match(r"^\s*", line)[0] + ";"
    elif python and PYTHON_CALL.match(code) and "super()" not in code:
        yield "statement", re.match(r"^\s*", line)[0] + "pass"
    for m in re.finditer(r"(?<![\w.\[])(\d+)(?![\w.])", code):
        yield "constant", replace_at(line, m, str(int(m[1]) + 1))
    for m in re.finditer(r"(?<![\w.])(\d+\.\d+)(?![\w.])", code):
        yield "constant", replace_at(line, m, repr(float(m[1]) * 1.1 + 0.01))
    declares = python and stripped.startswith(("def ", "async def", "class ", "for "))
    for m in re.finditer(r"(?<=[(,] )(\w+), (\w+)(?=[,)])|(?<=\()(\w+), (\w+)(?=[,)])", code):
        first, second = m[1] or m[3], m[2] or m[4]
        if first != second and not first.isdigit() and not declares:
            yield "arguments", replace_at(line, m, f"{second}, {first}")


def draw(options):
    rng = random.Random(options.seed)
    folders = tuple(options.folder or FOLDERS)
    places = defaultdict(list)  # by kind of change
    for path in common.files(*folders, suffixes=(".cpp", ".h", ".py")):
        for number, line in enumerate(common.read(path).splitlines()):
            found = defaultdict(list)
            for kind, text in changes(line, path.suffix == ".py"):
                if text != line:
                    found[kind].append(text)
            for kind, texts in found.items():
                places[kind].append((path, number, line, texts))
    kinds = sorted(set(places) & set(WEIGHTS))
    sites, seen = [], set()
    while len(sites) < options.count * SPARE:
        kind = rng.choices(kinds, [WEIGHTS[kind] for kind in kinds])[0]
        path, number, before, texts = rng.choice(places[kind])
        if (path, number) in seen:
            if len(seen) >= sum(map(len, places.values())):
                break
            continue
        seen.add((path, number))
        site = {"file": str(path), "line": number + 1, "kind": kind, "before": before}
        sites.append({**site, "after": rng.choice(texts), "result": ""})
    commit = subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=ROOT, text=True).strip()
    STATE.mkdir(parents=True, exist_ok=True)
    state = {"seed": options.seed, "count": options.count, "commit": commit, "sites": sites}
    SITES.write_text(json.dumps(state, indent=1))
    print(f"{len(sites)} sites in {SITES}; {options.count} of them are to be judged")


def run(command, seconds, env=None, folder=TREE):
    """Runs a command in a session of its own; returns (status, last lines), None if out of time."""
    process = subprocess.Popen(
        [str(word) for word in command], cwd=folder, env=env, text=True, errors="replace",
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        start_new_session=True,
    )  # fmt: skip
    try:
        output, _ = process.communicate(timeout=seconds)
        return process.returncode, output.splitlines()[-40:]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return None, []


def build():
    status, lines = run([TREE / "dev", "build", "--tests"], 3600)
    return status == 0, lines


def digest():
    """A hash of everything that is built and could behave differently."""
    total = hashlib.sha256()
    built = TREE / "build" / "release"
    for file in sorted([*built.glob("lib/*.so"), *built.glob("python/tessera/_C*.so")]):
        total.update(file.read_bytes())
    return total.hexdigest()


def prepare(commit):
    if not TREE.exists():
        subprocess.run(["git", "worktree", "add", "--detach", TREE, commit], cwd=ROOT, check=True)
        if (ROOT / ".venv").exists() and not (TREE / ".venv").exists():
            (TREE / ".venv").symlink_to(ROOT / ".venv")
    good, lines = build()
    if not good:
        sys.exit("the unchanged tree does not build:\n" + "\n".join(lines))


def words_near(site):
    """Names that tests of the changed place would use: the file's stem and its functions."""
    text = (TREE / site["file"]).read_text(errors="replace").splitlines()
    words = set(re.findall(r"[a-z]{3,}", Path(site["file"]).stem))
    for line in reversed(text[: site["line"]]):
        if m := re.search(r"\b(?:def|TS_OP\(|TS_BODY\(|class|struct) ?(\w+)|::(\w+)\(", line):
            words.add((m[1] or m[2]).strip("_").lower())
            break
    return {word for word in words if len(word) > 2}


def nearest_tests(site):
    """(names of C++ test suites, Python test files) of a changed place."""
    parts = Path(site["file"]).parts
    folder = TREE / "tests" / (parts[2] if parts[0] == "src" else parts[1])
    suites = set()
    for file in folder.glob("**/*_test.cpp"):
        suites |= set(re.findall(r"^TEST(?:_[FP])?\((\w+),", file.read_text(), re.M))
    words, scores = words_near(site), Counter()
    for file in (TREE / "tests" / "python").glob("**/test_*.py"):
        text = file.read_text().lower()
        for word in words:
            scores[file] += min(text.count(word), 20) + 25 * (word in file.stem)
    files = [file for file, score in scores.most_common(NEAREST_FILES) if score]
    return sorted(suites), files


def judge(site, wide):
    suites, files = nearest_tests(site)
    env = {**os.environ, "PYTHONPATH": str(TREE / "build" / "release" / "python")}
    if suites:
        names = ":".join(f"{suite}.*:*/{suite}.*" for suite in suites)
        program = TREE / "build" / "release" / "bin" / "tessera_tests"
        status, lines = run([program, f"--gtest_filter={names}"], NEAREST_SECONDS, env)
        if status != 0:
            return ("timed out" if status is None else "killed"), "c++: " + failing(lines)
    if files:
        for device in ("cpu", "virtual"):
            command = [sys.executable, "-m", "pytest", "-q", "-x", *files]
            status, lines = run(command, NEAREST_SECONDS, {**env, "DEVICE": device})
            if status not in (0, 5):
                result = "timed out" if status is None else "killed"
                return result, f"python {device}: " + failing(lines)
    if not wide:
        return "survived nearest", ""
    status, lines = run([TREE / "dev", "test", "c++", "python", "emulated"], WIDE_SECONDS)
    if status == 0:
        return "survived", ""
    return ("timed out" if status is None else "killed"), "all tests: " + failing(lines)


def failing(lines):
    named = [line for line in lines if re.search(r"FAILED|Error|failed", line)]
    return (named or lines or [""])[-1][:200]


def judge_site(site, original, wide):
    path = TREE / site["file"]
    text = path.read_text()
    lines = text.splitlines(keepends=True)
    if lines[site["line"] - 1].rstrip("\n") != site["before"]:
        return "moved", "the line is another one"
    lines[site["line"] - 1] = site["after"] + "\n"
    try:
        path.write_text("".join(lines))
        if path.suffix == ".py":
            try:
                compile(path.read_text(), str(path), "exec")
            except SyntaxError:
                return "does not compile", ""
        else:
            good, _ = build()
            if not good:
                return "does not compile", ""
            if digest() == original:
                return "same code", ""
        return judge(site, wide)
    finally:
        path.write_text(text)


def run_sites(options):
    state = json.loads(SITES.read_text())
    prepare(state["commit"])
    original = digest()
    until = time.monotonic() + options.minutes * 60
    only = {int(word) for word in options.only.split(",") if word}
    for number, site in enumerate(state["sites"]):
        judged = sum(counts(s) for s in state["sites"])
        again = options.wide and site["result"] == "survived nearest"
        wanted = number in only if only else again or (not site["result"] and not site.get("note"))
        if not wanted or (judged >= state["count"] and not again and not only):
            continue
        if time.monotonic() > until:
            break
        began = time.monotonic()
        site["result"], site["by"] = judge_site(site, original, options.wide)
        SITES.write_text(json.dumps(state, indent=1))
        print(
            f"{number:4d} {site['result']:18s} {time.monotonic() - began:5.0f} s "
            f"{site['file']}:{site['line']} {site['kind']}: {site['after'].strip()[:60]}",
            flush=True,
        )
    good, _ = build()  # the tree is the original again
    print("" if good and digest() == original else "warning: the tree differs from the original")


def counts(site):
    judged = ("killed", "timed out", "survived", "survived nearest")
    return site["result"] in judged and not site.get("note")


def table(_options):
    state = json.loads(SITES.read_text())

    def rows(title, key):
        by = defaultdict(Counter)
        for site in filter(counts, state["sites"]):
            by[key(site)][site["result"]] += 1
        print(f"| {title} | killed | timed out | survived | nearest only |\n|---|---|---|---|---|")
        for name, n in sorted(by.items()):
            cells = n["killed"], n["timed out"], n["survived"], n["survived nearest"]
            print(f"| {name} | " + " | ".join(map(str, cells)) + " |")

    print(f"Seed {state['seed']}, {state['count']} sites, commit {state['commit'][:7]}\n")
    rows("folder", lambda site: "/".join(Path(site["file"]).parts[:3]))
    print()
    rows("kind", lambda site: site["kind"])
    for site in state["sites"]:
        if site["result"].startswith("survived") or site.get("note"):
            note = site.get("note", site["result"])
            print(f"\n{site['file']}:{site['line']} ({site['kind']}; {note})")
            print(f"  - {site['before'].strip()}\n  + {site['after'].strip()}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("draw", help="choose the places")
    command.add_argument("--seed", type=int, required=True)
    command.add_argument("--count", type=int, default=150)
    command.add_argument("--folder", action="append")
    command.set_defaults(call=draw)
    command = commands.add_parser("run", help="build and test the mutants")
    command.add_argument("--only", default="", help="sites by number")
    command.add_argument("--wide", action="store_true", help="all tests for those that survive")
    command.add_argument("--minutes", type=float, default=1e9)
    command.set_defaults(call=run_sites)
    command = commands.add_parser("table", help="print the results")
    command.set_defaults(call=table)
    options = parser.parse_args()
    options.call(options)


if __name__ == "__main__":
    main()
