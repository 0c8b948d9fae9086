// cat: inputs that are dense go to their places many in a launch, 16 bytes at a time where they lie
// so; others one in a launch.
#include <algorithm>

#include "../kernels.h"
#include "../text.h"
#include "../walk.h"

namespace tessera::cuda {
namespace {

constexpr int kParts = 100;  // of a launch: they travel in its parameters, 4 KiB
constexpr int kTile = 1024;  // units that a block moves

constexpr TextKernel kCat{"cat_dense", R"(
// `run` units of each row of the output, `before` units behind its begin; blocks from `block` on.
struct Part { const UNIT* data; int64_t run, before, n, block; };
struct Params { UNIT* out; int64_t whole, parts; Part part[100]; };
extern "C" __global__ void __launch_bounds__(256) cat_dense(const __grid_constant__ Params p) {
  int low = 0, high = (int)p.parts;  // the last part that begins at or before this block
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (p.part[middle].block <= (int64_t)blockIdx.x) low = middle; else high = middle;
  }
  const UNIT* from = p.part[low].data;
  const int64_t run = p.part[low].run, n = p.part[low].n;
  const int64_t skip = p.whole - run;
  const int64_t first = ((int64_t)blockIdx.x - p.part[low].block) * 1024 + threadIdx.x;
  UNIT* to = p.out + p.part[low].before;
  UNIT v[4];
  #pragma unroll
  for (int u = 0; u < 4; ++u)
    if (first + u * 256 < n) v[u] = from[first + u * 256];
  #pragma unroll
  for (int u = 0; u < 4; ++u) {
    const int64_t i = first + u * 256;
    if (i >= n) continue;
    const int64_t row = ROWS ? ((i | run) >> 31 == 0 ? (int64_t)((unsigned)i / (unsigned)run) : i / run) : 0;
    to[i + row * skip] = v[u];
  }
})"};

constexpr TextKernel kPlace{"cat_strided", R"(
struct Params { const UNIT* in; UNIT* out; int64_t n; Walk<2> walk; };
extern "C" __global__ void __launch_bounds__(256) cat_strided(const __grid_constant__ Params p) {
  for (int64_t first = (int64_t)blockIdx.x * 1024 + threadIdx.x; first < p.n;
       first += (int64_t)gridDim.x * 1024) {
    UNIT v[4];
    int64_t to[4];
    #pragma unroll
    for (int u = 0; u < 4; ++u) {
      if (first + u * 256 >= p.n) break;
      int64_t o[2];
      offsets(p.walk, first + u * 256, o);
      v[u] = p.in[o[0]];
      to[u] = o[1];
    }
    #pragma unroll
    for (int u = 0; u < 4; ++u)
      if (first + u * 256 < p.n) p.out[to[u]] = v[u];
  }
})"};

struct Part {
  const void* data;
  int64_t run, before, n, block;
};
struct CatParams {
  void* out;
  int64_t whole, parts;
  Part part[kParts];
};

bool is_dense(const KernelTensor& t) {
  int64_t run = 1;
  for (int d = t.ndim - 1; d >= 0; --d) {
    if (t.sizes[d] != 1 && t.strides[d] != run) return false;
    run *= t.sizes[d];
  }
  return true;
}

Status place_strided(Device& d, CUstream stream, const KernelTensor& t, const KernelTensor& out,
                     int64_t at) {
  const int64_t item = static_cast<int64_t>(itemsize(out.dtype));
  struct {
    const void* in;
    void* out;
    int64_t n;
    Walk<2> walk;
  } p{t.data, static_cast<char*>(out.data) + at * item, t.numel, {}};
  TS_TRY(make_walk(&p.walk, t.ndim, t.sizes, {t.strides, out.strides}));
  return launch_text(d, stream, kPlace, {def_bytes("UNIT", item)},
                     {std::min<int64_t>((t.numel + kTile - 1) / kTile, INT32_MAX), 256}, &p);
}

class Launches {
 public:
  Launches(Device& d, CUstream stream, const KernelTensor& out, int64_t outer, int64_t whole,
           int64_t unit)
      : device_(d), stream_(stream), out_(out), outer_(outer), unit_(unit) {
    params_.out = out.data;
    params_.whole = whole * static_cast<int64_t>(itemsize(out.dtype)) / unit;
    params_.parts = 0;
  }
  Status add(const void* data, int64_t run_bytes, int64_t before_bytes) {
    if (params_.parts == kParts || blocks_ > INT32_MAX / 2) TS_TRY(flush());
    const int64_t run = run_bytes / unit_, n = outer_ * run;
    params_.part[params_.parts++] = {data, run, before_bytes / unit_, n, blocks_};
    blocks_ += (n + kTile - 1) / kTile;
    return ok();
  }
  Status flush() {
    if (params_.parts == 0) return ok();
    Status s =
        launch_text(device_, stream_, kCat, {def_bytes("UNIT", unit_), def("ROWS", outer_ > 1)},
                    {blocks_, 256}, &params_);
    params_.parts = 0;
    blocks_ = 0;
    return s;
  }

 private:
  Device& device_;
  CUstream stream_;
  const KernelTensor& out_;
  int64_t outer_, unit_, blocks_ = 0;
  CatParams params_;
};

// ints: the dimension. The output is row-major; inputs have its dtype, and any strides.
Status run_cat(Device& d, CUstream stream, const KernelArgs& args) {
  const KernelTensor& out = args.outputs[0];
  const int dim = static_cast<int>(args.ints[0]);
  const int64_t item = static_cast<int64_t>(itemsize(out.dtype));
  int64_t outer = 1, whole = 1;
  for (int i = 0; i < dim; ++i) outer *= out.sizes[i];
  for (int i = dim; i < out.ndim; ++i) whole *= out.sizes[i];
  if (outer * whole == 0) return ok();
  // The widest unit that all of a part's addresses are multiples of, for each part.
  for (int64_t unit = 16; unit > 0; unit /= 2) {
    Launches launches(d, stream, out, outer, whole, unit);
    int64_t before = 0;
    for (int i = 0; i < args.num_inputs; ++i) {
      const KernelTensor& t = args.inputs[i];
      const int64_t run = t.numel / outer, at = before * item;
      before += run;
      if (run == 0 || !is_dense(t)) continue;
      uint64_t all = reinterpret_cast<uintptr_t>(t.data) | reinterpret_cast<uintptr_t>(out.data) |
                     static_cast<uint64_t>(run * item) | static_cast<uint64_t>(at) |
                     (outer > 1 ? static_cast<uint64_t>(whole * item) : 0);
      const int64_t fits = static_cast<int64_t>(all & (~all + 1));
      if (std::min<int64_t>(fits, 16) == unit) TS_TRY(launches.add(t.data, run * item, at));
    }
    TS_TRY(launches.flush());
  }
  int64_t before = 0;
  for (int i = 0; i < args.num_inputs; ++i) {
    const KernelTensor& t = args.inputs[i];
    if (t.numel > 0 && !is_dense(t)) TS_TRY(place_strided(d, stream, t, out, before));
    before += t.numel / outer;
  }
  return ok();
}

TS_CUDA_KERNEL("cat", run_cat)

}  // namespace
}  // namespace tessera::cuda
