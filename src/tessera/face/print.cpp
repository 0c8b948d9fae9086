#include "tessera/face/print.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "tessera/autograd/node.h"
#include "tessera/face/tensor.h"

namespace tessera {

namespace {

std::string printed(const char* format, int precision, double v) {
  int size = std::snprintf(nullptr, 0, format, precision, v);
  std::string text(static_cast<size_t>(size) + 1, '\0');
  std::snprintf(text.data(), text.size(), format, precision, v);
  text.resize(static_cast<size_t>(size));
  return text;
}

// How the numbers of one tensor are written: with a fraction, as whole numbers or with an exponent,
// and how wide. Zeros, nan and inf do not count: PyTorch aligns by the other numbers.
class Formatter {
 public:
  Formatter(const std::vector<Scalar>& shown, const PrintOptions& o) : precision_(o.precision) {
    double largest = 0, smallest = INFINITY;
    for (const Scalar& s : shown) {
      if (!s.is_double() || !counts(s)) continue;
      double v = std::fabs(s.d);
      largest = std::max(largest, v);
      smallest = std::min(smallest, v);
      whole_ = whole_ && v == std::ceil(v);
    }
    if (largest > 0)
      sci_ =
          o.sci_mode.value_or(largest / smallest > 1000.0 || largest > 1.0e8 || smallest < 1.0e-4);
    for (const Scalar& s : shown)
      if (counts(s)) width_ = std::max(width_, static_cast<int64_t>(bare(s).size()));
  }

  int64_t width() const { return width_; }

  std::string text(const Scalar& s) const {
    std::string text = bare(s);
    int64_t missing = width_ - static_cast<int64_t>(text.size());
    return missing > 0 ? std::string(static_cast<size_t>(missing), ' ') + text : text;
  }

 private:
  static bool counts(const Scalar& s) { return !s.is_double() || (std::isfinite(s.d) && s.d != 0); }

  std::string bare(const Scalar& s) const {
    if (s.kind == Scalar::Kind::kBool) return s.i ? "True" : "False";
    if (!s.is_double()) return std::to_string(s.i);
    if (std::isnan(s.d)) return "nan";  // its sign says nothing
    if (std::isinf(s.d)) return s.d < 0 ? "-inf" : "inf";
    if (sci_) return printed("%.*e", precision_, s.d);
    if (whole_) return printed("%.*f", 0, s.d) + ".";
    return printed("%.*f", precision_, s.d);
  }

  int precision_;
  bool whole_ = true;
  bool sci_ = false;
  int64_t width_ = 1;
};

// What will be printed, with gaps where some is left out.
struct Piece {
  bool gap = false;
  Scalar value;
  std::vector<Piece> items;
};

class Printer {
 public:
  Printer(const TensorBase& t, const PrintOptions& options)
      : o_(options), complex_(is_complex(t.dtype())) {
    summarize_ = static_cast<double>(t.numel()) > o_.threshold;
    Tensor plain = Tensor(alias(t, t.sizes(), t.strides(), t.storage_offset()));
    // Of a large tensor only the edges leave the device.
    all_ = gather(summarize_ ? plain : plain.cpu());
    formatters_.emplace_back(real_, o_);
    if (complex_) formatters_.emplace_back(imaginary_, o_);
  }
  std::string text(int dims, int64_t indent) const { return nested(all_, dims, indent); }

 private:
  Piece gather(const Tensor& t) {
    Piece piece;
    if (t.dim() == 0) {
      piece.value = t.scalar();
      real_.push_back(real_part(piece.value));
      if (complex_) imaginary_.push_back(Scalar(piece.value.im));
      return piece;
    }
    int64_t n = t.sizes()[0], edge = o_.edgeitems;
    bool cut = summarize_ && (n > 2 * edge || edge == 0);
    if (!cut) return part(t, 0, n);
    piece = part(t, 0, edge);
    piece.items.push_back({true, {}, {}});
    for (Piece& p : part(t, n - edge, edge).items) piece.items.push_back(std::move(p));
    return piece;
  }

  // `n` of the items of `t`, from the host.
  Piece part(const Tensor& t, int64_t from, int64_t n) {
    Dims sizes(t.sizes()), strides(t.strides());
    if (n == 0) return {};
    if (sizes.size() == 1) {  // nothing more is left out: fetched at once
      sizes[0] = n;
      Tensor some(alias(t, sizes, strides, t.storage_offset() + from * strides[0]));
      return items(some.cpu(), 0, n);
    }
    return items(t, from, n);
  }

