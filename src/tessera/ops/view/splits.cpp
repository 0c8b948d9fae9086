// Views of all pieces along a dimension. The pieces of one call share a node of the graph.
#include "tessera/gen/join.h"
#include "tessera/gen/view.h"

namespace tessera {

namespace {

std::vector<TensorBase> pieces(const TensorBase& t, int64_t dim, const Dims& sizes) {
  size_t d = static_cast<size_t>(wrap_dim(dim, t.dim()));
  std::vector<TensorBase> out;
  out.reserve(sizes.size());
  Dims shape = t.sizes();
  int64_t at = t.storage_offset();
  for (int64_t n : sizes) {
    shape[d] = n;
    out.push_back(alias(t, shape, t.strides(), at));
    at += n * t.strides()[d];
  }
  return out;
}

// Pieces of one size, the last one shorter.
Dims even_pieces(const TensorBase& t, int64_t dim, int64_t size) {
  TS_CHECK(t.dim() > 0, "split expects at least a 1-dimensional tensor");
  TS_CHECK(size >= 0, "split expects split_size be non-negative, but got split_size=", size);
  int64_t whole = t.size(dim);
  TS_CHECK(size > 0 || whole == 0,
           "split_size can only be 0 if dimension size is 0, but got dimension size of ", whole);
  int64_t count = size == 0 ? 1 : std::max<int64_t>((whole + size - 1) / size, 1);
  Dims sizes(static_cast<size_t>(count), size);
  sizes[static_cast<size_t>(count - 1)] = whole - size * (count - 1);
  return sizes;
}

void check_pieces(const TensorBase& t, int64_t dim, const Dims& sizes) {
  TS_CHECK(t.dim() > 0, "split expects at least a 1-dimensional tensor");
  int64_t sum = 0;
  for (int64_t n : sizes) {
    TS_CHECK(n >= 0,
             "split_with_sizes expects split_sizes have only non-negative entries, but got "
             "split_sizes=",
             sizes);
    sum += n;
  }
  TS_CHECK(sum == t.size(dim), "split_with_sizes expects split_sizes to sum exactly to ",
           t.size(dim), " (input tensor's size at dimension ", dim,
           "), but got split_sizes=", sizes);
}

// Sizes of `chunks` pieces, as even as split can.
Dims chunk_pieces(const TensorBase& t, int64_t chunks, int64_t dim) {
  TS_CHECK(t.dim() > 0, "chunk expects at least a 1-dimensional tensor");
  TS_CHECK(chunks > 0, "chunk expects `chunks` to be greater than 0, got: ", chunks);
  int64_t whole = t.size(dim);
  if (whole == 0) return Dims(static_cast<size_t>(chunks), 0);
  return even_pieces(t, dim, (whole + chunks - 1) / chunks);
}

void pieces_backward(Backward& b, int64_t dim) {
  std::vector<TensorBase> grads;
  for (size_t k = 0; k < b.result_grads.size(); ++k)
    grads.push_back(b.grad_of(static_cast<int>(k)));
  b.set(0, op::cat(grads, dim));
}

// Sizes of `sections` pieces whose lengths differ by at most one.
Dims section_pieces(const TensorBase& t, int64_t sections, int64_t dim) {
  TS_CHECK(t.dim() > 0,
           "tensor_split expected at least a 1-dimensional tensor, but got a tensor "
           "with ",
           t.dim(), " dims");
  int64_t whole = t.size(dim);
  TS_CHECK(sections > 0, "number of sections must be larger than 0, got ", sections);
  Dims sizes(static_cast<size_t>(sections), whole / sections);
  for (int64_t i = 0; i < whole % sections; ++i) ++sizes[static_cast<size_t>(i)];
  return sizes;
}

// Pieces between indices, which may lie anywhere: each is Python's slice.
std::vector<TensorBase> between(const TensorBase& t, const Dims& indices, int64_t dim) {
  TS_CHECK(t.dim() > 0,
           "tensor_split expected at least a 1-dimensional tensor, but got a tensor "
           "with ",
           t.dim(), " dims");
  std::vector<TensorBase> out;
  int64_t from = 0;
  for (int64_t to : indices) {
    out.push_back(op::slice(t, dim, from, to));
    from = to;
  }
  out.push_back(op::slice(t, dim, from, t.size(dim)));
  return out;
}

// hsplit, vsplit and dsplit: which dimension, and whether it divides.
int64_t named_dim(const TensorBase& t, const char* name, int least) {
  TS_CHECK(t.dim() >= least, "torch.", name, " requires a tensor with at least ", least,
           " dimension, but got a tensor with ", t.dim(), " dimensions!");
  return least == 1 ? (t.dim() == 1 ? 0 : 1) : least == 2 ? 0 : 2;
}
std::vector<TensorBase> named_split(const Call& c, const char* name, int least) {
  const TensorBase& t = c.tensor(0);
  int64_t dim = named_dim(t, name, least), sections = c.integer(1);
  int64_t size = t.sizes()[static_cast<size_t>(dim)];
  TS_CHECK(sections != 0 && size % sections == 0, "torch.", name,
           " attempted to split along dimension ", dim, ", but the size of the dimension ", size,
           " is not divisible by the split_size ", sections, "!");
  return op::tensor_split(t, sections, dim);
}

}  // namespace

TS_OP({
    .schema = "split(Tensor self, int split_size, int dim=0) -> Tensor[]",
    .doc = "Views of pieces of one size along a dimension, the last one shorter; or of the sizes "
           "given.",
    .example = "torch.split(torch.arange(5), 2)",
    .kind = Kind::kView,
    .run = [](const Call& c) -> Outputs {
      return pieces(c.tensor(0), c.integer(2),
                    even_pieces(c.tensor(0), c.integer(2), c.integer(1)));
    },
    .backward = [](Backward& b) { pieces_backward(b, b.integer(2)); },
    .samples = {{"T(5, 4), 2"}, {"T(5, 4), 3, 1"}, {"T(0, 3), 2"}},
});

TS_OP({
    .schema = "split(Tensor self, int[] split_size, int dim=0) -> Tensor[]",
    .doc = "Views of pieces of the sizes given along a dimension.",
    .example = "torch.split(torch.arange(5), [1, 4])",
    .run = [](const Call& c) -> Outputs {
      return op::split_with_sizes(c.tensor(0), c.ints(1).span(), c.integer(2));
    },
    .samples = {{"T(5, 4), [2, 3]"}},
});

TS_OP({
    .schema = "split_with_sizes(Tensor self, int[] split_sizes, int dim=0) -> Tensor[]",
    .doc = "Views of pieces of the sizes given along a dimension.",
    .example = "torch.split_with_sizes(torch.arange(5), [1, 4])",
    .kind = Kind::kView,
    .run = [](const Call& c) -> Outputs {
      check_pieces(c.tensor(0), c.integer(2), c.ints(1));
      return pieces(c.tensor(0), c.integer(2), c.ints(1));
    },
    .backward = [](Backward& b) { pieces_backward(b, b.integer(2)); },
    .samples = {{"T(5, 4), [2, 0, 3]"}, {"T(5, 4), [1, 3], 1"}},
});

TS_OP({
    .schema = "chunk(Tensor self, int chunks, int dim=0) -> Tensor[]",
    .doc = "Views of at most so many pieces along a dimension, all but the last of one size.",
    .example = "torch.chunk(torch.arange(5), 3)",
    .run = [](const Call& c) -> Outputs {
      Dims sizes = chunk_pieces(c.tensor(0), c.integer(1), c.integer(2));
      return op::split_with_sizes(c.tensor(0), sizes.span(), c.integer(2));
    },
    .samples = {{"T(5, 4), 2"}, {"T(5, 4), 3, 1"}, {"T(0, 3), 2"}},
});

TS_OP({
    .schema = "unsafe_split(Tensor self, int split_size, int dim=0) -> Tensor[]",
    .doc = "split, whose results may be written in place.",
    .example = "torch.unsafe_split(torch.arange(5), 2)",
    .run = [](const Call& c) -> Outputs {
      return op::split(c.tensor(0), c.integer(1), c.integer(2));
    },
    .samples = {{"T(5, 4), 2"}},
});

TS_OP({
    .schema = "unsafe_split_with_sizes(Tensor self, int[] split_sizes, int dim=0) -> Tensor[]",
    .doc = "split_with_sizes, whose results may be written in place.",
    .example = "torch.unsafe_split_with_sizes(torch.arange(5), [1, 4])",
    .run = [](const Call& c) -> Outputs {
      return op::split_with_sizes(c.tensor(0), c.ints(1).span(), c.integer(2));
    },
    .samples = {{"T(5, 4), [2, 3]"}},
});

TS_OP({
    .schema = "unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]",
    .doc = "chunk, whose results may be written in place.",
    .example = "torch.unsafe_chunk(torch.arange(5), 2)",
    .run = [](const Call& c) -> Outputs {
      return op::chunk(c.tensor(0), c.integer(1), c.integer(2));
    },
    .samples = {{"T(5, 4), 2"}},
});

TS_OP({
    .schema = "tensor_split(Tensor self, int sections, int dim=0) -> Tensor[]",
    .doc = "Views of so many pieces along a dimension, whose sizes differ by at most one; or of "
           "the pieces between indices.",
    .example = "torch.tensor_split(torch.arange(5), 3)",
    .run = [](const Call& c) -> Outputs {
      Dims sizes = section_pieces(c.tensor(0), c.integer(1), c.integer(2));
      return op::split_with_sizes(c.tensor(0), sizes.span(), c.integer(2));
    },
    .samples = {{"T(5, 4), 3"}, {"T(5, 4), 2, 1"}},
});

TS_OP({
    .schema = "tensor_split(Tensor self, int[] indices, int dim=0) -> Tensor[]",
    .doc = "Views of the pieces between indices along a dimension.",
    .example = "torch.tensor_split(torch.arange(5), (1, 3))",
    .run = [](const Call& c) -> Outputs { return between(c.tensor(0), c.ints(1), c.integer(2)); },
    .samples = {{"T(5, 4), (1, 3)"}, {"T(5), (2, 9, -1)"}},
});

TS_OP({
    .schema = "tensor_split(Tensor self, Tensor tensor_indices_or_sections, int dim=0) -> Tensor[]",
    .doc = "tensor_split by a number or by indices that are in a tensor.",
    .example = "torch.tensor_split(torch.arange(5), torch.tensor([1, 3]))",
    .run = [](const Call& c) -> Outputs {
      const TensorBase& by = c.tensor(1);
      TS_CHECK(c.tensor(0).dim() > 0,
               "tensor_split expected at least a 1-dimensional tensor, but got a tensor with ",
               c.tensor(0).dim(), " dims");
      TS_CHECK(by.device().is_cpu(),
               "tensor_split expected tensor_indices_or_sections to be on cpu, but it's on ",
               by.device());
      TS_CHECK(by.dtype() == DType::kInt64,
               "tensor_split expected tensor_indices_or_sections to have dtype of long, but got ",
               dtype_title(by.dtype()));
      TS_CHECK(by.dim() <= 1,
               "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or "
               "one-dimensional tensor, but got a tensor with ",
               by.dim(), " dims");
      Dims numbers = host_ints(by);
      if (by.dim() == 0) return op::tensor_split(c.tensor(0), numbers[0], c.integer(2));
      return between(c.tensor(0), numbers, c.integer(2));
    },
});

TS_OP({
    .schema = "hsplit(Tensor self, int sections) -> Tensor[]",
    .doc = "Views of even pieces along the second dimension, of a vector along its only one; or "
           "of the pieces between indices.",
    .example = "torch.hsplit(torch.arange(8).view(2, 4), 2)",
    .run = [](const Call& c) -> Outputs { return named_split(c, "hsplit", 1); },
    .samples = {{"T(4), 2"}, {"T(2, 4), 2"}},
});
TS_OP({
    .schema = "hsplit(Tensor self, int[] indices) -> Tensor[]",
    .doc = "Views of the pieces between indices along the second dimension.",
    .example = "torch.hsplit(torch.arange(8).view(2, 4), [1, 2])",
    .run = [](const Call& c) -> Outputs {
      return between(c.tensor(0), c.ints(1), named_dim(c.tensor(0), "hsplit", 1));
    },
    .samples = {{"T(2, 4), [1, 3]"}},
});

TS_OP({
    .schema = "vsplit(Tensor self, int sections) -> Tensor[]",
    .doc = "Views of even pieces along the first dimension, or of the pieces between indices.",
    .example = "torch.vsplit(torch.arange(8).view(4, 2), 2)",
    .run = [](const Call& c) -> Outputs { return named_split(c, "vsplit", 2); },
    .samples = {{"T(4, 2), 2"}},
});
TS_OP({
    .schema = "vsplit(Tensor self, int[] indices) -> Tensor[]",
    .doc = "Views of the pieces between indices along the first dimension.",
    .example = "torch.vsplit(torch.arange(8).view(4, 2), [1, 2])",
    .run = [](const Call& c) -> Outputs {
      return between(c.tensor(0), c.ints(1), named_dim(c.tensor(0), "vsplit", 2));
    },
    .samples = {{"T(4, 2), [1, 3]"}},
});

TS_OP({
    .schema = "dsplit(Tensor self, int sections) -> Tensor[]",
    .doc = "Views of even pieces along the third dimension, or of the pieces between indices.",
    .example = "torch.dsplit(torch.arange(8).view(1, 2, 4), 2)",
    .run = [](const Call& c) -> Outputs { return named_split(c, "dsplit", 3); },
    .samples = {{"T(2, 1, 4), 2"}},
});
TS_OP({
    .schema = "dsplit(Tensor self, int[] indices) -> Tensor[]",
    .doc = "Views of the pieces between indices along the third dimension.",
    .example = "torch.dsplit(torch.arange(8).view(1, 2, 4), [1])",
    .run = [](const Call& c) -> Outputs {
      return between(c.tensor(0), c.ints(1), named_dim(c.tensor(0), "dsplit", 3));
    },
    .samples = {{"T(2, 1, 4), [1, 3]"}},
});

TS_OP({
    .schema = "unbind(Tensor self, int dim=0) -> Tensor[]",
    .doc = "Views of every position along a dimension, without it.",
    .example = "torch.unbind(torch.arange(4).view(2, 2))",
    .kind = Kind::kView,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& t = c.tensor(0);
      TS_CHECK_INDEX(t.dim() > 0, "Dimension specified as ", c.integer(1),
                     " but tensor has no dimensions");
      size_t d = static_cast<size_t>(wrap_dim(c.integer(1), t.dim()));
      Dims sizes = t.sizes(), strides = t.strides();
      sizes.erase(d);
      strides.erase(d);
      std::vector<TensorBase> out;
      for (int64_t i = 0; i < t.sizes()[d]; ++i)
        out.push_back(alias(t, sizes, strides, t.storage_offset() + i * t.strides()[d]));
      return out;
    },
    .backward =
        [](Backward& b) {
          std::vector<TensorBase> grads;
          for (size_t k = 0; k < b.result_grads.size(); ++k)
            grads.push_back(b.grad_of(static_cast<int>(k)));
          b.set(0, op::stack(grads, b.integer(1)));
        },
    .samples = {{"T(3, 4)"}, {"T(3, 4), 1"}, {"T(3)"}},
});

}  // namespace tessera
