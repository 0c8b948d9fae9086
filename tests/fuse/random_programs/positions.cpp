// Each pointwise operator on one element at a time and on all of them together.
#include <cstdio>
#include <cstring>

#include "program.h"

namespace random_programs {

using namespace tessera;

namespace {

constexpr int64_t kLength = 150;  // vectors, and a tail

TensorBase operand(const ArgSpec& spec, DType dtype, uint64_t seed, Device device) {
  Statement s;
  s.what = Do::kData;
  s.dtype = spec.name == "mask" || spec.name == "condition" ? DType::kBool : dtype;
  s.shape = Dims{kLength};
  s.seed = seed;
  std::vector<char> bytes = data_bytes(s);
  TensorBase host = new_empty(s.shape, s.dtype, Device{});
  std::memcpy(host.raw(), bytes.data(), bytes.size());
  return Tensor(host).to(device);
}

// Numbers that every operator takes.
Value number(const ArgSpec& spec, bool integers) {
  if (spec.name == "n") return Value(3);
  if (spec.type == ArgSpec::Type::kFloat) return Value(0.75);
  return integers ? Value(2) : Value(0.75);
}

std::string bytes_of(const TensorBase& t) {
  Tensor host = Tensor(t).cpu().contiguous();
  fuse::ensure_readable(host, fuse::Reason::kHostRead);
  return std::string(host.raw(), host.nbytes());
}

// With every Tensor|Scalar argument a tensor, or a number.
bool differs(const Op& op, DType dtype, bool numbers, uint64_t seed, Device device) {
  std::vector<TensorBase> whole;
  std::vector<Value> args(op.args.size());
  whole.reserve(op.args.size());
  for (size_t i = 0; i < op.args.size(); ++i) {
    const ArgSpec& spec = op.args[i];
    bool tensor = spec.type == ArgSpec::Type::kTensor ||
                  (spec.type == ArgSpec::Type::kTensorOrScalar && !numbers && spec.name != "n");
    if (tensor) {
      whole.push_back(operand(spec, dtype, seed + i, device));
      args[i] = Value(whole.back());
    } else if (spec.has_default && spec.type != ArgSpec::Type::kScalar) {
      args[i] = spec.default_value;
    } else if (!spec.optional || spec.type == ArgSpec::Type::kTensorOrScalar) {
      args[i] = number(spec, !is_differentiable(dtype));
    }
  }
  if (whole.empty()) return false;
  std::string all, each;
  try {
    TensorBase result = dispatch(op, args).take();
    all = bytes_of(result);
    size_t item = itemsize(result.dtype());
    for (int64_t at = 0; at < kLength; ++at) {
      std::vector<TensorBase> one;
      one.reserve(whole.size());
      std::vector<Value> single = args;
      for (size_t i = 0; i < args.size(); ++i)
        if (args[i].is_tensor()) {
          one.push_back(Tensor(*args[i].tensor).slice(0, at, at + 1));
          single[i] = Value(one.back());
        }
      each += bytes_of(dispatch(op, single).take());
    }
    for (size_t i = 0; i + item <= all.size(); i += item)
      if (std::memcmp(&all[i], &each[i], item) != 0) {
        std::printf("%s (%s%s), element %zu: together", op.record->schema, dtype_name(dtype),
                    numbers ? ", numbers" : "", i / item);
        for (size_t k = item; k-- > 0;)
          std::printf(" %02x", static_cast<unsigned char>(all[i + k]));
        std::printf(", alone");
        for (size_t k = item; k-- > 0;)
          std::printf(" %02x", static_cast<unsigned char>(each[i + k]));
        std::printf("\n");
        return true;
      }
  } catch (const Error&) {
    // Not for this dtype.
  }
  return false;
}

}  // namespace

int check_positions(Device device) {
  fuse::set_mode(fuse::Mode::kOff);
  int found = 0;
  for (const Op* op : all_ops()) {
    if (op->kind != Kind::kPointwise || !is_drawn(*op, true)) continue;
    bool bad = false;
    for (int dtype = 0; dtype < kNumDTypes; ++dtype)
      for (bool numbers : {false, true})
        for (uint64_t seed = 1; seed < 4; ++seed)
          bad |= !bad && differs(*op, static_cast<DType>(dtype), numbers, seed, device);
    found += bad;
  }
  return found;
}

}  // namespace random_programs
