// Copies between host and device.
//
// Note [Pageable memory]
// The driver copies pageable memory through one staging buffer on one thread, at a tenth of what
// the bus gives. Here up to four threads each own two page-locked pieces: while one is on the bus
// the other is being filled, and the threads need to meet only at the end. The source has been read
// when the call returns, so the caller may change it at once.
#include "copy.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <mutex>
#include <thread>

namespace tessera::cuda {
namespace {

constexpr int kLanes = 4;
constexpr int kPieces = 2 * kLanes;
constexpr size_t kPieceBytes = 2u << 20;
// Below this, waking threads costs more than it saves.
constexpr size_t kParallelBytes = 4u << 20;

struct Piece {
  char* memory = nullptr;
  CUevent done = nullptr;
  bool busy = false;
  CUstream stream = nullptr;
  size_t used = 0;
};

// Threads that run one job together with the caller, lanes 1.. on their own.
class Team {
 public:
  void run(const std::function<void(int)>& job) {
    {
      std::lock_guard lock(mutex_);
      start();
      job_ = &job;
      left_ = size_;
      ++round_;
    }
    wake_.notify_all();
    job(0);
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [&] { return left_ == 0; });
    job_ = nullptr;
  }
  int lanes() const { return size_ + 1; }
  void start() {
    if (started_) return;
    started_ = true;
    int cores = static_cast<int>(std::thread::hardware_concurrency());
    int wanted = std::clamp(cores - 1, 0, kLanes - 1);
    try {
      for (int lane = 1; lane <= wanted; ++lane) {
        std::thread([this, lane] { serve(lane); }).detach();
        size_ = lane;
      }
    } catch (...) {
      // As many as there are.
    }
  }

 private:
  void serve(int lane) {
    uint64_t seen = 0;
    for (;;) {
      const std::function<void(int)>* job;
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] { return round_ != seen; });
        seen = round_;
        job = job_;
      }
      if (job) (*job)(lane);
      std::lock_guard lock(mutex_);
      if (--left_ == 0) idle_.notify_all();
    }
  }
  std::mutex mutex_;
  std::condition_variable wake_, idle_;
  const std::function<void(int)>* job_ = nullptr;
  uint64_t round_ = 0;
  int size_ = 0, left_ = 0;
  bool started_ = false;
};

struct Staging {
  std::mutex mutex;
  Piece pieces[kPieces];
  int current = 0;
  Team team;
  bool ready = false;
};
// Leaked, as their threads end with the process.
Staging& staging(const Device& d) {
  static Staging* all = new Staging[kMaxDevices];
  return all[d.ordinal];
}

Status prepare(Device& d, Staging& s) {
  if (s.ready) return ok();
  const DriverApi& cu = driver();
  void* memory = nullptr;
  TS_TRY(check(d, cu.cuMemHostAlloc(&memory, kPieces * kPieceBytes, CU_MEMHOSTALLOC_PORTABLE),
               "allocating staging buffers"));
  for (int i = 0; i < kPieces; ++i) {
    s.pieces[i].memory = static_cast<char*>(memory) + i * kPieceBytes;
    TS_TRY(check(d, cu.cuEventCreate(&s.pieces[i].done, CU_EVENT_DISABLE_TIMING),
                 "creating a staging event"));
  }
  s.ready = true;
  return ok();
}

CUresult wait_for(Piece& p) {
  if (!p.busy) return CUDA_SUCCESS;
  p.busy = false;
  p.used = 0;
  return driver().cuEventSynchronize(p.done);
}

// Small copies share a piece as long as they are on one stream: its event then covers them all.
Status upload_small(Device& d, Staging& s, CUstream stream, CUdeviceptr dst, const char* src,
                    size_t bytes) {
  Piece* p = &s.pieces[s.current];
  if (p->used + bytes > kPieceBytes || (p->busy && p->stream != stream)) {
    s.current = (s.current + 1) % kPieces;
    p = &s.pieces[s.current];
    TS_TRY(check(d, wait_for(*p), "waiting for a staging buffer"));
    p->used = 0;
  }
  const DriverApi& cu = driver();
  char* at = p->memory + p->used;
  std::memcpy(at, src, bytes);
  TS_TRY(check(d, cu.cuMemcpyHtoDAsync(dst, at, bytes, stream), "a copy from host to device"));
  p->used += (bytes + 255) / 256 * 256;
  p->stream = stream;
  p->busy = true;
  return check(d, cu.cuEventRecord(p->done, stream), "a copy from host to device");
}

// Runs `lane(number, lanes)` on the team, with the device's context current on each thread.
template <class Lane>
Status in_lanes(Device& d, Staging& s, const char* what, Lane lane) {
  s.team.start();
  CUresult results[kLanes] = {};
  int lanes = s.team.lanes();
  std::function<void(int)> job = [&](int number) {
    CUresult r = driver().cuCtxSetCurrent(d.context);
    results[number] = r == CUDA_SUCCESS ? lane(number, lanes) : r;
  };
  s.team.run(job);
  for (CUresult r : results) TS_TRY(check(d, r, what));
  return ok();
}

