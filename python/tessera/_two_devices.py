"""What is said of two devices in one operator: which tensors, what the program calls them, and what
to write instead. Runs only once the error has happened."""

import os
import sys

_FOLDER = os.path.dirname(os.path.abspath(__file__)) + os.sep


def _frames():
    """The frames of the program and of this package, innermost first."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename != __file__:
            yield frame, frame.f_code.co_filename.startswith(_FOLDER)
        frame = frame.f_back


def _shares(candidate, tensor):
    """Is it the tensor, or what the tensor is a view of?"""
    if candidate is tensor:
        return True
    return tensor._base is not None and candidate is tensor._base


class _Names:
    """What the running frames know of a tensor."""

    def __init__(self, tensor):
        self.variable = None  # a local variable or argument of the program
        self.path = None  # of a parameter or buffer, in the outermost module that is running
        self.module = None  # that module
        self.module_name = None  # the variable that holds it
        self.kind = None
        self.state = None  # the name of an optimizer's state that it is
        for frame, ours in _frames():
            variables = frame.f_locals
            for name, value in list(variables.items()):
                if name.startswith("@") or name == "_":
                    continue
                if not ours and value is tensor:
                    self.variable = name  # the outermost frame that has it wins
                if self._is_a(value, "tessera.nn.modules.module", "Module"):
                    self._look_in(value, tensor, None if ours else name)
                elif self._is_a(value, "tessera.optim.optimizer", "Optimizer"):
                    self._look_in_state(value, tensor)

    @staticmethod
    def _is_a(value, module, name):
        """Of a class in a file that may not have been loaded: then nothing is."""
        module = sys.modules.get(module)
        return module is not None and isinstance(value, getattr(module, name))

    def _look_in_state(self, optimizer, tensor):
        for state in optimizer.state.values():
            for name, value in state.items():
                if value is tensor:
                    self.state = f"{type(optimizer).__name__}'s state '{name}'"

    def _look_in(self, module, tensor, name):
        for kind, found in (
            ("parameter", module.named_parameters()),
            ("buffer", module.named_buffers()),
        ):
            for path, candidate in found:
                if not _shares(candidate, tensor):
                    continue
                longer = self.path is None or len(path) > len(self.path)
                if longer:
                    self.path, self.kind, self.module = path, kind, module
                    self.module_name = None
                if self.module is module and name not in (None, "self"):
                    self.module_name = name
                return


def _place(argument, tensor, names):
    text = f"'{argument}' of shape {list(tensor.shape)} is on {tensor.device}"
    if names.path is not None:
        return f"{text} ({names.kind} '{names.path}' of {type(names.module).__name__})"
    if names.state is not None:
        return f"{text} ({names.state})"
    if names.variable not in (None, argument):
        return f"{text} (variable '{names.variable}')"
    return text


def _fix(first, second):
    """A line that mends it. A parameter stays and data moves, but for a model left on the CPU."""
    (_, tensor, names), (_, other, other_names) = first, second
    if names.state or other_names.state:
        return (
            "make the optimizer after the model is moved, or bring its state along: "
            "optimizer.load_state_dict(optimizer.state_dict())"
        )
    if (names.path is None) == (other_names.path is None):
        moves, to = (first, other) if tensor.device.type == "cpu" else (second, tensor)
        if names.path is not None and names.module is other_names.module:
            model = names.module_name or "model"
            return f"put the whole model on one device: {model} = {model}.to('{to.device}')"
    elif names.path is None:
        moves, to = first, other
    else:
        moves, to = second, tensor
    if to.device.type == "cpu":  # a parameter, and data on an accelerator
        owner = other_names if names.path is None else names
        data = tensor if names.path is None else other
        model = owner.module_name or "model"
        return f"move the model: {model} = {model}.to('{data.device}')"
    name = moves[2].variable or moves[0]
    if not name.isidentifier():
        return f"move {name} to '{to.device}' with .to('{to.device}')"
    return f"move '{name}' first: {name} = {name}.to('{to.device}')"


def _call(frame):
    """The function that a frame runs, as a program writes it; None for what wraps one."""
    name, owner = frame.f_code.co_name, frame.f_locals.get("self")
    if name.startswith(("_", "<")) or name == "wrapper":
        return None
    return name if owner is None else f"{type(owner).__name__}.{name}"


def message(operator, first_argument, first, second_argument, second):
    """The text of the error."""
    if operator.startswith("_"):  # what the program called is further up
        calls = [_call(frame) for frame, ours in _frames() if ours]
        operator = next((name for name in reversed(calls) if name), operator)
    places = [
        (argument, tensor, _Names(tensor))
        for argument, tensor in ((first_argument, first), (second_argument, second))
    ]
    where = ", ".join(_place(*place) for place in places)
    return (
        "Expected all tensors to be on the same device, but found at least two devices, "
        f"{first.device} and {second.device}! In {operator}(): {where}. "
        f"To fix it, {_fix(*places)}"
    )
