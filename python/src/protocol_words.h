// The names of Python's operator protocol. Of the binary ones, each is followed by its reflected
// and its in-place form.
#pragma once
#include <string_view>

namespace tessera::python {

inline constexpr const char* kWords[] = {
    "__add__",      "__radd__",      "__iadd__",       //
    "__sub__",      "__rsub__",      "__isub__",       //
    "__mul__",      "__rmul__",      "__imul__",       //
    "__truediv__",  "__rtruediv__",  "__itruediv__",   //
    "__floordiv__", "__rfloordiv__", "__ifloordiv__",  //
    "__mod__",      "__rmod__",      "__imod__",       //
    "__pow__",      "__rpow__",      "__ipow__",       //
    "__matmul__",   "__rmatmul__",   "__imatmul__",    //
    "__and__",      "__rand__",      "__iand__",       //
    "__or__",       "__ror__",       "__ior__",        //
    "__xor__",      "__rxor__",      "__ixor__",       //
    "__lshift__",   "__rlshift__",   "__ilshift__",    //
    "__rshift__",   "__rrshift__",   "__irshift__",    //
    "__neg__",      "__abs__",       "__invert__",     //
    "__pos__",      "__lt__",        "__le__",         //
    "__eq__",       "__ne__",        "__gt__",         //
    "__ge__",
};
enum Word : int {
  kAdd = 0,
  kSub = 3,
  kMul = 6,
  kTrueDiv = 9,
  kFloorDiv = 12,
  kMod = 15,
  kPow = 18,
  kMatMul = 21,
  kAnd = 24,
  kOr = 27,
  kXor = 30,
  kLShift = 33,
  kRShift = 36,
  kNeg = 39,
  kAbs,
  kInvert,
  kPos,
  kLt,
  kLe,
  kEq,
  kNe,
  kGt,
  kGe,
  kNumWords,
};
static_assert(sizeof kWords / sizeof *kWords == kNumWords);

inline bool is_inplace_word(int word) { return word < kNeg && word % 3 == 2; }

inline int find_word(std::string_view text) {
  for (int i = 0; i < kNumWords; ++i)
    if (text == kWords[i]) return i;
  return -1;
}

}  // namespace tessera::python
