// Makes a program that goes wrong smaller.
#include "program.h"

namespace random_programs {

using tessera::fuse::Mode;

namespace {

// Wrong by chance is wrong too: what depends on the order of threads may need a second look.
bool fails(const Program& p, Mode mode, Likeness at_least) {
  return compare(run_program(p, Mode::kOff), run_program(p, mode)) >= at_least;
}

}  // namespace

Program shrink(Program p, Mode mode, Likeness at_least) {
  for (size_t piece = std::max<size_t>(p.statements.size() / 2, 1);; piece /= 2) {
    bool again = true;
    while (again) {
      again = false;
      for (size_t end = p.statements.size(); end > 0;) {
        size_t from = end - std::min(end, piece);
        Program less = p;
        auto at = less.statements.begin();
        less.statements.erase(at + static_cast<std::ptrdiff_t>(from),
                              at + static_cast<std::ptrdiff_t>(end));
        if (fails(less, mode, at_least)) {
          p = std::move(less);
          again = piece == 1;
        }
        end = std::min(from, p.statements.size());
      }
    }
    if (piece <= 1) break;
  }
  return p;
}

}  // namespace random_programs
