"""Calls for gradcheck of public operators whose records have no samples of their own.

They need inputs of a kind (symmetric, triangular) or results without a free sign or phase.
"""


def calls(torch):
    """(operator, function, shapes of its inputs)"""
    F = torch.nn.functional
    linalg = torch.linalg

    def positive(a):
        return a @ a.mH + torch.eye(a.shape[-1], dtype=a.dtype)

    def of_complex(f):
        return lambda a: torch.view_as_real(f(a))

    def lu_of(a):
        return linalg.lu_factor(a + 3 * torch.eye(a.shape[-1], dtype=a.dtype))

    lengths = {"input_lengths": [4, 3], "target_lengths": [2, 1]}
    targets = torch.tensor([[1, 2], [2, 0]])
    signs = torch.tensor([1, -1, 1])
    classes = torch.tensor([1, 0, 3])
    window = torch.hann_window(4, dtype=torch.float64)
    yield "as_strided", lambda a: a.as_strided((2, 3), (1, 2), 1), [(3, 4)]
    yield "as_strided_copy", lambda a: torch.as_strided_copy(a, (2, 3), (1, 2), 1), [(3, 4)]
    yield (
        "as_strided_scatter",
        lambda a, b: torch.as_strided_scatter(a, b, (2, 2), (1, 2)),
        [(3, 3), (2, 2)],
    )
    yield (
        "binary_cross_entropy",
        lambda a, b: F.binary_cross_entropy(a.sigmoid(), b.sigmoid()),
        [(3, 2), (3, 2)],
    )
    yield "cholesky", lambda a: torch.cholesky(positive(a)), [(3, 3)]
    yield "cholesky", lambda a: torch.cholesky(positive(a), upper=True), [(2, 3, 3)]
    yield (
        "cholesky_inverse",
        lambda a: torch.cholesky_inverse(a.tril() + 2 * torch.eye(3)),
        [(3, 3)],
    )
    yield (
        "cholesky_solve",
        lambda b, a: torch.cholesky_solve(b, a.tril() + 2 * torch.eye(3)),
        [(3, 2), (3, 3)],
    )
    yield "copy_", lambda a, b: (2 * a).copy_(b) * a, [(2, 3), (3,)]
    yield (
        "cosine_embedding_loss",
        lambda a, b: F.cosine_embedding_loss(a, b, signs, margin=-0.9),
        [(3, 4), (3, 4)],
    )
    yield "ctc_loss", lambda a: F.ctc_loss(a.log_softmax(-1), targets, **lengths), [(4, 2, 3)]
    yield "einsum", lambda a, b: torch.einsum("ij,kj->ik", a, b), [(2, 3), (4, 3)]
    yield "einsum", lambda a, b: torch.einsum("bij,bjk,k", a, b, b[0, 0]), [(2, 3, 2), (2, 2, 3)]
    yield "fill_", lambda a, b: (a * 1).fill_(b) * a, [(2, 3), ()]
    yield (
        "istft",
        lambda a: torch.istft(torch.view_as_complex(a), 4, window=window, length=10),
        [(3, 6, 2)],
    )
    yield "linalg_cholesky", lambda a: linalg.cholesky(positive(a)), [(3, 3)]
    yield "linalg_cholesky_ex", lambda a: linalg.cholesky_ex(positive(a))[0], [(3, 3)]
    yield "linalg_eig", of_complex(lambda a: linalg.eig(a)[0]), [(3, 3)]
    yield "linalg_eig", lambda a: linalg.eig(a)[1].abs(), [(3, 3)]
    yield "linalg_eigh", lambda a: linalg.eigh(a + a.mT)[0], [(3, 3)]
    yield "linalg_eigh", lambda a: linalg.eigh(a + a.mT)[1].abs(), [(3, 3)]
    yield "linalg_eigvals", of_complex(lambda a: linalg.eigvals(a)), [(3, 3)]
    yield "linalg_eigvalsh", lambda a: linalg.eigvalsh(a + a.mT), [(3, 3)]
    yield "linalg_lu_solve", lambda a, b: linalg.lu_solve(*lu_of(a), b), [(3, 3), (3, 2)]
    yield "lu_solve", lambda a, b: torch.lu_solve(b, *lu_of(a)), [(3, 3), (3, 2)]
    yield "lu_unpack", lambda a: torch.lu_unpack(*lu_of(a))[1:], [(3, 3)]
    yield "linalg_qr", lambda a: linalg.qr(a), [(4, 3)]
    yield "linalg_qr", lambda a: linalg.qr(a), [(3, 4)]
    yield "qr", lambda a: torch.qr(a), [(3, 3)]
    yield "linalg_svd", lambda a: linalg.svd(a)[1], [(3, 4)]
    yield "linalg_svd", lambda a: [t.abs() for t in linalg.svd(a, False)], [(4, 3)]
    yield "svd", lambda a: [t.abs() for t in torch.svd(a)], [(3, 3)]
    yield "multi_margin_loss", lambda a: F.multi_margin_loss(a, classes, p=2), [(3, 4)]
    yield (
        "multilabel_margin_loss",
        lambda a: F.multilabel_margin_loss(a, torch.tensor([[1, 2, -1, 0], [0, -1, 1, 1]])),
        [(2, 4)],
    )
    yield (
        "native_batch_norm",
        lambda x, w, b: torch.native_batch_norm(x, w, b, None, None, True, 0.1, 1e-3)[0],
        [(4, 3), (3,), (3,)],
    )
    yield (
        "native_group_norm",
        lambda x, w, b: torch.native_group_norm(x, w, b, 2, 4, 3, 2, 1e-3)[0],
        [(2, 4, 3), (4,), (4,)],
    )
    yield (
        "native_layer_norm",
        lambda x, w, b: torch.native_layer_norm(x, (2, 3), w, b, 1e-3)[0],
        [(3, 2, 3), (2, 3), (2, 3)],
    )
    yield "rms_norm", lambda x, w: F.rms_norm(x, (3,), w), [(2, 3), (3,)]
    yield "special_zeta", lambda q: torch.special.zeta(2.5, q.exp()), [(3,)]
    yield (
        "stft",
        of_complex(lambda a: torch.stft(a, 4, window=window, return_complex=True)),
        [(10,)],
    )
    yield "tensordot", lambda a, b: torch.tensordot(a, b, ([1, 2], [0, 1])), [(2, 3, 2), (3, 2, 4)]
    yield "zero_", lambda a: (a * 3).zero_() + a, [(3,)]
