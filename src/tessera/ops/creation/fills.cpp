// Tensors of one value, or of none in particular.
#include "tessera/ops/creation/options.h"

namespace tessera {

namespace {

TensorBase allocated(TensorBase t) {
  allocate(t.storage());
  return t;
}

TensorBase filled(TensorBase t, Scalar value) {
  fill(t, value);
  return t;
}

// zeros, ones: a shape, then the options.
TensorBase of_value(const Call& c, Scalar value) {
  CreationOptions o(c, 1);
  return o.finish(filled(o.unallocated(c.ints(0), o.dtype.value_or(default_dtype())), value));
}

// empty_like and the like: self, the options, a memory format.
TensorBase like(const Call& c, const CreationOptions& o, int format_at) {
  const TensorBase& self = c.tensor(0);
  return o.unallocated(self.sizes(), strides_like(c, format_at), o.dtype.value_or(self.dtype()));
}
TensorBase like_of_value(const Call& c, Scalar value) {
  CreationOptions o(c, 1, c.tensor(0).device());
  return o.finish(filled(like(c, o, 6), value));
}

// new_zeros and the like: self, a shape, the options from argument `at` on.
TensorBase new_of(const Call& c, int at, std::optional<Scalar> value) {
  const TensorBase& self = c.tensor(0);
  CreationOptions o(c, at, self.device());
  TensorBase t = o.unallocated(c.ints(1), o.dtype.value_or(self.dtype()));
  return o.finish(value ? filled(std::move(t), *value) : allocated(std::move(t)));
}

}  // namespace

TS_OP({
    .schema = "empty(int... size, *, dtype? dtype=None, device? device=None, bool "
              "requires_grad=False, layout? layout=None, bool? pin_memory=False, memory_format? "
              "memory_format=None) -> Tensor",
    .doc = "A tensor of undefined content.",
    .example = "torch.empty(2, 3).shape",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      CreationOptions o(c, 1);
      MemoryFormat format = format_of(c, 6, MemoryFormat::kContiguous);
      TS_CHECK(format != MemoryFormat::kPreserve,
               "empty(): the preserve_format is not one that a new tensor can have");
      DType dtype = o.dtype.value_or(default_dtype());
      checked_numel(c.ints(0), dtype);
      return o.finish(allocated(o.unallocated(c.ints(0), strides_in(c.ints(0), format), dtype)));
    },
    .random = true,
    .samples = {{"(2, 3)"}},
});

TS_OP({
    .schema = "empty_strided(int[] size, int[] stride, *, dtype? dtype=None, device? device=None, "
              "bool requires_grad=False, layout? layout=None, bool? pin_memory=False) -> Tensor",
    .doc = "A tensor of undefined content, with strides.",
    .example = "torch.empty_strided((2, 3), (1, 2)).stride()",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      CreationOptions o(c, 2);
      return o.finish(
          allocated(o.unallocated(c.ints(0), c.ints(1), o.dtype.value_or(default_dtype()))));
    },
    .random = true,
    .samples = {{"(2, 3), (1, 2)"}},
});

TS_OP({
    .schema = "empty_permuted(int[] size, int[] physical_layout, *, dtype? dtype=None, device? "
              "device=None, bool requires_grad=False, layout? layout=None, bool? "
              "pin_memory=False) -> Tensor",
    .doc = "A tensor of undefined content whose dimensions lie in memory in the order named, the "
           "outermost first.",
    .example = "torch.empty_permuted((2, 3, 4), (0, 2, 1)).stride()",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      CreationOptions o(c, 2);
      Dims sizes = c.ints(0), order = c.ints(1), strides(sizes.size());
      TS_CHECK(sizes.size() == order.size(),
               "Number of dimensions in size does not match the length of the physical_layout; "
               "i.e. len(size) = ",
               sizes.size(), " is not equal to len(physical_layout) = ", order.size());
      DType dtype = o.dtype.value_or(default_dtype());
      checked_numel(sizes, dtype);
      uint64_t seen = 0;
      int64_t step = 1;
      for (size_t i = order.size(); i-- > 0;) {
        TS_CHECK(order[i] >= 0 && order[i] < sizes.ndim(),
                 "Dimension out of range (expected to be between 0 and ", sizes.ndim() - 1,
                 ", but got ", order[i], " at index ", i, ").  NB: negative dims not supported.");
        TS_CHECK(!(seen >> order[i] & 1), "Duplicate dim not allowed");
        seen |= uint64_t{1} << order[i];
        size_t d = static_cast<size_t>(order[i]);
        strides[d] = step;
        step *= std::max<int64_t>(sizes[d], 1);
      }
      return o.finish(allocated(o.unallocated(sizes, strides, dtype)));
    },
    .random = true,
    .samples = {{"(2, 3), (1, 0)"}},
});

