// Makes random programs. Operators come from the records: their arguments are made up by type and
// name, looking at the tensors that are there.
#include <algorithm>
#include <array>
#include <cstring>
#include <random>

#include "program.h"

namespace random_programs {

using namespace tessera;

namespace {

using Type = ArgSpec::Type;

bool any_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool starts(std::string_view name, std::string_view with) {
  return name.substr(0, with.size()) == with;
}

// What gives memory of undefined content, or a geometry that reaches beyond what is there; what
// reads indices from its data, which a device reports later, each mode at its own time.
bool is_left_out(const Op& op) {
  std::string_view n = op.name;
  if (n.find("empty") != n.npos || n.find("strided") != n.npos || starts(n, "resize") ||
      n == "set_")
    return true;
  if (any_of(op.family, {"optim", "random", "special"}) && op.kind != Kind::kPointwise &&
      n[0] == '_')
    return true;
  return any_of(n, {"one_hot", "unravel_index", "repeat_interleave", "multinomial", "_to_device",
                    "vander", "diagflat", "diag_embed", "diag", "unfold_copy", "_unfold_backward",
                    "fold", "pixel_shuffle"});
}

// Raises, on the CPU at once and on a device later, where the data are no probabilities.
bool judges_data(const Op& op) {
  return any_of(op.name, {"bernoulli", "bernoulli_", "poisson", "normal"}) &&
         std::any_of(op.args.begin(), op.args.end(),
                     [](const ArgSpec& a) { return a.type == Type::kTensor && a.name != "self"; });
}

}  // namespace

bool is_drawn(const Op& op, bool on_device) {
  if (op.result_type > ResultType::kTensors || op.args.size() > 16 || is_left_out(op)) return false;
  if (op.kind == Kind::kPointwise) return true;
  if (!any_of(op.family, {"reduce", "softmax", "scan", "rearrange", "view", "sort", "unary",
                          "binary", "activation", "masked", "random", "copy", "norm", "join",
                          "bitwise", "ternary", "compare", "complex"}))
    return false;
  if (on_device && (judges_data(op) || op.name == "bernoulli" || op.name == "poisson"))
    return false;
  if (op.name[0] == '_') return false;  // its callers have checked what it gets
  if (op.family == "norm" && !any_of(op.name, {"layer_norm", "rms_norm", "group_norm", "renorm"}))
    return false;
  if (op.family == "join" && !any_of(op.name, {"cat", "stack"})) return false;
  bool tensors = false;
  for (const ArgSpec& a : op.args) {
    tensors |= a.type == Type::kTensor || a.type == Type::kTensors;
    if (!a.optional && !a.has_default &&
        any_of(a.name, {"index", "indices", "tensor_indices_or_sections"}) &&
        a.type == Type::kTensor)
      return false;
    if (a.type == Type::kTensor && a.name == "start") return false;
    if (a.type == Type::kOptionalTensors) return false;
  }
  return tensors;
}

namespace {

struct Choices {
  std::vector<const Op*> pointwise, inplace, out, views, others, common;
};

Choices choices_for(bool on_device) {
  Choices c;
  for (const Op* op : all_ops()) {
    if (!is_drawn(*op, on_device)) continue;
    bool pointwise = op->kind == Kind::kPointwise;
    if (op->record->forms & kInplace && op->self_index >= 0)
      for (int k = 0; k < (pointwise ? 3 : 1); ++k) c.inplace.push_back(op);
    if (op->record->forms & kOut && op->num_outputs == 1) c.out.push_back(op);
    if (pointwise)
      c.pointwise.push_back(op);
    else if (op->family == "view")
      c.views.push_back(op);
    else
      c.others.push_back(op);
    // Half of all operators in programs are a few; they never fail, so that chains grow long.
    if (pointwise &&
        any_of(op->name, {"add", "mul", "sub", "div", "relu", "neg", "abs", "exp", "gelu",
                          "sigmoid", "tanh", "where", "maximum", "lt", "clamp", "addcmul", "sqrt"}))
      c.common.push_back(op);
  }
  return c;
}

const Choices& choices(bool on_device) {
  static const Choices both[] = {choices_for(false), choices_for(true)};
  return both[on_device];
}

class Generator {
  static constexpr int64_t kLargest = 250000;  // elements of one tensor

