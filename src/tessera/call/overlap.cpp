#include "tessera/call/overlap.h"

#include <cstring>

#include "tessera/base/half.h"
#include "tessera/fuse/stream.h"
#include "tessera/gen/copy.h"

namespace tessera {

void check_writable(const Op&, const TensorBase& target) {
  TS_CHECK(
      target.is_contiguous() || !has_internal_overlap(target.sizes(), target.strides()),
      "unsupported operation: more than one element of the written-to tensor refers to a single "
      "memory location. Please clone() the tensor before performing the operation.");
}

namespace {

struct Range {
  int64_t first, last;  // byte positions in the storage, last exclusive
};

Range bytes_of(const TensorBase& t) {
  int64_t low = t.storage_offset();
  int64_t high = low;
  for (int d = 0; d < t.dim(); ++d) high += (t.sizes()[d] - 1) * t.strides()[d];
  int64_t item = static_cast<int64_t>(itemsize(t.dtype()));
  return {low * item, (high + 1) * item};
}

bool dense(const TensorBase& t) {
  Range r = bytes_of(t);
  return r.last - r.first == static_cast<int64_t>(t.nbytes()) &&
         !has_internal_overlap(t.sizes(), t.strides());
}

}  // namespace

bool needs_copy_before_write(const Op&, const TensorBase& source, const TensorBase& target) {
  if (&source.storage() != &target.storage() || source.numel() == 0 || target.numel() == 0)
    return false;
  if (source.impl() == target.impl()) return false;
  if (source.storage_offset() == target.storage_offset() && source.dtype() == target.dtype() &&
      source.sizes() == target.sizes() &&
      (source.strides() == target.strides() || (source.is_contiguous() && target.is_contiguous())))
    return false;
  Range a = bytes_of(source);
  Range b = bytes_of(target);
  if (a.last <= b.first || b.last <= a.first) return false;
  TS_CHECK(
      !(dense(source) && dense(target)),
      "unsupported operation: some elements of the input tensor and the written-to tensor refer "
      "to a single memory location. Please clone() the tensor before performing the operation.");
  return true;  // PyTorch lets these pass and may read what it has written: we do not
}

TensorBase apart_from(const TensorBase& target, const TensorBase& source) {
  if (&source.storage() != &target.storage() || source.numel() == 0 || target.numel() == 0)
    return source;
  Range a = bytes_of(source);
  Range b = bytes_of(target);
  if (a.last <= b.first || b.last <= a.first) return source;
  TS_CHECK(
      !(dense(source) && dense(target)),
      "unsupported operation: some elements of the input tensor and the written-to tensor refer "
      "to a single memory location. Please clone() the tensor before performing the operation.");
  return op::clone(source);
}

TensorBase copy_of(const TensorBase& t) { return op::clone(t); }

void resize_output(const TensorBase& out, const Dims& shape) {
  if (out.sizes() == shape) return;
  int64_t numel = checked_numel(shape, out.dtype());
  grow_storage(out, static_cast<size_t>(numel + out.storage_offset()) * itemsize(out.dtype()));
  set_geometry(out, shape, contiguous_strides(shape), out.storage_offset());
}

Scalar read_scalar(const TensorBase& t) {
  const char* p = t.raw();
  auto get = [p]<class T>(T) {
    T v;
    std::memcpy(&v, p, sizeof v);
    return v;
  };
  switch (t.dtype()) {
    case DType::kBool:
      return Scalar(get(uint8_t{}) != 0);
    case DType::kUInt8:
      return Scalar(int64_t{get(uint8_t{})});
    case DType::kInt8:
      return Scalar(int64_t{get(int8_t{})});
    case DType::kInt16:
      return Scalar(int64_t{get(int16_t{})});
    case DType::kInt32:
      return Scalar(int64_t{get(int32_t{})});
    case DType::kInt64:
      return Scalar(get(int64_t{}));
    case DType::kFloat16:
      return Scalar(double{half_to_float(get(uint16_t{}))});
    case DType::kBFloat16:
      return Scalar(double{bfloat16_to_float(get(uint16_t{}))});
    case DType::kFloat32:
      return Scalar(double{get(float{})});
    case DType::kFloat64:
      return Scalar(get(double{}));
    case DType::kComplex64:
      return Scalar(c128(get(c64{})));
    case DType::kComplex128:
      return Scalar(get(c128{}));
  }
  return Scalar();
}

const char* dtype_cpp_name(DType t) {
  switch (t) {
    case DType::kBool:
      return "bool";
    case DType::kUInt8:
      return "unsigned char";
    case DType::kInt8:
      return "signed char";
    case DType::kInt16:
      return "short int";
    case DType::kInt32:
      return "int";
    case DType::kInt64:
      return "long int";
    case DType::kFloat16:
      return "c10::Half";
    case DType::kBFloat16:
      return "c10::BFloat16";
    case DType::kFloat32:
      return "float";
    case DType::kFloat64:
      return "double";
    case DType::kComplex64:
      return "c10::complex<float>";
    case DType::kComplex128:
      return "c10::complex<double>";
    default:
      return dtype_name(t);
  }
}

void check_result_fits(const Op& op, DType result, DType target) {
  if (op.record->bool_out) {
    TS_CHECK(target == DType::kBool || target == DType::kUInt8, op.name,
             " only supports bool tensor for result, got: ", dtype_title(target));
    return;
  }
  if (result == target) return;
  TS_CHECK(!op.record->exact_out, "Expected out tensor to have dtype ", dtype_cpp_name(result),
           ", but got ", dtype_cpp_name(target), " instead");
  TS_CHECK(can_cast(result, target), "result type ", dtype_title(result),
           " can't be cast to the desired output type ", dtype_title(target));
}

}  // namespace tessera
