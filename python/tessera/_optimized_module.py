"""What torch.compile() makes of a module."""

from .nn.modules.module import Module

_OWN = ("_orig_mod", "_calls", "training")


class OptimizedModule(Module):
    """A module around another: its parameters are named `_orig_mod.…`, all else is the other's."""

    def __init__(self, mod, graphs=False):
        super().__init__()
        self._orig_mod = mod
        calls = mod
        if graphs:
            from ._graph_calls import GraphCalls

            calls = GraphCalls(mod)
        object.__setattr__(self, "_calls", calls)

    def forward(self, *args, **kwargs):
        return self._calls(*args, **kwargs)

    @property
    def training(self):
        return self._orig_mod.training

    @training.setter
    def training(self, value):
        if "_modules" in self.__dict__ and "_orig_mod" in self._modules:
            self._orig_mod.training = value

    def __getattr__(self, name):
        if name == "_orig_mod":
            return self._modules["_orig_mod"]
        return getattr(self._orig_mod, name)

    def __setattr__(self, name, value):
        # Whatever a program sets is the module's own, as it would be without this around it.
        if "_modules" not in self.__dict__ or "_orig_mod" not in self._modules or name in _OWN:
            return super().__setattr__(name, value)
        return setattr(self._orig_mod, name, value)

    def __delattr__(self, name):
        return delattr(self._orig_mod, name)

    def __reduce__(self):
        return _rebuilt, (self._orig_mod, self._calls is not self._orig_mod)

    def __dir__(self):
        return sorted({*super().__dir__(), *dir(self._orig_mod)})

    def __bool__(self):
        return True

    def __len__(self):
        return len(self._orig_mod)

    def __iter__(self):
        return iter(self._orig_mod)

    def __getitem__(self, index):
        return self._orig_mod[index]

    def __contains__(self, name):
        return name in self._orig_mod


def _rebuilt(mod, graphs):
    return OptimizedModule(mod, graphs)
