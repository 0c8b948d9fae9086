#include "fft_plan.h"

#include <mutex>
#include <unordered_map>

#include "cufft_api.h"
#include "data_type.h"
#include "hash.h"

namespace tessera::cuda {
namespace {

struct Plan {
  cufftHandle handle = 0;
  size_t workspace = 0;
  uint64_t used = 0;
};

struct State {
  // Held while a transform is queued: stream and workspace are parts of the plan.
  std::mutex mutex;
  std::unordered_map<Hash128, Plan, HashOfHash> plans;
  uint64_t clock = 0;
};
// Leaked: the driver may be gone before destructors run.
State& state(const Device& d) {
  static State* all = new State[kMaxDevices];
  return all[d.ordinal];
}

// Plans hold tables on the device: a program that never repeats a shape must not fill it.
constexpr size_t kMaxPlans = 256;

const char* name_of(cufftResult r) {
  switch (r) {
    case CUFFT_INVALID_PLAN:
      return "CUFFT_INVALID_PLAN";
    case CUFFT_ALLOC_FAILED:
      return "CUFFT_ALLOC_FAILED";
    case CUFFT_INVALID_VALUE:
      return "CUFFT_INVALID_VALUE";
    case CUFFT_INTERNAL_ERROR:
      return "CUFFT_INTERNAL_ERROR";
    case CUFFT_EXEC_FAILED:
      return "CUFFT_EXEC_FAILED";
    case CUFFT_SETUP_FAILED:
      return "CUFFT_SETUP_FAILED";
    case CUFFT_INVALID_SIZE:
      return "CUFFT_INVALID_SIZE";
    case CUFFT_NOT_SUPPORTED:
      return "CUFFT_NOT_SUPPORTED";
    default:
      return "an error";
  }
}

Status fft(cufftResult r, const char* what) {
  if (r == CUFFT_SUCCESS) return ok();
  return fail(r == CUFFT_ALLOC_FAILED ? Code::kOutOfMemory : Code::kFailed, "cuFFT: %s (%d) in %s",
              name_of(r), static_cast<int>(r), what);
}

Hash128 key_of(const FftShape& s) {
  Hasher h(21);
  h.add(static_cast<uint64_t>(s.in.dtype) | static_cast<uint64_t>(s.out.dtype) << 8 |
        static_cast<uint64_t>(s.rank) << 16);
  h.add(static_cast<uint64_t>(s.batch));
  for (int i = 0; i < s.rank; ++i)
    for (long long v : {s.sizes[i], s.in.embed[i], s.out.embed[i]}) h.add(static_cast<uint64_t>(v));
  for (long long v : {s.in.stride, s.in.distance, s.out.stride, s.out.distance})
    h.add(static_cast<uint64_t>(v));
  return h.finish();
}

Status make_plan(const CufftApi& api, FftShape s, Plan* p) {
  TS_TRY(fft(api.cufftCreate(&p->handle), "a plan"));
  // The workspace comes from the stream's own memory at each run.
  TS_TRY(fft(api.cufftSetAutoAllocation(p->handle, 0), "a plan"));
  const DType computed = is_complex(s.in.dtype) ? s.in.dtype : s.out.dtype;
  return fft(
      api.cufftXtMakePlanMany(p->handle, s.rank, s.sizes, s.in.embed, s.in.stride, s.in.distance,
                              data_type(s.in.dtype), s.out.embed, s.out.stride, s.out.distance,
                              data_type(s.out.dtype), s.batch, &p->workspace, data_type(computed)),
      "preparing a transform");
}

// Makes room for one more.
void evict(const CufftApi& api, State& s) {
  if (s.plans.size() < kMaxPlans) return;
  auto oldest = s.plans.begin();
  for (auto it = s.plans.begin(); it != s.plans.end(); ++it)
    if (it->second.used < oldest->second.used) oldest = it;
  api.cufftDestroy(oldest->second.handle);
  s.plans.erase(oldest);
}

}  // namespace

Status run_cufft(Device& d, CUstream stream, const FftShape& shape, const void* in, void* out,
                 bool forward) {
  const char* why = nullptr;
  const CufftApi* api = cufft_api(&why);
  if (!api)
    return fail(Code::kUnsupported,
                "Fourier transforms on CUDA need cuFFT: %s. It comes with the CUDA toolkit and in "
                "pip's packages nvidia-cufft (CUDA 13) and nvidia-cufft-cu12",
                why);
  State& s = state(d);
  std::lock_guard lock(s.mutex);
  const Hash128 key = key_of(shape);
  auto it = s.plans.find(key);
  if (it == s.plans.end()) {
    evict(*api, s);
    Plan fresh;
    if (Status made = make_plan(*api, shape, &fresh); !made.ok()) {
      if (fresh.handle) api->cufftDestroy(fresh.handle);
      return made;
    }
    it = s.plans.emplace(key, fresh).first;
  }
  Plan& p = it->second;
  p.used = ++s.clock;
  Scratch workspace(d, stream);
  if (p.workspace > 0) {
    TS_TRY(workspace.take(p.workspace));
    TS_TRY(fft(api->cufftSetWorkArea(p.handle, reinterpret_cast<void*>(workspace.address())),
               "a workspace"));
  }
  TS_TRY(fft(api->cufftSetStream(p.handle, reinterpret_cast<cudaStream_t>(stream)), "a stream"));
  return fft(api->cufftXtExec(p.handle, const_cast<void*>(in), out,
                              forward ? CUFFT_FORWARD : CUFFT_INVERSE),
             "a transform");
}

}  // namespace tessera::cuda