Status upload(Device& d, CUstream stream, CUdeviceptr dst, const char* src, size_t bytes) {
  Staging& s = staging(d);
  std::lock_guard lock(s.mutex);
  TS_TRY(prepare(d, s));
  if (bytes < kParallelBytes) {
    for (size_t at = 0; at < bytes; at += kPieceBytes)
      TS_TRY(upload_small(d, s, stream, dst + at, src + at, std::min(kPieceBytes, bytes - at)));
    return ok();
  }
  return in_lanes(d, s, "a copy from host to device", [&](int lane, int lanes) {
    const DriverApi& cu = driver();
    int turn = 0;
    for (size_t at = lane * kPieceBytes; at < bytes; at += lanes * kPieceBytes, turn ^= 1) {
      Piece& p = s.pieces[2 * lane + turn];
      size_t n = std::min(kPieceBytes, bytes - at);
      CUresult r = wait_for(p);
      if (r != CUDA_SUCCESS) return r;
      std::memcpy(p.memory, src + at, n);
      r = cu.cuMemcpyHtoDAsync(dst + at, p.memory, n, stream);
      if (r == CUDA_SUCCESS) r = cu.cuEventRecord(p.done, stream);
      if (r != CUDA_SUCCESS) return r;
      p.busy = true;
      p.stream = stream;
      p.used = kPieceBytes;
    }
    return CUDA_SUCCESS;
  });
}

// One lane of a download: the next piece is asked for before the last one is taken out.
CUresult download_lane(Piece* pair, CUstream stream, char* dst, CUdeviceptr src, size_t bytes,
                       size_t begin, size_t step) {
  const DriverApi& cu = driver();
  auto ask = [&](Piece& p, size_t at) {
    CUresult r = wait_for(p);
    if (r == CUDA_SUCCESS)
      r = cu.cuMemcpyDtoHAsync(p.memory, src + at, std::min(kPieceBytes, bytes - at), stream);
    if (r == CUDA_SUCCESS) r = cu.cuEventRecord(p.done, stream);
    p.busy = r == CUDA_SUCCESS;
    p.stream = stream;
    p.used = kPieceBytes;
    return r;
  };
  int turn = 0;
  if (begin < bytes)
    if (CUresult r = ask(pair[0], begin); r != CUDA_SUCCESS) return r;
  for (size_t at = begin; at < bytes; at += step, turn ^= 1) {
    if (at + step < bytes)
      if (CUresult r = ask(pair[turn ^ 1], at + step); r != CUDA_SUCCESS) return r;
    if (CUresult r = wait_for(pair[turn]); r != CUDA_SUCCESS) return r;
    std::memcpy(dst + at, pair[turn].memory, std::min(kPieceBytes, bytes - at));
  }
  return CUDA_SUCCESS;
}

Status download(Device& d, CUstream stream, char* dst, CUdeviceptr src, size_t bytes) {
  Staging& s = staging(d);
  std::lock_guard lock(s.mutex);
  TS_TRY(prepare(d, s));
  if (bytes < kParallelBytes) {
    TS_TRY(check(d, download_lane(s.pieces, stream, dst, src, bytes, 0, kPieceBytes),
                 "a copy from device to host"));
  } else {
    TS_TRY(in_lanes(d, s, "a copy from device to host", [&](int lane, int lanes) {
      return download_lane(s.pieces + 2 * lane, stream, dst, src, bytes, lane * kPieceBytes,
                           lanes * kPieceBytes);
    }));
  }
  return take_data_error(d);
}

bool is_page_locked(const void* p) {
  unsigned type = 0;
  return driver().cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                        reinterpret_cast<CUdeviceptr>(p)) == CUDA_SUCCESS &&
         type == CU_MEMORYTYPE_HOST;
}

}  // namespace

Status copy_on(Device& d, CUstream stream, CopyKind kind, void* dst, const void* src,
               size_t bytes) {
  if (bytes == 0) return ok();
  const DriverApi& cu = driver();
  CUdeviceptr to = reinterpret_cast<CUdeviceptr>(dst), from = reinterpret_cast<CUdeviceptr>(src);
  switch (kind) {
    case CopyKind::kDeviceToDevice:
      return check(d, cu.cuMemcpyDtoDAsync(to, from, bytes, stream), "a copy on the device");
    case CopyKind::kHostToDevice:
      if (is_page_locked(src))
        return check(d, cu.cuMemcpyHtoDAsync(to, src, bytes, stream), "a copy from host to device");
      return upload(d, stream, to, static_cast<const char*>(src), bytes);
    case CopyKind::kDeviceToHost:
      if (is_page_locked(dst))
        return check(d, cu.cuMemcpyDtoHAsync(dst, from, bytes, stream),
                     "a copy from device to host");
      return download(d, stream, static_cast<char*>(dst), from, bytes);
  }
  return fail(Code::kFailed, "unknown kind of copy");
}

}  // namespace tessera::cuda
