"""A device that is lost: the first cause is said once and again, nothing hangs, the host goes on.

Each in a process of its own, as the device cannot be used any more afterwards.
"""

import subprocess
import sys

import pytest
from conftest import KIND

import tessera

pytestmark = pytest.mark.skipif(KIND != "cuda", reason="needs a device that can fault")

START = '''
import ctypes, time
import tessera as torch

class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32), ("index", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.c_void_p), ("offset", ctypes.c_uint64)]

class Managed(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]

def nowhere(*shape):
    """A tensor whose memory is not there."""
    sizes = (ctypes.c_int64 * len(shape))(*shape)
    # Far from where the driver puts its windows of shared and local memory.
    m = Managed(Tensor(0x3f0000000000, 2, 0, len(shape), 2, 32, 1, sizes, None, 0), None, None)
    nowhere.kept = [*getattr(nowhere, "kept", []), sizes, m]
    new = ctypes.pythonapi.PyCapsule_New
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return torch.utils.dlpack.from_dlpack(new(ctypes.addressof(m), b"dltensor", None))

good = torch.ones(64, 64, device="cuda")
host = torch.arange(10.0)
torch.cuda.synchronize()
bad = nowhere(64, 64)
'''

END = """
causes = []
began = time.monotonic()
uses = [first, torch.cuda.synchronize, lambda: (good + 1).cpu(), lambda: good.sum().item(),
        lambda: torch.ones(3, device="cuda").cpu(), lambda: torch.cuda.Stream().synchronize()]
for use in uses:
    try:
        use()
        torch.cuda.synchronize()
        causes.append("no error")
    except RuntimeError as error:
        causes.append(str(error))
assert "no error" not in causes, causes
said = [c[c.index("CUDA error in"):] for c in causes]
assert len(set(said)) == 1, said
assert "cannot be used any more" in said[0] and "illegal" in said[0].lower(), said[0]
assert (host * 2).sum().item() == 90.0
assert time.monotonic() - began < 20
del bad, good
print("ends as it should")
"""

FAULTS = {
    "pointwise": "bad + 1",
    "in place": "good.add_(bad)",
    "write": "bad.fill_(1)",
    "sum": "bad.sum()",
    "softmax": "bad.softmax(1)",
    "product": "good @ bad",
    "sort": "bad.sort()",
    "cumsum": "bad.cumsum(0)",
    "index": "bad[torch.tensor([1, 2], device='cuda')]",
    "norm": "torch.nn.functional.layer_norm(bad, (64,))",
    "convolution": "torch.nn.functional.conv2d(bad[None, None], good[None, None, :3, :3])",
}


@pytest.mark.parametrize("name", FAULTS)
def test_first_cause(name):
    if name in ("product", "convolution") and tessera.cuda.get_device_name() == "Emulated GPU":
        pytest.skip("what stands in for a library runs on the host")
    program = f"{START}\ndef first():\n    return {FAULTS[name]}\n{END}"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0 and "ends as it should" in done.stdout, done.stderr[-3000:]