  Piece items(const Tensor& t, int64_t from, int64_t n) {
    Dims sizes(t.sizes()), strides(t.strides());
    sizes.erase(0);
    strides.erase(0);
    Piece piece;
    for (int64_t i = from; i < from + n; ++i)
      piece.items.push_back(
          gather(Tensor(alias(t, sizes, strides, t.storage_offset() + i * t.strides()[0]))));
    return piece;
  }

  Scalar real_part(const Scalar& s) const { return complex_ ? Scalar(s.d) : s; }

  std::string number(const Scalar& s) const {
    std::string text = formatters_[0].text(real_part(s));
    if (!complex_) return text;
    std::string more = formatters_[1].text(Scalar(s.im));
    more.erase(0, more.find_first_not_of(' '));
    return text + (more[0] == '-' ? "" : "+") + more + "j";
  }

  std::string row(const Piece& p, int64_t indent) const {
    int64_t width = formatters_[0].width() + 2;
    if (complex_) width += formatters_[1].width() + 1;
    int64_t per_line = std::max<int64_t>(1, (o_.linewidth - indent) / width);
    bool only_gap = p.items.size() == 1 && p.items[0].gap;
    std::string text = "[";
    for (size_t i = 0; i < p.items.size(); ++i) {
      bool breaks = i && static_cast<int64_t>(i) % per_line == 0;
      if (i) text += breaks ? ",\n" : ", ";
      if (breaks) text.append(static_cast<size_t>(indent + 1), ' ');
      text += p.items[i].gap ? (only_gap ? "..." : " ...") : number(p.items[i].value);
    }
    return text + "]";
  }

  std::string nested(const Piece& p, int dims, int64_t indent) const {
    if (dims == 0) return number(p.value);
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
  const bool complex_;
  bool summarize_ = false;
  Piece all_;
  std::vector<Scalar> real_, imaginary_;
  std::vector<Formatter> formatters_;
};

std::string shape_text(const Dims& d) {
  std::string text = "(";
  for (size_t i = 0; i < d.size(); ++i) {
    if (i) text += ", ";
    text += std::to_string(d[i]);
  }
  return text + (d.size() == 1 ? ",)" : ")");
}

// What a reader cannot see from the numbers.
std::vector<std::string> suffixes_of(const TensorBase& t) {
  std::vector<std::string> all;
  if (!t.device().is_cpu()) all.push_back(cat("device='", t.device(), "'"));
  bool meta = t.device().is_meta();
  bool shown = t.numel() > 0 && !meta;
  if (!shown && (t.dim() != 1 || meta)) all.push_back(cat("size=", shape_text(t.sizes())));
  bool usual = t.dtype() == default_dtype() ||
               (shown && (t.dtype() == DType::kInt64 || t.dtype() == DType::kBool ||
                          t.dtype() == complex_dtype(default_dtype())));
  if (!usual) all.push_back(cat("dtype=", t.dtype()));
  if (Ref<autograd::Node> node = autograd::grad_fn(t))
    all.push_back(cat("grad_fn=<", node->name(), ">"));
  else if (t.requires_grad())
    all.emplace_back("requires_grad=True");
  return all;
}

}  // namespace

std::string contents_text(const TensorBase& t, int64_t indent, const PrintOptions& options) {
  autograd::GradMode off(false);
  if (t.device().is_meta()) return "...";
  if (t.numel() == 0) return "[]";
  return Printer(t, options).text(t.dim(), indent);
}

std::string to_text(const TensorBase& t, const PrintOptions& options, const std::string& name,
                    const std::optional<std::string>& contents) {
  if (!t.defined()) return name + "(undefined)";
  std::string text = name + "(";
  const int64_t indent = static_cast<int64_t>(text.size());
  text += contents ? *contents : contents_text(t, indent, options);
  // PyTorch counts from the line's break, or from one before the beginning.
  size_t newline = text.rfind('\n');
  int64_t last = static_cast<int64_t>(text.size()) + 1 -
                 (newline == std::string::npos ? -1 : static_cast<int64_t>(newline));
  for (const std::string& s : suffixes_of(t)) {
    int64_t size = static_cast<int64_t>(s.size());
    bool breaks = last + size + 2 > options.linewidth;
    text += breaks ? ",\n" : ", ";
    if (breaks) text.append(static_cast<size_t>(indent), ' ');
    text += s;
    last = breaks ? indent + size : last + size + 2;
  }
  return text + ")";
}

}  // namespace tessera
