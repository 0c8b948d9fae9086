// Sums of products by subscripts: pairs of operands become batched matrix products, in an order
// that takes few operations.
#include <algorithm>
#include <map>

#include "tessera/gen/binary.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/linalg.h"
#include "tessera/gen/reduce.h"
#include "tessera/gen/view.h"
#include "tessera/ops/in_dtype.h"
#include "tessera/ops/linalg/subscripts.h"

namespace tessera {

namespace {

using Labels = std::vector<int>;

struct Operand {
  TensorBase tensor;
  Labels labels;  // one for each dimension, no two alike
};

bool has(const Labels& labels, int l) {
  return std::find(labels.begin(), labels.end(), l) != labels.end();
}
size_t place(const Labels& labels, int l) {
  return static_cast<size_t>(std::find(labels.begin(), labels.end(), l) - labels.begin());
}

// A label twice in one operand: the diagonal, which becomes the last dimension.
void take_diagonals(Operand& x, size_t number) {
  for (size_t j = 1; j < x.labels.size(); ++j) {
    const int label = x.labels[j];
    const size_t i = place(x.labels, label);
    if (i == j) continue;
    const int64_t a = x.tensor.sizes()[i], b = x.tensor.sizes()[j];
    TS_CHECK(a == b, "einsum(): subscript ", linalg::label_name(label), " is repeated for operand ",
             number, " but the sizes don't match, ", b, " != ", a);
    x.tensor = op::diagonal(x.tensor, 0, static_cast<int64_t>(i), static_cast<int64_t>(j));
    x.labels.erase(x.labels.begin() + static_cast<std::ptrdiff_t>(j));
    x.labels.erase(x.labels.begin() + static_cast<std::ptrdiff_t>(i));
    x.labels.push_back(label);
    return take_diagonals(x, number);
  }
}

class Contraction {
 public:
  Contraction(const linalg::Subscripts& s, std::span<const TensorBase> tensors)
      : output_(s.output) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      Operand x{tensors[i], s.operands[i]};
      take_diagonals(x, i);
      note_sizes(x, i, tensors);
      operands_.push_back(std::move(x));
    }
    // A dimension of size one that others have longer adds nothing.
    for (Operand& x : operands_)
      for (size_t d = x.labels.size(); d-- > 0;) {
        if (x.tensor.sizes()[d] == size_[x.labels[d]]) continue;
        x.tensor = op::squeeze(x.tensor, static_cast<int64_t>(d));
        x.labels.erase(x.labels.begin() + static_cast<std::ptrdiff_t>(d));
      }
  }

  TensorBase run() {
    while (operands_.size() > 1) {
      auto [i, j] = operands_.size() <= kExhaustive ? best_pair() : greedy_pair();
      Operand made = contract(operands_[i], operands_[j], kept_without(i, j));
      operands_.erase(operands_.begin() + static_cast<std::ptrdiff_t>(j));
      operands_[i] = std::move(made);
    }
    Operand& last = operands_[0];
    sum_out(last, output_);
    return permuted(last, output_);
  }

 private:
  static constexpr size_t kExhaustive = 6;

  void note_sizes(const Operand& x, size_t number, std::span<const TensorBase> tensors) {
    for (size_t d = 0; d < x.labels.size(); ++d) {
      const int l = x.labels[d];
      const int64_t n = x.tensor.sizes()[d];
      auto [it, fresh] = size_.emplace(l, n);
      if (fresh || n == it->second || n == 1) continue;
      if (l >= linalg::kEllipsis)
        TS_CHECK(it->second == 1, "einsum(): the dimensions of the ellipsis of operand ", number,
                 ", of shape ", tensors[number].sizes(),
                 ", do not broadcast with those of the operands before it");
      TS_CHECK(it->second == 1, "einsum(): subscript ", linalg::label_name(l), " has size ", n,
               " for operand ", number, " which does not broadcast with previously seen size ",
               it->second);
      it->second = n;
    }
  }

  // Labels that are needed after operands i and j have been contracted.
  Labels kept_without(size_t i, size_t j) const {
    Labels keep = output_;
    for (size_t k = 0; k < operands_.size(); ++k)
      if (k != i && k != j)
        keep.insert(keep.end(), operands_[k].labels.begin(), operands_[k].labels.end());
    return keep;
  }
  double product(const Labels& labels) const {
    double n = 1;
    for (int l : labels) n *= static_cast<double>(size_.at(l));
    return n;
  }
  static Labels united(const Labels& a, const Labels& b) {
    Labels all = a;
    for (int l : b)
      if (!has(a, l)) all.push_back(l);
    return all;
  }

