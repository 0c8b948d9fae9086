"""Walks a program's syntax tree and notes what is missing."""

import ast
from typing import NamedTuple

import tessera

from .. import _names
from .._missing import nearest
from ._known import (
    Unknown,
    keywords_of,
    look_up,
    missing_text,
    ordinary_names,
    tensor_has,
    tensor_text,
)
from ._tensors import Tensors


class Finding(NamedTuple):
    line: int
    text: str


def check_source(source, path="<string>"):
    """The findings in a program's text."""
    tree = ast.parse(source, path)
    visitor = _Visitor(tree)
    visitor.visit(tree)
    return sorted(set(visitor.findings))


def _torch_name(name):
    """`torch.x` for a module's name in an import, None for other modules."""
    first, dot, rest = name.partition(".")
    return "torch" + dot + rest if first in ("torch", "tessera") else None


class _Visitor(ast.NodeVisitor):
    def __init__(self, tree):
        self.findings = []
        self._names = {}  # what a name of the program stands for in PyTorch
        self._modules = set()  # names of other modules
        self._tensors = Tensors(self._resolve)
        self._guards = []  # torch names whose presence the program asked for
        self._classes = []
        # Attributes that the program defines itself: not looked for on tensors.
        self._own = {
            n.name for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.ClassDef))
        }
        self._own |= {
            n.attr
            for n in ast.walk(tree)
            if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)
        }
        for node in ast.walk(tree):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                self._bind(node)

    # ---- names --------------------------------------------------------------------------------

    def _bind(self, node):
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = _torch_name(alias.name)
                bound = alias.asname or alias.name.partition(".")[0]
                if name is None:
                    self._modules.add(bound)
                else:
                    self._names[bound] = name if alias.asname else "torch"
        elif not node.level:
            base = _torch_name(node.module)
            for alias in node.names:
                if base is not None and alias.name != "*":
                    self._names[alias.asname or alias.name] = f"{base}.{alias.name}"
                elif base is None:
                    self._modules.add(alias.asname or alias.name)

    def _resolve(self, node):
        """The dotted torch name that an expression names, or None."""
        parts = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self._names:
            return None
        return ".".join([self._names[node.id], *reversed(parts)])

    def _note(self, node, text):
        self.findings.append(Finding(node.lineno, text))

    def _require(self, node, dotted):
        """The object, or None after noting that it is missing."""
        if any(dotted == g or dotted.startswith(g + ".") for g in self._guards):
            return None
        try:
            return look_up(dotted)
        except LookupError as error:
            self._note(node, missing_text(*error.args))
            return None

    # ---- statements ---------------------------------------------------------------------------

    def visit_Import(self, node):
        for alias in node.names:
            name = _torch_name(alias.name)
            if name is not None:
                self._require(node, name)

    def visit_ImportFrom(self, node):
        base = None if node.level else _torch_name(node.module)
        for alias in node.names if base else ():
            self._require(node, base if alias.name == "*" else f"{base}.{alias.name}")

    def visit_If(self, node):
        """Names that `if hasattr(torch, "x")` asks for are not missed in what follows."""
        body, otherwise = node.body, node.orelse
        if isinstance(node, ast.IfExp):
            body, otherwise = [body], [otherwise]
        if isinstance(node.test, ast.UnaryOp) and isinstance(node.test.op, ast.Not):
            body, otherwise = otherwise, body
        guards = [g for part in ast.walk(node.test) if (g := self._hasattr(part))]
        self._guards += guards
        self.visit(node.test)
        for child in body:
            self.visit(child)
        del self._guards[len(self._guards) - len(guards) :]
        for child in otherwise:
            self.visit(child)

    visit_IfExp = visit_If

    def _hasattr(self, node):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            return None
        if node.func.id != "hasattr" or len(node.args) != 2:
            return None
        owner, name = self._resolve(node.args[0]), node.args[1]
        return f"{owner}.{name.value}" if owner and isinstance(name, ast.Constant) else None

    def visit_ClassDef(self, node):
        bases = [self._resolve(b) or "" for b in node.bases]
        self._classes.append(any(b.endswith(".Module") for b in bases))
        self.generic_visit(node)
        self._classes.pop()

    def visit_FunctionDef(self, node):
        self._tensors.enter(node, bool(self._classes) and self._classes[-1])
        self.generic_visit(node)
        self._tensors.leave()

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Assign(self, node):
        self.generic_visit(node)
        for target in node.targets:
            self._tensors.assign(target, node.value)

    def visit_AnnAssign(self, node):
        self.generic_visit(node)
        self._tensors.assign(node.target, node.value)

    # ---- expressions --------------------------------------------------------------------------

    def visit_Attribute(self, node):
        dotted = self._resolve(node)
        if dotted is not None:
            if isinstance(node.ctx, ast.Load):
                self._require(node, dotted)
            return
        self.visit(node.value)
        if isinstance(node.ctx, ast.Load):
            self._member(node)

    def _member(self, node):
        """An attribute of something that is no module of PyTorch's."""
        name = node.attr
        if tensor_has(name):
            return
        known = name in _names.tensor_names()
        if self._tensors.is_tensor(node.value):
            if known or name not in self._own:
                self._note(node, tensor_text(name))
            return
        if not self._names or not known or name in self._own or name in ordinary_names():
            return
        if isinstance(node.value, ast.Name) and node.value.id in {*self._modules, "self", "cls"}:
            return
        text = tensor_text(name)
        self._note(node, text + " (if this is a tensor)")

    def visit_Call(self, node):
        self.generic_visit(node)
        dotted = self._resolve(node.func)
        if dotted is not None:
            try:
                function, shown = look_up(dotted), dotted
            except LookupError:
                return
        elif isinstance(node.func, ast.Attribute) and self._tensors.is_tensor(node.func.value):
            function = getattr(tessera.Tensor, node.func.attr, None)
            shown = f"Tensor.{node.func.attr}"
        else:
            return
        try:
            keywords = keywords_of(function)
        except Unknown:
            return
        for keyword in node.keywords:
            if keyword.arg is not None and keyword.arg not in keywords:
                like = nearest(keyword.arg, keywords)
                text = f"{shown}() takes no argument {keyword.arg}= in Tessera yet"
                self._note(keyword, text + (f"; nearest: {like}=" if like else ""))
