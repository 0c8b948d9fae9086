"""Calls that replay a captured graph: what torch.compile(mode="reduce-overhead") makes.

The first calls with arguments of one signature run as they are, and are watched; then the function
is captured, and later calls copy their arguments in, replay, and give copies of the results. A call
runs as it is wherever that could make a difference: other tensors or numbers in the modules and
variables that the function uses, arguments that it writes to, a backward pass still to come,
another thread or stream, a function that cannot be captured.
"""

import threading
import types
import weakref
from operator import is_

from . import _C
from .utils._pytree import tree_flatten, tree_unflatten

Tensor = _C.Tensor
_SIMPLE = (bool, int, float, complex, str, bytes, type(None), _C.dtype, _C.device)
_WATCHED = 2  # calls before the capture
# Modules whose functions answer otherwise at each call.
_RESTLESS = ("random", "secrets", "time", "datetime", "os", "numpy", "itertools", "threading")
_MOST_GRAPHS = 32  # of a function
_MOST_STATE = 20000  # values that are compared at each call
_all = weakref.WeakSet()


def reset():
    """Forgets every captured graph."""
    for calls in list(_all):
        calls.entries.clear()


class _TooMuch(Exception):
    """The function uses something that cannot be compared."""


class _State:
    """What a function depends on beside its arguments, in a form that can be compared."""

    def __init__(self, function):
        self.items = []
        self.tensors = {}
        self._seen = {}  # keeps what is seen alive, so that no number is used twice
        # Where all of it was found, and what was there: to see soon that nothing has changed.
        self._dicts, self._lists, self._cells, self._names = [], [], [], []
        self._add(function)
        self._places = [_C._place(t) for t in self.tensors.values()]

    def __eq__(self, other):
        return self.items == other.items

    def is_current(self):
        """Is everything where it was, and the same object? If not, it may still be equal."""
        for found, values in self._dicts:
            if len(found) != len(values) or not all(map(is_, found.values(), values)):
                return False
        for found, values in self._lists:
            if len(found) != len(values) or not all(map(is_, found, values)):
                return False
        for cell, value in self._cells:
            if cell.cell_contents is not value:
                return False
        for names, name, value in self._names:
            if names.get(name) is not value:
                return False
        return self._places == [_C._place(t) for t in self.tensors.values()]

    def _add(self, value):
        if len(self.items) > _MOST_STATE:
            raise _TooMuch
        if isinstance(value, _SIMPLE):
            # Numbers that are equal and of two types, and NaN, are told apart.
            self.items.append((type(value), repr(value) if isinstance(value, float) else value))
            return
        self.items.append(id(value))
        if id(value) in self._seen:
            return
        self._seen[id(value)] = value
        if isinstance(value, Tensor):
            self.tensors[id(value)] = value
            self.items.append(_C._place(value))
        elif isinstance(value, types.FunctionType):
            self._add_function(value)
        elif isinstance(value, types.MethodType):
            self._add(value.__self__)
            self._add(value.__func__)
        elif isinstance(value, (list, tuple, set, frozenset)):
            self._lists.append((value, list(value)))
            self.items.append(len(value))
            for one in value:
                self._add(one)
        elif isinstance(value, dict):
            self._dicts.append((value, list(value.values())))
            self.items.append(len(value))
            for key, one in value.items():
                self._add(key)
                self._add(one)
        elif isinstance(value, types.BuiltinFunctionType):
            if (value.__module__ or "").split(".")[0] in _RESTLESS:
                raise _TooMuch
        elif isinstance(value, types.ModuleType):
            if value.__name__.split(".")[0] in _RESTLESS:
                raise _TooMuch
        elif isinstance(value, type):
            self._add_class(value)
        elif hasattr(type(value), "__next__"):
            raise _TooMuch  # the next value is another one
        elif hasattr(value, "__dict__"):
            self._dicts.append((vars(value), list(vars(value).values())))
            for key, one in vars(value).items():
                self._add(key)
                self._add(one)
            self._add(type(value))
        # What is left has no state that Python shows: it is told apart by which one it is.

    def _add_class(self, cls):
        """What its methods use, and values that it keeps."""
        for base in cls.__mro__:
            if base is object or _is_ours(base):
                continue
            for name, one in list(vars(base).items()):
                if isinstance(one, (*_SIMPLE, Tensor, types.FunctionType)):
                    self._names.append((vars(base), name, one))
                    self._add(one)

    def _add_function(self, function):
        for cell in function.__closure__ or ():
            try:
                value = cell.cell_contents
            except ValueError:  # not set yet: it will be another
                raise _TooMuch from None
            self._cells.append((cell, value))
            self._add(value)
        for defaults in (function.__defaults__, function.__kwdefaults__):
            if defaults:
                self._add(defaults)
        if _is_ours(function):
            return
        names = function.__globals__
        for code in _codes(function.__code__):
            for name in code.co_names:
                if name not in names:
                    continue
                value = names[name]
                self._names.append((names, name, value))
                self._add(value)
                if isinstance(value, types.ModuleType) and not _is_ours_name(value.__name__):
                    # co_names has names of attributes, too.
                    for of_module in code.co_names:
                        if of_module in vars(value):
                            self._names.append((vars(value), of_module, vars(value)[of_module]))
                            self._add(vars(value)[of_module])


def _is_ours_name(name):
    return (name or "").split(".")[0] in ("tessera", "torch", "builtins")


def _is_ours(thing):
    return _is_ours_name(getattr(thing, "__module__", None))


