"""`profile`: thin over the core's profiles; what is here follows the steps of a loop."""

import enum
import functools
import json
import os
import time
import warnings

from .. import _C
from ..autograd.profiler import record_function
from ..autograd.profiler_util import EventList
from ._schedule import ProfilerAction, always
from ._schedule import schedule as schedule


class ProfilerActivity(enum.Enum):
    CPU = 0
    XPU = 1
    CUDA = 2
    MTIA = 3
    HPU = 4
    PrivateUse1 = 5


def _cuda_available():
    from .. import cuda

    return cuda.is_available()


def supported_activities():
    """What can be profiled here."""
    here = {ProfilerActivity.CPU}
    if _cuda_available():
        here.add(ProfilerActivity.CUDA)
    return here


def tensorboard_trace_handler(dir_name, worker_name=None, use_gzip=False):
    """An `on_trace_ready` that writes each trace into a folder, where TensorBoard finds it."""

    def handler(prof):
        os.makedirs(dir_name, exist_ok=True)
        if not os.path.isdir(dir_name):
            raise RuntimeError("Can't create directory: " + str(dir_name))
        name = worker_name
        if not name:
            import socket

            name = f"{socket.gethostname()}_{os.getpid()}"
        end = ".gz" if use_gzip else ""
        file = f"{name}.{time.time_ns()}.pt.trace.json{end}"
        prof.export_chrome_trace(os.path.join(dir_name, file))

    return handler


@functools.cache
def _say_once(text):
    warnings.warn(text, stacklevel=4)


_ON = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


# The name is also that of an argument.
_default_schedule_fn = always


