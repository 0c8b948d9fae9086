#include "tessera/gen/copy.h"
#include "tessera/gen/index.h"
#include "tessera/ops/index/reduce_along.h"

namespace tessera {

namespace {

Spread index_spread(int64_t dim, const TensorBase& index) {
  Spread s;
  s.dim = dim;
  s.index = index;
  s.read = [](const TensorBase& t, int64_t d, const TensorBase& i) {
    return op::index_select(t, d, i);
  };
  s.add = [](const TensorBase& t, int64_t d, const TensorBase& i, const TensorBase& source) {
    return op::index_add(t, d, i, source);
  };
  s.clear = [](const TensorBase& t, int64_t d, const TensorBase& i) {
    return op::index_fill(t, d, i, Value(Scalar(0)));
  };
  s.reduce = [](const TensorBase& t, int64_t d, const TensorBase& i, const TensorBase& source,
                std::string_view how,
                bool include_self) { return op::index_reduce(t, d, i, source, how, include_self); };
  s.no_second_gradient =
      "index_reduce(): Double backward is unsupported for source when >1 zeros in source are "
      "scattered to the same position in self";
  return s;
}

}  // namespace

TS_OP({
    .schema = "index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, "
              "bool include_self=True) -> Tensor",
    .doc = "self with the positions of source combined at the positions named by index along a "
           "dimension: \"prod\", \"mean\", \"amax\" or \"amin\" of them, and of self's unless "
           "include_self is False.",
    .example = "torch.ones(3).index_reduce(0, torch.tensor([0, 0]), torch.ones(2), 'mean')",
    .kind = Kind::kKernel,
    .forms = kFunction | kMethod | kInplace | kOut,
    .run = [](const Call& c) -> Outputs {
      std::string_view how = c.text(4);
      const TensorBase &self = c.tensor(0), &source = c.tensor(3);
      TS_CHECK(how == "prod" || how == "mean" || how == "amax" || how == "amin",
               "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got ",
               how, ".");
      int64_t dim = check_index_source(c, "index_reduce");
      bool known = !is_complex(self.dtype()) && (self.dtype() != DType::kBool || how != "mean");
      TS_CHECK_IMPLEMENTED(known, "\"index_reduce\" not implemented for ", self.dtype());
      TensorBase out = target(c);
      TensorBase index = as_index(apart_from(out, c.tensor(2)), out);
      if (index.numel() == 0) return out;
      TensorBase from = apart_from(out, source);
      Combine combine = combine_of(how);
      int d = static_cast<int>(dim);
      if (!c.flag(5))
        write_along(out, d, index, number_like(neutral_element(combine, out.dtype()), out),
                    Combine::kAssign, IndexError::kSelect);
      write_along(out, d, index, from, combine, IndexError::kSelect);
      if (how == "mean") divide_by_counts(out, index_spread(dim, index), from, c.flag(5));
      return out;
    },
    .saves = "self index source result",
    .backward =
        [](Backward& b) {
          reduce_along_backward(b, index_spread(b.integer(1), b.tensor(2)), b.text(4), b.flag(5));
        },
    .updates_self = true,
    .samples = {{"T(5, 3), 0, I([0, 4, 0], 5), T(3, 3), 'mean'"},
                {"T(5, 3), 0, I([0, 4, 0], 5), P(3, 3), 'prod', include_self=False"},
                {"T(5, 3), 1, I([0, 0], 3), T(5, 2), 'amax'"},
                {"T(5), 0, I([1, 1], 5), T(2), 'amin', include_self=False"}},
});

}  // namespace tessera
