"""Graphs that stay alive: which lines made them, and which lists keep them."""

import gc
import sys
from collections import deque
from types import FrameType, ModuleType

import tessera as torch

_HOLDERS = (list, tuple, dict, set, deque)


def _has_graph(value):
    return isinstance(value, torch.Tensor) and value.grad_fn is not None


def _holds(holder):
    """How many tensors with graphs are in it."""
    values = holder.values() if isinstance(holder, dict) else holder
    return sum(map(_has_graph, list(values)))


def _namespaces():
    """(where, names) of modules, and of what runs."""
    for name, module in list(sys.modules.items()):
        if isinstance(module, ModuleType) and not name.startswith("tessera"):
            yield f"module {name}", module.__dict__
    for frame in sys._current_frames().values():
        while isinstance(frame, FrameType):
            if frame.f_locals is not frame.f_globals and frame.f_code.co_filename != __file__:
                yield f"{frame.f_code.co_name}()", frame.f_locals
            frame = frame.f_back


def _names():
    """What values are called: by id."""
    found = {}
    for where, names in _namespaces():
        for name, value in list(names.items()):
            found.setdefault(id(value), f"'{name}' of {where}")
            if hasattr(value, "__dict__") and not isinstance(value, (type, ModuleType)):
                for attribute, inner in list(vars(value).items()):
                    if isinstance(inner, _HOLDERS):
                        found.setdefault(id(inner), f"'{name}.{attribute}' of {where}")
    return found


def graph_holders(least=2):
    """Containers that hold so many tensors with graphs: (name or kind, how many), most first."""
    names = None
    found = []
    namespaces = {id(names) for _, names in _namespaces()}
    for holder in gc.get_objects():
        if type(holder) not in _HOLDERS or id(holder) in namespaces:
            continue
        if (count := _holds(holder)) >= least:
            names = names if names is not None else _names()
            name = names.get(id(holder), "without a name")
            found.append((f"{type(holder).__name__} {name}", count))
    return sorted(found, key=lambda pair: -pair[1])


class GraphLeakFinder:
    """Finds graphs that outlive the step that made them.

    with GraphLeakFinder() as finder:
        for batch in loader:
            loss = criterion(model(batch), target)
            losses.append(loss)      # keeps its graph
            loss.backward()
            finder.step()
    print(finder)

    `step()` after each step counts the nodes alive; if that grows, something keeps them. `leaks`
    has (operator, line, nodes, bytes saved for backward) of those alive at the end, `holders` the
    lists, dicts and the like that hold tensors with graphs.
    """

    def __init__(self):
        self.counts = []
        self.leaks = []
        self.holders = []

    def __enter__(self):
        self._tracking = torch.autograd.graph.track_graphs()
        self._tracking.__enter__()
        return self

    def step(self):
        self.counts.append(sum(row[2] for row in torch.autograd.graph.live_graphs()))

    def __exit__(self, *unused):
        self.leaks = torch.autograd.graph.live_graphs()
        self.holders = graph_holders()
        self._tracking.__exit__()

    @property
    def grows(self):
        """Were more nodes alive after every step than after the one before, the first apart?"""
        pairs = list(zip(self.counts[1:], self.counts[2:]))
        return bool(pairs) and all(a < b for a, b in pairs)

    def __str__(self):
        nodes, size = sum(row[2] for row in self.leaks), sum(row[3] for row in self.leaks)
        lines = [f"{nodes} nodes of graphs are alive, with {size / 1e6:.2f} MB saved for backward"]
        if self.grows:
            per_step = (self.counts[-1] - self.counts[1]) / (len(self.counts) - 2)
            lines[0] += f"; {per_step:g} more after each step: a leak"
        for name, line, count, saved in self.leaks[:8]:
            lines.append(f"  {count:6} {name} made at {line or '?'}, {saved / 1e6:.2f} MB")
        for name, count in self.holders[:5]:
            lines.append(f"held by {name}: {count} tensors with graphs")
        if self.grows or self.holders:
            lines.append("keep numbers or values: loss.item(), or loss.detach()")
        return "\n".join(lines)


def find_graph_leaks(step, times=5):
    """Calls step() so often and says which graphs outlive it; gives the GraphLeakFinder."""
    with GraphLeakFinder() as finder:
        for _ in range(times):
            step()
            finder.step()
    print(finder)
    return finder