def _grads(state):
    """The gradients that tensors of the state have now."""
    leaves = [t for t in state.tensors.values() if t.requires_grad and t.is_leaf]
    return [
        None if t.grad is None else (_C._place(t.grad), _C._count_writes(t.grad)) for t in leaves
    ]


def _codes(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


class _Entry:
    def __init__(self):
        self.calls = 0
        self.plain = False  # for good
        self.state = None
        self.captured = None
        self.thread = threading.get_ident()
        self.stream = None


class GraphCalls:
    """A function, called as it is or by a graph of it."""

    def __init__(self, function):
        self.function = function
        self.entries = {}
        _all.add(self)

    def __call__(self, *args, **kwargs):
        flat, structure = tree_flatten((args, kwargs))
        key = _signature(flat, structure)
        if key is None:
            return self.function(*args, **kwargs)
        entry = self.entries.get(key)
        if entry is None:
            if len(self.entries) >= _MOST_GRAPHS:
                return self.function(*args, **kwargs)
            entry = self.entries[key] = _Entry()
        if entry.plain or entry.thread != threading.get_ident() or _C._cuda_is_capturing():
            return self.function(*args, **kwargs)
        state = entry.state
        if state is None or not state.is_current():
            try:
                state = _State(self.function)
            except _TooMuch:
                entry.plain = True
                return self.function(*args, **kwargs)
            if entry.state is not None and entry.state != state:
                entry = self.entries[key] = _Entry()
            entry.state = state
        if entry.calls < _WATCHED:
            return self._watched(entry, state, flat, args, kwargs)
        if entry.captured is None:
            self._capture(entry, state, flat, structure)
        captured = entry.captured
        if captured is None or captured.busy() or entry.stream != _stream():
            return self.function(*args, **kwargs)
        return captured(*(a for a in flat if isinstance(a, Tensor)))

    def _watched(self, entry, state, flat, args, kwargs):
        """Runs as it is; says whether a graph would have done the same."""
        inputs = [a for a in flat if isinstance(a, Tensor)]
        versions = [_C._count_writes(a) for a in inputs]
        grads = _grads(state)
        entry.calls += 1
        results = self.function(*args, **kwargs)
        outputs, _ = tree_flatten(results)
        entry.state = _State(self.function)
        places = {_C._place(t)[0] for t in (*inputs, *state.tensors.values())}
        known = {id(t) for t in (*inputs, *state.tensors.values())}
        same_device = all(
            o.device == inputs[0].device and type(o) is Tensor and _C._place(o)[0] not in places
            for o in outputs
            if isinstance(o, Tensor)
        )
        entry.plain = not (
            same_device
            and entry.state == state
            and grads == _grads(state)
            and versions == [_C._count_writes(a) for a in inputs]
            and all(isinstance(o, (Tensor, *_SIMPLE)) for o in outputs)
            and _leaves(outputs, inputs) <= known
        )
        return results

    def _capture(self, entry, state, flat, structure):
        import tessera

        from .cuda._graphed import Pass

        wanted = [t for t in state.tensors.values() if t.requires_grad and t.is_leaf]
        if not _C.is_grad_enabled():
            wanted = []
        # Where there is no stream but the default one, a graph has one of its own.
        static = [
            a.detach().clone().requires_grad_(a.requires_grad) if isinstance(a, Tensor) else a
            for a in flat
        ]
        args, kwargs = tree_unflatten(static, structure)
        made = Pass(self.function, args, wanted, allow_unused=True, kwargs=kwargs)
        try:
            pool = tessera.cuda.graph_pool_handle()
            options = {"capture_error_mode": "thread_local"}
            made.capture_forward(pool, **options)
            made.capture_backward(pool, **options)
            if _State(self.function) != state:
                raise RuntimeError("the function changes what it depends on")
        except Exception:  # it runs as it is, and raises there what is its own
            entry.plain = True
            return
        entry.captured = made
        entry.stream = _stream()


def _stream():
    return _C._current_stream(-1)


def _signature(flat, structure):
    """What two calls must have in common to be one graph; None where there can be none."""
    import tessera

    key = []
    device = None
    for a in flat:
        if isinstance(a, Tensor):
            if type(a) not in (Tensor, tessera.nn.Parameter) or not a.is_cuda:
                return None
            if device is not None and a.device != device:
                return None
            device = a.device
            key.append((a.shape, a.stride(), a.dtype, a.requires_grad))
        elif isinstance(a, _SIMPLE):
            key.append((type(a), repr(a) if isinstance(a, float) else a))
        else:
            return None
    if device is None or device.index != _C._cuda_current_device():
        return None
    return (
        tuple(key),
        str(structure),
        device.index,
        _C.is_grad_enabled(),
        _C.is_inference_mode_enabled(),
        tessera.is_autocast_enabled("cuda"),
        tessera.get_autocast_dtype("cuda"),
        tessera.get_default_dtype(),
    )


def _leaves(outputs, inputs):
    """The numbers of the tensors that gradients of the outputs would go to, short of the inputs."""
    found = {id(a) for a in inputs if a.requires_grad and a.is_leaf}
    ends = [a.grad_fn for a in inputs if a.grad_fn is not None]
    seen, todo = set(), []
    todo += [o.grad_fn for o in outputs if isinstance(o, Tensor) and o.grad_fn is not None]
    while todo:
        node = todo.pop()
        if node is None or node in seen or any(node == e for e in ends):
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            found.add(id(node.variable))
        todo += [following for following, _ in node.next_functions]
    return found
