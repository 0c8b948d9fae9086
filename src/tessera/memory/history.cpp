#include "tessera/memory/history.h"

#include <chrono>
#include <new>

namespace tessera::memory {

const char* action_name(Action a) {
  constexpr const char* names[] = {
      "alloc",        "free_requested", "free_completed", "segment_alloc",
      "segment_free", "segment_map",    "segment_unmap",  "oom"};
  return names[static_cast<int>(a)];
}

void History::start(bool trace, StackOf stacks, size_t max_entries) {
  trace_ = trace;
  max_entries_ = max_entries;
  stacks_of_.store(stacks, std::memory_order_relaxed);
  on_.store(true, std::memory_order_relaxed);
}

void History::stop() {
  on_.store(false, std::memory_order_relaxed);
  entries_.clear();
}

History::Stack History::capture(bool free) const {
  Stack stack;
  const StackOf of = stacks_of_.load(std::memory_order_relaxed);
  if (of == StackOf::kNothing || (free && of != StackOf::kAll)) return stack;
  SourceRef::capture_stack(&stack);
  return stack;
}

uint32_t History::keep(Stack stack) {
  if (stack.empty()) return 0;
  uint64_t hash = stack.size();
  for (const SourceRef& r : stack) hash = (hash ^ r.place()) * 0x9e3779b97f4a7c15u + (hash >> 29);
  auto [from, to] = by_hash_.equal_range(hash);
  for (; from != to; ++from) {
    const Stack& known = stacks_[from->second - 1];
    bool same = known.size() == stack.size();
    for (size_t i = 0; same && i < stack.size(); ++i) same = known[i].same_place(stack[i]);
    if (same) return from->second;
  }
  stacks_.push_back(std::move(stack));
  const auto number = static_cast<uint32_t>(stacks_.size());
  by_hash_.emplace(hash, number);
  return number;
}

void History::add(Action action, const void* address, size_t size, StreamHandle stream,
                  uint32_t stack) {
  if (!trace_) return;
  using namespace std::chrono;
  const int64_t now = duration_cast<microseconds>(system_clock::now().time_since_epoch()).count();
  if (max_entries_ && entries_.size() >= max_entries_) entries_.pop_front();
  try {
    entries_.push_back({action, stack, reinterpret_cast<uintptr_t>(address),
                        static_cast<int64_t>(size), stream, now});
  } catch (const std::bad_alloc&) {  // the entry is lost: memory is given back by destructors
  }
}

}  // namespace tessera::memory