 public:
  Generator(uint64_t seed, const std::vector<Device>& devices) : rng_(seed * 0x9e3779b97f4a7c15) {
    program_.seed = seed;
    program_.devices = devices;
    program_.gradients = chance(4);
    main_dtype_ = some_dtype();
    main_shape_ = base_shape();
  }

  Program make(Outcome& unfused) {
    fuse::set_mode(fuse::Mode::kOff);
    run(unfused);
    if (left_out_) unfused = run_program(program_, fuse::Mode::kOff);
    return std::move(program_);
  }

 private:
  void run(Outcome& unfused) {
    Machine machine(program_);
    machine_ = &machine;
    for (int i = 0; i < 3; ++i) take(data());
    int steps = 6 + pick(34);
    for (int i = 0; i < steps; ++i) {
      take(statement());
      if (chance(20)) update_several();
    }
    if (program_.gradients && chance(2) && !live_.empty()) take(backward());
    while (done_ < program_.statements.size()) done_ = machine.step(done_);  // an open thread
    unfused = machine.finish();
    left_out_ |= machine.late_error();
  }

  // --- choices ---
  int pick(int n) { return static_cast<int>((rng_() >> 20) % static_cast<uint64_t>(n)); }
  bool chance(int one_in) { return pick(one_in) == 0; }
  template <class T, size_t N>
  T one_of(const T (&all)[N]) {
    return all[pick(N)];
  }
  Device some_device() {
    return program_.devices[static_cast<size_t>(pick(static_cast<int>(program_.devices.size())))];
  }
  DType some_dtype() {
    constexpr DType frequent[] = {DType::kFloat32, DType::kFloat32, DType::kFloat16,
                                  DType::kBFloat16, DType::kFloat64};
    return chance(3) ? static_cast<DType>(pick(kNumDTypes)) : one_of(frequent);
  }
  Dims base_shape() {
    constexpr int64_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 16, 17, 33};
    constexpr int64_t large[] = {255, 256, 257, 1000, 4097};
    if (chance(4)) return chance(2) ? Dims{4, 5} : Dims{16};
    Dims out;
    int n = pick(5);
    int64_t numel = 1;
    bool big = chance(60);
    for (int d = 0; d < n; ++d) {
      int64_t size = big ? one_of(large) : one_of(sizes);
      if (numel * size > (big ? (chance(10) ? 200000 : 5000) : 600)) size = 1 + pick(2);
      numel *= size;
      out.push_back(size);
    }
    return out;
  }
  // The main shape, or one that broadcasts with it, mostly.
  Dims some_shape() {
    Dims out = main_shape_;
    switch (pick(12)) {
      case 0:
      case 1:
        for (int64_t& n : out)
          if (chance(2)) n = 1;
        break;
      case 2: {
        Dims tail;
        for (size_t d = static_cast<size_t>(pick(out.ndim() + 1)); d < out.size(); ++d)
          tail.push_back(out[d]);
        return tail;
      }
      case 3:
        return {};
      case 4:
        if (chance(4) && !out.empty()) out[static_cast<size_t>(pick(out.ndim()))] = 0;
        break;
      case 5:
        return base_shape();
      default:
        break;
    }
    return out;
  }

  // --- variables ---
  int some_var() {  // mostly one of the newest
    int n = static_cast<int>(live_.size());
    if (n == 0) return -1;
    return chance(2) ? live_[static_cast<size_t>(std::max(0, n - 1 - pick(5)))]
                     : live_[static_cast<size_t>(pick(n))];
  }
  const TensorBase& tensor(int var) { return (*machine_)[var]; }
  // ... into something that is not too large.
  static bool broadcasts(const Dims& a, const Dims& b) {
    size_t n = std::max(a.size(), b.size());
    int64_t numel = 1;
    for (size_t i = 1; i <= n; ++i) {
      int64_t x = i <= a.size() ? a[a.size() - i] : 1, y = i <= b.size() ? b[b.size() - i] : 1;
      if (x != y && x != 1 && y != 1) return false;
      numel *= std::max(x, y);
    }
    return numel <= kLargest;
  }
  // One that goes with `a` without an error, mostly.
  int partner(int a, bool same_dtype = false) {
    int best = a;
    for (int tries = 0; tries < 6; ++tries) {
      int b = some_var();
      if (!(tensor(b).device() == tensor(a).device())) continue;
      if (!broadcasts(tensor(a).sizes(), tensor(b).sizes())) continue;
      best = b;
      if (tensor(a).sizes() == tensor(b).sizes() &&
          (!same_dtype || tensor(a).dtype() == tensor(b).dtype()))
        break;
    }
    return chance(40) ? some_var() : best;
  }
  int fresh_var() {
    int var = machine_->grow();
    program_.num_vars = var + 1;
    return var;
  }

