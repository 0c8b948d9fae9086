"""What the stations of the tour share: dtypes, lengths, and looking at results."""

import tessera as torch

DEVICE = "cuda"
FLOATS = (torch.float32, torch.float16, torch.bfloat16)
HALVES = (torch.float16, torch.bfloat16)
# Widths of layers, numbers of classes, lengths of sequences and vocabularies, and those between
# which a kernel changes how its threads share a row.
WIDTHS = (
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 16, 20, 24, 28, 30, 32, 40, 48, 50, 56, 64, 80, 96,
    100, 112, 120, 128, 160, 192, 196, 200, 224, 240, 256, 300, 320, 384, 400, 480, 500, 512,
    640, 768, 784, 800, 896, 960, 1000, 1024, 1152, 1280, 1536, 1600, 1792, 1920, 2000, 2048,
    2560, 3072, 4000, 4096, 5120, 6144, 8192, 10000, 11008, 12288, 14336, 16384, 20000, 30522,
    32000, 32768, 50257, 50304, 65536, 100000, 128256, 151936,
)  # fmt: skip
# Rows that no vector fits, in all the ways threads may share one; and so for columns side by side.
ODD_WIDTHS = (11, 13, 15, 17, 33, 65, 129, 257, 513, 1001, 1025, 2049, 4097)
COLUMNS = (
    1, 2, 3, 4, 5, 6, 8, 9, 10, 12, 16, 17, 20, 24, 32, 33, 36, 40, 50, 64, 65, 100, 128, 129, 256,
    300, 512, 1000,
)  # fmt: skip
FEW_WIDTHS = (2, 3, 4, 7, 8, 10, 16, 32, 64, 100, 128, 256, 512, 768, 1000, 1024, 4096, 50257)

_stations = {"usual": {}, "values": {}, "records": {}}


def _adds_to(part):
    def add(function):
        _stations[part][function.__name__] = function
        return function

    return add


# One stop of the tour; each runs by itself, so that one that fails keeps no other away.
station = _adds_to("usual")
# One whose kernels depend on the values of others: it needs a GPU that computes.
station_with_values = _adds_to("values")
# One that meets every operator: of its texts only those of named kernels are wanted.
station_of_records = _adds_to("records")


def stations(part):
    return _stations[part]


def look(*values):
    """Has them computed: what nobody looks at is dropped."""
    for value in values:
        if isinstance(value, (tuple, list)):
            look(*value)
        elif isinstance(value, torch.Tensor):
            value.data_ptr()


def tensor(*shape, dtype=torch.float32, grad=False):
    """Nothing is computed here, so the numbers do not matter."""
    x = torch.empty(shape, dtype=dtype, device=DEVICE)
    return x.requires_grad_() if grad else x


def number(*shape, dtype=torch.int64):
    return torch.zeros(shape, dtype=dtype, device=DEVICE)


def back(y, *inputs):
    """Through a gradient of its own, so that no sum joins the operator."""
    leaves = [x for x in inputs if x.requires_grad]
    look(y)
    look(torch.autograd.grad(y, leaves, torch.empty_like(y)))
