"""From indices to data, for datasets of both kinds."""

import tessera as torch


def _columns_of(dataset, collate_fn):
    """The tensors of a dataset whose batches are their rows; None for any other."""
    from ..dataset import TensorDataset
    from .collate import default_collate

    if type(dataset) is not TensorDataset or collate_fn is not default_collate:
        return None
    columns = dataset.tensors
    if not all(type(t) is torch.Tensor and t.device == columns[0].device for t in columns):
        return None
    return columns


class _BaseDatasetFetcher:
    def __init__(self, dataset, auto_collation, collate_fn, drop_last):
        self.dataset = dataset
        self.auto_collation = auto_collation
        self.collate_fn = collate_fn
        self.drop_last = drop_last

    def fetch(self, possibly_batched_index):
        raise NotImplementedError


class _MapDatasetFetcher(_BaseDatasetFetcher):
    def __init__(self, dataset, auto_collation, collate_fn, drop_last):
        super().__init__(dataset, auto_collation, collate_fn, drop_last)
        self.columns = _columns_of(dataset, collate_fn) if auto_collation else None

    def fetch(self, possibly_batched_index):
        dataset = self.dataset
        if self.columns is not None:
            # Rows of tensors: gathered at once rather than one by one.
            index = self._checked(possibly_batched_index)
            return [column.index_select(0, index) for column in self.columns]
        if not self.auto_collation:
            return self.collate_fn(dataset[possibly_batched_index])
        if getattr(dataset, "__getitems__", None):
            return self.collate_fn(dataset.__getitems__(possibly_batched_index))
        return self.collate_fn([dataset[i] for i in possibly_batched_index])

    def _checked(self, indices):
        """Indices as a tensor; those from the end counted from the start."""
        size = self.columns[0].shape[0]
        found = []
        for i in indices:
            i = int(i)
            if not -size <= i < size:
                raise IndexError(f"index {i} is out of bounds for dimension 0 with size {size}")
            found.append(i + size if i < 0 else i)
        return torch.tensor(found, dtype=torch.int64, device=self.columns[0].device)


class _IterableDatasetFetcher(_BaseDatasetFetcher):
    def __init__(self, dataset, auto_collation, collate_fn, drop_last):
        super().__init__(dataset, auto_collation, collate_fn, drop_last)
        self.dataset_iter = iter(dataset)
        self.ended = False

    def fetch(self, possibly_batched_index):
        if self.ended:
            raise StopIteration
        if not self.auto_collation:
            return self.collate_fn(next(self.dataset_iter))
        data = []
        for _ in possibly_batched_index:
            try:
                data.append(next(self.dataset_iter))
            except StopIteration:
                self.ended = True
                break
        if not data or (self.drop_last and len(data) < len(possibly_batched_index)):
            raise StopIteration
        return self.collate_fn(data)
