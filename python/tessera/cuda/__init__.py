"""CUDA devices, real or virtual."""

from .. import _C
from .._C import OutOfMemoryError
from .._missing import module_getattr
from ._device import (
    _CudaDeviceProperties,
    can_device_access_peer,
    current_device,
    device,
    device_count,
    device_of,
    get_device_capability,
    get_device_name,
    get_device_properties,
    init,
    is_available,
    is_initialized,
    manual_seed,
    manual_seed_all,
    set_device,
    synchronize,
)
from ._memory import (
    empty_cache,
    max_memory_allocated,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_reserved,
    memory_stats,
    memory_summary,
    reset_max_memory_allocated,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
)
from ._streams import (
    Event,
    ExternalStream,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    get_stream_from_external,
    set_stream,
    stream,
)

# What loads when it is first used, by the file that has it.
_FILES = {
    "random": "get_rng_state get_rng_state_all set_rng_state set_rng_state_all initial_seed seed "
    "seed_all",
    "memory": "memory_cached max_memory_cached reset_max_memory_cached get_allocator_backend "
    "reset_accumulated_memory_stats memory_stats_as_nested_dict memory_snapshot",
    "_info": "is_bf16_supported is_tf32_supported get_arch_list get_gencode_flags ipc_collect "
    "get_sync_debug_mode set_sync_debug_mode has_half has_magma "
    "_lazy_init _is_compiled",
    "graphs": "CUDAGraph graph graph_pool_handle is_current_stream_capturing "
    "make_graphed_callables",
    "_monitor": "utilization memory_usage temperature power_draw clock_rate fan_speed "
    "performance_state device_memory_used",
    "_types": "BoolTensor ByteTensor CharTensor ShortTensor IntTensor LongTensor HalfTensor "
    "BFloat16Tensor FloatTensor DoubleTensor default_generators",
}
_LATE = {name: file for file, names in _FILES.items() for name in names.split()}
__getattr__ = module_getattr(__name__, _LATE)


def __dir__():
    return sorted({*globals(), *_LATE})
