"""The options of the C++ face have the defaults of Python's signatures: read off the headers."""

import inspect
import re
from pathlib import Path

import pytest
from conftest import KIND

from tessera import nn, optim

SOURCES = Path(__file__).resolve().parents[2] / "src" / "tessera"
pytestmark = pytest.mark.skipif(KIND != "cpu", reason="defaults are the same everywhere")
STRUCT = re.compile(r"^struct (\w+)Options \{\n(.*?)^\};", re.M | re.S)
FIELD = re.compile(r"^  [\w:<>, ]+? (\w+) = (.*?);", re.M)
# What takes options whose name is not its own.
SHARED = re.compile(r"^  (?:explicit )?(\w+)\([^;{]*?\b(\w+)Options \w+ = \{\}\)", re.M)
# Defaults that are worded otherwise, and why.
OTHERWISE = {
    ("LBFGS", "max_eval"): "None in both: max_iter * 5 / 4",
    ("CyclicLR", "scale_fn"): "an empty function",
}


def value(text):
    """A C++ initialiser as Python has it; None also for what is empty."""
    text = {"true": "True", "false": "False", "std::nullopt": "None", "{}": "None"}.get(text, text)
    return eval(re.sub(r"^\{(.*)\}$", r"(\1)", text)) or None


def options():
    """{class: {field: text}} of every class of the C++ face that Python has too."""
    structs, users = {}, {}
    for folder in ("optim", "nn"):
        for header in sorted((SOURCES / folder).glob("*.h")):
            text = header.read_text()
            for name, body in STRUCT.findall(text):
                structs[name] = dict(FIELD.findall(body))
                users.setdefault(name, set()).add(name)
            for user, name in SHARED.findall(text):
                users.setdefault(name, set()).add(user)
    return {user: structs[name] for name in structs for user in users[name]}


def python_class(name):
    for module in (optim, optim.lr_scheduler, nn):
        if inspect.isclass(getattr(module, name, None)):
            return getattr(module, name)
    return None


CASES = [
    (name, field, text)
    for name, fields in sorted(options().items())
    if python_class(name)
    for field, text in fields.items()
    if field in inspect.signature(python_class(name)).parameters and (name, field) not in OTHERWISE
]


@pytest.mark.parametrize("name, field, text", CASES, ids=lambda part: str(part))
def test_default(name, field, text):
    want = inspect.signature(python_class(name)).parameters[field].default
    assert want is not inspect.Parameter.empty
    got = value(text)
    if isinstance(got, tuple) and not isinstance(want, tuple):
        assert set(got) == {want}
    else:
        assert got == (want or None)


def test_enough_is_compared():
    classes = {name for name, _, _ in CASES}
    assert len(CASES) > 150 and len(classes) > 50
    every = {name for name in options() if python_class(name)}
    for module in (optim, optim.lr_scheduler):
        assert {n for n in every if hasattr(module, n)} <= classes
