#include "tessera/profile/clock.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace tessera::profile {

bool find_even_counter() {
#if defined(__x86_64__)
  // Bit 8 of edx: it runs at one rate whatever the processor does.
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d >> 8 & 1) != 0;
#else
  return false;
#endif
}

namespace {

struct Reading {
  int64_t ticks, ns;
};
// The closest of a few: another thread may have had the processor between the two.
Reading read_both() {
  Reading best{};
  int64_t shortest = INT64_MAX;
  for (int i = 0; i < 5; ++i) {
    const int64_t before = ticks();
    const int64_t ns = steady_ns();
    const int64_t after = ticks();
    if (after - before >= shortest) continue;
    shortest = after - before;
    best = {before + (after - before) / 2, ns};
  }
  return best;
}

// From when the library was loaded: the longer ago, the better is the rate known.
const Reading g_first = read_both();
}  // namespace

TickScale::TickScale() {
  const Reading now = read_both();
  ticks_ = now.ticks;
  ns_ = now.ns;
  rate_ = even_counter() && now.ticks > g_first.ticks
              ? static_cast<double>(now.ns - g_first.ns) /
                    static_cast<double>(now.ticks - g_first.ticks)
              : 1.0;
}

}  // namespace tessera::profile
