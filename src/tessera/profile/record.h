// Where the core says what it does, for whoever profiles. Off costs a load and a branch.
#pragma once
#include <atomic>
#include <memory>
#include <string_view>
#include <vector>

#include "tessera/profile/buffer.h"
#include "tessera/profile/clock.h"

namespace tessera::profile {

enum What : uint32_t {
  kScopes = 1,  // operators, nodes, groups, the user's scopes
  kShapes = 2,
  kStacks = 4,
  kBytes = 8,  // memory taken and given back
  kFlops = 16,
  kMarks = 32,  // scopes are also handed to `mark_hooks`
};

extern std::atomic<uint32_t> wanted;  // a set of What; 0: nothing is noted
inline uint32_t what() { return wanted.load(std::memory_order_relaxed); }
inline bool recording() { return what() != 0; }

// One more profile is on, until `leave`. The buffers of all threads live as long as one is.
void enter(uint32_t what);
void leave(uint32_t what);
// What was noted since the first of the profiles that are on began.
std::vector<std::shared_ptr<const Buffer>> buffers();
// Events that found no room; see TESSERA_PROFILE_MAX_EVENTS.
int64_t dropped();
bool take_room_for(int64_t events);

// The calling thread's buffer in this profile.
Buffer& own_buffer();

// Told of every scope where kMarks is wanted: ranges of another profiler (NVTX).
struct MarkHooks {
  void (*push)(const char* name) = nullptr;
  void (*pop)() = nullptr;
};
extern MarkHooks mark_hooks;

// Something that begins and ends on this thread. To be made only while recording().
class Scope {
 public:
  Scope(Kind kind, const char* name);  // `name` outlives the buffer
  ~Scope() { end(); }
  Scope(const Scope&) = delete;

  void end();
  Buffer& buffer() { return *buffer_; }
  uint64_t id() const { return id_; }

  // Filled in as they become known.
  int64_t sequence = -1;
  int64_t amount = 0;
  const void* data = nullptr;
  uint32_t count = 0;

 private:
  Buffer* buffer_;
  uint64_t generation_;
  Scope* outer_;
  const char* name_;
  const SourceRef* stack_ = nullptr;
  uint32_t stack_size_ = 0;
  Kind kind_;
  bool marked_ = false;
  uint64_t id_;
  int64_t start_;
};

// The innermost scope of this thread; null outside of all.
Scope* current_scope();
inline uint64_t current_call() {
  Scope* s = recording() ? current_scope() : nullptr;
  return s ? s->id() : 0;
}

void note_memory(int device, const void* address, int64_t bytes, int64_t allocated);

}  // namespace tessera::profile
