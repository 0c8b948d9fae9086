#include "tessera/call/observed.h"

#include <bit>

#include "tessera/ops/call.h"
#include "tessera/profile/arguments.h"

namespace tessera {

namespace {

using profile::Arg;

// Words on the stack first: how many there will be is not known before.
class Words {
 public:
  void put(int64_t word) {
    if (size_ < kMost) words_[size_++] = word;
  }
  void put(Arg kind) { put(static_cast<int64_t>(kind)); }
  bool fits(size_t n) const { return size_ + n <= kMost; }
  void put(const TensorBase& t) {
    put(static_cast<int64_t>(t.dtype()));
    put(int64_t{t.dim()});
    for (int64_t n : t.sizes()) put(n);
    for (int64_t n : t.strides()) put(n);
  }
  void give_to(profile::Scope& scope) const {
    void* to = scope.buffer().room(size_ * sizeof(int64_t));
    std::memcpy(to, words_, size_ * sizeof(int64_t));
    scope.data = to;
    scope.count = static_cast<uint32_t>(size_);
  }

 private:
  static constexpr size_t kMost = 512;
  int64_t words_[kMost];
  size_t size_ = 0;
};

void put_tensors(Words& words, std::span<const TensorBase> tensors) {
  words.put(Arg::kTensors);
  size_t fit = 0, room = 1;
  for (; fit < tensors.size(); ++fit) {
    room += 2 + 2 * static_cast<size_t>(tensors[fit].defined() ? tensors[fit].dim() : 0);
    if (!words.fits(room)) break;
  }
  words.put(static_cast<int64_t>(fit));
  for (const TensorBase& t : tensors.first(fit)) {
    if (t.defined()) {
      words.put(t);
    } else {
      words.put(int64_t{-1});
      words.put(int64_t{0});
    }
  }
}

void put(Words& words, const Value& v) {
  switch (v.tag) {
    case Value::Tag::kNone:
      return words.put(Arg::kNone);
    case Value::Tag::kTensor:
      words.put(Arg::kTensor);
      return words.put(*v.tensor);
    case Value::Tag::kTensors:
      return put_tensors(words, v.tensors);
    case Value::Tag::kInts:
      words.put(Arg::kInts);
      words.put(static_cast<int64_t>(v.ints.size()));
      for (int64_t n : v.ints) words.put(n);
      return;
    case Value::Tag::kScalar:
      words.put(v.scalar.is_double()                   ? Arg::kDouble
                : v.scalar.kind == Scalar::Kind::kBool ? Arg::kBool
                                                       : Arg::kInt);
      words.put(v.scalar.is_double() ? std::bit_cast<int64_t>(v.scalar.d) : v.scalar.i);
      return;
    default:
      return words.put(Arg::kOther);
  }
}

}  // namespace

ObservedCall::ObservedCall(profile::Kind kind, const Op& op, Args args)
    : scope_(kind, *op.record->aten ? op.record->aten : op.name.c_str()) {
  const uint32_t what = profile::what();
  if ((what & profile::kShapes) && scope_.id()) {
    Words words;
    for (const Value& v : args) {
      if (v.tag == Value::Tag::kInts && !words.fits(v.ints.size() + 2)) break;
      if (!words.fits(200)) break;  // an argument that is cut short could not be read
      put(words, v);
    }
    words.give_to(scope_);
  }
  if ((what & profile::kFlops) && op.record->flops)
    scope_.amount = op.record->flops(Call{op, args});
}

}  // namespace tessera