TS_OP({
    .schema = "zeros(int... size, *, dtype? dtype=None, device? device=None, bool "
              "requires_grad=False, layout? layout=None, bool? pin_memory=False) -> Tensor",
    .doc = "A tensor of zeros.",
    .example = "torch.zeros(2, 3)",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs { return of_value(c, Scalar(0)); },
    .samples = {{"(2, 3)"}, {"()"}},
});

TS_OP({
    .schema = "ones(int... size, *, dtype? dtype=None, device? device=None, bool "
              "requires_grad=False, layout? layout=None, bool? pin_memory=False) -> Tensor",
    .doc = "A tensor of ones.",
    .example = "torch.ones(2, 3)",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs { return of_value(c, Scalar(1)); },
    .samples = {{"(2, 3)"}, {"()"}},
});

TS_OP({
    .schema = "full(int[1] size, Scalar fill_value, *, dtype? dtype=None, device? device=None, "
              "bool requires_grad=False, layout? layout=None, bool? pin_memory=False) -> Tensor",
    .doc = "A tensor with the same value everywhere.",
    .example = "torch.full((2, 2), 3.5)",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      CreationOptions o(c, 2);
      Scalar value = c.scalar(1);
      return o.finish(filled(o.unallocated(c.ints(0), o.dtype.value_or(value.dtype())), value));
    },
    .samples = {{"(2, 3), 2.5"}, {"(), 1"}},
});

TS_OP({
    .schema = "scalar_tensor(Scalar s, *, dtype? dtype=None, device? device=None, bool "
              "requires_grad=False, layout? layout=None, bool? pin_memory=False) -> Tensor",
    .doc = "A tensor of no dimensions with a value, in the default dtype.",
    .example = "torch.scalar_tensor(3)",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      CreationOptions o(c, 1);
      return o.finish(filled(o.unallocated({}, o.dtype.value_or(default_dtype())), c.scalar(0)));
    },
    .samples = {{"3"}},
});

TS_OP({
    .schema = "empty_like(Tensor self, *, dtype? dtype=None, device? device=None, bool "
              "requires_grad=False, layout? layout=None, bool? pin_memory=False, memory_format? "
              "memory_format=None) -> Tensor",
    .doc = "A tensor of undefined content in the shape, dtype and place of another.",
    .example = "torch.empty_like(torch.ones(2, 3)).shape",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      CreationOptions o(c, 1, c.tensor(0).device());
      return o.finish(allocated(like(c, o, 6)));
    },
    .random = true,
    .samples = {{"T(3, 4)"}},
});

TS_OP({
    .schema = "zeros_like(Tensor self, *, dtype? dtype=None, device? device=None, bool "
              "requires_grad=False, layout? layout=None, bool? pin_memory=False, memory_format? "
              "memory_format=None) -> Tensor",
    .doc = "Zeros in the shape, dtype and place of another tensor.",
    .example = "torch.zeros_like(torch.ones(2, 3))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs { return like_of_value(c, Scalar(0)); },
    .samples = {{"T(3, 4)"}},
});

