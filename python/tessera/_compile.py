"""torch.compile: programs run as they are, and pointwise work is fused without it; where a mode
asks for less overhead, calls on a cuda device replay captured graphs."""

_MODES = (
    "default",
    "reduce-overhead",
    "max-autotune",
    "max-autotune-no-cudagraphs",
)


def compile(
    model=None,
    *,
    fullgraph=False,
    dynamic=None,
    backend="inductor",
    mode=None,
    options=None,
    disable=False,
):
    """A callable with the same results. Also a decorator, with or without arguments."""
    if mode is not None and options is not None:
        raise RuntimeError(
            "Either mode or options can be specified, but both can't be specified at the same time."
        )
    if mode is not None and mode not in _MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(_MODES)}")
    if model is None:
        return lambda function: compile(
            function,
            fullgraph=fullgraph,
            dynamic=dynamic,
            backend=backend,
            mode=mode,
            options=options,
            disable=disable,
        )
    if not callable(model):
        raise RuntimeError(f"torch.compile() takes a function or a module, not {type(model)}")
    if disable:
        return model
    graphs = mode in ("reduce-overhead", "max-autotune") or bool(
        (options or {}).get("triton.cudagraphs")
    )
    from .nn import Module

    if isinstance(model, Module):
        from ._optimized_module import OptimizedModule

        return OptimizedModule(model, graphs)
    if not graphs or isinstance(model, type):
        return model
    import functools

    from ._graph_calls import GraphCalls

    calls = GraphCalls(model)

    @functools.wraps(model)
    def compiled(*args, **kwargs):
        return calls(*args, **kwargs)

    return compiled
