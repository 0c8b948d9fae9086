// Walks a pickle opcode by opcode and rewrites the modules that GLOBAL names.
#include <algorithm>
#include <cstdint>

#include "tessera/base/error.h"
#include "tessera/save/little_endian.h"
#include "tessera/save/write_archive.h"

namespace tessera::files {

namespace {

constexpr std::string_view kOurs = "tessera", kTheirs = "torch";

// Bytes that follow an opcode of protocols 0 to 3; -1: lines of text, how many in `lines`.
size_t operand(std::string_view at, int& lines) {
  lines = 0;
  auto left = at.substr(1);
  auto sized = [&](size_t width) {
    TS_ASSERT(left.size() >= width);
    uint32_t n = 0;
    std::memcpy(&n, left.data(), width);
    return width + n;
  };
  switch (static_cast<uint8_t>(at[0])) {
    case 0x80:  // PROTO
    case 'K':
    case 'h':
    case 'q':
    case 0x82:  // EXT1
      return 1;
    case 'M':
    case 0x83:
      return 2;
    case 'J':
    case 'j':
    case 'r':
    case 0x84:
      return 4;
    case 'G':
      return 8;
    case 0x8a:  // LONG1
    case 'U':
    case 'C':
      return sized(1);
    case 0x8b:  // LONG4
    case 'X':
    case 'T':
    case 'B':
      return sized(4);
    case 'c':
    case 'i':
      lines = 2;
      return 0;
    case 'F':
    case 'I':
    case 'L':
    case 'S':
    case 'V':
    case 'P':
    case 'g':
    case 'p':
      lines = 1;
      return 0;
    default:
      return 0;
  }
}

std::string moved_module(std::string_view module, std::string_view name, const ModuleMoves& moves) {
  if (auto found = moves.find(cat(module, ".", name)); found != moves.end()) return found->second;
  if (auto found = moves.find(std::string(module)); found != moves.end()) return found->second;
  bool ours = module == kOurs || (module.starts_with(kOurs) && module[kOurs.size()] == '.');
  return ours ? cat(kTheirs, module.substr(kOurs.size())) : std::string(module);
}

}  // namespace

std::string rename_modules(std::string_view pickle, const ModuleMoves& moves) {
  std::string out;
  out.reserve(pickle.size());
  for (size_t at = 0; at < pickle.size();) {
    int lines;
    size_t begin = at, n = operand(pickle.substr(at), lines);
    bool global = pickle[at] == 'c';
    at += 1 + n;
    for (; lines; --lines) {
      size_t end = pickle.find('\n', at);
      TS_ASSERT(end != pickle.npos);
      at = end + 1;
    }
    TS_ASSERT(at <= pickle.size());
    std::string_view rest = pickle.substr(begin, at - begin);
    if (global) {
      rest.remove_prefix(1);
      std::string_view module = rest.substr(0, rest.find('\n'));
      std::string_view name = rest.substr(module.size() + 1, rest.size() - module.size() - 2);
      out += cat("c", moved_module(module, name, moves), "\n", name, "\n");
    } else {
      out += rest;
    }
  }
  return out;
}

}  // namespace tessera::files
