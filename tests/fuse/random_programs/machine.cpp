// Runs the statements of a program.
#include <cstdio>
#include <cstring>
#include <random>
#include <thread>

#include "program.h"
#include "tessera/base/half.h"

namespace random_programs {

using namespace tessera;

bool tracing = false;

namespace {

cuda::Stream& stream_of(int device, int which) {
  static std::vector<cuda::Stream> streams = [] {
    std::vector<cuda::Stream> made;
    for (int d = 0; d < device_count(); ++d)
      for (int k = 0; k < 3; ++k)
        made.push_back(k == 0 ? cuda::default_stream(d) : cuda::Stream(d));
    return made;
  }();
  return streams[static_cast<size_t>(device * 3 + which)];
}

template <class T>
T element(std::mt19937_64& rng) {
  uint64_t r = rng();
  if constexpr (std::is_floating_point_v<T>) {
    using Limits = std::numeric_limits<T>;
    const T specials[] = {Limits::quiet_NaN(),
                          -Limits::quiet_NaN(),
                          Limits::infinity(),
                          -Limits::infinity(),
                          T(-0.0),
                          T(0),
                          Limits::denorm_min(),
                          -Limits::min(),
                          Limits::max(),
                          T(1),
                          T(-1),
                          T(0.5)};
    if (r % 4 == 0) return specials[(r >> 8) % 12];
    if (r % 37 == 1) {  // any bits at all
      T v;
      uint64_t bits = rng();
      std::memcpy(&v, &bits, sizeof v);
      return v;
    }
    return static_cast<T>(static_cast<int64_t>((r >> 8) % 4001) - 2000) / T(512);
  } else {
    if (r % 16 == 0) return std::numeric_limits<T>::max();
    if (r % 16 == 1) return std::numeric_limits<T>::min();
    if (r % 16 == 2) return static_cast<T>(rng());
    return static_cast<T>(static_cast<int64_t>((r >> 8) % 14) - 4);
  }
}

template <class T>
void fill(std::vector<char>& bytes, std::mt19937_64& rng) {
  for (size_t i = 0; i + sizeof(T) <= bytes.size(); i += sizeof(T)) {
    T v = element<T>(rng);
    std::memcpy(&bytes[i], &v, sizeof v);
  }
}

}  // namespace

std::vector<char> data_bytes(const Statement& s) {
  std::mt19937_64 rng(s.seed);
  int64_t n = checked_numel(s.shape, s.dtype);
  std::vector<char> bytes(static_cast<size_t>(n) * itemsize(s.dtype));
  switch (s.dtype) {
    case DType::kBool:
      for (char& c : bytes) c = static_cast<char>(rng() & 1);
      break;
    case DType::kUInt8:
      fill<uint8_t>(bytes, rng);
      break;
    case DType::kInt8:
      fill<int8_t>(bytes, rng);
      break;
    case DType::kInt16:
      fill<int16_t>(bytes, rng);
      break;
    case DType::kInt32:
      fill<int32_t>(bytes, rng);
      break;
    case DType::kInt64:
      fill<int64_t>(bytes, rng);
      break;
    case DType::kFloat16:
    case DType::kBFloat16:
      for (size_t i = 0; i < bytes.size(); i += 2) {
        float f = element<float>(rng);
        uint16_t h = s.dtype == DType::kFloat16 ? float_to_half(f) : float_to_bfloat16(f);
        std::memcpy(&bytes[i], &h, 2);
      }
      break;
    case DType::kFloat32:
    case DType::kComplex64:
      fill<float>(bytes, rng);
      break;
    case DType::kFloat64:
    case DType::kComplex128:
      fill<double>(bytes, rng);
      break;
  }
  return bytes;
}

Machine::Machine(const Program& program)
    : program_(program), vars_(static_cast<size_t>(program.num_vars)), mode_(fuse::mode()) {
  manual_seed(program.seed);
  out_.worked.reserve(64);
}

Machine::~Machine() {
  // Threads that ran statements have streams of their own, which ended with them.
  for (Device d : program_.devices)
    if (d.is_cuda() && !(cuda::current_stream(d.index) == stream_of(d.index, 0))) {
      stream_of(d.index, 0).wait_stream(cuda::current_stream(d.index));
      cuda::set_stream(stream_of(d.index, 0));
    }
}

int Machine::grow() {
  vars_.emplace_back();
  return static_cast<int>(vars_.size()) - 1;
}

bool Machine::late_error() const {
  bool found = false;
  for (Device d : program_.devices) {
    if (!d.is_cuda()) continue;
    try {
      cuda::current_stream(d.index).synchronize();
    } catch (const Error&) {
      found = true;
    }
  }
  return found;
}

size_t Machine::step(size_t index) {
  const auto& all = program_.statements;
  size_t next = index + 1;
  if (toggled_until_ && index >= toggled_until_) {
    fuse::set_mode(mode_);
    toggled_until_ = 0;
  }
  if (all[index].what == Do::kThread) {
    size_t end = std::min(all.size(), next + static_cast<size_t>(all[index].count));
    out_.worked.resize(next, 1);
    std::vector<cuda::Stream> streams;
    for (Device d : program_.devices)
      if (d.is_cuda()) streams.push_back(cuda::current_stream(d.index));
    std::thread([&] {
      // A stream is current for a thread: without this its work would wait for nothing.
      for (const cuda::Stream& s : streams) cuda::set_stream(s);
      in_thread_ = true;
      for (; next < end; ++next) guarded(next);
      in_thread_ = false;
    }).join();
    return next;
  }
  if (all[index].what == Do::kToggle && !toggled_until_) {
    fuse::set_mode(fuse::Mode::kOff);
    toggled_until_ = next + static_cast<size_t>(all[index].count);
  }
  guarded(index);
  return next;
}

void Machine::guarded(size_t index) {
  const Statement& s = program_.statements[index];
  out_.worked.resize(index + 1, 0);
  if (tracing) std::fprintf(stderr, "%zu: %s", index, to_text(s).c_str());
  try {
    if (s.no_grad) {
      autograd::GradMode off(false);
      run(s);
    } else {
      run(s);
    }
    out_.worked[index] = 1;
  } catch (const Error& e) {
    error(index, e.what());
  }
}

void Machine::error(size_t index, const char* text) {
  note(-1, static_cast<int>(index));
  out_.log += text;
}

void Machine::note(int var, int statement) {
  out_.entries.push_back({out_.log.size(), var, statement});
}

void Machine::run(const Statement& s) {
  TensorBase none;
  switch (s.what) {
    case Do::kCall:
      return call(s);
    case Do::kData:
    case Do::kForeign:
      return data(s);
    case Do::kThread:
    case Do::kToggle:
      return;
    case Do::kStream: {
      if (!s.device.is_cuda() || in_thread_) return;  // it would end with the thread
      cuda::Stream& to = stream_of(s.device.index, s.count);
      cuda::Stream from = cuda::current_stream(s.device.index);
      cuda::set_stream(to);
      to.wait_stream(from);
      return;
    }
    case Do::kSync:
      return synchronize(s);
    default:
      break;
  }
  if (!has(s.var)) return;
  TensorBase& t = vars_[static_cast<size_t>(s.var)];
  switch (s.what) {
    case Do::kPoke:
      return poke(s);
    case Do::kDelete:
      t = TensorBase();
      return;
    case Do::kRead:
      return read(s.var, t);
    case Do::kAddress:
      fuse::expose(t);
      return;
    case Do::kBackward: {
      if (!t.requires_grad()) return;
      Tensor total = Tensor(t).sum();
      total.backward();
      return;
    }
    default:
      return;
  }
}

void Machine::data(const Statement& s) {
  std::vector<char> bytes = data_bytes(s);
  TensorBase host;
  if (s.what == Do::kForeign) {
    foreign_.push_back(std::move(bytes));
    foreign_.back().resize(foreign_.back().size() + 16);  // an empty one has an address too
    host = from_blob(foreign_.back().data(), s.shape, contiguous_strides(s.shape), s.dtype,
                     Device{}, nullptr, nullptr);
  } else {
    host = new_empty(s.shape, s.dtype, Device{});
    if (!bytes.empty()) std::memcpy(host.raw(), bytes.data(), bytes.size());
  }
  Tensor t(host);
  if (!s.device.is_cpu()) t = t.to(s.device);
  if (s.requires_grad) t.requires_grad_();
  vars_[static_cast<size_t>(s.results[0])] = t;
}

// Somebody else writes to memory whose address is known, without telling.
void Machine::poke(const Statement& s) {
  const TensorBase& t = vars_[static_cast<size_t>(s.var)];
  if (!t.device().is_cpu() || t.numel() == 0 || t.dtype() == DType::kBool) return;
  // Other threads of the program are never under way here, so nobody reads it at this moment.
  if (!t.storage().exposed.load() || !t.storage().data) return;
  t.raw()[s.count % static_cast<int>(itemsize(t.dtype()))] = static_cast<char>(s.seed);
}

void Machine::synchronize(const Statement& s) {
  if (!s.device.is_cuda()) return;
  cuda::Stream current = cuda::current_stream(s.device.index);
  switch (s.count) {
    case 0:
      return current.synchronize();
    case 1: {
      cuda::Event e;
      e.record(current);
      return e.synchronize();
    }
    case 2:
      current.query();
      return;
    default: {
      cuda::Event e;
      e.record(current);
      stream_of(s.device.index, 1).wait_event(e);
    }
  }
}

void Machine::call(const Statement& s) {
  constexpr size_t kMost = 16;
  Value values[kMost];
  std::vector<TensorBase> list;
  for (size_t i = 0; i < s.args.size(); ++i) {
    const Arg& a = s.args[i];
    switch (a.kind) {
      case Arg::Kind::kDefault:
        values[i] = s.op->args[i].has_default ? s.op->args[i].default_value : Value();
        break;
      case Arg::Kind::kNone:
        break;
      case Arg::Kind::kVar:
        if (!has(a.var)) return;
        values[i] = Value(vars_[static_cast<size_t>(a.var)]);
        break;
      case Arg::Kind::kVars:
        for (int64_t v : a.ints) {
          if (!has(static_cast<int>(v))) return;
          list.push_back(vars_[static_cast<size_t>(v)]);
        }
        values[i] = Value(std::span<const TensorBase>(list));
        break;
      case Arg::Kind::kScalar:
        values[i] = Value(a.scalar);
        break;
      case Arg::Kind::kInts:
        values[i] = Value(a.ints);
        break;
      case Arg::Kind::kDType:
        values[i] = Value(a.dtype);
        break;
      case Arg::Kind::kDevice:
        values[i] = Value(a.device);
        break;
      case Arg::Kind::kText:
        values[i] = Value(a.text);
        break;
    }
  }
  Args args(values, s.args.size());
  if (s.form == Form::kOut) {
    if (!has(s.var)) return;
    TensorBase& out = vars_[static_cast<size_t>(s.var)];
    Dims before = out.sizes();
    try {
      dispatch_out(*s.op, args, out);
    } catch (const Error&) {
      // Made longer and not written: what it holds is nobody's, whatever its names are.
      if (!(out.sizes() == before)) {
        const TensorBase same = out;
        for (TensorBase& t : vars_)
          if (t.is_same(same)) t = TensorBase();
      }
      throw;
    }
    return;
  }
  if (s.form == Form::kInplace) {
    dispatch_inplace(*s.op, args);
    return;
  }
  Outputs made = dispatch(*s.op, args);
  for (int i = 0; i < made.size() && i < 4; ++i)
    if (s.results[i] >= 0) vars_[static_cast<size_t>(s.results[i])] = made[i];
}

void Machine::read(int var, const TensorBase& t) {
  note(var, -1);
  auto number = [this](int64_t v) { out_.log.append(reinterpret_cast<const char*>(&v), sizeof v); };
  number(static_cast<int64_t>(t.dtype()));
  number(t.dim());
  for (int64_t v : t.sizes()) number(v);
  for (int64_t v : t.strides()) number(v);
  number(t.storage_offset());
  number(t.storage().version.load());
  if (t.numel() == 0) return;
  TensorBase host = t;
  if (!t.device().is_cpu()) {
    autograd::GradMode off(false);
    host = Tensor(t).detach().cpu();
  }
  fuse::ensure_readable(host, fuse::Reason::kHostRead);
  if (host.is_contiguous()) {
    out_.log.append(host.raw(), host.nbytes());
    return;
  }
  size_t item = itemsize(t.dtype());
  Dims index(host.sizes().size());
  int64_t at = 0;
  for (int64_t i = 0; i < host.numel(); ++i) {
    out_.log.append(host.raw() + at * static_cast<int64_t>(item), item);
    for (int d = host.dim() - 1; d >= 0; --d) {
      auto k = static_cast<size_t>(d);
      at += host.strides()[k];
      if (++index[k] < host.sizes()[k]) break;
      at -= host.strides()[k] * host.sizes()[k];
      index[k] = 0;
    }
  }
}

Outcome Machine::finish() {
  if (toggled_until_) fuse::set_mode(mode_);
  std::mt19937_64 rng(program_.seed);
  std::vector<int> order(vars_.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  std::shuffle(order.begin(), order.end(), rng);
  for (int var : order) {
    if (!has(var)) continue;
    const TensorBase& t = vars_[static_cast<size_t>(var)];
    try {
      read(var, t);
      Tensor grad = Tensor(t).grad();
      if (grad.defined()) read(var, grad);
    } catch (const Error& e) {
      error(program_.statements.size(), e.what());
    }
  }
  return std::move(out_);
}

namespace {

template <class U>
bool is_nan(const char* at, U exponent) {
  U bits;
  std::memcpy(&bits, at, sizeof bits);
  return (bits & exponent) == exponent && (bits & ~exponent & ~(U(1) << (8 * sizeof(U) - 1)));
}

bool both_nan(DType dtype, const char* a, const char* b) {
  auto is = [dtype](const char* at) {
    switch (dtype) {
      case DType::kFloat16:
        return is_nan<uint16_t>(at, 0x7c00);
      case DType::kBFloat16:
        return is_nan<uint16_t>(at, 0x7f80);
      case DType::kFloat32:
        return is_nan<uint32_t>(at, 0x7f800000);
      case DType::kFloat64:
        return is_nan<uint64_t>(at, 0x7ff0000000000000);
      default:
        return false;
    }
  };
  return is(a) && is(b);
}

bool alike(std::string_view a, std::string_view b) {
  if (a == b) return true;
  int64_t number[2];
  if (a.size() != b.size() || a.size() < sizeof number) return false;
  std::memcpy(number, a.data(), sizeof number);
  if (number[0] < 0 || number[0] >= kNumDTypes || number[1] > 64) return false;
  size_t header = 8 * static_cast<size_t>(4 + 2 * number[1]);
  if (header > a.size() || a.substr(0, header) != b.substr(0, header)) return false;
  DType dtype = real_dtype(static_cast<DType>(number[0]));
  size_t item = itemsize(dtype);
  for (size_t i = header; i + item <= a.size(); i += item)
    if (std::memcmp(&a[i], &b[i], item) != 0 && !both_nan(dtype, &a[i], &b[i])) return false;
  return true;
}

}  // namespace

Likeness compare(const Outcome& a, const Outcome& b) {
  if (a.log == b.log) return Likeness::kSame;
  if (a.entries.size() != b.entries.size()) return Likeness::kDifferent;
  auto content = [](const Outcome& o, size_t i) {
    size_t end = i + 1 < o.entries.size() ? o.entries[i + 1].at : o.log.size();
    return std::string_view(o.log).substr(o.entries[i].at, end - o.entries[i].at);
  };
  for (size_t i = 0; i < a.entries.size(); ++i) {
    bool read = a.entries[i].var >= 0 && b.entries[i].var == a.entries[i].var;
    if (read ? !alike(content(a, i), content(b, i)) : content(a, i) != content(b, i))
      return Likeness::kDifferent;
  }
  return Likeness::kOnlyBitsOfNaN;
}

Outcome run_program(const Program& p, fuse::Mode mode) {
  fuse::set_mode(mode);
  Outcome out;
  {
    Machine machine(p);
    for (size_t i = 0; i < p.statements.size();) i = machine.step(i);
    out = machine.finish();
  }
  fuse::set_mode(fuse::Mode::kOff);
  return out;
}

}  // namespace random_programs
