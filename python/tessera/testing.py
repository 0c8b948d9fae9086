"""assert_close, as torch.testing has it."""

from . import _C


def assert_close(actual, expected, *, rtol=None, atol=None, equal_nan=False, check_dtype=True):
    """Raises unless both tensors agree within the tolerances of their dtype."""
    usual = {
        "float16": (1e-3, 1e-5),
        "bfloat16": (1.6e-2, 1e-5),
        "float32": (1.3e-6, 1e-5),
        "float64": (1e-7, 1e-7),
    }
    if not isinstance(actual, _C.Tensor) or not isinstance(expected, _C.Tensor):
        actual, expected = _C.as_tensor(actual), _C.as_tensor(expected)
    if actual.shape != expected.shape:
        raise AssertionError(
            f"The values for attribute 'shape' do not match: {actual.shape} != {expected.shape}."
        )
    if check_dtype and actual.dtype != expected.dtype:
        raise AssertionError(
            f"The values for attribute 'dtype' do not match: {actual.dtype} != {expected.dtype}."
        )
    name = str(actual.dtype).removeprefix("torch.")
    default_rtol, default_atol = usual.get(name, (0.0, 0.0))
    rtol = default_rtol if rtol is None else rtol
    atol = default_atol if atol is None else atol
    from ._functions import allclose

    if not allclose(actual.detach(), expected.detach(), rtol, atol, equal_nan):
        raise AssertionError(f"Tensor-likes are not close!\n{actual}\n{expected}")
