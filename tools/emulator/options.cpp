#include "options.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace emulator {
namespace {

// "4GiB", "512MiB"
bool read_size(const char* text, size_t* out) {
  char* unit = nullptr;
  unsigned long long n = std::strtoull(text, &unit, 10);
  int shift = !std::strcmp(unit, "GiB") ? 30 : !std::strcmp(unit, "MiB") ? 20 : -1;
  if (unit == text || shift < 0) return false;
  *out = static_cast<size_t>(n) << shift;
  return true;
}

bool read_word(const std::string& word, Options* o) {
  if (word == "async") return o->async = true;
  if (word == "pages") return (o->pages = 1) != 0;
  if (word == "shuffle") return o->shuffle = true;
  if (word == "idle") return o->idle = true;
  if (word == "nopoison") return !(o->poison = false);
  if (word == "exact") return (o->align = 16) != 0;
  if (word.rfind("seed=", 0) == 0) {
    o->seed = std::strtoull(word.c_str() + 5, nullptr, 10);
    return true;
  }
  const char* text = word.c_str();
  if (const char* by = std::strchr(text, 'x')) {
    o->devices = std::atoi(text);
    text = by + 1;
  }
  return o->devices >= 1 && o->devices <= 16 && read_size(text, &o->memory);
}

// As the real driver, if only numbers: the devices before the first that is not there.
int visible(int count) {
  const char* list = std::getenv("CUDA_VISIBLE_DEVICES");
  if (!list) return count;
  int seen = 0;
  for (const char* at = list; *at;) {
    char* end = nullptr;
    long n = std::strtol(at, &end, 10);
    if (end == at || n < 0 || n >= count) break;
    ++seen;
    at = *end ? end + 1 : end;
  }
  return std::min(seen, count);
}

Options read() {
  Options o;
  const char* text = std::getenv("TESSERA_EMULATOR");
  std::string all = text ? text : "";
  for (size_t begin = 0; begin < all.size();) {
    size_t end = std::min(all.find(',', begin), all.size());
    std::string word = all.substr(begin, end - begin);
    if (!word.empty() && !read_word(word, &o)) {
      std::fprintf(stderr,
                   "TESSERA_EMULATOR: '%s' is none of COUNTxSIZE (2x4GiB), async, shuffle, seed=N, "
                   "nopoison, exact, pages, idle\n",
                   word.c_str());
      std::exit(2);
    }
    begin = end + 1;
  }
  o.devices = visible(o.devices);
  return o;
}

}  // namespace

const Options& options() {
  static const Options o = read();
  return o;
}

}  // namespace emulator
