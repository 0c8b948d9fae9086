"""Gradients of convolutions, as functions."""

from .. import _C


def _each(value, n):
    return [value] * n if isinstance(value, int) else list(value)


def _of_input(n):
    def conv_input(input_size, weight, grad_output, stride=1, padding=0, dilation=1, groups=1):
        """The gradient of the input, which has the shape input_size."""
        return _C.ops["_conv_backward_input"](
            grad_output,
            weight,
            list(input_size),
            _each(stride, n),
            _each(padding, n),
            _each(dilation, n),
            groups,
        )

    conv_input.__name__ = conv_input.__qualname__ = f"conv{n}d_input"
    return conv_input


def _of_weight(n):
    def conv_weight(input, weight_size, grad_output, stride=1, padding=0, dilation=1, groups=1):
        """The gradient of the weight, which has the shape weight_size."""
        return _C.ops["_conv_backward_weight"](
            grad_output,
            input,
            list(weight_size),
            _each(stride, n),
            _each(padding, n),
            _each(dilation, n),
            groups,
        )

    conv_weight.__name__ = conv_weight.__qualname__ = f"conv{n}d_weight"
    return conv_weight


conv1d_input, conv2d_input, conv3d_input = map(_of_input, (1, 2, 3))
conv1d_weight, conv2d_weight, conv3d_weight = map(_of_weight, (1, 2, 3))
