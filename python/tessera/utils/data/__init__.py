"""Datasets, samplers, and the loader that makes batches of them."""

from ..._lazy import lazy_names

_FILES = {
    "dataset": (
        "ChainDataset ConcatDataset Dataset IterableDataset StackDataset Subset TensorDataset "
        "random_split"
    ),
    "sampler": (
        "BatchSampler RandomSampler Sampler SequentialSampler SubsetRandomSampler "
        "WeightedRandomSampler"
    ),
    "distributed": "DistributedSampler",
    "dataloader": "DataLoader _DatasetKind default_collate default_convert get_worker_info",
}

__getattr__, __dir__, __all__ = lazy_names(__name__, _FILES)
