// Pointwise work inside a kernel over rows.
//
// Note [Company of a kernel]
// A kernel's text asks for V elements of its input from column j of row r on by
//   Before::make(p.before, r, j, to)        to: S (&)[V], the input's elements as in memory
// and hands its output on by
//   After::take(p.after, r, j, from)
// where BEFORE and AFTER are defined; JOIN_FIELDS at the end of its Params holds both's parameters.
// Elements pass in the form that memory would hold, so the kernel computes the bits it always does.
#pragma once
#include <string>

#include "hash.h"
#include "tessera/driver/program.h"

namespace tessera::cuda {

class Joins {
 public:
  Joins(const GroupProgram* before, const GroupProgram* after) : before_(before), after_(after) {}

  const GroupProgram* before() const { return before_; }
  const GroupProgram* after() const { return after_; }
  // Without one of the two: for kernels of several launches.
  Joins only_before() const { return {before_, nullptr}; }
  Joins only_after() const { return {nullptr, after_}; }

  // For accesses of `vec` elements.
  void add_to(Hasher& h, int vec) const;
  std::string text(int vec) const;
  // How many words the fields have.
  int words() const;
  // The fields' words, behind `words`; false where a kernel's parameters have no room for them.
  bool put(uint64_t* words, int used) const;
  static bool fit(const GroupProgram* before, const GroupProgram* after);

 private:
  const GroupProgram* before_;
  const GroupProgram* after_;
};

// Text where nothing joins, so that a kernel need not ask.
inline constexpr const char* kNoJoins = "#define JOIN_FIELDS\n";

}  // namespace tessera::cuda
