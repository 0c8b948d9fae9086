// An argument of an operator, as the binder and the C++ functions hand it over: borrowed, untyped
// beyond a tag, cheap to fill.
#pragma once
#include <concepts>
#include <span>
#include <string_view>
#include <vector>

#include "tessera/base/complex.h"
#include "tessera/tensor/tensor.h"

namespace tessera {

class Mt19937Generator;

// A Python or C++ number.
struct Scalar {
  enum class Kind : uint8_t { kBool, kInt, kDouble, kComplex };
  Kind kind = Kind::kInt;
  union {
    int64_t i;
    double d;  // of a complex number the real part
  };
  double im = 0;

  Scalar() : i(0) {}
  Scalar(bool v) : kind(Kind::kBool), i(v) {}
  Scalar(int v) : i(v) {}
  Scalar(int64_t v) : i(v) {}
  // Other integers. One beyond int64 raises.
  template <std::integral T>
  Scalar(T v) : i(0) {
    if constexpr (sizeof(T) == sizeof(int64_t) && std::is_unsigned_v<T>)
      i = from_unsigned(v);
    else
      i = static_cast<int64_t>(v);
  }
  Scalar(double v) : kind(Kind::kDouble), d(v) {}
  Scalar(float v) : kind(Kind::kDouble), d(v) {}
  Scalar(c128 v) : kind(Kind::kComplex), d(v.re), im(v.im) {}
  Scalar(c64 v) : Scalar(c128(v)) {}

  // Kept as a double: also a complex number, of which it is the real part.
  bool is_double() const { return kind >= Kind::kDouble; }
  bool is_complex() const { return kind == Kind::kComplex; }
  c128 to_complex() const { return {to_double(), im}; }
  bool is_zero() const { return is_double() ? d == 0 && im == 0 : i == 0; }
  double to_double() const { return is_double() ? d : static_cast<double>(i); }
  // Truncates; what no int64 can hold gives the lowest one, as tensors of doubles convert.
  int64_t to_int() const {
    if (!is_double()) return i;
    return d >= -0x1p63 && d < 0x1p63 ? static_cast<int64_t>(d) : INT64_MIN;
  }
  // The dtype it has in type promotion: bool, int64, the default float dtype or its complex one.
  DType dtype() const;

 private:
  static int64_t from_unsigned(uint64_t v);
};

struct Value {
  enum class Tag : uint8_t {
    kNone,
    kTensor,
    kScalar,  // also int, float and bool arguments
    kInts,
    kFloats,
    kTensors,  // elements may be undefined where the schema allows None
    kDType,
    kDevice,
    kString,
    kGenerator,
  };
  Tag tag = Tag::kNone;
  union {
    const TensorBase* tensor;  // borrowed
    Scalar scalar;
    std::span<const int64_t> ints;
    std::span<const double> floats;
    std::span<const TensorBase> tensors;
    DType dtype;
    Device device;
    std::string_view string;
    Mt19937Generator* generator;
  };

  Value() : scalar() {}
  Value(std::nullopt_t) : Value() {}
  Value(const TensorBase& t) : tag(t.defined() ? Tag::kTensor : Tag::kNone), tensor(&t) {}
  Value(Scalar s) : tag(Tag::kScalar), scalar(s) {}
  Value(bool v) : Value(Scalar(v)) {}
  Value(int v) : Value(Scalar(v)) {}
  Value(int64_t v) : Value(Scalar(v)) {}
  template <std::integral T>
  Value(T v) : Value(Scalar(v)) {}
  Value(double v) : Value(Scalar(v)) {}
  Value(std::span<const int64_t> v) : tag(Tag::kInts), ints(v) {}
  Value(const Dims& v) : Value(v.span()) {}
  Value(std::span<const TensorBase> v) : tag(Tag::kTensors), tensors(v) {}
  Value(std::span<const double> v) : tag(Tag::kFloats), floats(v) {}
  Value(Mt19937Generator* g) : tag(g ? Tag::kGenerator : Tag::kNone), generator(g) {}
  Value(MemoryFormat f) : Value(static_cast<int64_t>(f)) {}
  Value(DType t) : tag(Tag::kDType), dtype(t) {}
  Value(Device d) : tag(Tag::kDevice), device(d) {}
  Value(std::string_view s) : tag(Tag::kString), string(s) {}
  Value(const char* s) : Value(std::string_view(s)) {}
  template <class T>
  Value(const std::optional<T>& v) : Value() {
    if (v) *this = Value(*v);
  }

  bool is_none() const { return tag == Tag::kNone; }
  bool is_tensor() const { return tag == Tag::kTensor; }
  bool is_scalar() const { return tag == Tag::kScalar; }
};

using Args = std::span<const Value>;

// What an operator returns: nearly always one tensor.
class Outputs {
 public:
  Outputs() = default;
  Outputs(TensorBase t) : size_(1) { items_[0] = std::move(t); }
  Outputs(TensorBase a, TensorBase b) : size_(2) {
    items_[0] = std::move(a);
    items_[1] = std::move(b);
  }
  Outputs(std::vector<TensorBase> list) : size_(static_cast<int>(list.size())) {
    if (list.size() > kInline)
      more_ = std::move(list);
    else
      std::move(list.begin(), list.end(), items_);
  }
  int size() const { return size_; }
  TensorBase& operator[](int i) { return data()[i]; }
  const TensorBase& operator[](int i) const { return const_cast<Outputs*>(this)->data()[i]; }
  TensorBase take() { return std::move(data()[0]); }
  std::span<TensorBase> span() { return {data(), static_cast<size_t>(size_)}; }
  std::vector<TensorBase> list() {
    if (!more_.empty()) return std::move(more_);
    return {std::make_move_iterator(items_), std::make_move_iterator(items_ + size_)};
  }

 private:
  static constexpr size_t kInline = 3;
  TensorBase* data() { return more_.empty() ? items_ : more_.data(); }
  int size_ = 0;
  TensorBase items_[kInline];
  std::vector<TensorBase> more_;
};

// The numbers an integer dtype holds.
struct IntRange {
  int64_t low, high;
};
IntRange int_range(DType dtype);
// Has the dtype a place for a number? None for one beyond its range, for nan in an integer, for a
// complex one in a real dtype. A negative integer stands for the unsigned one that it wraps to.
bool fits(const Scalar& value, DType dtype);
// Raises as PyTorch does where it has none.
void check_fits(const Scalar& value, DType dtype);

DType default_dtype();
void set_default_dtype(DType dtype);

}  // namespace tessera