TS_OP({
    .schema = "ones_like(Tensor self, *, dtype? dtype=None, device? device=None, bool "
              "requires_grad=False, layout? layout=None, bool? pin_memory=False, memory_format? "
              "memory_format=None) -> Tensor",
    .doc = "Ones in the shape, dtype and place of another tensor.",
    .example = "torch.ones_like(torch.zeros(2, 3))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs { return like_of_value(c, Scalar(1)); },
    .samples = {{"T(3, 4)"}},
});

TS_OP({
    .schema = "full_like(Tensor self, Scalar fill_value, *, dtype? dtype=None, device? "
              "device=None, bool requires_grad=False, layout? layout=None, bool? "
              "pin_memory=False, memory_format? memory_format=None) -> Tensor",
    .doc = "One value in the shape, dtype and place of another tensor.",
    .example = "torch.full_like(torch.zeros(2, 3), 7)",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      CreationOptions o(c, 2, c.tensor(0).device());
      return o.finish(filled(like(c, o, 7), c.scalar(1)));
    },
    .samples = {{"T(3, 4), 2"}},
});

TS_OP({
    .schema = "new_empty(Tensor self, int... size, *, dtype? dtype=None, device? device=None, "
              "bool requires_grad=False, layout? layout=None, bool? pin_memory=False) -> Tensor",
    .doc = "Undefined content of another shape, with the dtype and place of self.",
    .example = "torch.ones(2).new_empty(3).shape",
    .forms = kMethod,
    .run = [](const Call& c) -> Outputs { return new_of(c, 2, std::nullopt); },
    .random = true,
    .samples = {{"T(3, 4), (2,)"}},
});

TS_OP({
    .schema = "new_empty_strided(Tensor self, int[] size, int[] stride, *, dtype? dtype=None, "
              "device? device=None, bool requires_grad=False, layout? layout=None, bool? "
              "pin_memory=False) -> Tensor",
    .doc = "Undefined content of a shape and strides, with the dtype and place of self.",
    .example = "torch.ones(2).new_empty_strided((2, 3), (1, 2)).stride()",
    .forms = kMethod,
    .run = [](const Call& c) -> Outputs {
      CreationOptions o(c, 3, c.tensor(0).device());
      return o.finish(
          allocated(o.unallocated(c.ints(1), c.ints(2), o.dtype.value_or(c.tensor(0).dtype()))));
    },
    .random = true,
    .samples = {{"T(3, 4), (2, 3), (1, 2)"}},
});

TS_OP({
    .schema = "new_zeros(Tensor self, int... size, *, dtype? dtype=None, device? device=None, "
              "bool requires_grad=False, layout? layout=None, bool? pin_memory=False) -> Tensor",
    .doc = "Zeros of another shape, with the dtype and place of self.",
    .example = "torch.ones(2).new_zeros(3)",
    .forms = kMethod,
    .run = [](const Call& c) -> Outputs { return new_of(c, 2, Scalar(0)); },
    .samples = {{"T(3, 4), (2,)"}},
});

TS_OP({
    .schema = "new_ones(Tensor self, int... size, *, dtype? dtype=None, device? device=None, "
              "bool requires_grad=False, layout? layout=None, bool? pin_memory=False) -> Tensor",
    .doc = "Ones of another shape, with the dtype and place of self.",
    .example = "torch.zeros(2).new_ones(3)",
    .forms = kMethod,
    .run = [](const Call& c) -> Outputs { return new_of(c, 2, Scalar(1)); },
    .samples = {{"T(3, 4), (2,)"}},
});

TS_OP({
    .schema = "new_full(Tensor self, int[1] size, Scalar fill_value, *, dtype? dtype=None, device? "
              "device=None, bool requires_grad=False, layout? layout=None, bool? "
              "pin_memory=False) -> Tensor",
    .doc = "One value in another shape, with the dtype and place of self.",
    .example = "torch.zeros(2).new_full((3,), 7)",
    .forms = kMethod,
    .run = [](const Call& c) -> Outputs { return new_of(c, 3, c.scalar(2)); },
    .samples = {{"T(3, 4), (2,), 3"}},
});

}  // namespace tessera
