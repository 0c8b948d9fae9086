"""Functions and modules whose forward and backward passes are captured graphs."""

import weakref

from .. import _C, autograd
from .._grad_mode import no_grad
from ..autograd.function import Function, once_differentiable
from ..nn import Module
from ..utils._pytree import tree_flatten, tree_unflatten
from ._device import synchronize
from ._streams import Stream, stream
from .graphs import CUDAGraph, graph, graph_pool_handle

Tensor = _C.Tensor


class Pass:
    """One callable, captured: its inputs, outputs and gradients lie where the graphs have them."""

    def __init__(self, function, args, others, allow_unused=False, kwargs=None):
        """`others`: tensors beside the arguments that the function reads, and gradients go to."""
        self.function = function
        self.args = args
        self.kwargs = kwargs or {}
        self.flat, _ = tree_flatten((args, self.kwargs))
        self.inputs = [a for a in self.flat if isinstance(a, Tensor)]
        self.surface = [*self.inputs, *others]
        self.allow_unused = allow_unused
        self.forward_graph = self.backward_graph = None
        self.generation = 0
        self.pending = lambda: None  # the call whose backward pass has not run yet

    def _call(self):
        flat, self.structure = tree_flatten(self.function(*self.args, **self.kwargs))
        return flat

    def _gradients(self, outputs, grads):
        wanted = [t for t in self.surface if t.requires_grad]
        return autograd.grad(
            outputs=[o for o in outputs if isinstance(o, Tensor) and o.requires_grad],
            inputs=wanted,
            grad_outputs=[g for g in grads if g is not None],
            only_inputs=True,
            allow_unused=self.allow_unused,
        )

    def warm_up(self):
        """Runs as the capture will: kernels are compiled and libraries open after it."""
        outputs = self._call()
        grads = [_like(o) for o in outputs]
        if any(g is not None for g in grads) and any(t.requires_grad for t in self.surface):
            self._gradients(outputs, grads)

    def capture_forward(self, pool, **options):
        self.forward_graph = CUDAGraph()
        with graph(self.forward_graph, pool=pool, **options):
            self.outputs = self._call()

    def capture_backward(self, pool, **options):
        """After the forward passes of all callables, the last one first."""
        self.grad_outputs = [_like(o) for o in self.outputs]
        self.grad_inputs = [None] * len(self.surface)
        if all(g is None for g in self.grad_outputs) or not any(
            t.requires_grad for t in self.surface
        ):
            return
        self.backward_graph = CUDAGraph()
        with graph(self.backward_graph, pool=pool, **options):
            found = iter(self._gradients(self.outputs, self.grad_outputs))
        self.grad_inputs = [next(found) if t.requires_grad else None for t in self.surface]
        # The captured nodes have done their work.
        self.outputs = [o.detach() if isinstance(o, Tensor) else o for o in self.outputs]

    def busy(self):
        """Does a call still need what its forward pass left in the graphs' memory?"""
        token = self.pending()
        return token is not None and not token.done

    def replay_forward(self, inputs):
        with no_grad():
            for mine, given in zip(self.inputs, inputs):
                if mine is not given:
                    mine.copy_(given)
        self.forward_graph.replay()
        self.generation += 1

    def __call__(self, *inputs):
        """The results, as tensors of their own: the next call does not write over them."""
        wants = self.backward_graph is not None and _C.is_grad_enabled()
        if wants:
            flat = list(_Replay.apply(self, *inputs, *self.surface[len(self.inputs) :]))
        else:
            self.replay_forward(inputs)
            flat = [o.detach().clone() for o in self.outputs if isinstance(o, Tensor)]
        tensors = iter(flat)
        flat = [next(tensors) if isinstance(o, Tensor) else o for o in self.outputs]
        return tree_unflatten(flat, self.structure)


class _Token:
    done = False


