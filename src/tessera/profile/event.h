// What a thread writes down while a profile is on: fixed in size, with what varies beside it.
#pragma once
#include <cstddef>
#include <cstdint>

#include "tessera/base/source.h"

namespace tessera::profile {

enum class Kind : uint8_t {
  kOperator,         // aten::name
  kOperatorInplace,  // aten::name_
  kNode,             // a node of the graph, with its hooks: autograd::engine::evaluate_function
  kNodeApply,        // ... and its gradient alone
  kUser,             // record_function
  kGroup,            // deferred operators that ran together
  kMemory,           // an instant
};

// One operator of a group.
struct Member {
  uint64_t call;            // the event of its call; 0 if that was not recorded
  const char* name;         // lives as long as the process
  const SourceRef* source;  // where it was called; null if not known
};

struct Event {
  Kind kind;
  int16_t device;  // of memory: -1 the host
  uint32_t count;  // of what `data` points to
  int64_t start;   // ticks
  int64_t end;
  const char* name;  // lives as long as the process, or as long as the buffer
  uint64_t id;       // of this event; of memory its address
  int64_t sequence;  // of the node that was made or is run, -1: none; of memory what is allocated
  int64_t amount;    // floating point operations; of memory the bytes, negative when freed
  const void* data;  // words of arguments (arguments.h), members of a group, text of a user's scope
  const SourceRef* stack;  // innermost first
  uint32_t stack_size;
};

}  // namespace tessera::profile
