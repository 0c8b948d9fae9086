#include "tessera/face/indexing.h"

#include "tessera/autograd/node.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/creation.h"
#include "tessera/gen/index.h"
#include "tessera/gen/view.h"

namespace tessera {

namespace {

bool is_mask(const TensorBase& t) {
  return t.dtype() == DType::kBool || t.dtype() == DType::kUInt8;
}

// Dimensions of the tensor that a part of the index takes.
int taken_by(const TensorIndex& part) {
  switch (part.kind()) {
    case TensorIndex::Kind::kInt:
    case TensorIndex::Kind::kSlice:
      return 1;
    case TensorIndex::Kind::kTensor:
      return is_mask(part.tensor()) ? part.tensor().dim() : 1;
    default:
      return 0;
  }
}

class Walk {
 public:
  Walk(const TensorBase& self, std::span<const TensorIndex> index) : view_(self) {
    for (const TensorIndex& part : index) taken_ += taken_by(part);
    if (index.size() == 1 && index[0].kind() == TensorIndex::Kind::kInt) check_not_0d();
    TS_CHECK_INDEX(taken_ <= self.dim(), "too many indices for tensor of dimension ", self.dim());
    for (const TensorIndex& part : index) one(part);
  }
  Indexed result() && { return {std::move(view_), std::move(tensors_)}; }

 private:
  void one(const TensorIndex& part) {
    switch (part.kind()) {
      case TensorIndex::Kind::kNone:
        view_ = op::unsqueeze(view_, dim_++);
        return;
      case TensorIndex::Kind::kEllipsis:
        TS_CHECK_INDEX(!std::exchange(ellipsis_, true),
                       "an index can only have a single ellipsis ('...')");
        dim_ += view_.dim() - dim_ - (taken_ - done_);
        return;
      case TensorIndex::Kind::kInt:
        ++done_;
        return select(part.integer());
      case TensorIndex::Kind::kBool:
        return truth(part.integer() != 0);
      case TensorIndex::Kind::kSlice: {
        const Slice& s = part.slice();
        ++done_;
        view_ = op::slice(view_, dim_++, s.start, s.stop, s.step);
        return;
      }
      case TensorIndex::Kind::kTensor:
        return tensor(part.tensor());
    }
  }

  void check_not_0d() const {
    TS_CHECK_INDEX(view_.dim() > 0,
                   "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or "
                   "`tensor.item<T>()` in C++ to convert a 0-dim tensor to a number");
  }

  void select(int64_t at) {
    check_not_0d();
    const int64_t size = view_.size(dim_);
    TS_CHECK_INDEX(at >= -size && at < size, "index ", at, " is out of bounds for dimension ",
                   dim_ + selected_, " with size ", size);
    ++selected_;
    view_ = op::select(view_, dim_, at);
  }

  // True is a new dimension of size one, False of size zero.
  void truth(bool value) {
    view_ = op::unsqueeze(view_, dim_);
    int64_t n = value ? 1 : 0;
    name(op::zeros({&n, 1}, DType::kInt64, view_.device()));
  }

  void tensor(const TensorBase& t) {
    TS_CHECK_INDEX(
        is_integral(t.dtype(), true) && t.dtype() != DType::kInt8 && t.dtype() != DType::kInt16,
        "tensors used as indices must be long, int, byte or bool tensors");
    if (t.dim() > 0) {
      done_ += taken_by(TensorIndex(t));
      int dims = is_mask(t) ? t.dim() : 1;
      name(t);
      dim_ += dims - 1;
      return;
    }
    int64_t value = host_scalar(t).to_int();
    if (is_mask(t)) return truth(value != 0);
    ++done_;
    select(value);
  }

  // The tensor is the index of the dimension that is next.
  void name(const TensorBase& t) {
    // A mask of several dimensions is one index: what follows it comes right behind.
    size_t at = static_cast<size_t>(dim_++ - behind_masks_);
    if (tensors_.size() <= at) tensors_.resize(at + 1);
    tensors_[at] = t;
    if (is_mask(t)) behind_masks_ += t.dim() - 1;
  }

  TensorBase view_;
  std::vector<TensorBase> tensors_;
  int64_t dim_ = 0;
  int64_t behind_masks_ = 0;
  int taken_ = 0, done_ = 0;
  int64_t selected_ = 0;  // dimensions that an integer has taken out of the view
  bool ellipsis_ = false;
};

// Without leading dimensions of size one beyond `ndim`.
TensorBase without_leading_ones(const TensorBase& t, int ndim) {
  int first = 0;
  while (first < t.dim() - ndim && t.sizes()[first] == 1) ++first;
  if (first == 0) return t;
  return op::view(t, t.sizes().span().subspan(static_cast<size_t>(first)));
}

}  // namespace

TensorIndex::TensorIndex(const char* text) : kind_(Kind::kEllipsis) {
  TS_CHECK_VALUE(std::string_view(text) == "...", "an index written as text is \"...\", not \"",
                 text, "\"");
}

Indexed apply_index(const TensorBase& self, std::span<const TensorIndex> index) {
  return Walk(self, index).result();
}

TensorBase get_index(const TensorBase& self, std::span<const TensorIndex> index) {
  Indexed at = apply_index(self, index);
  if (!at.tensors.empty()) return op::index(at.view, at.tensors);
  if (at.view.is_same(self)) return op::expand(self, self.sizes().span());
  return at.view;
}

void assign(const TensorBase& view, const TensorBase& values) {
  TensorBase from = without_leading_ones(values, view.dim());
  if (!(from.sizes() == view.sizes())) from = op::expand(from, view.sizes().span());
  op::copy_(view, from);
}

void set_index(const TensorBase& self, std::span<const TensorIndex> index,
               const TensorBase& values) {
  Indexed at = apply_index(self, index);
  if (at.tensors.empty()) return assign(at.view, values);
  op::index_put_(at.view, at.tensors, without_leading_ones(values, 0), false);
}

}  // namespace tessera
