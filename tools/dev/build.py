"""Runs the build of a configured folder and shows its progress.

    build.py FOLDER [--target NAME]... [--jobs N] [--verbose]

On a terminal one line is rewritten; in a log a line comes every 30 s. The time that is left is
estimated from the seconds that each file took in the last build of the folder (.ninja_log), or from
the rate so far. A failed command is shown with its output, and nothing else. --verbose shows what
Ninja prints.
"""

import argparse
import re
import subprocess
import sys
import time
from pathlib import Path

LOG_SECONDS = 30
PROGRESS = re.compile(r"^\[(\d+)/(\d+)\] (.*)")


def past_seconds(folder):
    """Seconds of each output in the last builds of the folder, by its path."""
    seconds = {}
    log = folder / ".ninja_log"
    if log.exists():
        for line in log.read_text(errors="replace").splitlines():
            fields = line.split("\t")
            if len(fields) == 5:
                seconds[fields[3]] = (int(fields[1]) - int(fields[0])) / 1000
    return seconds


def planned(folder, targets):
    """The outputs that Ninja would make, as far as its description of a step names them."""
    command = ["ninja", "-C", folder, "-n", *targets]
    lines = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
    steps = [match[3] for line in lines if (match := PROGRESS.match(line))]
    return [step.split()[-1] for step in steps if step]


def in_words(seconds):
    if seconds < 50:
        return f"about {max(10, round(seconds / 10) * 10)} s left"
    return f"about {max(1, round(seconds / 60))} min left"


class Progress:
    """Turns Ninja's lines into one line of progress."""

    def __init__(self, folder, targets, jobs):
        self.past = past_seconds(folder)
        outputs = planned(folder, targets) if self.past else []
        known = [self.past[name] for name in outputs if name in self.past]
        mean = sum(known) / len(known) if known else 0.0
        self.total = sum(self.past.get(name, mean) for name in outputs) / jobs
        self.mean = mean / jobs
        self.jobs = jobs
        self.spent = 0.0  # seconds that the finished steps took in the last build
        self.began = time.monotonic()
        self.shown = self.began
        self.terminal = sys.stderr.isatty()
        self.wrote = False

    def seconds_left(self, done, count):
        elapsed = time.monotonic() - self.began
        if self.total > 0 and self.spent > 0.02 * self.total:
            # How fast this machine is today, compared with the last build.
            return (self.total - self.spent) * elapsed / self.spent
        if self.total > 0:
            return self.total
        return elapsed / done * (count - done) if done > 0.05 * count else None

    def step(self, done, count, what):
        name = what.split()[-1] if what else ""
        self.spent += self.past[name] / self.jobs if name in self.past else self.mean
        now = time.monotonic()
        if not self.terminal and now - self.shown < LOG_SECONDS:
            return
        self.shown = now
        left = self.seconds_left(done, count)
        text = f"dev: building {done} of {count}"
        if left is not None and done < count:
            text += f", {in_words(left)}"
        if self.terminal:
            sys.stderr.write(f"\r\033[K{text}")
            self.wrote = True
        else:
            sys.stderr.write(text + "\n")
        sys.stderr.flush()

    def clear(self):
        if self.wrote:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()


def run(folder, targets, jobs, verbose):
    command = ["ninja", "-C", str(folder), "-j", str(jobs), *targets]
    if verbose:
        return subprocess.run(command, stdout=sys.stderr).returncode
    progress = Progress(folder, targets, jobs)
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )
    failing, warnings = False, []
    for line in process.stdout:
        match = PROGRESS.match(line)
        if match:
            failing = False
            progress.step(int(match[1]), int(match[2]), match[3])
        elif line.startswith("FAILED: "):
            failing = True
            progress.clear()
            sys.stderr.write(line)
        elif failing:
            sys.stderr.write(line)
        else:
            warnings.append(line)
    status = process.wait()
    progress.clear()
    if status and not failing:  # Ninja itself failed: what it printed is the reason
        sys.stderr.writelines(warnings[-40:])
    elif any("warning:" in line for line in warnings):
        sys.stderr.writelines(line for line in warnings if not line.startswith("ninja: "))
    return status


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--target", action="append", default=[])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("-v", "--verbose", action="store_true")
    options = parser.parse_args()
    return run(options.folder, options.target, options.jobs, options.verbose)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
