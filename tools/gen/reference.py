#!/usr/bin/env python3
"""Writes the operators' reference from their records: a page for each family, and an index.

./dev python tools/gen/reference.py [--out FOLDER]    by default build/release/docs/reference
"""

import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from generate import FORMS, Op, write
from stubs import signature

import tessera as torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
FORM_BITS = {
    "function": FORMS["kFunction"],
    "method": FORMS["kMethod"],
    "inplace": FORMS["kInplace"],
    "out": FORMS["kOut"],
}


def public_operators():
    return [op for op in torch._C.all_ops() if not op["name"].startswith("_")]


def signatures(record):
    """How it is called: the function, or the method where it is one only; then in place."""
    forms = record["forms"]
    bits = sum(FORM_BITS[form] for form in forms)
    op = Op(record["schema"], bits, record["family"], record["doc"])
    is_method = "function" not in forms
    owner = "Tensor." if is_method else "torch."
    lines = [owner + signature(op, op.name, is_method)]
    if "inplace" in forms:
        lines.append("Tensor." + signature(op, op.name + "_", True, inplace=True))
    return lines


def spelled(record):
    """The forms in words, with what Python's own operators mean by it."""
    name, forms = record["name"], record["forms"]
    words = {
        "function": f"`torch.{name}(...)`",
        "method": f"`x.{name}(...)`",
        "inplace": f"`x.{name}_(...)`",
        "out": "`out=`",
    }
    text = ", ".join(words[form] for form in forms)
    if record["operators"]:
        text += "; called by " + ", ".join(f"`{word}`" for word in record["operators"].split())
    return text


def facts(record):
    yield f"Forms: {spelled(record)}."
    deferred = "deferred and fused with its neighbours" if record["kind"] == "pointwise" else ""
    shares = "shares its memory with self" if record["kind"] == "view" else ""
    gradient = "" if record["differentiable"] or record["kind"] == "composite" else "no gradient"
    rest = [word for word in (deferred, shares, gradient) if word]
    yield f"Kind: {record['kind']}" + (f" ({', '.join(rest)})." if rest else ".")


def shown(record):
    """The example and what it gives, as an interpreter shows them."""
    torch.manual_seed(0)
    result = eval(record["example"], {"torch": torch})
    return f"```pycon\n>>> {record['example']}\n{result!r}\n```"


def entry(record):
    parts = [f"## {record['name']}", "```\n" + "\n".join(signatures(record)) + "\n```"]
    parts.append(record["doc"])
    parts.append("\n".join(facts(record)))
    if record["example"]:
        parts.append(shown(record))
    return "\n\n".join(parts)


def page(family, records):
    head = f"# Operators: {family}\n\nDerived from the records of `src/tessera/ops/{family}/`."
    return "\n\n".join([head, *map(entry, records)]) + "\n"


def index(families):
    lines = ["# Operators", "", "| family | operators |", "|---|---|"]
    for family, records in families.items():
        names = dict.fromkeys(record["name"] for record in records)
        links = ", ".join(f"[{name}]({family}.md#{name})" for name in names)
        lines.append(f"| [{family}]({family}.md) | {links} |")
    return "\n".join(lines) + "\n"


def write_reference(out):
    """Writes all pages into a folder; returns how many operators they show."""
    records = sorted(public_operators(), key=lambda record: (record["family"], record["name"]))
    families = {}
    for record in records:
        families.setdefault(record["family"], []).append(record)
    for family, members in families.items():
        write(out / f"{family}.md", page(family, members))
    write(out / "README.md", index(families))
    return len(records)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    default = ROOT / "build" / "release" / "docs" / "reference"
    parser.add_argument("--out", type=pathlib.Path, default=default)
    out = parser.parse_args().out
    print(f"{write_reference(out)} operators in {out}")


if __name__ == "__main__":
    main()
