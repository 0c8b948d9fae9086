"""DataLoader: batches of a dataset, in this process or by workers."""

import functools
import itertools
import warnings

import tessera as torch
from tessera.cuda._device import index_of

from ._utils.collate import default_collate, default_convert
from ._utils.fetch import _columns_of, _IterableDatasetFetcher, _MapDatasetFetcher
from ._utils.info import get_worker_info
from ._utils.pin_memory import pin_memory as _pinned
from .dataset import Dataset, IterableDataset, Subset, TensorDataset
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, WeightedRandomSampler

__all__ = [
    "DataLoader",
    "Dataset",
    "Sampler",
    "default_collate",
    "default_convert",
    "get_worker_info",
]


class _DatasetKind:
    Map = 0
    Iterable = 1

    @staticmethod
    def create_fetcher(kind, dataset, auto_collation, collate_fn, drop_last):
        cls = _MapDatasetFetcher if kind == _DatasetKind.Map else _IterableDatasetFetcher
        return cls(dataset, auto_collation, collate_fn, drop_last)


class _InfiniteConstantSampler(Sampler):
    """None for ever: the indices of a dataset that has none."""

    def __iter__(self):
        return itertools.repeat(None)


class DataLoader:
    """Iterates over a dataset in batches."""

    _multiprocessing_context = None
    _iterator = None
    __initialized = False
    # What the iterators are made from: not to be changed afterwards.
    _FIXED = (
        "batch_size",
        "batch_sampler",
        "sampler",
        "drop_last",
        "dataset",
        "persistent_workers",
    )

    def __init__(
        self,
        dataset,
        batch_size=1,
        shuffle=None,
        sampler=None,
        batch_sampler=None,
        num_workers=0,
        collate_fn=None,
        pin_memory=False,
        drop_last=False,
        timeout=0,
        worker_init_fn=None,
        multiprocessing_context=None,
        generator=None,
        *,
        prefetch_factor=None,
        persistent_workers=False,
        pin_memory_device="",
        in_order=True,
    ):
        if num_workers < 0:
            raise ValueError(
                "num_workers option should be non-negative; use num_workers=0 to disable "
                "multiprocessing."
            )
        if timeout < 0:
            raise ValueError("timeout option should be non-negative")
        if num_workers == 0 and prefetch_factor is not None:
            raise ValueError(
                "prefetch_factor option could only be specified in multiprocessing."
                "let num_workers > 0 to enable multiprocessing, otherwise set prefetch_factor to "
                "None."
            )
        if num_workers > 0 and prefetch_factor is None:
            prefetch_factor = 2
        elif prefetch_factor is not None and prefetch_factor < 0:
            raise ValueError("prefetch_factor option should be non-negative")
        if persistent_workers and num_workers == 0:
            raise ValueError("persistent_workers option needs num_workers > 0")

        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        if pin_memory and pin_memory_device:
            index_of(pin_memory_device)  # raises for what is no cuda device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order

        if isinstance(dataset, IterableDataset):
            self._dataset_kind = _DatasetKind.Iterable
            for name, value in (
                ("shuffle", shuffle or None),
                ("sampler", sampler),
                ("batch_sampler", batch_sampler),
            ):
                if value is not None:
                    raise ValueError(
                        f"DataLoader with IterableDataset: expected unspecified {name} option, "
                        f"but got {name}={value}"
                    )
        else:
            self._dataset_kind = _DatasetKind.Map
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, "
                    "sampler, and drop_last"
                )
            batch_size = None
            drop_last = False
        elif batch_size is None and drop_last:
            raise ValueError(
                "batch_size=None option disables auto-batching and is mutually exclusive with "
                "drop_last"
            )
        if sampler is None:
            if self._dataset_kind == _DatasetKind.Iterable:
                sampler = _InfiniteConstantSampler()
            elif shuffle:
                sampler = RandomSampler(dataset, generator=generator)
            else:
                sampler = SequentialSampler(dataset)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        if collate_fn is None:
            collate_fn = default_collate if self._auto_collation else default_convert
        self.collate_fn = collate_fn
        self.persistent_workers = persistent_workers
        self.__initialized = True
        self._IterableDataset_len_called = None
        self._iterator = None
        self.check_worker_number_rationality()

    def __setattr__(self, name, value):
        if self.__initialized and name in self._FIXED:
            raise ValueError(
                f"{name} attribute should not be set after {type(self).__name__} is initialized"
            )
        super().__setattr__(name, value)

    @property
    def multiprocessing_context(self):
        return self._multiprocessing_context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context):
        if context is not None:
            import multiprocessing
            import multiprocessing.context

            if self.num_workers == 0:
                raise ValueError(
                    "multiprocessing_context can only be used with multi-process loading "
                    f"(num_workers > 0), but got num_workers={self.num_workers}"
                )
            if isinstance(context, str):
                valid = multiprocessing.get_all_start_methods()
                if context not in valid:
                    raise ValueError(
                        "multiprocessing_context option should specify a valid start method in "
                        f"{valid!r}, but got multiprocessing_context={context!r}"
                    )
                context = multiprocessing.get_context(context)
            if not isinstance(context, multiprocessing.context.BaseContext):
                raise TypeError(
                    "multiprocessing_context option should be a valid context object or a string "
                    "specifying the start method, but got "
                    f"multiprocessing_context={context}"
                )
        self._multiprocessing_context = context

    @property
    def _auto_collation(self):
        return self.batch_sampler is not None

    @property
    def _index_sampler(self):
        return self.batch_sampler if self._auto_collation else self.sampler

    def _get_iterator(self):
        if self.num_workers > 0:
            from ._workers import _MultiProcessingDataLoaderIter

            return _MultiProcessingDataLoaderIter(self)
        columns = _whole_columns(self)
        if columns is not None:
            return _TensorBatchesIter(self, *columns)
        return _SingleProcessDataLoaderIter(self)

    def __iter__(self):
        if not (self.persistent_workers and self.num_workers > 0):
            return self._get_iterator()
        if self._iterator is None:
            self._iterator = self._get_iterator()
        else:
            self._iterator._reset(self)
        return self._iterator

    def __len__(self):
        if self._dataset_kind != _DatasetKind.Iterable:
            return len(self._index_sampler)
        # Kept, to say later if it was wrong.
        length = self._IterableDataset_len_called = len(self.dataset)
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else -(-length // self.batch_size)

    def check_worker_number_rationality(self):
        """Warns of more workers than there are processors to run them."""
        if not self.num_workers:
            return
        import os

        try:
            cores = len(os.sched_getaffinity(0))
        except AttributeError:
            cores = os.cpu_count() or 0
        if self.num_workers > cores:
            warnings.warn(
                f"This DataLoader will create {self.num_workers} worker processes in total. Our "
                f"suggested max number of worker in current system is {cores}, which is smaller "
                "than what this DataLoader is going to create. Please be aware that excessive "
                "worker creation might get DataLoader running slow or even freeze, lower the "
                "worker number to avoid potential slowness/freeze if necessary.",
                stacklevel=3,
            )


def _profiled(next_batch):
    """An iterator's __next__, with PyTorch's name for it in profiles."""

    @functools.wraps(next_batch)
    def wrapper(self):
        if not torch._C._is_profiling():
            return next_batch(self)
        name = type(self).__name__
        with torch.autograd.profiler.record_function(f"enumerate(DataLoader)#{name}.__next__"):
            return next_batch(self)

    return wrapper


class _BaseDataLoaderIter:
    """One pass over a loader's dataset."""

    def __init__(self, loader):
        self._dataset = loader.dataset
        self._dataset_kind = loader._dataset_kind
        self._IterableDataset_len_called = loader._IterableDataset_len_called
        self._auto_collation = loader._auto_collation
        self._drop_last = loader.drop_last
        self._index_sampler = loader._index_sampler
        self._num_workers = loader.num_workers
        self._pin_memory = loader.pin_memory and torch.cuda.is_available()
        if loader.pin_memory and not self._pin_memory:
            warnings.warn(
                "'pin_memory' argument is set as true but no accelerator is found, then device "
                "pinned memory won't be used.",
                stacklevel=4,
            )
        self._timeout = loader.timeout
        self._collate_fn = loader.collate_fn
        self._persistent_workers = loader.persistent_workers
        self._sampler_iter = iter(self._index_sampler)
        options = {} if loader.generator is None else {"generator": loader.generator}
        # Drawn whether or not there are workers: what is drawn afterwards does not depend on them.
        self._base_seed = torch.empty((), dtype=torch.int64).random_(**options).item()
        self._num_yielded = 0

    def __iter__(self):
        return self

    def _reset(self, loader):
        self._sampler_iter = iter(self._index_sampler)
        self._num_yielded = 0
        self._IterableDataset_len_called = loader._IterableDataset_len_called

    def _next_index(self):
        return next(self._sampler_iter)

    def _next_data(self):
        raise NotImplementedError

    @_profiled
    def __next__(self):
        data = self._next_data()
        self._num_yielded += 1
        expected = self._IterableDataset_len_called
        if (
            expected is not None
            and self._dataset_kind == _DatasetKind.Iterable
            and self._num_yielded > expected
        ):
            text = (
                f"Length of IterableDataset {self._dataset} was reported to be {expected} (when "
                f"accessing len(dataloader)), but {self._num_yielded} samples have been fetched. "
            )
            if self._num_workers > 0:
                text += (
                    "For multiprocessing data-loading, this could be caused by not properly "
                    "configuring the IterableDataset replica at each worker."
                )
            warnings.warn(text, stacklevel=2)
        return data

    def __len__(self):
        return len(self._index_sampler)

    def __getstate__(self):
        raise NotImplementedError("{} cannot be pickled", type(self).__name__)


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """In this process, a batch when it is asked for."""

    def __init__(self, loader):
        super().__init__(loader)
        if self._timeout != 0 or self._num_workers != 0:
            raise AssertionError("timeout and num_workers are of loaders with workers")
        self._dataset_fetcher = _DatasetKind.create_fetcher(
            self._dataset_kind,
            self._dataset,
            self._auto_collation,
            self._collate_fn,
            self._drop_last,
        )

    def _next_data(self):
        data = self._dataset_fetcher.fetch(self._next_index())
        return _pinned(data) if self._pin_memory else data


def _whole_columns(loader):
    """Tensors and their rows' order, where batches are nothing but rows of tensors.

    True of a TensorDataset, or a Subset of one, with the default collation and samplers that know
    all their indices at once; the classes themselves, since a subclass may do otherwise.
    """
    if loader.collate_fn is not default_collate or type(loader.batch_sampler) is not BatchSampler:
        return None
    sampler = loader.batch_sampler.sampler
    if type(sampler) not in (SequentialSampler, RandomSampler, WeightedRandomSampler):
        return None
    if getattr(sampler, "data_source", loader.dataset) is not loader.dataset:
        return None
    dataset, rows = loader.dataset, None
    if type(dataset) is Subset and type(dataset.dataset) is TensorDataset:
        dataset, rows = dataset.dataset, dataset.indices
    columns = _columns_of(dataset, loader.collate_fn)
    return None if columns is None else (columns, sampler, rows)


class _TensorBatchesIter(_BaseDataLoaderIter):
    """Rows of tensors: the order is one tensor, a batch one call for each column."""

    def __init__(self, loader, columns, sampler, rows):
        super().__init__(loader)
        self._columns = columns
        self._sampler = sampler
        self._rows = rows
        self._size = loader.batch_sampler.batch_size
        self._order = None
        self._at = 0
        self._end = 0

    def _start(self):
        # Drawn with the first batch, as samplers do.
        order = self._sampler._index_tensor()
        if self._rows is not None:
            rows = torch.as_tensor(self._rows, dtype=torch.int64)
            order = rows.index_select(0, order)
        count = order.shape[0]
        self._end = count - count % self._size if self._drop_last else count
        device = self._columns[0].device
        self._order = order if device.type == "cpu" else order.to(device)

    @_profiled
    def __next__(self):
        if self._order is None:
            self._start()
        at = self._at
        if at >= self._end:
            raise StopIteration
        self._at = end = at + self._size
        index = self._order[at:end]
        batch = [column.index_select(0, index) for column in self._columns]
        self._num_yielded += 1
        return _pinned(batch) if self._pin_memory else batch


def __getattr__(name):
    if name == "_MultiProcessingDataLoaderIter":
        from ._workers import _MultiProcessingDataLoaderIter

        return _MultiProcessingDataLoaderIter
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
