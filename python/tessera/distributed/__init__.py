"""Several processes that compute together: PyTorch's torch.distributed.

The stores, the process groups and their deadlines are the core's (src/tessera/distributed); data
goes through gloo, MPI or NCCL, as far as they are there.
"""

from .._C import DistBackendError, DistError, DistNetworkError, DistStoreError, Work
from .._missing import module_getattr
from ._collectives import *
from ._groups import *
from ._groups import Backend, GroupMember, ProcessGroup, ReduceOp, group, reduce_op
from ._objects import *
from ._stores import FileStore, HashStore, PrefixStore, Store, TCPStore
from .constants import default_pg_timeout
from .rendezvous import register_rendezvous_handler, rendezvous

__getattr__ = module_getattr(__name__)
