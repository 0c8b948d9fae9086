#include "tessera/driver/ending.h"

#include <mutex>
#include <utility>
#include <vector>

namespace tessera {

namespace {

struct Ends {
  std::mutex mutex;
  std::vector<void (*)()> functions;
  bool promised = false;
};
Ends& ends() {
  static Ends* const all = new Ends;
  return *all;
}

}  // namespace

void promise_end() {
  std::lock_guard lock(ends().mutex);
  ends().promised = true;
}

bool at_end(void (*end)()) {
  std::lock_guard lock(ends().mutex);
  if (!ends().promised) return false;
  ends().functions.push_back(end);
  return true;
}

void end_everything() {
  std::vector<void (*)()> functions;
  {
    std::lock_guard lock(ends().mutex);
    ends().promised = false;
    functions = std::exchange(ends().functions, {});
  }
  while (!functions.empty()) {
    functions.back()();
    functions.pop_back();
  }
}

}  // namespace tessera