  // --- statements ---
  // Adds it and runs it; what it made is there for the next.
  void take(Statement s) {
    size_t index = program_.statements.size();
    program_.statements.push_back(std::move(s));
    const Statement& added = program_.statements.back();
    if (added.what == Do::kThread) {
      thread_until_ = index + 1 + static_cast<size_t>(added.count);
      return;
    }
    if (program_.statements.size() < thread_until_) {
      // Statements of a thread run together: those in it know the variables from before it.
      return;
    }
    while (done_ <= index) done_ = machine_->step(done_);
    // An error that a device reports later comes to whoever asks next, in each mode at another
    // statement: what gives one is left out.
    if (machine_->late_error()) {
      for (; noted_ <= index; ++noted_) leave_out(program_.statements[noted_]);
      return;
    }
    for (; noted_ <= index; ++noted_) note_results(program_.statements[noted_]);
    if (!live_.empty() && tensor(live_.back()).numel() > kLargest)
      take(about(Do::kDelete, live_.back()));
  }
  void leave_out(Statement& s) {
    left_out_ = true;
    for (int var : s.results) forget(var);
    if (s.form != Form::kFunction || (s.op && s.op->writes_self))
      for (const Arg& a : s.args)
        if (a.kind == Arg::Kind::kVar) forget(a.var);
    forget(s.var);
    s = about(Do::kSync, -1);
    s.device = Device{};  // does nothing
  }
  void forget(int var) {
    if (var < 0) return;
    machine_->forget(var);
    live_.erase(std::remove(live_.begin(), live_.end(), var), live_.end());
  }
  void note_results(const Statement& s) {
    for (int var : s.results)
      if (var >= 0 && machine_->has(var) &&
          std::find(live_.begin(), live_.end(), var) == live_.end())
        live_.push_back(var);
    if (s.var >= 0 && !machine_->has(s.var))
      std::erase_if(live_, [this](int var) { return !machine_->has(var); });
  }

  Statement data() {
    Statement s;
    s.what = Do::kData;
    s.device = some_device();
    if (s.device.is_cpu() && chance(12)) s.what = Do::kForeign;
    s.seed = rng_();
    s.dtype = chance(3) ? some_dtype() : main_dtype_;
    s.shape = chance(3) ? some_shape() : main_shape_;
    s.requires_grad = program_.gradients && is_differentiable(s.dtype) && chance(2);
    s.results[0] = fresh_var();
    return s;
  }

  Statement about(Do what, int var) {
    Statement s;
    s.what = what;
    s.var = var;
    return s;
  }

  // As an optimizer does: tensors of any kind are written in place, one after the other, and all of
  // that runs together.
  void update_several() {
    if (live_.size() < 2 || program_.statements.size() < thread_until_) return;
    const Device device = tensor(live_.back()).device();
    for (int i = 0; i < 2; ++i) {  // such as nothing else in the program is
      Statement s = data();
      s.device = device;
      s.dtype = static_cast<DType>(pick(kNumDTypes));
      take(std::move(s));
    }
    const std::vector<int> all = live_;
    for (int var : all) {
      if (all.size() > 6 && chance(2)) continue;
      for (const char* name : {"mul", "add"}) {
        if (!machine_->has(var) || !(tensor(var).device() == device)) continue;
        Statement s;
        s.op = &get_op(name);
        s.form = Form::kInplace;
        s.no_grad = program_.gradients;
        s.args = {of_var(var), of(some_scalar(true))};
        s.args.resize(s.op->args.size());
        take(std::move(s));
      }
    }
    if (!device.is_cuda()) return;
    Statement s = about(Do::kSync, -1);
    s.device = device;
    take(std::move(s));
  }

  Statement backward() {
    int var = some_var();
    for (int tries = 0; tries < 10 && !tensor(var).requires_grad(); ++tries) var = some_var();
    return about(Do::kBackward, var);
  }

