"""Checkpointing: forward keeps nothing of a piece of the program, backward runs it again."""

import contextlib

from .. import _C
from .._grad_mode import enable_grad, no_grad
from ..autograd.function import Function
from ..autograd.graph import saved_tensors_hooks

Tensor = _C.Tensor


def noop_context_fn():
    return contextlib.nullcontext(), contextlib.nullcontext()


class DefaultDeviceType:
    """The device whose random state is kept beside the CPU's."""

    _type = "cuda"

    @classmethod
    def set_device_type(cls, device="cuda"):
        cls._type = device

    @classmethod
    def get_device_type(cls):
        return cls._type


def check_backward_validity(inputs):
    if not any(isinstance(t, Tensor) and t.requires_grad for t in inputs):
        import warnings

        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None")


def detach_variable(inputs):
    """The inputs cut off from their graph, each wanting a gradient as before."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(
            "Only tuple of tensors is supported. Got Unsupported input type: "
            + type(inputs).__name__
        )
    out = []
    for item in inputs:
        if isinstance(item, Tensor):
            flag = item.requires_grad
            item = item.detach()
            item.requires_grad = flag
        out.append(item)
    return tuple(out)


class _State:
    """Random numbers and autocast as they were when the piece ran first."""

    def __init__(self, preserve_rng_state, inputs):
        import tessera as torch

        self._torch = torch
        self.autocast = {
            kind: (torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind))
            for kind in ("cpu", "cuda")
        }
        self.rng = None
        if preserve_rng_state:
            devices = {t.device.index for t in inputs if isinstance(t, Tensor) and t.is_cuda}
            cuda = [(d, torch.cuda.get_rng_state(d)) for d in sorted(devices)]
            self.rng = (torch.get_rng_state(), cuda)

    @contextlib.contextmanager
    def again(self):
        torch = self._torch
        before = None
        if self.rng is not None:
            before = (
                torch.get_rng_state(),
                [(d, torch.cuda.get_rng_state(d)) for d, _ in self.rng[1]],
            )
            self._set(self.rng)
        with contextlib.ExitStack() as stack:
            for kind, (enabled, dtype) in self.autocast.items():
                stack.enter_context(torch.autocast(kind, dtype=dtype, enabled=enabled))
            try:
                yield
            finally:
                if before is not None:
                    self._set(before)

    def _set(self, state):
        self._torch.set_rng_state(state[0])
        for device, value in state[1]:
            self._torch.cuda.set_rng_state(value, device)


class CheckpointFunction(Function):
    """The reentrant kind: backward runs a backward of its own."""

    @staticmethod
    def forward(ctx, run_function, preserve_rng_state, *args):
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.state = _State(preserve_rng_state, args)
        ctx.inputs = [None if isinstance(a, Tensor) else a for a in args]
        ctx.places = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        ctx.save_for_backward(*(args[i] for i in ctx.places))
        with no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx, *grads):
        inputs = list(ctx.inputs)
        for i, t in zip(ctx.places, ctx.saved_tensors):
            inputs[i] = t
        detached = detach_variable(tuple(inputs))
        with ctx.state.again(), enable_grad():
            outputs = ctx.run_function(*detached)
        if isinstance(outputs, Tensor):
            outputs = (outputs,)
        pairs = [
            (o, g)
            for o, g in zip(outputs, grads)
            if isinstance(o, Tensor) and o.requires_grad and g is not None
        ]
        if not pairs:
            raise RuntimeError(
                "none of output has requires_grad=True, this checkpoint() is not necessary"
            )
        from .. import autograd

        autograd.backward([o for o, _ in pairs], [g for _, g in pairs])
        return (None, None, *(t.grad if isinstance(t, Tensor) else None for t in detached))


class CheckpointError(RuntimeError):
    """The second run saved other tensors than the first."""


class _StopRecomputation(Exception):
    pass


class _Frame:
    """One checkpointed call: what its first run saved, by place and without data."""

    def __init__(self, function, args, kwargs, state, recompute_context, early_stop):
        self.function, self.args, self.kwargs = function, args, kwargs
        self.state, self.recompute_context = state, recompute_context
        self.early_stop = early_stop
        self.expected = []  # (shape, dtype) of each tensor saved
        self.found = None  # the tensors of the second run

    def pack(self, tensor):
        self.expected.append((tensor.shape, tensor.dtype, tensor.device))
        return len(self.expected) - 1

    def unpack(self, place):
        if self.found is None or place not in self.found:
            self.run_again()
        if place not in self.found:
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the "
                "original forward and recomputation.\nNumber of tensors saved during forward: "
                f"{len(self.expected)}\nNumber of tensors saved during recomputation: "
                f"{len(self.found)}"
            )
        tensor = self.found.pop(place)
        made = (tensor.shape, tensor.dtype, tensor.device)
        if made != self.expected[place]:
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors have "
                "different metadata than during the forward pass.\n"
                f"tensor at position {place}:\nsaved metadata: {self.expected[place]}\n"
                f"recomputed metadata: {made}"
            )
        return tensor

    def run_again(self):
        self.found = {}
        count = 0

        def pack(tensor):
            nonlocal count
            self.found[count] = tensor.detach()
            count += 1
            if self.early_stop and count == len(self.expected):
                raise _StopRecomputation
            return tensor.detach()

        with self.state.again(), self.recompute_context, enable_grad():
            with saved_tensors_hooks(pack, lambda t: t):
                try:
                    self.function(*self.args, **self.kwargs)
                except _StopRecomputation:
                    pass


_early_stop = True


class set_checkpoint_early_stop:
    """May the second run end as soon as all that backward needs is there?"""

    def __init__(self, enable):
        self._enable = enable

    def __enter__(self):
        global _early_stop
        self._before, _early_stop = _early_stop, self._enable

    def __exit__(self, *unused):
        global _early_stop
        _early_stop = self._before


def checkpoint(
    function,
    *args,
    use_reentrant=None,
    context_fn=noop_context_fn,
    determinism_check="default",
    debug=False,
    early_stop=True,
    **kwargs,
):
    """Calls function(*args) and keeps its arguments only; backward calls it again."""
    preserve = kwargs.pop("preserve_rng_state", True)
    if use_reentrant is None:
        import warnings

        warnings.warn(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. "
            "use_reentrant=False is recommended.",
            stacklevel=2,
        )
        use_reentrant = True
    if use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn or debug is not False:
            raise ValueError(
                "Passing `context_fn` or `debug` is only supported when use_reentrant=False."
            )
        return CheckpointFunction.apply(function, preserve, *args)
    forward_context, recompute_context = context_fn()
    state = _State(preserve, args)
    frame = _Frame(function, args, kwargs, state, recompute_context, early_stop and _early_stop)
    if not _C.is_grad_enabled():
        return function(*args, **kwargs)
    with saved_tensors_hooks(frame.pack, frame.unpack), forward_context:
        return function(*args, **kwargs)


def checkpoint_sequential(functions, segments, input, use_reentrant=None, **kwargs):
    """A sequence of modules cut into segments, each checkpointed but the last."""
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    functions = list(functions.children()) if hasattr(functions, "children") else list(functions)

    def run(start, end):
        def forward(x):
            for j in range(start, end + 1):
                x = functions[j](x)
            return x

        return forward

    size = len(functions) // segments
    end = -1
    for start in range(0, size * (segments - 1), size):
        end = start + size - 1
        input = checkpoint(
            run(start, end), input, use_reentrant=use_reentrant, preserve_rng_state=preserve
        )
    return run(end + 1, len(functions) - 1)(input)
