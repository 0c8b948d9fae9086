"""Samplers: the order in which a dataset's samples are taken."""

import itertools
from typing import Generic, TypeVar

import tessera as torch

T_co = TypeVar("T_co", covariant=True)


def _drawing_from(generator):
    return {} if generator is None else {"generator": generator}


def _is_count(value):
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


class Sampler(Generic[T_co]):
    """Iterates over indices, or over lists of indices."""

    def __init__(self, data_source=None):
        if data_source is not None:
            import warnings

            warnings.warn(
                "`data_source` argument is not used and will be removed in 2.2.0. You may still "
                "have custom implementation that utilizes it.",
                stacklevel=2,
            )

    def __iter__(self):
        raise NotImplementedError


class SequentialSampler(Sampler[int]):
    """0, 1, 2, ..."""

    def __init__(self, data_source):
        self.data_source = data_source

    def _index_tensor(self):
        """All indices at once: what __iter__ yields."""
        return torch.arange(len(self.data_source))

    def __iter__(self):
        return iter(range(len(self.data_source)))

    def __len__(self):
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """A permutation, or draws with replacement."""

    def __init__(self, data_source, replacement=False, num_samples=None, generator=None):
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(replacement, bool):
            raise TypeError(
                f"replacement should be a boolean value, but got replacement={replacement}"
            )
        if not _is_count(self.num_samples):
            raise ValueError(
                "num_samples should be a positive integer value, but got "
                f"num_samples={self.num_samples}"
            )

    @property
    def num_samples(self):
        # The dataset may grow.
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def _chunks(self):
        """Tensors of indices, in PyTorch's draws."""
        n, wanted = len(self.data_source), self.num_samples
        generator = self.generator
        if generator is None:
            seed = int(torch.empty((), dtype=torch.int64).random_().item())
            generator = torch.Generator()
            generator.manual_seed(seed)
        if self.replacement:
            for _ in range(wanted // 32):
                yield torch.randint(high=n, size=(32,), dtype=torch.int64, generator=generator)
            yield torch.randint(high=n, size=(wanted % 32,), dtype=torch.int64, generator=generator)
            return
        for _ in range(wanted // n):
            yield torch.randperm(n, generator=generator)
        yield torch.randperm(n, generator=generator)[: wanted % n]

    def _index_tensor(self):
        """All indices at once: what __iter__ yields."""
        chunks = [chunk for chunk in self._chunks() if chunk.numel()]
        return chunks[0] if len(chunks) == 1 else torch.cat(chunks)

    def __iter__(self):
        for chunk in self._chunks():
            yield from chunk.tolist()

    def __len__(self):
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """A permutation of the given indices."""

    def __init__(self, indices, generator=None):
        self.indices = indices
        self.generator = generator

    def __iter__(self):
        order = torch.randperm(len(self.indices), **_drawing_from(self.generator))
        for i in order.tolist():
            yield self.indices[i]

    def __len__(self):
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Draws with given weights."""

    def __init__(self, weights, num_samples, replacement=True, generator=None):
        if not _is_count(num_samples):
            raise ValueError(
                f"num_samples should be a positive integer value, but got num_samples={num_samples}"
            )
        if not isinstance(replacement, bool):
            raise ValueError(
                f"replacement should be a boolean value, but got replacement={replacement}"
            )
        weights = torch.as_tensor(weights, dtype=torch.float64)
        if weights.dim() != 1:
            raise ValueError(
                "weights should be a 1d sequence but given weights have shape "
                f"{tuple(weights.shape)}"
            )
        self.weights = weights
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def _index_tensor(self):
        """All indices at once: what __iter__ yields."""
        return torch.multinomial(
            self.weights, self.num_samples, self.replacement, **_drawing_from(self.generator)
        )

    def __iter__(self):
        return iter(self._index_tensor().tolist())

    def __len__(self):
        return self.num_samples


class BatchSampler(Sampler[list]):
    """Lists of another sampler's indices."""

    def __init__(self, sampler, batch_size, drop_last):
        if not _is_count(batch_size):
            raise ValueError(
                f"batch_size should be a positive integer value, but got batch_size={batch_size}"
            )
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self):
        indices = iter(self.sampler)
        while True:
            batch = list(itertools.islice(indices, self.batch_size))
            if not batch or (self.drop_last and len(batch) < self.batch_size):
                return
            yield batch

    def __len__(self):
        n = len(self.sampler)
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)
