// What a gradient scaler does to gradients and to its scale, without looking at them on the host.
#include "tessera/gen/binary.h"
#include "tessera/gen/bitwise.h"
#include "tessera/gen/compare.h"
#include "tessera/gen/join.h"
#include "tessera/gen/reduce.h"
#include "tessera/gen/ternary.h"
#include "tessera/gen/view.h"
#include "tessera/ops/call.h"

namespace tessera {

namespace {

void check_number(const TensorBase& t, const char* name, DType dtype) {
  TS_CHECK(t.numel() == 1, name, " must be a 1-element tensor.");
  TS_CHECK(t.dtype() == dtype, name, " must be a ", dtype_title(dtype), " tensor.");
}

// One element of whatever shape, as a number: beside half floats it stays a float.
TensorBase as_number(const TensorBase& t) { return op::reshape(t, Dims{}.span()); }

}  // namespace

TS_OP({
    .schema = "_amp_foreach_non_finite_check_and_unscale_(Tensor[] self, Tensor found_inf, Tensor "
              "inv_scale) -> Tensor",
    .doc = "Multiplies gradients by inv_scale, and sets found_inf to 1 where one is not finite.",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase &found = c.tensor(1), &inverse = c.tensor(2);
      check_number(found, "found_inf", DType::kFloat32);
      check_number(inverse, "inv_scale", DType::kFloat32);
      for (const TensorBase& g : c.tensors(0))
        TS_CHECK(is_floating(g.dtype()), "gradients to unscale have to be floating point, got ",
                 g.dtype());
      const TensorBase factor = as_number(inverse);
      // No gradient waits for another: those of one shape are one launch, and one launch looks at
      // the answers of all.
      std::vector<TensorBase> finite;
      for (const TensorBase& g : c.tensors(0)) {
        finite.push_back(op::all(op::isfinite(g)));
        op::mul_(g, factor);
      }
      if (finite.empty()) return found;
      copy_into(found, op::where(op::all(op::stack(finite)), as_number(found), Scalar(1.0)), false);
      return found;
    },
});

TS_OP({
    .schema = "_amp_update_scale_(Tensor self, Tensor growth_tracker, Tensor found_inf, float "
              "scale_growth_factor, float scale_backoff_factor, int growth_interval) -> Tensor",
    .doc = "A smaller scale after gradients that were not finite, a larger one after many that "
           "were.",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      check_number(c.tensor(0), "current_scale", DType::kFloat32);
      check_number(c.tensor(1), "growth_tracker", DType::kInt32);
      check_number(c.tensor(2), "found_inf", DType::kFloat32);
      const TensorBase scale = as_number(c.tensor(0)), tracker = as_number(c.tensor(1));
      const TensorBase found = as_number(c.tensor(2));
      TensorBase bad = op::ne(found, Scalar(0));
      TensorBase count = op::add(tracker, Scalar(1));
      TensorBase due = op::eq(count, Scalar(c.integer(5)));
      TensorBase grown = op::mul(scale, Scalar(c.number(3)));
      grown = op::where(op::logical_and(due, op::isfinite(grown)), grown, scale);
      TensorBase next = op::where(bad, op::mul(scale, Scalar(c.number(4))), grown);
      TensorBase counted = op::where(op::logical_or(bad, due), Scalar(0), count);
      copy_into(c.tensor(0), next, false);
      copy_into(c.tensor(1), counted, false);
      return c.tensor(0);
    },
});

}  // namespace tessera
