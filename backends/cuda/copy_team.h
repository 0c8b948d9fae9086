// Threads that copy the pieces of one large piece of work, each as it comes.
//
// Note [Pieces, not shares]
// A share for each thread makes everybody wait for the slowest, and one that is not scheduled for
// a millisecond is no rarity. Here a thread takes the next piece when it is free; who sleeps takes
// none, and nobody waits for it. The owner of the work says from which piece on memory is ready
// (`allow`) and looks which pieces are done; it takes pieces itself when nobody else does.
#pragma once
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace tessera::cuda {

// The work: a line of memory, cut into units, each of which has a slot in turn; a unit is cut into
// pieces: several threads fill one unit, which then moves as a whole.
struct CopyPieces {
  char* line = nullptr;
  char* slots = nullptr;
  size_t slot_bytes = 0;
  int64_t slot_count = 1;
  int64_t first_slot = 0;
  size_t piece = 0;  // bytes of one
  int64_t per_unit = 1;
  size_t bytes = 0;
  bool to_slots = true;
  bool past_caches = false;  // how slots are filled

  size_t unit_bytes() const { return piece * static_cast<size_t>(per_unit); }
  int64_t count() const { return static_cast<int64_t>((bytes + piece - 1) / piece); }
  int64_t units() const { return (count() + per_unit - 1) / per_unit; }
  char* slot_of(int64_t unit) const {
    return slots + static_cast<size_t>((first_slot + unit) % slot_count) * slot_bytes;
  }
  size_t offset_of(int64_t unit) const { return static_cast<size_t>(unit) * unit_bytes(); }
  size_t size_of(int64_t unit) const { return std::min(unit_bytes(), bytes - offset_of(unit)); }
  // The number of pieces in the first `units` units.
  int64_t pieces_in(int64_t units) const { return std::min(units * per_unit, count()); }
  void copy(int64_t i) const;
};

// One owner of work at a time.
class CopyTeam {
 public:
  // Pieces that may be allowed and not looked at yet.
  static constexpr int64_t kMostPieces = 128;

  // Threads are started at the first work; `helpers` < 0 leaves their number to the machine.
  explicit CopyTeam(int helpers = -1) : wanted_(helpers) {}
  ~CopyTeam();
  CopyTeam(const CopyTeam&) = delete;
  CopyTeam& operator=(const CopyTeam&) = delete;

  void open(const CopyPieces& pieces);
  // Pieces below this number may be copied now. It only grows.
  void allow(int64_t pieces);
  bool is_done(int64_t piece) const;
  // Copies one allowed piece that nobody has taken; false where there is none.
  bool help();
  // Whether some piece was taken and is not done.
  bool at_work() const;
  // No piece is copied any more when this returns.
  void close();
  // A moment's wait of the owner.
  void relax() const;

 private:
  struct Threads;
  void start();
  void serve();
  bool wait_for_work();

  // A round's number in the upper half, a piece's in the lower: a value that was seen once never
  // comes again, so a thread that was away cannot take a piece of another round.
  std::atomic<uint64_t> next_{0}, limit_{0};
  std::atomic<int64_t> completed_{0};
  std::atomic<uint64_t> done_[kMostPieces] = {};
  std::atomic<bool> open_{false}, stop_{false};
  std::atomic<int> asleep_{0};
  uint64_t round_ = 0;
  CopyPieces pieces_;
  std::mutex mutex_;
  std::condition_variable wake_;
  int wanted_;
  bool spins_ = false;
  Threads* threads_ = nullptr;
};

}  // namespace tessera::cuda
