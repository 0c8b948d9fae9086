"""Kernels whose launch depends on what others have counted: here the emulated GPU computes."""

from common import DEVICE, FLOATS, look, number, station_with_values

import tessera as torch
from tessera.nn import functional as F


@station_with_values
def masks():
    for dtype in (*FLOATS, torch.float64, torch.int64, torch.int32, torch.bool):
        for shape in ((40,), (8, 6), (4, 3, 8)):
            x = torch.ones(shape, device=DEVICE).to(dtype)
            mask = torch.ones(shape, device=DEVICE) > 0
            look(x[mask], x.masked_select(mask), x.nonzero(), mask.nonzero(), torch.where(mask))
            if len(shape) > 1:
                look(x[mask[:, 0]] if len(shape) == 2 else x[mask[:, :, 0]], x.mT[mask.mT])
                look(x[torch.where(mask)])
            x[mask] = 0
            look(x, x.masked_scatter(mask, x.clone()))
            x[mask] = torch.zeros(x.numel(), device=DEVICE).to(dtype)
            z = torch.ones((*shape, 2), device=DEVICE).to(dtype)[..., 0]
            z[mask] = x.flatten()
            look(x, z, z[mask], z.masked_scatter_(mask, x.clone()))
        x = torch.ones(40, device=DEVICE).to(dtype)
        look(torch.unique(x))
        if dtype != torch.bool:
            look(torch.unique(x, return_inverse=True, return_counts=True))


@station_with_values
def numbers():
    labels = number(8)
    look(F.one_hot(labels, 10), F.one_hot(labels), torch.bincount(labels, minlength=10))
    look(torch.bincount(labels, weights=torch.ones(8, device=DEVICE)))
    look(
        labels.repeat_interleave(labels + 1), torch.nn.utils.rnn.pad_sequence([labels, labels[:3]])
    )
    look(torch.histc(torch.ones(40, device=DEVICE, dtype=torch.float64), 10))
    for dtype in FLOATS:
        x = torch.ones(40, device=DEVICE, dtype=dtype)
        look(torch.normal(x, x), torch.multinomial(x, 3), torch.bernoulli(x), torch.poisson(x))
        look(x.quantile(0.5) if dtype == torch.float32 else x, x.median(), x.mode()[0])
        look(torch.histc(x, 10), x[x > 0].mean(), x.isnan().any())


@station_with_values
def sequences():
    for dtype in (torch.float32, torch.float64):
        chances = torch.zeros(12, 2, 5, device=DEVICE, dtype=dtype).log_softmax(-1).requires_grad_()
        target, lengths = number(2, 4) + 1, torch.tensor([12, 10])
        for zero in (False, True):
            loss = F.ctc_loss(chances, target, lengths, torch.tensor([4, 3]), zero_infinity=zero)
            loss.backward()
