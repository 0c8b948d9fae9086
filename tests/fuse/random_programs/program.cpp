#include "program.h"

#include <cstring>
#include <deque>
#include <random>
#include <thread>

namespace random_programs {

using namespace tessera;

namespace {

constexpr DType kDTypes[] = {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kInt64,
                             DType::kBool};

class Program {
 public:
  Program(uint64_t seed, Device device) : rng_(seed), device_(device) {
    manual_seed(seed);
    with_grad_ = chance(4);
  }

  Log run() {
    for (int i = 0; i < 4; ++i) make_tensor();
    int steps = 8 + pick(40);
    for (int i = 0; i < steps; ++i) {
      if (chance(40)) {
        int some = 1 + pick(3);
        std::thread([&] {
          for (int k = 0; k < some; ++k) guarded_step();
        }).join();
        i += some;
      } else {
        guarded_step();
      }
    }
    if (with_grad_) finish_with_backward();
    for (size_t i = 0; i < pool_.size(); ++i) read(i);
    return std::move(log_);
  }

 private:
  // --- choices ---
  int pick(int n) { return static_cast<int>(rng_() % static_cast<uint64_t>(n)); }
  bool chance(int one_in) { return pick(one_in) == 0; }
  size_t any() { return static_cast<size_t>(pick(static_cast<int>(pool_.size()))); }
  // Mostly a tensor that goes with t[a] without an error; errors have their share too.
  size_t partner(size_t a) {
    size_t b = any();
    for (int tries = 0; tries < 8 && !(pool_[b].sizes() == pool_[a].sizes()); ++tries) b = any();
    return chance(8) ? any() : b;
  }
  double number() {
    constexpr double values[] = {0.33, 0.66, 0.9, 2.0, -1.0, 0.5, 1e-3, 3.0};
    return values[pick(8)];
  }
  Dims shape() {
    constexpr int64_t sizes[] = {1, 2, 3, 5, 16, 33};
    Dims out;
    // A few shapes come again and again, so that operators meet.
    if (chance(2)) return chance(2) ? Dims{5, 16} : Dims{16};
    int n = pick(4);
    for (int d = 0; d < n; ++d) out.push_back(chance(30) ? 0 : sizes[pick(6)]);
    return out;
  }

  float value() {
    switch (pick(24)) {
      case 0:
        return std::numeric_limits<float>::infinity();
      case 1:
        return -std::numeric_limits<float>::infinity();
      case 2:
        return std::numeric_limits<float>::quiet_NaN();
      case 3:
        return -0.0f;
      case 4:
        return 1e-40f;
      case 5:
        return 65504.0f;
      case 6:
        return 3e38f;
      case 7:
        return 6e-8f;
      default:
        return static_cast<float>(pick(2001) - 1000) / 250.0f;
    }
  }

  // --- the pool ---
  void add(Tensor t, std::string what) {
    log_.steps.push_back(cat("t", pool_.size(), " = ", what, " : ", t.sizes(), " ", t.dtype()));
    pool_.push_back(std::move(t));
  }

  void make_tensor() {
    Dims size = shape();
    DType dtype = kDTypes[pick(chance(2) ? 1 : 5)];
    int64_t n = checked_numel(size, dtype);
    std::vector<float> values(static_cast<size_t>(n));
    for (float& v : values) v = value();
    Tensor host(new_empty(size, DType::kFloat32, Device{}));
    if (n) std::memcpy(host.raw(), values.data(), values.size() * 4);
    Tensor t = host.to(dtype).to(device_);
    if (with_grad_ && is_floating(dtype) && chance(2)) {
      t = Tensor(t.detach().clone());
      t.requires_grad_();
      leaves_.push_back(t);
    }
    add(t, "data");
  }

  // Memory of somebody else's, which may change behind our back.
  void make_alias() {
    if (!device_.is_cpu()) return make_tensor();
    Dims size = chance(2) ? Dims{5, 16} : Dims{16};
    auto& buffer = foreign_.emplace_back(80, 0.5f);
    for (float& v : buffer) v = value();
    add(Tensor(from_blob(buffer.data(), size, contiguous_strides(size), DType::kFloat32, Device{},
                         nullptr, nullptr)),
        "foreign memory");
  }

  void write_behind() {
    if (foreign_.empty()) return;
    auto& buffer = foreign_[static_cast<size_t>(pick(static_cast<int>(foreign_.size())))];
    int at = pick(16);
    buffer[static_cast<size_t>(at)] = value();
    log_.steps.push_back("foreign memory written");
  }

