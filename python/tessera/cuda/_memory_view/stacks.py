"""Calls: each different stack once, and the line of code that one stands for."""

import re

# Where a framework's own Python lies: the line that asked is further out.
_PACKAGE = re.compile(
    r"(^|/)(site|dist)-packages/(torch|tessera)/|(^|/)python/tessera/"
    r"|(^|/)torch/(nn|optim|autograd|utils|cuda|_[a-z]+|functional\.py|_[a-z]+\.py)"
    r"|(^|/)tessera/(nn|optim|autograd|utils|cuda|_[a-z]+)(/|\.py)"
)
_STARTERS = re.compile(r"^<frozen (runpy|importlib)")
_NOT_PYTHON = re.compile(r"\.(c|cc|cpp|cu|cuh|h|hpp|so)$|\.so\.|^\?\?$|^$")
UNKNOWN = "(not recorded)"


def plain(text):
    """Text without what could steer a terminal."""
    return "".join(c if c.isprintable() else "?" for c in str(text))


def is_own(file):
    """Whether a file is the program's, or a library's that it uses: not the framework's."""
    return not (_NOT_PYTHON.search(file) or _PACKAGE.search(file) or _STARTERS.search(file))


class Stacks:
    """Numbers for stacks, frames and lines. Stack 0 is none."""

    def __init__(self):
        self.frames = []  # (file, line, name)
        self.stacks = [()]  # numbers of frames, the innermost first
        self.lines = [(UNKNOWN, 0, "")]
        self.line_of = [0]  # by stack
        self._frames, self._stacks, self._lines = {}, {(): 0}, {self.lines[0]: 0}
        self._seen = {}  # by identity: lists that live as long as their snapshot

    def number(self, frames):
        if not frames:
            return 0
        known = self._seen.get(id(frames))
        if known is None:
            known = self._seen[id(frames)] = self._add(frames)
        return known

    def _add(self, frames):
        numbers = []
        for frame in frames:
            key = (str(frame["filename"]), int(frame["line"]), str(frame["name"]))
            number = self._frames.get(key)
            if number is None:
                number = self._frames[key] = len(self.frames)
                self.frames.append(key)
            numbers.append(number)
        numbers = tuple(numbers)
        known = self._stacks.get(numbers)
        if known is None:
            known = self._stacks[numbers] = len(self.stacks)
            self.stacks.append(numbers)
            self.line_of.append(self._line(numbers))
        return known

    def _line(self, numbers):
        """The innermost line of the program's own Python, or what comes nearest to it."""
        frames = [self.frames[i] for i in numbers]
        python = [f for f in frames if not _NOT_PYTHON.search(f[0])]
        own = [f for f in python if is_own(f[0])]
        key = (own or python or frames)[0]
        number = self._lines.get(key)
        if number is None:
            number = self._lines[key] = len(self.lines)
            self.lines.append(key)
        return number

    def line_text(self, line):
        file, number, name = self.lines[line]
        if line == 0:
            return UNKNOWN
        return plain(f"{file}:{number}" + (f" {name}" if name and name != "<module>" else ""))
