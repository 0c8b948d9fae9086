"""Functions that choose among operators by what they are asked to return."""

from collections import namedtuple

from . import _C

Tensor = _C.Tensor
_ops = _C.ops


def _chosen(found, inverse, counts):
    """The values, and of inverse indices and counts what was asked for."""
    values, *more = found
    more = tuple(t for t, wanted in zip(more, (inverse, counts)) if wanted)
    return (values, *more) if more else values


def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """The different values of a tensor in their order, or its different slices along a dimension;
    also which of them each element is, and how often each occurs."""
    if dim is None:
        found = _ops["_unique2"](input, sorted, return_inverse, return_counts)
    else:
        found = _ops["_unique_dim"](input, dim, sorted, return_inverse, return_counts)
    return _chosen(found, return_inverse, return_counts)


def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None):
    """The first of each run of equal values, or of equal slices along a dimension."""
    found = _ops["_unique_consecutive"](input, return_inverse, return_counts, dim)
    return _chosen(found, return_inverse, return_counts)


def nonzero(input, *, out=None, as_tuple=False):
    """The positions of all elements that are not zero: a row of coordinates each, or with as_tuple
    a tensor of coordinates for each dimension."""
    if as_tuple:
        if out is not None:
            raise TypeError("nonzero() with as_tuple=True takes no out")
        return _ops["_nonzero_numpy"](input)
    return _ops["nonzero"](input, out=out)


def _nonzero(self, *, as_tuple=False):
    return nonzero(self, as_tuple=as_tuple)


_HistogramDD = namedtuple("histogramdd", ("hist", "bin_edges"))
_HistogramDD.__module__ = "torch.return_types"


def histogramdd(input, bins, range=None, weight=None, density=False):
    """How many points, the rows of input, fall into each cell of a grid; and the grid's edges.

    bins is a number of cells, one for each dimension, or the edges along each dimension."""
    if isinstance(bins, int):
        bins = [bins] * input.shape[-1]
    if len(bins) and isinstance(bins[0], Tensor):
        if range is not None:
            raise RuntimeError("histogramdd: range cannot be given together with bin edges")
        hist = _ops["_histogramdd_from_bin_tensors"](input, bins, weight=weight, density=density)
        return _HistogramDD(hist, tuple(bins))
    options = {"range": range, "weight": weight, "density": density}
    edges = _ops["_histogramdd_bin_edges"](input, bins, **options)
    hist = _ops["_histogramdd_from_bin_cts"](input, bins, **options)
    return _HistogramDD(hist, edges)


Tensor.unique = unique
Tensor.unique_consecutive = unique_consecutive
Tensor.nonzero = _nonzero
