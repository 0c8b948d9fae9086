#include "copy_team.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

namespace tessera::cuda {
namespace {

constexpr int kMostHelpers = 7;
constexpr uint64_t kPieceBits = 0xffffffffu;
// How long a thread looks for new work before it sleeps.
constexpr auto kAwake = std::chrono::microseconds(200);

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

void copy_past_caches(char* to, const char* from, size_t bytes) {
#if defined(__x86_64__)
  constexpr size_t kLine = 64;
  const size_t head = std::min(bytes, (kLine - reinterpret_cast<uintptr_t>(to) % kLine) % kLine);
  std::memcpy(to, from, head);
  size_t at = head;
  for (; at + kLine <= bytes; at += kLine) {
    const __m128i* in = reinterpret_cast<const __m128i*>(from + at);
    __m128i* out = reinterpret_cast<__m128i*>(to + at);
    const __m128i a = _mm_loadu_si128(in), b = _mm_loadu_si128(in + 1);
    const __m128i c = _mm_loadu_si128(in + 2), d = _mm_loadu_si128(in + 3);
    _mm_stream_si128(out, a);
    _mm_stream_si128(out + 1, b);
    _mm_stream_si128(out + 2, c);
    _mm_stream_si128(out + 3, d);
  }
  std::memcpy(to + at, from + at, bytes - at);
  _mm_sfence();
#else
  std::memcpy(to, from, bytes);
#endif
}

}  // namespace

struct CopyTeam::Threads {
  std::vector<std::thread> all;
};

void CopyPieces::copy(int64_t i) const {
  const size_t at = static_cast<size_t>(i) * piece;
  char* in_line = line + at;
  char* in_slot = slot_of(i / per_unit) + static_cast<size_t>(i % per_unit) * piece;
  const size_t n = std::min(piece, bytes - at);
  if (to_slots && past_caches)
    copy_past_caches(in_slot, in_line, n);
  else
    std::memcpy(to_slots ? in_slot : in_line, to_slots ? in_line : in_slot, n);
}

void CopyTeam::start() {
  if (threads_) return;
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  if (wanted_ < 0) wanted_ = std::clamp(cores / 2 - 1, cores > 1 ? 1 : 0, kMostHelpers);
  spins_ = cores >= 8;
  threads_ = new Threads;
  try {
    for (int i = 0; i < wanted_; ++i) threads_->all.emplace_back([this] { serve(); });
  } catch (...) {
    // As many as there are.
  }
}

CopyTeam::~CopyTeam() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  if (!threads_) return;
  for (std::thread& t : threads_->all) t.join();
  delete threads_;
}

void CopyTeam::relax() const {
  if (spins_)
    pause();
  else
    std::this_thread::yield();
}

bool CopyTeam::help() {
  uint64_t next = next_.load(std::memory_order_acquire);
  // Of another round it is smaller than any of this one, or the exchange below fails.
  if (next >= limit_.load(std::memory_order_acquire)) return false;
  if (!next_.compare_exchange_strong(next, next + 1, std::memory_order_acq_rel)) return true;
  const int64_t piece = static_cast<int64_t>(next & kPieceBits);
  pieces_.copy(piece);
  done_[piece % kMostPieces].store(next + 1, std::memory_order_release);
  completed_.fetch_add(1, std::memory_order_release);
  return true;
}

// False when the team ends.
bool CopyTeam::wait_for_work() {
  if (spins_) {
    const auto until = std::chrono::steady_clock::now() + kAwake;
    do {
      for (int i = 0; i < 64; ++i) {
        if (open_.load(std::memory_order_acquire)) return true;
        pause();
      }
    } while (std::chrono::steady_clock::now() < until);
  }
  std::unique_lock lock(mutex_);
  ++asleep_;
  wake_.wait(lock, [&] { return open_ || stop_; });
  --asleep_;
  return !stop_;
}

void CopyTeam::serve() {
  for (;;) {
    if (help()) continue;
    if (open_.load(std::memory_order_acquire))
      relax();
    else if (!wait_for_work())
      return;
  }
}

void CopyTeam::open(const CopyPieces& pieces) {
  start();
  pieces_ = pieces;
  completed_.store(0, std::memory_order_relaxed);
  ++round_;
  next_.store(round_ << 32, std::memory_order_release);
  limit_.store(round_ << 32, std::memory_order_release);
  {
    std::lock_guard lock(mutex_);  // nobody may miss it between its look and its wait
    open_.store(true, std::memory_order_release);
  }
  if (asleep_.load() > 0) wake_.notify_all();
}

void CopyTeam::allow(int64_t pieces) {
  limit_.store(round_ << 32 | static_cast<uint64_t>(pieces), std::memory_order_release);
}

bool CopyTeam::is_done(int64_t piece) const {
  return done_[piece % kMostPieces].load(std::memory_order_acquire) ==
         (round_ << 32 | static_cast<uint64_t>(piece)) + 1;
}

bool CopyTeam::at_work() const {
  const int64_t taken = static_cast<int64_t>(next_.load(std::memory_order_acquire) & kPieceBits);
  return taken > completed_.load(std::memory_order_acquire);
}

void CopyTeam::close() {
  open_.store(false, std::memory_order_release);
  const uint64_t next = next_.exchange(round_ << 32 | kPieceBits, std::memory_order_acq_rel);
  const int64_t taken = static_cast<int64_t>(next & kPieceBits);
  while (completed_.load(std::memory_order_acquire) < taken) relax();
}

}  // namespace tessera::cuda
