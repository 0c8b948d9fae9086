// What the stand-in for CUPTI is told: each piece of work, and the call that queued it.
#pragma once
#include <cstddef>
#include <cstdint>

namespace emulator {

enum class Piece : int { kKernel, kCopy, kSet, kCall };

struct Observed {
  Piece piece = Piece::kKernel;
  const char* name = "";
  uint64_t start_ns = 0, end_ns = 0;  // of CLOCK_REALTIME, as CUPTI's are
  uint32_t correlation = 0, thread = 0;
  int device = 0;
  uintptr_t stream = 0;
  size_t bytes = 0;
  int direction = 0;  // CUPTI's numbers: 1 to the device, 2 from it, 8 within
};

// What the next work of this thread is.
struct Label {
  Piece piece = Piece::kKernel;
  const char* name = "library";
  size_t bytes = 0;
  int direction = 0;
};
extern thread_local Label t_label;
struct Labelled {
  explicit Labelled(Label label) { t_label = label; }
  ~Labelled() { t_label = {}; }
};

}  // namespace emulator

// Null while nobody looks.
extern "C" void (*emulator_observer)(const emulator::Observed& piece);