  Statement statement() {
    if (live_.size() < 2) return data();
    const Choices& c = choices(program_.devices.size() > 1 || program_.devices[0].is_cuda());
    int r = pick(1000);
    auto within = [&r](int share) { return (r -= share) < 0; };
    if (within(210)) return call(*c.common[index_of(c.common)], Form::kFunction);
    if (within(230)) return call(*c.pointwise[index_of(c.pointwise)], Form::kFunction);
    if (within(130)) return call(*c.inplace[index_of(c.inplace)], Form::kInplace);
    if (within(25)) return call(*c.out[index_of(c.out)], Form::kOut);
    if (within(110)) return call(*c.views[index_of(c.views)], Form::kFunction);
    if (within(70)) return call(*c.others[index_of(c.others)], Form::kFunction);
    if (within(110)) return about(Do::kDelete, some_var());
    if (within(30)) return data();
    if (within(20)) return about(Do::kRead, some_var());
    if (within(10)) return about(Do::kAddress, some_var());
    if (within(10)) {
      Statement s = about(Do::kPoke, some_var());
      s.seed = rng_();
      s.count = pick(8);
      return s;
    }
    if (within(4) && program_.statements.size() >= thread_until_) {
      Statement s = about(Do::kThread, -1);
      s.count = 1 + pick(4);
      return s;
    }
    if (within(4)) {
      Statement s = about(Do::kToggle, -1);
      s.count = 1 + pick(4);
      return s;
    }
    if (program_.gradients && within(8)) return backward();
    if (program_.devices.size() > 1) {
      if (within(30)) return move();
      if (within(12)) {
        Statement s = about(chance(2) ? Do::kStream : Do::kSync, -1);
        s.device = some_device();
        s.count = pick(s.what == Do::kStream ? 3 : 4);
        return s;
      }
    }
    return call(*c.common[index_of(c.common)], Form::kFunction);
  }
  template <class T>
  size_t index_of(const std::vector<T>& v) {
    return static_cast<size_t>(pick(static_cast<int>(v.size())));
  }

  // To another device, or a copy between two that are there.
  Statement move() {
    int a = some_var(), b = some_var();
    Statement s;
    Arg self;
    self.kind = Arg::Kind::kVar;
    self.var = a;
    s.args.push_back(self);
    if (chance(3)) {
      s.op = &get_op("copy_");
      self.var = b;
      s.args.push_back(self);
      s.args.emplace_back();
      s.results[0] = a;
      return s;
    }
    s.op = &get_op("_to_device");
    Arg to;
    to.kind = Arg::Kind::kDevice;
    to.device = some_device();
    s.args.push_back(to);
    s.args.emplace_back();
    s.results[0] = fresh_var();
    return s;
  }

  Statement call(const Op& op, Form form) {
    Statement s;
    s.op = &op;
    s.form = form;
    s.no_grad = program_.gradients && chance(4);
    self_ = -1;
    s.args.reserve(op.args.size());
    for (const ArgSpec& spec : op.args) s.args.push_back(argument(op, spec));
    // A result that a Python program would get twice under two names is one tensor.
    if (form == Form::kFunction && !op.writes_self)
      for (int i = 0; i < 4 && (i < op.num_outputs || op.result_type == ResultType::kTensors); ++i)
        s.results[i] = fresh_var();
    if (form == Form::kOut) s.var = partner(self_ < 0 ? some_var() : self_);
    return s;
  }

  Scalar some_scalar(bool small) {
    constexpr double values[] = {0.5, 2.0, -1.0, 1e-3, 3.0, 0.1, -0.75, 65504.0, 1e30};
    constexpr double specials[] = {std::numeric_limits<double>::quiet_NaN(),
                                   std::numeric_limits<double>::infinity(),
                                   -std::numeric_limits<double>::infinity(),
                                   -0.0,
                                   5e-324,
                                   1e-40};
    if (small) return chance(2) ? Scalar(int64_t{pick(4)}) : Scalar(0.25 * pick(5));
    int r = pick(16);
    if (r < 7) return Scalar(one_of(values));
    if (r < 12) return Scalar(int64_t{pick(7)} - 3);
    if (r < 14) return Scalar(one_of(specials));
    if (r == 14) return Scalar(chance(2));
    return chance(4) ? Scalar(c128(0.5, -1.0)) : Scalar(int64_t{1} << pick(40));
  }

