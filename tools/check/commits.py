#!/usr/bin/env python3
"""Subjects of commits are `area: imperative`, at most 72 characters.

commits.py [RANGE]         checks the commits of a range (main..HEAD unless one is named)
commits.py --message FILE  checks the message of a commit that is being made
"""

import re
import subprocess
import sys
from pathlib import Path

LIMIT = 72
SUBJECT = re.compile(r"(?P<area>[a-z0-9][a-z0-9+_./-]*(, [a-z0-9+_./-]+)*): (?P<text>.+)")
# Other forms of verbs that commits often begin with, and what a subject would say instead.
FORMS = re.compile(
    r"(?P<verb>add|allow|avoid|build|bound|change|check|clean|compute|count|document|drop|ensure|fix|"
    r"handle|improve|load|lock|make|move|name|raise|read|refuse|remove|rename|replace|report|return|"
    r"run|save|set|show|skip|split|stop|support|test|update|use|verify|write)(s|es|d|ed|ing)"
)
FOREIGN = ("Merge ", "Revert ", "fixup! ", "squash! ")


def problems(subject):
    if subject.startswith(FOREIGN):
        return
    if len(subject) > LIMIT:
        yield f"{len(subject)} characters; at most {LIMIT}"
    match = SUBJECT.fullmatch(subject)
    if not match:
        yield "not `area: imperative`, such as `save: bound the work of loading`"
        return
    text = match["text"]
    if text.endswith("."):
        yield "ends with a full stop"
    first = text.split()[0]
    if first[0].isupper() and first[1:].islower():
        yield f"{first!r} begins with a capital letter"
    if FORMS.fullmatch(first.lower()):
        yield f"{first!r} is not an imperative"


def subjects(selection):
    log = ["git", "log", "--no-merges", "--format=%h %s", selection]
    done = subprocess.run(log, capture_output=True, text=True, errors="replace")
    if done.returncode:
        sys.exit(f"commits: {done.stderr.strip()}")
    return [line.split(" ", 1) for line in done.stdout.splitlines()]


def main():
    match sys.argv[1:]:
        case ["--message", file]:
            lines = Path(file).read_text(encoding="utf-8", errors="replace").splitlines()
            texts = [line for line in lines if not line.startswith("#")]
            found = [("message", texts[0] if texts else "")]
            if len(texts) > 1 and texts[1].strip():
                sys.exit("commits: the second line is not empty")
        case [] | [_]:
            found = subjects(sys.argv[1] if sys.argv[1:] else "main..HEAD")
        case _:
            sys.exit(__doc__)
    count = 0
    for name, subject in found:
        for problem in problems(subject):
            print(f"{name}: {subject!r}: {problem}")
            count += 1
    if count:
        sys.exit(f"commits: {count} found")


if __name__ == "__main__":
    main()