  void read(size_t i) {
    Tensor t(pool_[i].detach().contiguous());
    t = t.cpu();
    fuse::ensure_readable(t, fuse::Reason::kHostRead);
    std::string bytes = cat("t", i, " ");
    if (t.numel()) bytes.append(t.raw(), t.nbytes());
    log_.entries.push_back(std::move(bytes));
  }

  // --- steps ---
  void guarded_step() {
    try {
      step();
    } catch (const Error& e) {
      log_.steps.push_back("error");
      log_.entries.push_back(cat("error: ", e.what()));
    }
  }

  Value operand(size_t i) { return chance(3) ? Value(number()) : Value(pool_[i]); }

  void step() {
    switch (pick(26)) {
      case 0:
        return make_tensor();
      case 1:
        return make_alias();
      case 2:
        return write_behind();
      case 3:
      case 4:
        return unary();
      case 5:
      case 6:
      case 7:
      case 8:
      case 9:
        return binary();
      case 10:
      case 11:
      case 12:
        return in_place();
      case 13:
      case 14:
      case 15:
        return view();
      case 16:
        return reduce();
      case 17:
        return forget();
      case 18:
        log_.steps.push_back("read");
        return read(any());
      case 19:
        return copy();
      case 20:
        return convert();
      case 21:
        return odd();
      default:
        return chain();
    }
  }

  // Several operators in a row, of which only the last result is kept: what fusion is for.
  void chain() {
    size_t a = any();
    Tensor x = pool_[a];
    std::string what = cat("chain from t", a);
    int n = 2 + pick(8);
    for (int i = 0; i < n; ++i) {
      size_t b = partner(a);
      switch (pick(5)) {
        case 0:
          x = x.add(Value(pool_[b]));
          break;
        case 1:
          x = x.mul(operand(b));
          break;
        case 2:
          x = x.sub(operand(b));
          break;
        case 3:
          x = x.relu();
          break;
        default:
          x = gelu(x);
          break;
      }
    }
    add(x, what);
  }

  void unary() {
    size_t a = any();
    const Tensor& x = pool_[a];
    switch (pick(5)) {
      case 0:
        return add(x.exp(), cat("exp(t", a, ")"));
      case 1:
        return add(x.neg(), cat("neg(t", a, ")"));
      case 2:
        return add(x.relu(), cat("relu(t", a, ")"));
      case 3:
        return add(gelu(x), cat("gelu(t", a, ")"));
      default:
        return add(gelu(x, "tanh"), cat("gelu_tanh(t", a, ")"));
    }
  }

  void binary() {
    size_t a = any(), b = partner(a);
    const Tensor& x = pool_[a];
    Value y = operand(b);
    std::string with = y.is_tensor() ? cat("t", b) : cat(y.scalar.to_double());
    switch (pick(5)) {
      case 0:
        return add(x.add(y, Scalar(chance(3) ? 2 : 1)), cat("add(t", a, ", ", with, ")"));
      case 1:
        return add(x.sub(y), cat("sub(t", a, ", ", with, ")"));
      case 2:
        return add(x.mul(y), cat("mul(t", a, ", ", with, ")"));
      case 3:
        return add(x.div(y), cat("div(t", a, ", ", with, ")"));
      default:
        return add(x.eq(y), cat("eq(t", a, ", ", with, ")"));
    }
  }

  void in_place() {
    size_t a = any(), b = partner(a);
    const Tensor& x = pool_[a];
    Value y = operand(b);
    int which = pick(6);
    static constexpr const char* names[] = {"add_", "mul_", "sub_", "exp_", "relu_", "fill_"};
    log_.steps.push_back(
        cat("t", a, ".", names[which], "(", y.is_tensor() ? cat("t", b) : "number", ")"));
    switch (which) {
      case 0:
        x.add_(y);
        break;
      case 1:
        x.mul_(y);
        break;
      case 2:
        x.sub_(y);
        break;
      case 3:
        x.exp_();
        break;
      case 4:
        x.relu_();
        break;
      default:
        x.fill_(Scalar(number()));
        break;
    }
  }