  static Arg of(Scalar s) {
    Arg a;
    a.kind = Arg::Kind::kScalar;
    a.scalar = s;
    return a;
  }
  static Arg of(int64_t v) { return of(Scalar(v)); }
  static Arg of(Dims v) {
    Arg a;
    a.kind = Arg::Kind::kInts;
    a.ints = std::move(v);
    return a;
  }
  Arg of_var(int var) {
    Arg a;
    a.kind = Arg::Kind::kVar;
    a.var = var;
    return a;
  }

  Arg argument(const Op& op, const ArgSpec& spec) {
    Arg a;
    if (spec.optional && !spec.has_default) a.kind = Arg::Kind::kNone;
    bool needed = !spec.optional && !spec.has_default;
    switch (spec.type) {
      case Type::kTensor:
        if (!needed && !chance(4)) return a;
        return of_var(tensor_argument(op, spec));
      case Type::kTensorOrScalar:
        if (!needed && op.name[0] != '_' && chance(3)) return a;
        // The degree of a polynomial, which takes so many steps.
        if (spec.name == "n") return of(some_scalar(true));
        if (self_ < 0 || chance(3)) {
          if (self_ < 0 && chance(2)) return of_var(tensor_argument(op, spec));
          return of(some_scalar(false));
        }
        return of_var(partner(self_));
      case Type::kNumber:
        return of(some_scalar(false));
      case Type::kScalar:
        if (!needed && !chance(3)) return a;
        if (any_of(spec.name, {"step", "size"})) return of(int64_t{1 + pick(3)});
        return of(some_scalar(any_of(spec.name, {"correction", "diagonal", "upper"})));
      case Type::kFloat:
        if (!needed && !chance(3)) return a;
        return of(Scalar(any_of(spec.name, {"p"}) ? 0.25 * pick(5) : 0.125 * (1 + pick(12))));
      case Type::kBool:
        if (any_of(spec.name, {"requires_grad", "pin_memory", "non_blocking"})) return a;
        if (!needed && !chance(3)) return a;
        return of(Scalar(chance(2)));
      case Type::kInt:
        if (!needed && chance(3)) return a;
        return of(an_int(spec));
      case Type::kInts:
        if (!needed && chance(3)) return a;
        return of(some_ints(op, spec));
      case Type::kDType:
        if (!needed && !chance(6)) return a;
        a.kind = Arg::Kind::kDType;
        a.dtype = some_dtype();
        // Any byte is no bool: what it would count as is not said anywhere. Half floats that are
        // signalling NaNs become quiet when they are computed with, but not when they are moved.
        if (starts(op.name, "view") && (a.dtype == DType::kBool || is_reduced_floating(a.dtype)))
          a.dtype = DType::kInt16;
        return a;
      case Type::kMemoryFormat:
        if (!chance(3)) return a;
        return of(int64_t{self_ >= 0 && tensor(self_).dim() == 4 ? 2 : 0});
      case Type::kTensors: {
        a.kind = Arg::Kind::kVars;
        self_ = some_var();
        a.ints.push_back(self_);
        for (int i = pick(3); i > 0; --i) a.ints.push_back(partner(self_));
        return a;
      }
      case Type::kString:
        if (spec.has_default && chance(2)) return a;
        a.kind = Arg::Kind::kText;
        a.text = spec.name == "rounding_mode" ? (chance(2) ? "floor" : "trunc")
                 : spec.name == "approximate" ? "tanh"
                                              : (a.kind = Arg::Kind::kDefault, "");
        return a;
      default:
        return a;
    }
  }

  int tensor_argument(const Op& op, const ArgSpec& spec) {
    if (self_ < 0) {
      self_ = some_var();
      // What only floats have: give it some, mostly.
      bool floats = op.family == "special" || op.family == "softmax" || op.family == "norm" ||
                    op.record->types == TypeRule::kPromoteFloat;
      for (int i = 0; i < 4 && floats && !is_floating(tensor(self_).dtype()); ++i)
        self_ = some_var();
      for (int i = 0; i < 4 && op.family == "bitwise" && is_differentiable(tensor(self_).dtype());
           ++i)
        self_ = some_var();
      if (any_of(spec.name, {"condition"})) {
        for (int i = 0; i < 6 && tensor(self_).dtype() != DType::kBool; ++i) self_ = some_var();
      }
      return self_;
    }
    int best = partner(self_, true);
    if (any_of(spec.name, {"mask"}))
      for (int i = 0; i < 6 && tensor(best).dtype() != DType::kBool; ++i) best = partner(self_);
    return best;
  }

