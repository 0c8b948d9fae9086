"""Batches of sequences of different lengths: padded, or packed moment by moment."""

from collections import namedtuple
from collections.abc import Iterable

import tessera as torch

PackedSequence_ = namedtuple(
    "PackedSequence_", ["data", "batch_sizes", "sorted_indices", "unsorted_indices"]
)


class PackedSequence(PackedSequence_):
    """The elements of all sequences, first those of the first moment, and how many each has."""

    def __new__(cls, data, batch_sizes=None, sorted_indices=None, unsorted_indices=None):
        return super().__new__(
            cls, *_packed_sequence_init_args(data, batch_sizes, sorted_indices, unsorted_indices)
        )

    def pin_memory(self):
        return type(self)(
            self.data.pin_memory(),
            self.batch_sizes,
            *(None if i is None else i.pin_memory() for i in self[2:]),
        )

    def to(self, *args, **kwargs):
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        return type(self)(
            data,
            self.batch_sizes,
            *(None if i is None else i.to(data.device) for i in self[2:]),
        )

    def cuda(self, *args, **kwargs):
        return self.to(torch.device("cuda", *args), **kwargs)

    def cpu(self):
        return self.to("cpu")

    def double(self):
        return self.to(dtype=torch.float64)

    def float(self):
        return self.to(dtype=torch.float32)

    def half(self):
        return self.to(dtype=torch.float16)

    def long(self):
        return self.to(dtype=torch.int64)

    def int(self):
        return self.to(dtype=torch.int32)

    def short(self):
        return self.to(dtype=torch.int16)

    def char(self):
        return self.to(dtype=torch.int8)

    def byte(self):
        return self.to(dtype=torch.uint8)

    @property
    def is_cuda(self):
        return self.data.is_cuda

    def is_pinned(self):
        return self.data.is_pinned()


def _packed_sequence_init_args(data, batch_sizes=None, sorted_indices=None, unsorted_indices=None):
    if unsorted_indices is None:
        unsorted_indices = invert_permutation(sorted_indices)
    if batch_sizes is not None:
        if batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be "
                "created manually. They should be instantiated by functions like "
                "pack_sequence and pack_padded_sequences in nn.utils.rnn. "
            )
        return data, batch_sizes, sorted_indices, unsorted_indices
    # Data and batch sizes as a pair.
    return data[0], data[1], sorted_indices, unsorted_indices


def invert_permutation(permutation):
    """Where each place of a permutation went."""
    if permutation is None:
        return None
    output = torch.empty_like(permutation)
    output.scatter_(0, permutation, torch.arange(0, permutation.numel(), device=permutation.device))
    return output


def _flat_places(lengths, batch):
    """Where each packed element lies in a flattened (time, batch) grid, and the batch sizes."""
    sizes = []
    places = []
    active = len(lengths)
    for t in range(lengths[0] if lengths else 0):
        while lengths[active - 1] <= t:
            active -= 1
        sizes.append(active)
        places.extend(range(t * batch, t * batch + active))
    return places, sizes


def pack_padded_sequence(input, lengths, batch_first=False, enforce_sorted=True):
    """Packs padded sequences; unless sorted by length, longest first, they are sorted here."""
    if not isinstance(lengths, torch.Tensor):
        lengths = torch.as_tensor(lengths, dtype=torch.int64, device="cpu")
    sorted_indices = None
    if not enforce_sorted:
        lengths, sorted_indices = torch.sort(lengths, descending=True)
        sorted_indices = sorted_indices.to(input.device)
        input = input.index_select(0 if batch_first else 1, sorted_indices)
    if batch_first:
        input = input.transpose(0, 1)
    steps, batch = input.shape[:2]
    counts = lengths.tolist()
    if input.numel() == 0:
        raise RuntimeError("Cannot pack empty tensors.")
    if len(counts) != batch:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(counts)} "
            f"(batch_size={batch})"
        )
    if counts[-1] <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' "
            "that is <= 0"
        )
    if any(a < b for a, b in zip(counts, counts[1:])):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. "
            "You can pass `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to "
            "sidestep this requirement if you do not need ONNX exportability."
        )
    if counts[0] > steps:
        raise RuntimeError(
            f"Expected every length to be at most {steps}, the length of the padded sequences, "
            f"but got {counts[0]}"
        )
    places, sizes = _flat_places(counts, batch)
    index = torch.tensor(places, dtype=torch.int64, device=input.device)
    data = input.reshape(steps * batch, *input.shape[2:]).index_select(0, index)
    return PackedSequence(data, torch.tensor(sizes, dtype=torch.int64), sorted_indices, None)


def pad_packed_sequence(sequence, batch_first=False, padding_value=0.0, total_length=None):
    """The padded sequences, and their lengths."""
    data, batch_sizes, _, unsorted_indices = sequence
    sizes = batch_sizes.tolist()
    steps, batch = len(sizes), sizes[0]
    if total_length is not None:
        if total_length < steps:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in "
                f"input, but got total_length={total_length} and max sequence length being {steps}"
            )
        steps = total_length
    places = [t * batch + b for t, size in enumerate(sizes) for b in range(size)]
    index = torch.tensor(places, dtype=torch.int64, device=data.device)
    padded = torch.full(
        (steps * batch, *data.shape[1:]), padding_value, dtype=data.dtype, device=data.device
    )
    padded = padded.index_copy(0, index, data).reshape(steps, batch, *data.shape[1:])
    lengths = torch.tensor(
        [sum(size > b for size in sizes) for b in range(batch)], dtype=torch.int64
    )
    if unsorted_indices is not None:
        padded = padded.index_select(1, unsorted_indices)
        lengths = lengths[unsorted_indices.cpu()]
    if batch_first:
        padded = padded.transpose(0, 1)
    return padded, lengths


def pad_sequence(sequences, batch_first=False, padding_value=0.0, padding_side="right"):
    """Sequences of different lengths in one tensor."""
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            "pad_sequence: Expected iterable for input sequences, but got arg of type: "
            f"{type(sequences)}"
        )
    if padding_side not in ("left", "right"):
        raise ValueError(
            f"Expected padding_side to be one of left or right, but got {padding_side}."
        )
    sequences = sequences.unbind(0) if isinstance(sequences, torch.Tensor) else tuple(sequences)
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    longest = max(s.size(0) for s in sequences)
    rest = sequences[0].shape[1:]
    out = torch.full(
        (len(sequences), longest, *rest),
        padding_value,
        dtype=sequences[0].dtype,
        device=sequences[0].device,
    )
    for i, s in enumerate(sequences):
        if padding_side == "right":
            out[i, : s.size(0)] = s
        else:
            out[i, longest - s.size(0) :] = s
    return out if batch_first else out.transpose(0, 1)


def unpad_sequence(padded_sequences, lengths, batch_first=False):
    """The sequences without their padding."""
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    return [s[:n] for s, n in zip(padded_sequences.unbind(0), lengths.tolist())]


def pack_sequence(sequences, enforce_sorted=True):
    """Packs a list of sequences."""
    lengths = torch.as_tensor([s.size(0) for s in sequences])
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences):
    """The list of sequences that was packed."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
