#include "support/tensors.h"

#include <cmath>
#include <cstring>

#include "tessera/base/half.h"
#include "tessera/memory/allocator.h"

namespace tessera::test {

namespace {

// The accelerator is chosen once in a process, at its first use: before all tests is early enough.
struct ChooseDevice {
  ChooseDevice() {
    const char* device = std::getenv("DEVICE");
    if (device && !std::strcmp(device, "cuda")) return;
    setenv("TESSERA_VIRTUAL_GPU", "2x64MiB", 0);
  }
} choose_device;

}  // namespace

Device test_gpu(int index) {
  return resolve_device(Device{DeviceType::kCUDA, static_cast<int16_t>(index)});
}

bool gpu_is_virtual() {
  const Backend* b = accelerator();
  return b && !std::strcmp(b->name, "virtual");
}

double load_element(const char* p, DType dtype) {
  auto get = [p]<class T>(T v) {
    std::memcpy(&v, p, sizeof v);
    return v;
  };
  switch (dtype) {
    case DType::kBool:
    case DType::kUInt8:
      return get(uint8_t{});
    case DType::kInt8:
      return get(int8_t{});
    case DType::kInt16:
      return get(int16_t{});
    case DType::kInt32:
      return get(int32_t{});
    case DType::kInt64:
      return static_cast<double>(get(int64_t{}));
    case DType::kFloat16:
      return double{half_to_float(get(uint16_t{}))};
    case DType::kBFloat16:
      return double{bfloat16_to_float(get(uint16_t{}))};
    case DType::kFloat32:
      return double{get(float{})};
    case DType::kFloat64:
      return get(double{});
    case DType::kComplex64:  // the real part
      return double{get(c64{}).re};
    case DType::kComplex128:
      return get(c128{}).re;
  }
  return 0;
}

void store_element(char* p, DType dtype, double v) {
  auto put = [p](auto x) { std::memcpy(p, &x, sizeof x); };
  switch (dtype) {
    case DType::kBool:
      return put(static_cast<uint8_t>(v != 0));
    case DType::kUInt8:
      return put(static_cast<uint8_t>(static_cast<int64_t>(v)));
    case DType::kInt8:
      return put(static_cast<int8_t>(static_cast<int64_t>(v)));
    case DType::kInt16:
      return put(static_cast<int16_t>(static_cast<int64_t>(v)));
    case DType::kInt32:
      return put(static_cast<int32_t>(static_cast<int64_t>(v)));
    case DType::kInt64:
      return put(static_cast<int64_t>(v));
    case DType::kFloat16:
      return put(float_to_half(static_cast<float>(v)));
    case DType::kBFloat16:
      return put(float_to_bfloat16(static_cast<float>(v)));
    case DType::kFloat32:
      return put(static_cast<float>(v));
    case DType::kFloat64:
      return put(v);
    case DType::kComplex64:
      return put(c64(static_cast<float>(v), 0));
    case DType::kComplex128:
      return put(c128(v, 0));
  }
}

double rounded(double v, DType dtype) {
  char p[16];
  store_element(p, dtype, v);
  return load_element(p, dtype);
}

Tensor make(const Dims& sizes, const std::vector<double>& values, DType dtype, Device device) {
  Tensor host(new_empty(sizes, dtype, Device{}));
  EXPECT_EQ(static_cast<size_t>(host.numel()), values.size());
  for (size_t i = 0; i < values.size(); ++i)
    store_element(host.raw() + i * itemsize(dtype), dtype, values[i]);
  return host.to(device);
}

Tensor sample(const Dims& sizes, DType dtype, Device device, int seed) {
  std::vector<double> v(static_cast<size_t>(checked_numel(sizes, dtype)));
  uint32_t state = static_cast<uint32_t>(seed) * 2654435761u + 12345u;
  for (double& x : v) {
    state = state * 1664525u + 1013904223u;
    int n = static_cast<int>(state >> 25) - 63;  // -63 .. 64
    n = n ? n : 1;                               // no zeros: tests divide
    if (dtype == DType::kBool)
      x = n & 1;
    else if (is_floating(dtype))
      x = n / 16.0;
    else
      x = dtype == DType::kUInt8 ? std::abs(n) % 7 + 1 : n % 9;
  }
  return make(sizes, v, dtype, device);
}

namespace {

// The whole storage on the host, up to date.
Tensor host_storage(const TensorBase& t) {
  int64_t n = static_cast<int64_t>(t.storage().nbytes / itemsize(t.dtype()));
  Tensor whole = Tensor(alias(t, {n}, {1}, 0)).cpu();
  fuse::ensure_readable(whole, fuse::Reason::kHostRead);
  return whole;
}

void walk(const TensorBase& t, const std::function<void(const char*)>& visit) {
  if (t.numel() == 0) return;
  Tensor host = host_storage(t);
  int64_t item = static_cast<int64_t>(itemsize(t.dtype()));
  Dims index(t.sizes().size());
  for (int64_t i = 0; i < t.numel(); ++i) {
    int64_t at = t.storage_offset();
    for (size_t d = 0; d < index.size(); ++d) at += index[d] * t.strides()[d];
    visit(host.raw() + at * item);
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < t.sizes()[d]) break;
      index[d] = 0;
    }
  }
}

}  // namespace

