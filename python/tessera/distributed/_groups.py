"""Process groups: joining a job, making groups, and who is who in them."""

import atexit
import enum
import os
import sys

from .. import _C
from .._C import Work
from .._C import _ProcessGroup as ProcessGroup
from ._stores import seconds
from .constants import default_pg_timeout

__all__ = [
    "Backend",
    "DebugLevel",
    "GroupMember",
    "ProcessGroup",
    "ReduceOp",
    "Work",
    "destroy_process_group",
    "get_backend",
    "get_backend_config",
    "get_debug_level",
    "get_default_backend_for_device",
    "get_global_rank",
    "get_group_rank",
    "get_node_local_rank",
    "get_pg_count",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "group",
    "init_process_group",
    "is_available",
    "is_backend_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "is_ucc_available",
    "is_xccl_available",
    "new_group",
    "new_subgroups",
    "new_subgroups_by_enumeration",
    "reduce_op",
    "set_timeout",
    "supports_complex",
]


class ReduceOp:
    """How values of several processes become one."""

    class RedOpType(enum.IntEnum):
        SUM = 0
        AVG = 1
        PRODUCT = 2
        MIN = 3
        MAX = 4
        BAND = 5
        BOR = 6
        BXOR = 7
        PREMUL_SUM = 8
        UNUSED = 9

        def __repr__(self):
            return f"<RedOpType.{self.name}: {self.value}>"

        def __str__(self):
            return f"RedOpType.{self.name}"

    def __new__(cls, op):
        return cls.RedOpType(op)


for _op in ReduceOp.RedOpType:
    setattr(ReduceOp, _op.name, _op)
del _op


class _ReduceOp:
    """The old spelling: reduce_op.SUM."""

    def __getattr__(self, name):
        return getattr(ReduceOp, name)


reduce_op = _ReduceOp()


class Backend(str):
    """A backend's name in lower case."""

    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    MPI = "mpi"
    UCC = "ucc"
    backend_list = [UNDEFINED, GLOO, NCCL, UCC, MPI]
    default_device_backend_map = {"cpu": GLOO, "cuda": NCCL}

    def __new__(cls, name):
        if not isinstance(name, str):
            raise ValueError(f"Backend constructor parameter must be string-ish: {name}")
        return str.__new__(cls, name.lower())


class GroupMember:
    NON_GROUP_MEMBER = -100

    class _World(type):
        @property
        def WORLD(cls):
            return _world.default

        @WORLD.setter
        def WORLD(cls, group):
            _world.default = group


class group(metaclass=GroupMember._World):
    """group.WORLD: the group of all processes, None before init_process_group."""


class _WorldState:
    def __init__(self):
        self.default = None
        self.groups = []


_world = _WorldState()


def is_available():
    return True


def is_gloo_available():
    return _C._dist_has_backend("gloo")[0]


# mpirun of Open MPI, launchers that speak PMIx, and those that speak PMI (MPICH, Intel, srun).
_MPI_VARIABLES = ("OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE", "PMI_FD")


def is_mpi_available():
    """Returns true if this process was started by an MPI launcher and the backend is installed."""
    started = any(name in os.environ for name in _MPI_VARIABLES)
    return started and _C._dist_has_backend("mpi")[0]


def is_nccl_available():
    return _C._dist_has_backend("nccl")[0]


def is_ucc_available():
    return False


is_xccl_available = is_ucc_available


def is_backend_available(backend):
    return _C._dist_has_backend(backend.lower())[0]


def is_torchelastic_launched():
    """Was the program started by torchrun?"""
    return "TORCHELASTIC_RUN_ID" in os.environ


def is_initialized():
    return _world.default is not None


def _get_default_group():
    if _world.default is None:
        raise ValueError(
            "Default process group has not been initialized, please make sure to call "
            "init_process_group."
        )
    return _world.default


def _group_or_default(group):
    if group is None:
        return _get_default_group()
    if not isinstance(group, ProcessGroup):
        raise ValueError(f"Invalid process group specified: {group!r}")
    return group


def _not_in_group(group):
    return group is GroupMember.NON_GROUP_MEMBER or group == GroupMember.NON_GROUP_MEMBER


def init_process_group(
    backend=None,
    init_method=None,
    timeout=None,
    world_size=-1,
    rank=-1,
    store=None,
    group_name="",
    pg_options=None,
    device_id=None,
    _ranks=None,
    enable_reconfigure=False,
):
    """Joins the job, and makes the group of all its processes.

    init_method: env:// (RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, or what mpirun and Slurm
    set), tcp://host:port, file:///path.
    """
    if _world.default is not None:
        raise ValueError("trying to initialize the default process group twice!")
    if store is not None and init_method is not None:
        raise AssertionError("Cannot specify both init_method and store.")
    if store is not None and (world_size < 1 or rank < 0):
        raise AssertionError("world_size and rank must be positive if using store")
    _world.default = _C._dist_init(
        "" if backend is None else str(backend).lower(),
        init_method or "",
        rank,
        world_size,
        seconds(default_pg_timeout if timeout is None else timeout),
        store,
    )
    _world.groups = [_world.default]
    atexit.register(_leave)
    multiprocessing = sys.modules.get("multiprocessing")
    if multiprocessing and multiprocessing.parent_process() is not None:
        from multiprocessing.util import Finalize

        Finalize(None, _end_worker, exitpriority=-1)  # after the others


def _leave():
    """Runs when the interpreter ends. After an uncaught exception it does not wait."""
    failed = getattr(sys, "last_value", None) is not None or sys.exc_info()[0] is not None
    try:
        while not failed and not _C._dist_flush(0.2):
            pass
    finally:
        _C._dist_leave()


