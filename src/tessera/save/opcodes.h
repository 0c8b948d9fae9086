// Pickle's opcodes.
#pragma once
#include <cstdint>

namespace tessera::files::pickle {

enum Opcode : uint8_t {
  kProto = 0x80,
  kStop = '.',
  kMark = '(',
  kNone = 'N',
  kTrue = 0x88,
  kFalse = 0x89,
  kInt4 = 'J',
  kInt1 = 'K',
  kInt2 = 'M',
  kLong1 = 0x8a,
  kFloat = 'G',
  kUnicode = 'X',
  kShortString = 'U',
  kEmptyDict = '}',
  kEmptyList = ']',
  kEmptySet = 0x8f,
  kEmptyTuple = ')',
  kTuple = 't',
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kAppend = 'a',
  kAppends = 'e',
  kSetItem = 's',
  kSetItems = 'u',
  kGet = 'h',
  kLongGet = 'j',
  kPut = 'q',
  kLongPut = 'r',
  kGlobal = 'c',
  kReduce = 'R',
  kBuild = 'b',
  kNewObject = 0x81,
  kPersistent = 'Q',
};

}  // namespace tessera::files::pickle
