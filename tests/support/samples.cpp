#include "support/samples.h"

#include <charconv>
#include <map>

namespace tessera::test {

const char* layout_name(Layout l) {
  constexpr const char* names[] = {"contiguous", "transposed", "stepped", "expanded",
                                   "offset",     "empty",      "zero_dim"};
  return names[static_cast<int>(l)];
}

namespace {

// Numbers of a kind: P positive, U between -1 and 1, T any.
Tensor numbers(const Dims& sizes, DType dtype, Device device, int seed, char kind) {
  Tensor out = sample(sizes, dtype, device, seed);
  if (kind == 'P' && is_floating(dtype)) out.abs_().add_(Value(0.25));
  if (kind == 'U' && is_floating(dtype)) out.mul_(Value(0.2));
  return out;
}

}  // namespace

Tensor laid_out(const Dims& sizes, DType dtype, Device device, int seed, Layout layout, char kind) {
  if (layout == Layout::kEmpty) return numbers({0, 3}, dtype, device, seed, kind);
  if (layout == Layout::kZeroDim) return numbers({}, dtype, device, seed, kind);
  Dims strides = contiguous_strides(sizes);
  int64_t offset = layout == Layout::kOffset ? 5 : 0;
  size_t n = sizes.size();
  if (layout == Layout::kTransposed && n >= 2) {
    Dims swapped = sizes;
    std::swap(swapped[0], swapped[n - 1]);
    strides = contiguous_strides(swapped);
    std::swap(strides[0], strides[n - 1]);
  }
  if (layout == Layout::kStepped)
    for (int64_t& s : strides) s *= 2;
  if (layout == Layout::kExpanded && n > 0) strides[0] = 0;
  int64_t last = offset;
  for (size_t d = 0; d < n; ++d) last += std::max<int64_t>(sizes[d] - 1, 0) * strides[d];
  Tensor flat = numbers({last + 1}, dtype, device, seed, kind);
  return Tensor(alias(flat, sizes, strides, offset));
}

namespace {

class Reader {
 public:
  Reader(const Op& op, std::string_view text, DType dtype, Device device, Layout layout)
      : op_(op), text_(text), dtype_(dtype), device_(device), layout_(layout) {}

  std::unique_ptr<Arguments> read() {
    try {
      return read_all();
    } catch (const NotUnderstood&) {
      return nullptr;
    }
  }

 private:
  std::unique_ptr<Arguments> read_all() {
    out_ = std::make_unique<Arguments>();
    for (const ArgSpec& a : op_.args) out_->values.push_back(a.default_value);
    for (int position = 0; !at_end(); ++position) {
      int to = keyword();
      put(to >= 0 ? to : position);
      if (!at_end()) need(',');
    }
    return std::move(out_);
  }

  struct NotUnderstood {};
  [[noreturn]] void fail() const { throw NotUnderstood{}; }
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool at_end() {
    skip();
    return at_ == text_.size();
  }
  bool take(std::string_view word) {
    skip();
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  void need(char c) {
    if (!take({&c, 1})) fail();
  }

  int keyword() {
    skip();
    for (size_t i = 0; i < op_.args.size(); ++i)
      if (take(op_.args[i].name + "=")) return static_cast<int>(i);
    return -1;
  }

  int64_t integer() {
    skip();
    int64_t v = 0;
    auto [p, ec] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), v);
    if (ec != std::errc()) fail();
    at_ = static_cast<size_t>(p - text_.data());
    return v;
  }
  Dims list(char close) {
    Dims out;
    while (!take({&close, 1})) {
      out.push_back(integer());
      take(",");
    }
    return out;
  }
  Value number() {
    size_t end = at_;
    while (end < text_.size() &&
           std::string_view("+-.e0123456789").find(text_[end]) != std::string::npos)
      ++end;
    std::string word(text_.substr(at_, end - at_));
    if (word.find_first_of(".e") == std::string::npos) return Value(integer());
    at_ = end;
    return Value(std::stod(word));
  }

  void put(int position) {
    size_t at = static_cast<size_t>(position);
    if (at >= op_.args.size()) fail();
    Value& v = out_->values[at];
    if (op_.args[at].type == ArgSpec::Type::kTensors) fail();
    if (take("T(") || take("P(") || take("U(")) {
      char kind = text_[at_ - 2];
      Dims size = list(')');
      out_->tensors.push_back(laid_out(size, dtype_, device_, ++seed_, layout_, kind));
      v = Value(out_->tensors.back());
      out_->made.push_back(position);
    } else if (take("B(")) {
      Dims size = list(')');
      Tensor numbers = laid_out(size, DType::kFloat32, device_, ++seed_, layout_);
      out_->tensors.push_back(numbers > Value(0));
      v = Value(out_->tensors.back());
    } else if (take("I([")) {
      Dims index = list(']');
      need(',');
      integer();
      need(')');
      std::vector<double> numbers(index.begin(), index.end());
      out_->tensors.push_back(
          make({static_cast<int64_t>(numbers.size())}, numbers, DType::kInt64, device_));
      v = Value(out_->tensors.back());
    } else if (take("(") || take("[")) {
      out_->ints.push_back(list(text_[at_ - 1] == '(' ? ')' : ']'));
      v = Value(out_->ints.back());
    } else if (take("'")) {
      size_t end = text_.find('\'', at_);
      if (end == std::string_view::npos) fail();
      out_->strings.emplace_back(text_.substr(at_, end - at_));
      v = Value(std::string_view(out_->strings.back()));
      at_ = end + 1;
    } else if (take("None")) {
      v = Value();
    } else if (take("True")) {
      v = Value(true);
    } else if (take("False")) {
      v = Value(false);
    } else if (op_.args[at].type == ArgSpec::Type::kInts) {
      out_->ints.push_back({integer()});
      v = Value(out_->ints.back());
    } else {
      skip();
      v = number();
    }
  }

  const Op& op_;
  std::string_view text_;
  DType dtype_;
  Device device_;
  Layout layout_;
  size_t at_ = 0;
  int seed_ = 0;
  std::unique_ptr<Arguments> out_;
};

}  // namespace

std::unique_ptr<Arguments> read_sample(const Op& op, std::string_view text, DType dtype,
                                       Device device, Layout layout) {
  return Reader(op, text, dtype, device, layout).read();
}

std::vector<std::string> samples_of(const Op& op) {
  static const std::map<std::string, std::vector<std::string>> internal = {
      {"_relu_backward", {"T(3, 4), T(3, 4)"}},
      {"_gelu_backward", {"T(3, 4), T(3, 4)", "T(3, 4), T(3, 4), approximate='tanh'"}},
      {"_contiguous_copy", {"T(3, 4)"}},
  };
  std::vector<std::string> out;
  for (const Sample& s : op.samples) out.emplace_back(s.args);
  if (auto it = internal.find(op.name); out.empty() && it != internal.end()) out = it->second;
  return out;
}

}  // namespace tessera::test