def _end_worker():
    """Ends a worker of multiprocessing: a forked one leaves out the handlers of exit()."""
    _leave()
    if sys.exc_info()[0] is None and _C._dist_report_failures():
        sys.stdout.flush()
        os._exit(1)


def destroy_process_group(group=None):
    """Ends a group; without one, all of them, and leaves the job."""
    if _not_in_group(group):
        return
    chosen = _group_or_default(group)
    if chosen is _world.default:
        _world.default = None
        _world.groups = []
        atexit.unregister(_leave)
        _C._dist_destroy()
    else:
        _world.groups = [g for g in _world.groups if g is not chosen]


def new_group(
    ranks=None,
    timeout=None,
    backend=None,
    pg_options=None,
    use_local_synchronization=False,
    group_desc=None,
    device_id=None,
    sort_ranks=True,
):
    """A group of some of the processes. All of them call this, in the same order."""
    whole = _get_default_group()
    ranks = list(range(whole.size())) if ranks is None else list(ranks)
    if len(set(ranks)) != len(ranks):
        raise ValueError("new_group: a rank is given twice")
    if any(r < 0 or r >= whole.size() for r in ranks):
        raise ValueError(
            "The new group's rank should be within the world_size set by init_process_group"
        )
    made = _C._dist_new_group(
        sorted(ranks) if sort_ranks else ranks,
        "" if backend is None else str(backend).lower(),
        0.0 if timeout is None else seconds(timeout),
        "",
    )
    if made is None:
        return GroupMember.NON_GROUP_MEMBER
    _world.groups.append(made)
    return made


def new_subgroups(
    group_size=None, group=None, timeout=None, backend=None, pg_options=None, group_desc=None
):
    """Groups of group_size neighbours: the own one, and all of them."""
    if group_size is None:
        group_size = int(_C._dist_environment().get("LOCAL_WORLD_SIZE", 1))
    size = get_world_size()
    if group_size <= 0 or size % group_size:
        raise ValueError("The world size must be divisible by 'group_size'")
    return new_subgroups_by_enumeration(
        [list(range(at, at + group_size)) for at in range(0, size, group_size)],
        timeout,
        backend,
        pg_options,
    )


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list, timeout=None, backend=None, pg_options=None, group_desc=None
):
    """Groups of the given ranks: the own one, and all of them."""
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    everyone = [r for ranks in ranks_per_subgroup_list for r in ranks]
    if len(set(everyone)) != len(everyone):
        raise ValueError("a rank is in two subgroups")
    mine, made = None, []
    for ranks in ranks_per_subgroup_list:
        made.append(new_group(ranks, timeout, backend, pg_options))
        if get_rank() in ranks:
            mine = made[-1]
    return mine, made


def get_rank(group=None):
    """This process's number in the group; -1 where it is not in it."""
    return -1 if _not_in_group(group) else _group_or_default(group).rank()


def get_world_size(group=None):
    return -1 if _not_in_group(group) else _group_or_default(group).size()


def get_backend(group=None):
    return Backend(_group_or_default(group).name())


def get_backend_config(group=None):
    name = _group_or_default(group).name()
    return name if ":" in name else f"cpu:{name},cuda:{name}"


def get_process_group_ranks(group):
    """The members' numbers in the world."""
    return list(_group_or_default(group)._ranks)


def get_global_rank(group, group_rank):
    ranks = _group_or_default(group)._ranks
    if not 0 <= group_rank < len(ranks):
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return ranks[group_rank]


def get_group_rank(group, global_rank):
    ranks = _group_or_default(group)._ranks
    if global_rank not in ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return ranks.index(global_rank)


def get_node_local_rank(fallback_rank=None):
    """This process's number on its machine."""
    told = _C._dist_environment().get("LOCAL_RANK")
    if told is not None:
        return int(told)
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError(
        "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow "
        "`get_node_local_rank` to work, assuming you are not running in a multi-device context."
    )


def get_default_backend_for_device(device):
    """ "gloo" for the CPU, "nccl" for CUDA."""
    kind = str(getattr(device, "type", device)).partition(":")[0]
    if kind not in Backend.default_device_backend_map:
        raise ValueError(f"Default backend not registered for device : {device}")
    return Backend.default_device_backend_map[kind]


def supports_complex(reduceOp):
    """Is the reduction defined for complex numbers?"""
    return reduceOp in (ReduceOp.SUM, ReduceOp.AVG, ReduceOp.PRODUCT)


class DebugLevel(enum.IntEnum):
    """Calls are compared on every level."""

    OFF = 0
    INFO = 1
    DETAIL = 2


def get_debug_level():
    name = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper()
    return DebugLevel.__members__.get(name, DebugLevel.OFF)


def get_pg_count():
    return len(_world.groups)


def _get_pg_default_device(group=None):
    import tessera as torch

    return torch.device("cuda" if get_backend(group) == "nccl" else "cpu")


def set_timeout(timeout, group=None):
    _group_or_default(group)._set_timeout(seconds(timeout))


def _raised(self):
    """What went wrong; None where nothing did."""
    try:
        self._exception()
    except RuntimeError as error:
        return error
    return None


def _wait(self, timeout=None):
    """Blocks until the collective is done, or the current stream may use its results."""
    limit = None if timeout is None else seconds(timeout)
    return self._wait(-1.0 if not limit else limit)


Work._wait = Work.wait
Work.wait = _wait
Work.exception = _raised
Work.synchronize = lambda self: self._wait(-1.0) and None
ProcessGroup.__repr__ = lambda self: (
    f"<torch.distributed.ProcessGroup {self.group_name!r}: rank {self.rank()} of {self.size()}, "
    f"{self.name()}>"
)


def _future_of(work):
    """A future of the tensors that the collective fills."""
    from ..futures import WorkFuture

    return WorkFuture(work)


Work.get_future = _future_of