  void view() {
    size_t a = any();
    const Tensor& x = pool_[a];
    int d = x.dim() ? pick(x.dim()) : 0;
    switch (pick(6)) {
      case 0:
        return add(x.transpose(0, -1), cat("transpose(t", a, ")"));
      case 1: {
        int64_t from = pick(4), step = 1 + pick(2);
        return add(slice(x, d, from, std::nullopt, step), cat("slice(t", a, ", ", d, ")"));
      }
      case 2:
        return add(x.select(d, 0), cat("select(t", a, ", ", d, ")"));
      case 3:
        return add(x.unsqueeze(d), cat("unsqueeze(t", a, ")"));
      case 4: {
        Dims to = x.sizes();
        to.insert(0, 1 + pick(3));
        return add(x.expand(to.span()), cat("expand(t", a, ")"));
      }
      default: {
        Dims flat{-1};
        return add(x.reshape(flat.span()), cat("reshape(t", a, ")"));
      }
    }
  }

  void reduce() {
    size_t a = any(), b = any();
    const Tensor& x = pool_[a];
    switch (pick(4)) {
      case 0: {
        int64_t d = x.dim() ? pick(x.dim()) : 0;
        return add(x.sum(std::span<const int64_t>(&d, 1), chance(2)), cat("sum(t", a, ")"));
      }
      case 1:
        return add(x.softmax(-1), cat("softmax(t", a, ")"));
      case 2:
        return add(x.matmul(pool_[b]), cat("matmul(t", a, ", t", b, ")"));
      default: {
        // A wrong index is an error when called on the CPU and at the next synchronisation on a
        // GPU.
        if (!device_.is_cpu() && (x.dim() == 0 || x.size(0) < 2)) return;
        Tensor index(new_empty({2}, DType::kInt64, Device{}));
        int64_t two[] = {1, 0};
        std::memcpy(index.raw(), two, sizeof two);
        return add(x.index_select(0, index.to(device_)), cat("index_select(t", a, ")"));
      }
    }
  }

  void forget() {
    if (pool_.size() < 4) return;
    size_t a = any();
    log_.steps.push_back(cat("del t", a, " (the last moves there)"));
    pool_[a] = pool_.back();
    pool_.pop_back();
  }

  void copy() {
    size_t a = any(), b = partner(a);
    log_.steps.push_back(cat("t", a, ".copy_(t", b, ")"));
    pool_[a].copy_(pool_[b]);
  }

  void convert() {
    size_t a = any();
    add(pool_[a].to(kDTypes[pick(5)]), cat("convert(t", a, ")"));
  }

  void odd() {
    size_t a = any();
    switch (pick(5)) {
      case 4: {  // writes that overlap and read nothing: only their order tells them apart
        const Tensor& x = pool_[a];
        if (x.dim() == 0 || x.size(0) < 3) return;
        log_.steps.push_back(cat("overlapping writes to t", a));
        int64_t n = x.size(0);
        slice(x, 0, 0, n - 1, 1).fill_(Scalar(number()));
        slice(x, 0, 1, n, 1).fill_(Scalar(number()));
        return;
      }
      case 0:
        log_.steps.push_back(cat("address of t", a));
        pool_[a].data_ptr<void>();
        return;
      case 1:
        return add(dropout(pool_[a], 0.5, true), cat("dropout(t", a, ")"));
      case 2:
        return add(pool_[a].clone(), cat("clone(t", a, ")"));
      default: {
        std::string what = cat("out= of t", a);
        Tensor out(new_empty({3}, DType::kFloat32, device_));
        Value args[] = {Value(pool_[a]), Value(number())};
        dispatch_out(get_op("mul"), args, out);
        return add(out, what);
      }
    }
  }

  void finish_with_backward() {
    try {
      for (size_t i = pool_.size(); i-- > 0;) {
        if (!pool_[i].requires_grad() || autograd::is_leaf(pool_[i])) continue;
        log_.steps.push_back(cat("backward from t", i));
        Tensor total = pool_[i].sum();
        total.backward();
        break;
      }
    } catch (const Error& e) {
      log_.entries.push_back(cat("error: ", e.what()));
    }
    for (Tensor& leaf : leaves_)
      if (leaf.grad().defined()) pool_.push_back(leaf.grad());
  }

  std::mt19937_64 rng_;
  Device device_;
  bool with_grad_;
  std::vector<Tensor> pool_;
  std::vector<Tensor> leaves_;
  std::deque<std::vector<float>> foreign_;
  Log log_;
};

}  // namespace

Log run_program(uint64_t seed, Device device) { return Program(seed, device).run(); }

}  // namespace random_programs
