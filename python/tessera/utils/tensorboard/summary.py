"""What is logged, encoded: numbers, text, pictures, histograms."""

import math
import struct
import zlib

import tessera as torch

from .event_file import data, double, doubles, integer, single


def as_number(value):
    """A number, of a tensor or array of one element as well."""
    if isinstance(value, torch.Tensor):
        value = value.detach()
    if hasattr(value, "item"):
        return float(value.item())
    return float(value)


def as_tensor(value):
    """On the CPU: of a tensor, an array, a list."""
    tensor = value if isinstance(value, torch.Tensor) else torch.as_tensor(value)
    return tensor.detach().cpu()


def _value(tag, content):
    return data(1, data(1, tag) + content)


def _plugin(name):
    return data(9, data(1, data(1, name)))


def scalar(tag, value):
    return _value(tag, single(2, as_number(value)))


def text(tag, string):
    """A tensor of one string, for the plugin that shows text."""
    shape = data(2, data(2, integer(1, 1)))
    tensor = data(8, integer(1, 7) + shape + data(8, string))
    return _value(tag + "/text_summary", tensor + _plugin("text"))


def _limits():
    """Bounds of bins that grow by a tenth, both signs."""
    bound, positive = 1e-12, []
    while bound < 1e20:
        positive.append(bound)
        bound *= 1.1
    return [-b for b in reversed(positive)] + [0.0] + positive


def histogram(tag, values, bins="tensorflow", max_bins=None):
    values = as_tensor(values).double().reshape(-1)
    if values.numel() == 0:
        raise ValueError("The input has no element.")
    if not torch.isfinite(values).all():
        raise ValueError("The values of a histogram have to be finite.")
    low, high = values.min().item(), values.max().item()
    if bins == "tensorflow":
        edges = torch.tensor(_limits(), dtype=torch.float64)
    elif isinstance(bins, (int, str)):
        count = bins if isinstance(bins, int) else 30
        end = high if high > low else low + 1
        edges = torch.linspace(low, end, count + 1, dtype=torch.float64)
    else:
        edges = as_tensor(bins).double()
    # Of bins that share an edge, the upper one has it, but for the last edge.
    where = torch.searchsorted(edges, values, right=True).clamp(1, len(edges) - 1) - 1
    counts = torch.bincount(where, minlength=len(edges) - 1).tolist()
    edges = edges.tolist()
    used = [i for i, n in enumerate(counts) if n]
    first, last = max(used[0] - 1, 0), used[-1]
    proto = b"".join(
        [
            double(1, low),
            double(2, high),
            double(3, values.numel()),
            double(4, values.sum().item()),
            double(5, values.square().sum().item()),
            doubles(6, edges[first + 1 : last + 2]),
            doubles(7, [float(n) for n in counts[first : last + 1]]),
        ]
    )
    return _value(tag, data(5, proto))


def png(pixels):
    """Rows x columns x channels of uint8, as a PNG file."""
    height, width, channels = pixels.shape
    kind = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    flat = bytes(pixels.reshape(-1).tolist())
    stride = width * channels
    rows = b"".join(b"\0" + flat[y * stride : (y + 1) * stride] for y in range(height))

    def chunk(name, content):
        body = name + content
        return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))

    header = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


def _in_rows(image, dataformats):
    """A picture, or a batch side by side, as rows x columns x channels."""
    if len(set(dataformats)) != len(dataformats) or len(dataformats) != image.dim():
        raise AssertionError(
            f"size of input tensor and input format are different. tensor shape: {image.shape}, "
            f"input_format: {dataformats}"
        )
    formats = dataformats.upper()
    if "N" in formats:
        image = image.permute([formats.index(c) for c in "NHWC"])
        count, height, width, channels = image.shape
        columns = math.ceil(math.sqrt(count))
        rows = math.ceil(count / columns)
        grid = torch.zeros(rows * height, columns * width, channels, dtype=image.dtype)
        for k, one in enumerate(image):
            y, x = k // columns * height, k % columns * width
            grid[y : y + height, x : x + width] = one
        return grid
    if "C" not in formats:
        return image.permute([formats.index(c) for c in "HW"]).unsqueeze(-1)
    return image.permute([formats.index(c) for c in "HWC"])


def image(tag, tensor, dataformats="CHW"):
    tensor = as_tensor(tensor)
    if tensor.dtype != torch.uint8:
        tensor = (tensor.float() * 255).clamp(0, 255).to(torch.uint8)
    pixels = _in_rows(tensor, dataformats)
    height, width, channels = pixels.shape
    encoded = integer(1, height) + integer(2, width) + integer(3, channels) + data(4, png(pixels))
    return _value(tag, data(4, encoded))
