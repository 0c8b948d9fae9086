"""CUDA graphs: work of a stream, captured once and replayed at the cost of one launch."""

import gc

from .. import _C
from .._missing import module_getattr
from ._device import synchronize
from ._memory import empty_cache
from ._streams import Stream
from ._streams import stream as _use_stream


def is_current_stream_capturing():
    """Is what goes to the current stream being captured, and not run?"""
    return _C._cuda_is_capturing()


def graph_pool_handle():
    """A memory pool that several graphs may be captured into, by its name."""
    return _C._graph_pool_handle()


class CUDAGraph(_C.CUDAGraphBase):
    """Work of a device, captured from a stream.

    It runs on the memory of its capture: inputs are written into the tensors that were read then,
    and results appear in those that were made then. Each replay draws new random numbers.
    """

    def __init__(self, keep_graph=False):
        super().__init__(keep_graph)
        self._generators = []

    def capture_begin(self, pool=None, capture_error_mode="global"):
        """Keeps what goes to the current stream from now on, instead of running it."""
        self._begin((0, 0) if pool is None else tuple(pool), capture_error_mode)

    def capture_end(self):
        """Ends the capture; raises, and the graph is empty, if something could not be captured."""
        self._end()

    def instantiate(self):
        """For a graph made with keep_graph=True: after this, changes of the raw graph are lost."""
        self._instantiate()

    def replay(self):
        """Runs the captured work on the current stream."""
        self._replay()

    def reset(self):
        """Lets the graph and its memory go."""
        self._reset()
        self._generators.clear()

    def pool(self):
        """The memory pool, for another graph's capture."""
        return self._pool()

    def register_generator_state(self, generator):
        """Says that the capture will draw from a generator that is not the device's default one."""
        self._register(generator)
        self._generators.append(generator)

    def raw_cuda_graph(self):
        """The address of the CUgraph; of a graph made with keep_graph=True."""
        return self._raw_graph()

    def raw_cuda_graph_exec(self):
        """The address of the CUgraphExec."""
        return self._raw_executable()

    def enable_debug_mode(self):
        raise NotImplementedError(
            "CUDAGraph.enable_debug_mode is not implemented in Tessera yet: raw_cuda_graph() of a "
            "graph made with keep_graph=True can be given to cuGraphDebugDotPrint"
        )

    def debug_dump(self, debug_path):
        raise NotImplementedError("CUDAGraph.debug_dump is not implemented in Tessera yet")


class graph:
    """Captures what a block does: `with torch.cuda.graph(g): y = model(x)`.

    On a stream of its own unless one is given. If the block raises, the graph is empty and the
    stream works as before.
    """

    default_capture_stream = None

    def __init__(self, cuda_graph, pool=None, stream=None, capture_error_mode="global"):
        if stream is None:
            if graph.default_capture_stream is None:
                graph.default_capture_stream = Stream()
            stream = graph.default_capture_stream
            if stream.device.index != _C._cuda_current_device():
                stream = Stream()
        self.cuda_graph = cuda_graph
        self.pool = pool
        self.capture_stream = stream
        self.stream_ctx = _use_stream(stream)
        self.capture_error_mode = capture_error_mode

    def __enter__(self):
        # What was before is done, and memory that nobody needs is free, before the capture begins.
        synchronize(self.capture_stream.device)
        gc.collect()
        empty_cache()
        self.stream_ctx.__enter__()
        try:
            self.cuda_graph.capture_begin(self.pool, capture_error_mode=self.capture_error_mode)
        except BaseException:
            self.stream_ctx.__exit__(None, None, None)
            raise

    def __exit__(self, kind, error, trace):
        try:
            if kind is None:
                self.cuda_graph.capture_end()
            else:
                self.cuda_graph._abandon()
        finally:
            self.stream_ctx.__exit__(kind, error, trace)


def make_graphed_callables(
    callables, sample_args, num_warmup_iters=3, allow_unused_input=False, pool=None
):
    """Functions and modules that replay captured graphs, forward and backward.

    `sample_args` say the shapes, dtypes and which arguments want gradients; later calls must have
    the same. Several callables are given in the order in which they will run. A module is given
    back with another forward(), which is used as long as its training mode is that of the capture.
    """
    from ._graphed import graphed

    return graphed(callables, sample_args, num_warmup_iters, allow_unused_input, pool)


__getattr__ = module_getattr(__name__)
