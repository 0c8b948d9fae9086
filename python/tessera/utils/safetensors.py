"""safetensors files: named tensors and nothing else, by the functions of the package safetensors.

save_file({"w": w}, "model.safetensors", metadata={"step": "3"})
load_file("model.safetensors", device="cuda")["w"]
with safe_open("model.safetensors", framework="pt") as f: f.keys(), f.get_tensor("w")
"""

import io
import os

from .. import _C


def _checked(tensors):
    if not isinstance(tensors, dict):
        raise ValueError(f"Expected a dict of [str, torch.Tensor] but received {type(tensors)}")
    for name, tensor in tensors.items():
        if not isinstance(tensor, _C.Tensor):
            raise ValueError(
                f"Key `{name}` is invalid, expected torch.Tensor but received {type(tensor)}"
            )
    return dict(tensors)


def save_file(tensors, filename, metadata=None):
    """Writes a dict of tensors; the old file stays until the new one is complete."""
    _C._safetensors_save(os.fsdecode(filename), _checked(tensors), dict(metadata or {}))


def save(tensors, metadata=None):
    """The file's bytes."""
    out = io.BytesIO()
    _C._safetensors_save(out, _checked(tensors), dict(metadata or {}))
    return out.getvalue()


def _tensors(file, device, mmap):
    place = _C.device(device)
    if place.type == "cpu":
        return _C._safetensors_tensors(file, mmap)
    # One by one, so that the host holds one of them at a time.
    entries, _ = _C._safetensors_header(file)
    return {
        name: _C._safetensors_tensor(file, i, mmap).to(place)
        for i, (name, _, _) in enumerate(entries)
    }


def load_file(filename, device="cpu", mmap=False):
    """The tensors of a file, by name. With `mmap` they are read when they are used."""
    name = os.fsdecode(filename)
    return _tensors(_C._safetensors_open(name, name), device, mmap)


def load(data):
    """... of bytes."""
    return _tensors(_C._safetensors_open(data, "<bytes>"), "cpu", False)


class safe_open:
    """A file whose tensors are read one by one."""

    def __init__(self, filename, framework="pt", device="cpu"):
        if framework not in ("pt", "torch", "pytorch"):
            raise NotImplementedError(f"safe_open(framework={framework!r}): only 'pt' is there")
        name = os.fsdecode(filename)
        self._file = _C._safetensors_open(name, name)
        self._entries, self._metadata = _C._safetensors_header(self._file)
        self._numbers = {entry[0]: i for i, entry in enumerate(self._entries)}
        self._device = _C.device(device)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self._file = None

    def keys(self):
        return sorted(self._numbers)

    def offset_keys(self):
        return list(self._numbers)

    def metadata(self):
        return self._metadata or None

    def get_tensor(self, name):
        if self._file is None:
            raise ValueError("the file is closed")
        if name not in self._numbers:
            raise KeyError(f"the file has no tensor {name!r}")
        return _C._safetensors_tensor(self._file, self._numbers[name], False).to(self._device)

    def get_shape(self, name):
        return list(self._entries[self._numbers[name]][2])


def save_model(model, filename, metadata=None, force_contiguous=True):
    """A module's state. Of tensors that are one, one is saved, and the metadata says so."""
    metadata, first, tensors = dict(metadata or {}), {}, {}
    for name, tensor in model.state_dict().items():
        place = (tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride())
        kept = first.setdefault(place, name) if tensor.numel() else name
        if kept == name:
            tensors[name] = tensor
        else:
            metadata[name] = kept
    save_file(tensors, filename, metadata)


def load_model(model, filename, strict=True, device="cpu"):
    """Loads what save_model() wrote; returns the names that are missing and those not expected."""
    with safe_open(filename, device=device) as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}
        same = file.metadata() or {}
    for name in model.state_dict():
        if name not in tensors and same.get(name) in tensors:
            tensors[name] = tensors[same[name]]
    missing, unexpected = model.load_state_dict(tensors, strict=False)
    if strict and (missing or unexpected):
        raise RuntimeError(
            f"Error(s) in loading state_dict for {type(model).__name__}: missing {missing}, "
            f"unexpected {unexpected}"
        )
    return missing, unexpected