  // The pair that the cheapest order of all begins with.
  std::pair<size_t, size_t> best_pair() const {
    std::vector<Labels> left;
    for (const Operand& x : operands_) left.push_back(x.labels);
    std::pair<size_t, size_t> first{0, 1};
    double best = -1;
    search(left, 0, best, nullptr, first);
    return first;
  }
  void search(const std::vector<Labels>& left, double spent, double& best,
              const std::pair<size_t, size_t>* begun, std::pair<size_t, size_t>& first) const {
    if (best >= 0 && spent >= best) return;
    if (left.size() == 1) {
      best = spent;
      if (begun) first = *begun;
      return;
    }
    for (size_t i = 0; i < left.size(); ++i)
      for (size_t j = i + 1; j < left.size(); ++j) {
        Labels all = united(left[i], left[j]), keep;
        for (int l : all) {
          bool needed = has(output_, l);
          for (size_t k = 0; k < left.size() && !needed; ++k)
            needed = k != i && k != j && has(left[k], l);
          if (needed) keep.push_back(l);
        }
        std::vector<Labels> next = left;
        next.erase(next.begin() + static_cast<std::ptrdiff_t>(j));
        next[i] = keep;
        const std::pair<size_t, size_t> pair{i, j};
        search(next, spent + product(all), best, begun ? begun : &pair, first);
      }
  }
  // The pair whose product is smallest against what it is made of.
  std::pair<size_t, size_t> greedy_pair() const {
    std::pair<size_t, size_t> pick{0, 1};
    double best = 0;
    bool any = false;
    for (size_t i = 0; i < operands_.size(); ++i)
      for (size_t j = i + 1; j < operands_.size(); ++j) {
        const Labels keep = kept_without(i, j);
        double size = 1;
        for (int l : united(operands_[i].labels, operands_[j].labels))
          if (has(keep, l)) size *= static_cast<double>(size_.at(l));
        size -= product(operands_[i].labels) + product(operands_[j].labels);
        if (any && size >= best) continue;
        any = true;
        best = size;
        pick = {i, j};
      }
    return pick;
  }

  static void sum_out(Operand& x, const Labels& keep) {
    Dims dims;
    Labels left;
    for (size_t d = 0; d < x.labels.size(); ++d) {
      if (has(keep, x.labels[d]))
        left.push_back(x.labels[d]);
      else
        dims.push_back(static_cast<int64_t>(d));
    }
    if (dims.empty()) return;
    x.tensor = op::sum(x.tensor, dims.span());  // of integers an int64, as everywhere
    x.labels = left;
  }

  static TensorBase permuted(const Operand& x, const Labels& order) {
    if (x.labels == order) return x.tensor;
    Dims dims;
    for (int l : order) dims.push_back(static_cast<int64_t>(place(x.labels, l)));
    return op::permute(x.tensor, dims.span());
  }

  // Dimensions in this order, with size one where the operand lacks one.
  static TensorBase spread(const Operand& x, const Labels& order) {
    Labels present;
    for (int l : order)
      if (has(x.labels, l)) present.push_back(l);
    TensorBase t = permuted(x, present);
    for (size_t d = 0; d < order.size(); ++d)
      if (!has(x.labels, order[d])) t = op::unsqueeze(t, static_cast<int64_t>(d));
    return t;
  }

  Operand contract(Operand a, Operand b, const Labels& keep) const {
    Labels batch, inner, rows, columns;
    sum_out(a, united(keep, b.labels));
    sum_out(b, united(keep, a.labels));
    for (int l : a.labels) {
      if (!has(b.labels, l))
        rows.push_back(l);
      else
        (has(keep, l) ? batch : inner).push_back(l);
    }
    for (int l : b.labels)
      if (!has(a.labels, l)) columns.push_back(l);
    Labels out = batch;
    out.insert(out.end(), rows.begin(), rows.end());
    out.insert(out.end(), columns.begin(), columns.end());
    if (inner.empty()) return {op::mul(spread(a, out), spread(b, out)), out};
    auto count = [&](const Labels& labels) {
      int64_t n = 1;
      for (int l : labels) n *= size_.at(l);
      return n;
    };
    auto joined = [](std::initializer_list<const Labels*> lists) {
      Labels all;
      for (const Labels* list : lists) all.insert(all.end(), list->begin(), list->end());
      return all;
    };
    // One that was summed is wider than the other.
    const DType dtype = promote(a.tensor.dtype(), b.tensor.dtype());
    for (Operand* x : {&a, &b}) x->tensor = in_dtype(x->tensor, dtype);
    Dims shape_a{count(batch), count(rows), count(inner)};
    Dims shape_b{count(batch), count(inner), count(columns)};
    TensorBase x = op::reshape(permuted(a, joined({&batch, &rows, &inner})), shape_a.span());
    TensorBase y = op::reshape(permuted(b, joined({&batch, &inner, &columns})), shape_b.span());
    Dims shape;
    for (int l : out) shape.push_back(size_.at(l));
    return {op::reshape(op::bmm(x, y), shape.span()), out};
  }

  Labels output_;
  std::vector<Operand> operands_;
  std::map<int, int64_t> size_;
};

}  // namespace

TS_OP({
    .schema = "einsum(str equation, Tensor[] tensors) -> Tensor",
    .doc = "Sums of products of the elements of tensors, by subscripts: 'ij,jk->ik' is a matrix "
           "product.",
    .example = "torch.einsum('ij,jk->ik', torch.ones(2, 3), torch.ones(3, 2))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      std::span<const TensorBase> tensors = c.tensors(1);
      linalg::Subscripts subscripts = linalg::parse_equation(c.text(0), tensors);
      check_same_device(c.op, c.args);
      return Contraction(subscripts, tensors).run();
    },
    .autocast = Autocast::kLowerGpu,
});

}  // namespace tessera