class _Replay(Function):
    @staticmethod
    def forward(ctx, captured, *inputs):
        captured.replay_forward(inputs[: len(captured.inputs)])
        ctx.captured = captured
        ctx.generation = captured.generation
        ctx.token = _Token()
        captured.pending = weakref.ref(ctx.token)
        results = []
        for o, g in zip(captured.outputs, captured.grad_outputs):
            if isinstance(o, Tensor):
                results.append(o.clone())
                if g is None:
                    ctx.mark_non_differentiable(results[-1])
        return tuple(results)

    @staticmethod
    @once_differentiable
    def backward(ctx, *grads):
        captured = ctx.captured
        if ctx.generation != captured.generation:
            raise RuntimeError(
                "the graph was replayed again before this backward pass: what its forward pass "
                "had kept is gone"
            )
        mine = [g for o, g in zip(captured.outputs, captured.grad_outputs) if isinstance(o, Tensor)]
        for static, given in zip(mine, grads):
            if static is not None:
                if given is None:
                    static.zero_()
                else:
                    static.copy_(given)
        captured.backward_graph.replay()
        ctx.token.done = True
        return (None, *(None if g is None else g.detach().clone() for g in captured.grad_inputs))


def _like(output):
    """Where the gradient of an output will be; None if it wants none."""
    import tessera

    wants = isinstance(output, Tensor) and output.requires_grad
    return tessera.zeros_like(output, requires_grad=False) if wants else None


def _surface_of(function):
    return list(function.parameters()) if isinstance(function, Module) else []


def _check_module(module):
    if len(module._backward_hooks) or len(module._forward_hooks) or len(module._forward_pre_hooks):
        raise RuntimeError(
            "Modules must not have hooks registered at the time they are passed. However, "
            "registering hooks on modules after passing them through make_graphed_callables is "
            "allowed."
        )
    if any(b.requires_grad for b in module.buffers()):
        raise RuntimeError(
            "In any :class:`~torch.nn.Module` passed to :func:`~make_graphed_callables`, only "
            "parameters may be trainable. All buffers must have ``requires_grad=False``."
        )


def _check_args(args):
    for a in tree_flatten(args)[0]:
        if not isinstance(a, Tensor):
            raise TypeError(
                "In the beta API, sample_args for each callable must contain only Tensors. Other "
                "types are not allowed."
            )


def _as_forward(captured, structure):
    def forward(*args):
        flat, given = tree_flatten((args, {}))
        if given != structure:
            raise TypeError("the arguments are not those that the function was captured with")
        return captured(*flat)

    return forward


def graphed(callables, sample_args, num_warmup_iters, allow_unused_input, pool):
    """See torch.cuda.make_graphed_callables."""
    single = not isinstance(callables, tuple)
    if single:
        callables, sample_args = (callables,), (sample_args,)
    passes, structures = [], []
    for function, args in zip(callables, sample_args):
        if isinstance(function, Module):
            _check_module(function)
        args = tuple(args) if isinstance(args, (tuple, list)) else (args,)
        _check_args(args)
        structures.append(tree_flatten((args, {}))[1])
        passes.append(Pass(function, args, _surface_of(function), allow_unused_input))

    synchronize()
    with stream(Stream()):
        for p in passes:
            for _ in range(num_warmup_iters):
                p.warm_up()
    synchronize()
    pool = graph_pool_handle() if pool is None else pool
    for p in passes:
        p.capture_forward(pool)
    for p in reversed(passes):
        p.capture_backward(pool)

    made = []
    for function, p, structure in zip(callables, passes, structures):
        forward = _as_forward(p, structure)
        made.append(_patched(function, forward) if isinstance(function, Module) else forward)
    return made[0] if single else tuple(made)


def _patched(module, graphed):
    original, training = module.forward, module.training

    def forward(*args, **kwargs):
        if module.training == training and not kwargs:
            return graphed(*args)
        return original(*args, **kwargs)

    module.forward = forward
    return module
