"""torch.autograd.profiler: profiles of a block, and scopes with names."""

import functools

from .. import _C
from .._missing import module_getattr
from .profiler_util import EventList, FunctionEvent, FunctionEventAvg  # noqa: F401


class record_function:
    """A block with a name in profiles: as a context, or a decorator."""

    def __init__(self, name, args=None):
        self.name = name
        self.args = args
        self._scope = None

    def __enter__(self):
        self._scope = _C._record_function(self.name, self.args or "")
        return self

    def __exit__(self, *error):
        scope, self._scope = self._scope, None
        if scope is not None:
            scope.end()

    def __call__(self, function):
        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            with record_function(self.name, self.args):
                return function(*args, **kwargs)

        return wrapped


class profile:
    """Profiles a block; `torch.profiler.profile` is the newer one."""

    def __init__(
        self,
        enabled=True,
        *,
        use_cuda=False,
        use_device=None,
        record_shapes=False,
        with_flops=False,
        profile_memory=False,
        with_stack=False,
        with_modules=False,
        use_kineto=True,
        use_cpu=True,
        experimental_config=None,
        acc_events=False,
        custom_trace_id_callback=None,
        post_processing_timeout_s=None,
    ):
        self.enabled = enabled
        self.use_device = "cuda" if use_cuda else use_device
        self.record_shapes = record_shapes
        self.with_flops = with_flops
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.entered = False
        self._profile = _C._Profile(
            use_cpu,
            self.use_device == "cuda",
            record_shapes or with_flops,
            profile_memory,
            with_stack,
            with_flops,
        )

    def __enter__(self):
        if self.enabled:
            if self.entered:
                raise RuntimeError("Profiler context manager is not reentrant")
            self.entered = True
            self._profile.start()
        return self

    def __exit__(self, *error):
        if self.enabled:
            self._profile.stop()
        return False

    def __repr__(self):
        if not self.entered or self._profile.started:
            return "<unfinished torch.autograd.profile>"
        return repr(self.function_events)

    def __str__(self):
        if not self.entered or self._profile.started:
            return "<unfinished torch.autograd.profile>"
        return str(self.function_events)

    def _list(self, events):
        if self._profile.started or not self.entered:
            raise RuntimeError("Profiler didn't finish running")
        return EventList(
            events,
            use_device="cuda" if self._profile.uses_device else None,
            profile_memory=self.profile_memory,
            with_flops=self.with_flops,
            profile=self._profile,
        )

    @functools.cached_property
    def _events(self):
        return self._list(self._profile.events())

    @property
    def function_events(self):
        if self._profile.started or not self.entered:
            raise RuntimeError("Profiler didn't finish running")
        return self._events

    def table(self, sort_by=None, row_limit=100, **options):
        return self.function_events.table(sort_by=sort_by, row_limit=row_limit, **options)

    def export_chrome_trace(self, path):
        self.function_events.export_chrome_trace(path)

    def export_stacks(self, path, metric="self_cpu_time_total"):
        self.function_events.export_stacks(path, metric)

    def key_averages(
        self, group_by_input_shape=False, group_by_stack_n=0, group_by_overload_name=False
    ):
        return self._list(self._profile.key_averages(group_by_input_shape, group_by_stack_n))

    def total_average(self):
        return self.function_events.total_average()

    @property
    def self_cpu_time_total(self):
        return self.function_events.self_cpu_time_total


class emit_nvtx:
    """Every operator in the block is a range of NVIDIA's profilers."""

    def __init__(self, enabled=True, record_shapes=False):
        self.enabled = enabled
        self.record_shapes = record_shapes
        self.entered = False

    def __enter__(self):
        if self.enabled:
            if self.entered:
                raise RuntimeError("NVTX annotation context manager is not reentrant")
            self.entered = True
            _C._profile_marks(True)
        return self

    def __exit__(self, *error):
        if self.enabled:
            _C._profile_marks(False)
        return False


def kineto_available():
    return True


__getattr__ = module_getattr(__name__)
