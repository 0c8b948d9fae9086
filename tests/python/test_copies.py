"""Copies between layouts and dtypes, and the tensors they make."""

import numpy as np
import pytest

import tessera as torch


@pytest.mark.parametrize("name", ["complex64", "complex128"])
def test_complex_numbers_in_any_layout(name):
    values = np.arange(64 * 64 * 3).reshape(64, 64, 3).astype(name) * (1 + 2j)
    t = torch.from_numpy(values)
    for view, expected in (
        (t.transpose(0, 1), values.transpose(1, 0, 2)),
        (t.transpose(0, 2), values.transpose(2, 1, 0)),
        (t[:, ::2], values[:, ::2]),
        (t[1:2, 3], values[1:2, 3]),
    ):
        assert np.array_equal(view.contiguous().numpy(), expected)
    assert np.array_equal(
        torch.zeros(70, 2000, dtype=t.dtype).fill_(1 - 3j).numpy(), np.full((70, 2000), 1 - 3j)
    )
