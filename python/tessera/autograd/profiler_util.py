"""Events of a profile and lists of them; sums and tables are the core's."""

import enum
from collections import namedtuple

from .. import _C

FunctionEvent = _C._ProfileEvent
FunctionEventAvg = _C._ProfileRow
Interval = _C._ProfileInterval
Kernel = namedtuple("Kernel", ["name", "device", "duration"])


class DeviceType(enum.IntEnum):
    CPU = 0
    CUDA = 1


def _device_type(event):
    return DeviceType.CUDA if event._on_device else DeviceType.CPU


def _shapes(row):
    import ast

    return ast.literal_eval(row._shapes) if row._shapes else ""


def _repr(self):
    kind = "FunctionEvent" if isinstance(self, FunctionEvent) else "FunctionEventAvg"
    return (
        f"<{kind} key={self.key} self_cpu_time={self.self_cpu_time_total_str} "
        f"cpu_time={self.cpu_time_str} self_device_time={self.self_device_time_total_str} "
        f"device_time={self.device_time_str} input_shapes={self.input_shapes} "
        f"cpu_memory_usage={self.cpu_memory_usage} "
        f"device_memory_usage={self.device_memory_usage}>"
    )


def _add(self, other):
    if not self.count:
        self.key = other.key
    self._add(other)
    return self


for _type in (FunctionEvent, FunctionEventAvg):
    _type.device_type = property(_device_type)
    _type.__repr__ = _repr
    _type.node_id = -1
    _type.is_async = _type.is_remote = _type.is_legacy = _type.is_python_function = False
    _type.overload_name = ""
FunctionEvent.kernels = property(lambda self: [Kernel(*k) for k in self._kernels])
FunctionEventAvg.input_shapes = property(_shapes)
FunctionEventAvg.add = FunctionEventAvg.__iadd__ = _add


class EventList(list):
    """Events, or their sums by name, that print as a table."""

    def __init__(
        self, *args, use_device=None, profile_memory=False, with_flops=False, profile=None
    ):
        super().__init__(*args)
        self._use_device = use_device
        self._profile_memory = profile_memory
        self._with_flops = with_flops
        self._profile = profile

    def __str__(self):
        return self.table()

    @property
    def self_cpu_time_total(self):
        return sum(event.self_cpu_time_total for event in self)

    def table(
        self,
        sort_by=None,
        row_limit=100,
        max_src_column_width=75,
        max_name_column_width=55,
        max_shapes_column_width=80,
        header=None,
        top_level_events_only=False,
        time_unit=None,
    ):
        """The events as a table; `sort_by` is the name of one of their numbers."""
        widths = (max_src_column_width, max_name_column_width, max_shapes_column_width)
        if sort_by is not None and self and not hasattr(self[0], sort_by):
            raise AttributeError(f"'FunctionEventAvg' object has no attribute '{sort_by}'")
        return _C._profile_table(
            self,
            sort_by,
            row_limit,
            *(-1 if width is None else width for width in widths),
            header,
            top_level_events_only,
            time_unit,
            self._profile_memory,
            self._with_flops,
            self._use_device,
        )

    def export_chrome_trace(self, path):
        self._whole().export_chrome_trace(str(path))

    def supported_export_stacks_metrics(self):
        return ["self_cpu_time_total", "self_cuda_time_total"]

    def export_stacks(self, path, metric):
        self._whole().export_stacks(str(path), metric)

    def _whole(self):
        if self._profile is None:
            raise RuntimeError("these events have no profile: use prof.export_chrome_trace()")
        return self._profile

    def key_averages(
        self,
        group_by_input_shapes=False,
        group_by_stack_n=0,
        group_by_overload_name=False,
        include_python_functions=False,
    ):
        """Sums over the events of each name."""
        rows = self._whole().key_averages(group_by_input_shapes, group_by_stack_n)
        return EventList(
            rows,
            use_device=self._use_device,
            profile_memory=self._profile_memory,
            with_flops=self._with_flops,
        )

    def total_average(self):
        """All events in one sum."""
        total = FunctionEventAvg()
        for event in self:
            total += event
        total.key = "Total"
        return total
