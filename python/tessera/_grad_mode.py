"""no_grad, enable_grad, set_grad_enabled: contexts that decorate as well."""

import functools

from . import _C


class _Context:
    """A context manager that also decorates functions and generators."""

    def _again(self):
        return type(self)()

    def __call__(self, function):
        import inspect

        if inspect.isclass(function):
            raise TypeError(f"{type(self).__name__} decorates functions, not classes")
        if inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def generate(*args, **kwargs):
                return _step_within(self._again, function(*args, **kwargs))

            return generate

        @functools.wraps(function)
        def call(*args, **kwargs):
            with self._again():
                return function(*args, **kwargs)

        return call


def _step_within(make, generator):
    """Runs each step of a generator within a context of its own, and none of the caller's code."""
    try:
        with make():
            answer = next(generator)
        while True:
            try:
                request = yield answer
            except GeneratorExit:
                with make():
                    generator.close()
                raise
            except BaseException as error:
                with make():
                    answer = generator.throw(error)
            else:
                with make():
                    answer = generator.send(request)
    except StopIteration as stop:
        return stop.value


class _GradMode(_Context):
    _mode = False

    def __new__(cls, function=None):
        self = super().__new__(cls)
        if function is not None:  # @no_grad without parentheses
            return self(function)
        return self

    def __init__(self, function=None):
        self._before = []

    def __enter__(self):
        self._before.append(_C.is_grad_enabled())
        _C._set_grad_enabled(self._mode)

    def __exit__(self, *unused):
        _C._set_grad_enabled(self._before.pop())


class no_grad(_GradMode):
    """Within it, nothing is recorded for backward()."""


class enable_grad(_GradMode):
    """Within it, operators are recorded again."""

    _mode = True


class inference_mode(_Context):
    """As no_grad; and tensors made within it can be neither written nor saved for backward outside.

    With mode=False it is the other way round: operators are recorded again.
    """

    def __init__(self, mode=True):
        self._mode = bool(mode)
        self._before = []

    def _again(self):
        return inference_mode(self._mode)

    def __enter__(self):
        self._before.append((_C.is_grad_enabled(), _C.is_inference_mode_enabled()))
        _C._set_grad_enabled(not self._mode)
        _C._set_inference_mode(self._mode)

    def __exit__(self, *unused):
        grad, inference = self._before.pop()
        _C._set_grad_enabled(grad)
        _C._set_inference_mode(inference)


class set_grad_enabled(_Context):
    """Sets the mode at once; as a context, gives the one before back."""

    def __init__(self, mode):
        self._before = _C.is_grad_enabled()
        self._mode = bool(mode)
        _C._set_grad_enabled(self._mode)

    def _again(self):
        return set_grad_enabled(self._mode)

    def __call__(self, function):
        _C._set_grad_enabled(self._before)  # a decorator sets nothing before the call
        return super().__call__(function)

    def __enter__(self):
        _C._set_grad_enabled(self._mode)

    def __exit__(self, *unused):
        _C._set_grad_enabled(self._before)