  int64_t some_dim() {
    int n = self_ < 0 ? 0 : tensor(self_).dim();
    dim_ = n ? pick(n) : 0;
    return chance(3) ? dim_ - std::max(n, 1) : dim_;
  }
  int64_t extent() {
    if (self_ < 0 || tensor(self_).dim() == 0) return 1;
    return tensor(self_).sizes()[static_cast<size_t>(std::clamp(dim_, 0, tensor(self_).dim() - 1))];
  }
  int64_t an_int(const ArgSpec& spec) {
    std::string_view n = spec.name;
    int size = static_cast<int>(std::max<int64_t>(extent(), 1));
    if (starts(n, "dim") || starts(n, "axis") || any_of(n, {"start_dim", "end_dim"}))
      return some_dim();
    if (any_of(n, {"index", "start"})) return pick(size);
    if (n == "end") return 1 + pick(size);
    if (any_of(n, {"length", "size", "k"})) return 1 + pick(std::max(1, size / 2));
    if (any_of(n, {"diagonal", "offset"})) return pick(3) - 1;
    return 1 + pick(2);
  }

  Dims some_ints(const Op& op, const ArgSpec& spec) {
    std::string_view n = spec.name;
    const Dims empty;
    const Dims& sizes = self_ < 0 ? empty : tensor(self_).sizes();
    Dims out;
    if (starts(n, "dim") || any_of(n, {"source", "destination"})) {
      Dims order;
      for (int d = 0; d < sizes.ndim(); ++d) order.push_back(d);
      std::shuffle(order.begin(), order.end(), rng_);
      size_t count = op.name == "permute" || op.name == "permute_copy"
                         ? order.size()
                         : static_cast<size_t>(pick(order.ndim() + 1));
      if (any_of(n, {"source", "destination"})) count = std::min<size_t>(1, order.size());
      for (size_t i = 0; i < count; ++i) out.push_back(order[i]);
      return out;
    }
    if (n == "normalized_shape") {
      for (size_t d = static_cast<size_t>(pick(std::max(1, sizes.ndim()))); d < sizes.size(); ++d)
        out.push_back(sizes[d]);
      return out;
    }
    if (any_of(n, {"size", "shape", "sizes"})) {
      if (starts(op.name, "expand") || starts(op.name, "broadcast")) {
        if (chance(2)) out.push_back(1 + pick(3));
        for (int64_t v : sizes) out.push_back(v == 1 && chance(2) ? 1 + pick(4) : v);
        return out;
      }
      switch (pick(4)) {
        case 0:
          return {-1};
        case 1:
          return {1, -1};
        case 2:
          for (size_t d = 0; d < sizes.size(); ++d) {
            if (d > 0 && chance(2))
              out[out.size() - 1] *= sizes[d];
            else
              out.push_back(sizes[d]);
          }
          return out;
        default:
          for (int64_t v : sizes) {
            if (v % 2 == 0 && v > 0 && chance(2)) {
              out.push_back(2);
              out.push_back(v / 2);
            } else {
              out.push_back(v);
            }
          }
          return out;
      }
    }
    if (any_of(n, {"repeats"})) {
      for (int d = 0; d < sizes.ndim(); ++d) out.push_back(1 + pick(2));
      return out;
    }
    int count = 1 + pick(2);
    for (int i = 0; i < count; ++i) out.push_back(1 + pick(2));
    return out;
  }

  std::mt19937_64 rng_;
  Program program_;
  DType main_dtype_;
  Dims main_shape_;
  Machine* machine_ = nullptr;
  std::vector<int> live_;
  size_t done_ = 0, noted_ = 0, thread_until_ = 0;
  bool left_out_ = false;
  int self_ = -1, dim_ = 0;  // of the call that is being made
};

}  // namespace

Program make_program(uint64_t seed, const std::vector<Device>& devices, Outcome& unfused) {
  return Generator(seed, devices).make(unfused);
}

}  // namespace random_programs
