// Matrices by rule, and the places of triangles.
#include "tessera/ops/creation/options.h"

namespace tessera {

namespace {

TensorBase eye(int64_t n, int64_t m, const CreationOptions& o) {
  TS_CHECK(n >= 0, "n must be greater or equal to 0, got ", n);
  TS_CHECK(m >= 0, "m must be greater or equal to 0, got ", m);
  TensorBase out = o.unallocated({n, m}, o.dtype.value_or(default_dtype()));
  fill(out, Scalar(0));
  int64_t length = std::min(n, m);
  if (length > 0) fill(alias(out, {length}, {m + 1}, 0), Scalar(1));
  return o.finish(std::move(out));
}

// How many places of a matrix lie at or below a diagonal.
__int128 places_below(int64_t rows, int64_t cols, int64_t k) {
  int64_t from = std::clamp<int64_t>(-k, 0, rows);                // the first row that has any
  int64_t whole = std::clamp<int64_t>(cols - k - 1, from, rows);  // the first that has all
  __int128 shortest = from + k + 1, n = whole - from;
  return n * shortest + n * (n - 1) / 2 + static_cast<__int128>(rows - whole) * cols;
}

// Row and column of every place at or below (`upper`: above) a diagonal, in row-major order.
TensorBase triangle(const Call& c, bool upper) {
  int64_t rows = c.integer(0), cols = c.integer(1), k = c.integer(2);
  TS_CHECK(rows >= 0, "row must be non-negative, got", rows);
  TS_CHECK(cols >= 0, "col must be non-negative, got", cols);
  CreationOptions o(c, 3);
  DType dtype = o.dtype.value_or(DType::kInt64);
  TS_CHECK(dtype == DType::kInt64 || dtype == DType::kInt32, "\"", c.op.name,
           "\" not implemented for '", dtype_title(dtype), "'");
  k = std::clamp<int64_t>(k, -rows, cols);
  __int128 all = static_cast<__int128>(rows) * cols;
  __int128 places = upper ? all - places_below(rows, cols, k - 1) : places_below(rows, cols, k);
  TS_CHECK(places < (int64_t{1} << 58), "a triangle of ", rows, " x ", cols,
           " has more places than memory can hold");
  const int64_t count = static_cast<int64_t>(places);
  // Rows that have any, and their columns [first, last).
  int64_t from = upper ? 0 : std::max<int64_t>(-k, 0), to = upper ? std::min(rows, cols - k) : rows;
  if (count == 0) to = from;
  auto first = [&](int64_t r) { return upper ? std::clamp<int64_t>(r + k, 0, cols) : 0; };
  auto last = [&](int64_t r) { return upper ? cols : std::clamp<int64_t>(r + k + 1, 0, cols); };
  TensorBase out = new_empty({2, count}, DType::kInt64, Device{});
  int64_t* row = reinterpret_cast<int64_t*>(out.raw());
  int64_t* col = row + count;
  for (int64_t r = from; r < to; ++r)
    for (int64_t j = first(r); j < last(r); ++j) {
      *row++ = r;
      *col++ = j;
    }
  if (dtype != DType::kInt64) {
    TensorBase narrow = new_empty({2, count}, dtype, Device{});
    copy_into(narrow, out, false);
    out = std::move(narrow);
  }
  return o.finish(std::move(out));
}

}  // namespace

TS_OP({
    .schema = "eye(int n, *, dtype? dtype=None, device? device=None, bool requires_grad=False, "
              "layout? layout=None, bool? pin_memory=False) -> Tensor",
    .doc = "A matrix with ones on its diagonal and zeros elsewhere.",
    .example = "torch.eye(3)",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      return eye(c.integer(0), c.integer(0), CreationOptions(c, 1));
    },
    .samples = {{"3"}, {"0"}},
});
TS_OP({
    .schema = "eye(int n, int m, *, dtype? dtype=None, device? device=None, bool "
              "requires_grad=False, layout? layout=None, bool? pin_memory=False) -> Tensor",
    .doc = "A matrix of n rows and m columns with ones on its diagonal.",
    .example = "torch.eye(2, 3)",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      return eye(c.integer(0), c.integer(1), CreationOptions(c, 2));
    },
    .samples = {{"2, 3"}, {"3, 0"}},
});

TS_OP({
    .schema = "tril_indices(int row, int col, int offset=0, *, dtype? dtype=None, device? "
              "device=None, bool requires_grad=False, layout? layout=None, bool? "
              "pin_memory=False) -> Tensor",
    .doc = "Rows and columns of the places at or below a diagonal.",
    .example = "torch.tril_indices(3, 3)",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs { return triangle(c, false); },
    .samples = {{"3, 4"}, {"3, 2, -1"}, {"2, 4, 1"}},
});

TS_OP({
    .schema = "triu_indices(int row, int col, int offset=0, *, dtype? dtype=None, device? "
              "device=None, bool requires_grad=False, layout? layout=None, bool? "
              "pin_memory=False) -> Tensor",
    .doc = "Rows and columns of the places at or above a diagonal.",
    .example = "torch.triu_indices(3, 3)",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs { return triangle(c, true); },
    .samples = {{"3, 4"}, {"3, 2, -1"}, {"2, 4, 1"}},
});

}  // namespace tessera