std::vector<double> values(const TensorBase& t) {
  std::vector<double> out;
  walk(t, [&](const char* p) { out.push_back(load_element(p, t.dtype())); });
  return out;
}

std::string bytes(const TensorBase& t) {
  std::string out = cat(t.dtype(), " ", t.sizes(), " ");
  walk(t, [&](const char* p) { out.append(p, itemsize(t.dtype())); });
  return out;
}

double value(const TensorBase& t) {
  EXPECT_EQ(t.numel(), 1);
  return values(t).at(0);
}

::testing::AssertionResult close(const std::vector<double>& got, const std::vector<double>& want,
                                 double tolerance) {
  if (got.size() != want.size())
    return ::testing::AssertionFailure() << got.size() << " elements, not " << want.size();
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(got[i]) && std::isnan(want[i])) continue;
    if (got[i] == want[i]) continue;
    double error = std::abs(got[i] - want[i]) / std::max(1.0, std::abs(want[i]));
    if (error <= tolerance) continue;
    return ::testing::AssertionFailure()
           << "element " << i << " is " << got[i] << ", not " << want[i] << " (off by " << error
           << ", allowed " << tolerance << ")";
  }
  return ::testing::AssertionSuccess();
}

double tolerance_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return 0x1p-10;
    case DType::kBFloat16:
      return 0x1p-7;
    case DType::kFloat32:
      return 1e-6;
    case DType::kFloat64:
      return 1e-14;
    default:
      return 0;
  }
}

std::string error_of(const std::function<void()>& f, ErrorKind* kind) {
  try {
    f();
  } catch (const Error& e) {
    if (kind) *kind = e.kind();
    return e.what();
  }
  return "";
}

bool same_fused(Device device, const std::function<std::vector<Tensor>()>& program) {
  enum { kInOrder, kBackwards, kAllAtOnce };
  auto read = [&](fuse::Mode mode, int how) {
    FuseMode scope(mode);
    std::vector<Tensor> results = program();
    if (how == kAllAtOnce) fuse::run_everything(fuse::Reason::kUser);
    std::vector<std::string> out(results.size());
    for (size_t i = 0; i < out.size(); ++i) {
      size_t at = how == kBackwards ? out.size() - 1 - i : i;
      out[at] = bytes(results[at].detach());
    }
    return out;
  };
  std::vector<std::string> plain = read(fuse::Mode::kOff, kInOrder);
  int64_t before = fuse::stream_of(device).stats().fused_groups;
  for (int how : {kInOrder, kBackwards, kAllAtOnce})
    EXPECT_EQ(read(fuse::Mode::kOn, how), plain) << how;
  return fuse::stream_of(device).stats().fused_groups > before;
}

void clear_gpu() {
  const Backend* b = accelerator();
  if (!b) return;
  fuse::run_everything(fuse::Reason::kUser);
  for (int d = 0; d < device_count(); ++d) {
    b->device_synchronize(d);
    memory::empty_cache(d);
  }
}

}  // namespace tessera::test
