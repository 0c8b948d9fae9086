"""torch.hub fetches programs and weights from the network; Tessera does not."""

import os

from ._missing import module_getattr

_folder = None


def _refuse(name):
    def refuse(*args, **kwargs):
        raise NotImplementedError(f"torch.hub.{name} is not implemented in Tessera yet")

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = "Not implemented: code of repositories is not fetched and run."
    return refuse


load, list, help, load_state_dict_from_url, download_url_to_file = (
    _refuse(name) for name in "load list help load_state_dict_from_url download_url_to_file".split()
)


def get_dir():
    """Where PyTorch keeps what it fetched."""
    if _folder is not None:
        return _folder
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    home = os.environ.get("TORCH_HOME") or os.path.join(cache, "torch")
    return os.path.join(os.path.expanduser(home), "hub")


def set_dir(d):
    global _folder
    _folder = os.path.expanduser(d)


__getattr__ = module_getattr(__name__)