class profile:
    """Profiles a block, or the steps of a loop that a schedule chooses."""

    def __init__(
        self,
        *,
        activities=None,
        schedule=None,
        on_trace_ready=None,
        record_shapes=False,
        profile_memory=False,
        with_stack=False,
        with_flops=False,
        with_modules=False,
        experimental_config=None,
        execution_trace_observer=None,
        acc_events=False,
        use_cuda=None,
        custom_trace_id_callback=None,
        post_processing_timeout_s=None,
    ):
        activities = set(activities) if activities else supported_activities()
        if use_cuda is not None:
            warnings.warn(
                "`use_cuda` is deprecated, use `activities` argument instead",
                FutureWarning,
                stacklevel=2,
            )
            if use_cuda:
                activities.add(ProfilerActivity.CUDA)
        for one in activities:
            if not isinstance(one, ProfilerActivity):
                raise TypeError(f"activities must be of ProfilerActivity, not {one!r}")
        if ProfilerActivity.CUDA in activities and not _cuda_available():
            warnings.warn(
                "CUDA is not available, disabling CUDA profiling", UserWarning, stacklevel=2
            )
            activities.discard(ProfilerActivity.CUDA)
        self.activities = activities
        self.record_shapes = record_shapes or with_flops
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.with_flops = with_flops
        self.with_modules = with_modules
        self.schedule = schedule if schedule else always
        self.record_steps = bool(schedule)
        self.on_trace_ready = on_trace_ready
        self.step_num = 0
        self.current_action = self.schedule(0)
        self.step_rec_fn = None
        self._metadata = {}
        self._profile = None  # under way, or the last

    # Its own course

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *error):
        self.stop()

    def start(self):
        self._go(ProfilerAction.NONE, self.current_action)
        self._begin_step()

    def stop(self):
        self._end_step()
        self._go(self.current_action, None)

    def step(self):
        """The next step of the loop begins."""
        self._end_step()
        before = self.current_action
        self.step_num += 1
        self.current_action = self.schedule(self.step_num)
        self._go(before, self.current_action)
        self._begin_step()

    def _begin_step(self):
        if self.record_steps:
            self.step_rec_fn = record_function(f"ProfilerStep#{self.step_num}")
            self.step_rec_fn.__enter__()

    def _end_step(self):
        if self.step_rec_fn is not None:
            self.step_rec_fn.__exit__(None, None, None)
            self.step_rec_fn = None

    def _go(self, before, now):
        """From what the last step did to what the next one does; None: it ends."""
        was_on, goes_on = before in _ON, now in _ON
        saves = before is ProfilerAction.RECORD_AND_SAVE or (was_on and now is None)
        if was_on and (saves or not goes_on):
            if not saves:
                warnings.warn("Incorrect schedule: RECORD followed by " + now.name, stacklevel=3)
            self.stop_trace()
            if saves and self.on_trace_ready:
                self.on_trace_ready(self)
        if before is ProfilerAction.WARMUP and not goes_on and now is not ProfilerAction.WARMUP:
            if now is not None:
                warnings.warn("Incorrect schedule: WARMUP followed by NONE", stacklevel=3)
            self.start_trace()
            self.stop_trace()
        if now is ProfilerAction.WARMUP and before is not now:
            self.prepare_trace()
        if goes_on and (saves or not was_on):
            self.start_trace()

    def prepare_trace(self):
        self._profile = _C._Profile(
            ProfilerActivity.CPU in self.activities,
            ProfilerActivity.CUDA in self.activities,
            self.record_shapes,
            self.profile_memory,
            self.with_stack,
            self.with_flops,
        )
        self._profile.prepare()
        self._prepared = True

    def start_trace(self):
        if not getattr(self, "_prepared", False):
            self.prepare_trace()
        self._prepared = False
        for key, value in self._metadata.items():
            self._profile.add_metadata_json(key, value)
        self._profile.start()

    def stop_trace(self):
        self._profile.stop()
        if self._profile.uses_device and "not CUPTI" in self._profile.measured_by:
            _say_once(f"device times are from {self._profile.measured_by}")
        if self._profile.dropped:
            warnings.warn(
                f"{self._profile.dropped} events were not recorded: the profile is full "
                "(TESSERA_PROFILE_MAX_EVENTS)",
                stacklevel=3,
            )

    # What it found

    def _finished(self):
        if self._profile is None or self._profile.started:
            raise AssertionError("Profiler must be initialized and stopped before its results")
        return self._profile

    def _list(self, events):
        return EventList(
            events,
            use_device="cuda" if self._profile.uses_device else None,
            profile_memory=self.profile_memory,
            with_flops=self.with_flops,
            profile=self._profile,
        )

    def events(self):
        """Every event, in order of their beginnings."""
        return self._list(self._finished().events())

    def key_averages(
        self, group_by_input_shape=False, group_by_stack_n=0, group_by_overload_name=False
    ):
        """Sums over the events of each name, and where asked for of each shape and line."""
        return self._list(self._finished().key_averages(group_by_input_shape, group_by_stack_n))

    def export_chrome_trace(self, path):
        """Writes a trace for Perfetto or chrome://tracing, compressed if it ends in .gz."""
        events, left_out = self._finished().export_chrome_trace(os.fsdecode(path))
        if left_out:
            warnings.warn(
                f"{left_out} of {events} events, the shortest, are not in {path}: it would be "
                "larger than TESSERA_PROFILE_MAX_BYTES allows",
                stacklevel=2,
            )

    def export_stacks(self, path, metric="self_cpu_time_total"):
        """Writes lines for a flame graph: needs `with_stack=True`."""
        self._finished().export_stacks(os.fsdecode(path), metric)

    def export_memory_timeline(self, path, device=None):
        raise NotImplementedError(
            "export_memory_timeline is not implemented: torch.cuda.memory._record_memory_history() "
            "and `tessera memory snapshot.pickle` show device memory over time"
        )

    def add_metadata(self, key, value):
        """A text that traces have beside their events."""
        self.add_metadata_json(key, json.dumps(str(value)))

    def add_metadata_json(self, key, value):
        """... as JSON."""
        json.loads(value)  # a trace with something else in it could not be read
        self._metadata[str(key)] = value
        if self._profile is not None:
            self._profile.add_metadata_json(str(key), value)

    preset_metadata_json = add_metadata_json
