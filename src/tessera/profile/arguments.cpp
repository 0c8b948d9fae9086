#include "tessera/profile/arguments.h"

#include <bit>

#include "tessera/base/error.h"

namespace tessera::profile {

namespace {

struct Reader {
  const int64_t* at;
  const int64_t* end;
  int64_t next() { return at < end ? *at++ : 0; }
  std::vector<int64_t> list(int64_t n) {
    std::vector<int64_t> out;
    for (int64_t i = 0; i < n && at < end; ++i) out.push_back(*at++);
    return out;
  }
  ArgTensor tensor() {
    ArgTensor t;
    t.dtype = next();
    const int64_t ndim = next();
    t.sizes = list(ndim);
    t.strides = list(ndim);
    return t;
  }
};

}  // namespace

std::vector<Argument> read_arguments(const int64_t* words, uint32_t count) {
  std::vector<Argument> out;
  Reader r{words, words + count};
  while (r.at < r.end) {
    Argument& a = out.emplace_back();
    a.kind = static_cast<Arg>(r.next());
    switch (a.kind) {
      case Arg::kTensor:
        a.tensors.push_back(r.tensor());
        break;
      case Arg::kTensors:
        for (int64_t n = r.next(); n > 0; --n) a.tensors.push_back(r.tensor());
        break;
      case Arg::kInts:
        a.ints = r.list(r.next());
        break;
      case Arg::kInt:
      case Arg::kBool:
        a.ints = {r.next()};
        break;
      case Arg::kDouble:
        a.number = std::bit_cast<double>(r.next());
        break;
      default:
        break;
    }
  }
  return out;
}

std::string shapes_text(const std::vector<Argument>& arguments) {
  std::string out = "[";
  for (const Argument& a : arguments) {
    if (out.size() > 1) out += ", ";
    out += '[';
    if (a.kind == Arg::kTensor)
      for (size_t i = 0; i < a.tensors[0].sizes.size(); ++i)
        out += cat(i ? ", " : "", a.tensors[0].sizes[i]);
    out += ']';
  }
  return out + "]";
}

}  // namespace tessera::profile
