#include "tessera/face/print.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "tessera/autograd/node.h"
#include "tessera/call/overlap.h"
#include "tessera/face/tensor.h"

namespace tessera {

namespace {

// What will be printed, with gaps where some is left out.
struct Piece {
  bool gap = false;
  Scalar value;
  std::vector<Piece> items;
};

class Printer {
 public:
  Printer(const TensorBase& t, const PrintOptions& options) : o_(options), dtype_(t.dtype()) {
    summarize_ = static_cast<double>(t.numel()) > o_.threshold;
    Tensor plain = Tensor(alias(t, t.sizes(), t.strides(), t.storage_offset()));
    // Of a large tensor only the edges leave the device.
    if (!summarize_) plain = plain.cpu();
    all_ = gather(plain);
    choose();
  }
  std::string text(int dims, int64_t indent) const { return nested(all_, dims, indent); }

 private:
  Piece gather(const Tensor& t) {
    Piece piece;
    if (t.dim() == 0) {
      piece.value = t.scalar();
      shown_.push_back(piece.value);
      return piece;
    }
    int64_t n = t.sizes()[0], edge = o_.edgeitems;
    bool cut = summarize_ && n > 2 * edge;
    for (int64_t i = 0; i < n; ++i) {
      if (cut && i == edge) {
        piece.items.push_back({true, {}, {}});
        i = n - edge;
      }
      Dims sizes(t.sizes()), strides(t.strides());
      sizes.erase(0);
      strides.erase(0);
      piece.items.push_back(
          gather(Tensor(alias(t, sizes, strides, t.storage_offset() + i * t.strides()[0]))));
    }
    return piece;
  }

  // How wide the numbers are, and whether they need a fraction or an exponent. Zeros, nan and inf
  // do not count: PyTorch aligns by the other numbers.
  void choose() {
    bool floating = is_floating(dtype_);
    double largest = 0, smallest = INFINITY;
    for (const Scalar& s : shown_) {
      double v = std::fabs(s.to_double());
      if (!counts(s) || !floating) continue;
      largest = std::max(largest, v);
      smallest = std::min(smallest, v);
      whole_ = whole_ && v == std::ceil(v);
    }
    if (largest > 0)
      sci_ = largest / smallest > 1000.0 || largest > 1.0e8 || (!whole_ && smallest < 1.0e-4);
    for (const Scalar& s : shown_)
      if (counts(s)) width_ = std::max(width_, static_cast<int64_t>(number(s).size()));
    if (floating && o_.sci_mode) sci_ = *o_.sci_mode;
  }

  bool counts(const Scalar& s) const { return !s.is_double() || (std::isfinite(s.d) && s.d != 0); }

  std::string number(const Scalar& s) const {
    if (s.kind == Scalar::Kind::kBool) return s.i ? "True" : "False";
    if (!s.is_double()) return std::to_string(s.i);
    // The sign of a NaN says nothing.
    if (std::isnan(s.d)) return "nan";
    if (std::isinf(s.d)) return s.d < 0 ? "-inf" : "inf";
    char text[512];
    if (sci_)
      std::snprintf(text, sizeof text, "%.*e", o_.precision, s.d);
    else if (whole_)
      std::snprintf(text, sizeof text, "%.0f.", s.d);
    else
      std::snprintf(text, sizeof text, "%.*f", o_.precision, s.d);
    return text;
  }

  std::string padded(const Scalar& s) const {
    std::string text = number(s);
    int64_t missing = width_ - static_cast<int64_t>(text.size());
    return missing > 0 ? std::string(static_cast<size_t>(missing), ' ') + text : text;
  }

  std::string row(const Piece& p, int64_t indent) const {
    int64_t per_line = std::max<int64_t>(1, (o_.linewidth - indent) / (width_ + 2));
    std::string text = "[";
    for (size_t i = 0; i < p.items.size(); ++i) {
      bool breaks = i && static_cast<int64_t>(i) % per_line == 0;
      if (i) text += breaks ? ",\n" : ", ";
      if (breaks) text.append(static_cast<size_t>(indent + 1), ' ');
      text += p.items[i].gap ? " ..." : padded(p.items[i].value);
    }
    return text + "]";
  }

  std::string nested(const Piece& p, int dims, int64_t indent) const {
    if (dims == 0) return padded(p.value);
    if (dims == 1) return row(p, indent);
    std::string between = ",";
    between.append(static_cast<size_t>(dims - 1), '\n')
        .append(static_cast<size_t>(indent + 1), ' ');
    std::string text = "[";
    for (size_t i = 0; i < p.items.size(); ++i) {
      if (i) text += between;
      text += p.items[i].gap ? "..." : nested(p.items[i], dims - 1, indent + 1);
    }
    return text + "]";
  }

  const PrintOptions& o_;
  DType dtype_;
  bool summarize_ = false;
  bool whole_ = true;
  bool sci_ = false;
  int64_t width_ = 1;
  Piece all_;
  std::vector<Scalar> shown_;
};

std::string shape_text(const Dims& d) {
  std::string text = "(";
  for (size_t i = 0; i < d.size(); ++i) {
    if (i) text += ", ";
    text += std::to_string(d[i]);
  }
  return text + (d.size() == 1 ? ",)" : ")");
}

}  // namespace

std::string contents_text(const TensorBase& t, int64_t indent, const PrintOptions& options) {
  autograd::GradMode off(false);
  if (t.numel() == 0) return "[]";
  return Printer(t, options).text(t.dim(), indent);
}

std::string to_text(const TensorBase& t, const PrintOptions& options) {
  if (!t.defined()) return "tensor(undefined)";
  std::string text = "tensor(";
  const int64_t indent = static_cast<int64_t>(text.size());
  text += contents_text(t, indent, options);
  std::vector<std::string> suffixes;
  if (t.device().is_cuda()) suffixes.push_back(cat("device='", t.device(), "'"));
  bool empty = t.numel() == 0;
  if (empty && t.dim() != 1) suffixes.push_back(cat("size=", shape_text(t.sizes())));
  bool usual = t.dtype() == default_dtype() ||
               (!empty && (t.dtype() == DType::kInt64 || t.dtype() == DType::kBool));
  if (!usual) suffixes.push_back(cat("dtype=", t.dtype()));
  if (Ref<autograd::Node> node = autograd::grad_fn(t))
    suffixes.push_back(cat("grad_fn=<", node->name(), ">"));
  else if (t.requires_grad())
    suffixes.push_back("requires_grad=True");
  size_t newline = text.rfind('\n');
  int64_t last = static_cast<int64_t>(text.size() - (newline == std::string::npos ? 0 : newline)) +
                 (newline == std::string::npos ? 2 : 1);
  for (const std::string& s : suffixes) {
    int64_t size = static_cast<int64_t>(s.size());
    bool breaks = last + size + 2 > options.linewidth;
    text += breaks ? ",\n" : ", ";
    if (breaks) text.append(static_cast<size_t>(indent), ' ');
    text += s;
    last = breaks ? indent + size : last + size + 2;
  }
  return text + ")";
}

std::ostream& operator<<(std::ostream& out, const TensorBase& t) { return out << to_text(t); }

}  // namespace tessera
