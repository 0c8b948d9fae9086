#include "tessera/save/pickle_writer.h"

#include <bit>
#include <limits>

#include "tessera/save/little_endian.h"
#include "tessera/save/opcodes.h"

namespace tessera::files {

using namespace pickle;

const char* storage_title(DType t) {
  constexpr const char* titles[kNumDTypes] = {
      "BoolStorage",  "ByteStorage",   "CharStorage",         "ShortStorage",
      "IntStorage",   "LongStorage",   "HalfStorage",         "BFloat16Storage",
      "FloatStorage", "DoubleStorage", "ComplexFloatStorage", "ComplexDoubleStorage"};
  return titles[static_cast<int>(t)];
}

PickleWriter::PickleWriter() {
  op(kProto);
  op(2);
}

std::string PickleWriter::finish() {
  op(kStop);
  return std::move(out_);
}

void PickleWriter::none() { op(kNone); }
void PickleWriter::boolean(bool v) { op(v ? kTrue : kFalse); }

void PickleWriter::integer(int64_t v) {
  if (v >= 0 && v <= 0xff) {
    op(kInt1);
    put<uint8_t>(out_, static_cast<uint8_t>(v));
  } else if (v >= 0 && v <= 0xffff) {
    op(kInt2);
    put<uint16_t>(out_, static_cast<uint16_t>(v));
  } else if (v >= std::numeric_limits<int32_t>::min() && v <= std::numeric_limits<int32_t>::max()) {
    op(kInt4);
    put<int32_t>(out_, static_cast<int32_t>(v));
  } else {
    op(kLong1);
    op(8);
    put<int64_t>(out_, v);
  }
}

void PickleWriter::real(double v) {
  op(kFloat);
  put<uint64_t>(out_, __builtin_bswap64(std::bit_cast<uint64_t>(v)));
}

void PickleWriter::text(std::string_view v) {
  TS_CHECK_VALUE(v.size() <= 0xffffffffu, "a string of more than 4 GiB cannot be saved");
  op(kUnicode);
  put<uint32_t>(out_, static_cast<uint32_t>(v.size()));
  out_ += v;
}

void PickleWriter::begin_list() {
  op(kEmptyList);
  op(kMark);
}
void PickleWriter::end_list() { op(kAppends); }

void PickleWriter::begin_dict(bool ordered) {
  if (ordered) {
    global("collections", "OrderedDict");
    op(kEmptyTuple);
    op(kReduce);
  } else {
    op(kEmptyDict);
  }
  op(kMark);
}
void PickleWriter::end_dict() { op(kSetItems); }

void PickleWriter::global(std::string_view module, std::string_view name) {
  auto [found, fresh] =
      memo_.emplace(cat(module, "\n", name, "\n"), static_cast<uint32_t>(memo_.size()));
  op(fresh ? kGlobal : kGet);
  if (fresh) {
    out_ += found->first;
    op(kPut);
  }
  put<uint8_t>(out_, static_cast<uint8_t>(found->second));  // a few globals: fewer than 256
}

void PickleWriter::dims(const Dims& d) {
  op(kMark);
  for (int64_t v : d) integer(v);
  op(kTuple);
}

// The persistent id: ('storage', class, key, location, number of elements).
void PickleWriter::storage(const TensorBase& t) {
  auto [found, fresh] = numbers_.emplace(&t.storage(), storages_.size());
  size_t number = found->second;
  if (fresh) {
    storages_.push_back(t);
  } else {
    TS_CHECK(storages_[number].dtype() == t.dtype(),
             "Cannot save multiple tensors or storages that view the same data as different types");
  }
  op(kMark);
  text("storage");
  global("torch", storage_title(t.dtype()));
  text(cat(number));
  text(cat(t.device()));
  integer(static_cast<int64_t>(t.storage().nbytes / itemsize(t.dtype())));
  op(kTuple);
  op(kPersistent);
}

void PickleWriter::tensor(const TensorBase& t) {
  TS_CHECK_VALUE(t.defined(), "an undefined tensor cannot be saved");
  if (t.device().is_meta()) {
    global("torch._utils", "_rebuild_meta_tensor_no_storage");
    op(kMark);
    global("torch", dtype_name(t.dtype()));
    dims(t.sizes());
    dims(t.strides());
    boolean(t.requires_grad());
    op(kTuple);
    op(kReduce);
    return;
  }
  global("torch._utils", "_rebuild_tensor_v2");
  op(kMark);
  storage(t);
  integer(t.storage_offset());
  dims(t.sizes());
  dims(t.strides());
  boolean(t.requires_grad());
  global("collections", "OrderedDict");  // no hooks
  op(kEmptyTuple);
  op(kReduce);
  op(kTuple);
  op(kReduce);
}

}  // namespace tessera::files
