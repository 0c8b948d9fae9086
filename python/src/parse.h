// Reads a call's arguments by the descriptors of an operator. Nothing is allocated on the way of
// ordinary calls.
#pragma once
#include <type_traits>

#include "operator_info.h"
#include "torch_function.h"

namespace tessera::python {

inline constexpr int kMaxArgs = 24;

struct Arguments {
  PyObject* const* items;
  Py_ssize_t count;  // positional ones
  PyObject* names;   // of those that follow, or null
};

static_assert(std::is_trivially_copyable_v<Value>);

// What parsing gives: values in the order of the schema, and what they point to.
class Parsed {
 public:
  Parsed() = default;
  Parsed(const Parsed&) = delete;
  Parsed& operator=(const Parsed&) = delete;

  Value* values() { return reinterpret_cast<Value*>(raw_); }
  Args args(size_t n) { return {values(), n}; }
  int64_t* take_ints(size_t n);
  std::vector<TensorBase>& new_tensor_list() { return lists_.emplace_back(); }
  std::vector<double>& new_floats() { return floats_.emplace_back(); }

  Overriders overriders;
  PyObject* out = nullptr;  // `out=`, borrowed: a tensor, or a tuple of them
  bool inplace = false;     // `inplace=True` of a function of nn.functional

 private:
  static constexpr size_t kInts = 32;
  alignas(Value) unsigned char raw_[sizeof(Value) * kMaxArgs];
  int64_t ints_[kInts];
  size_t num_ints_ = 0;
  std::vector<std::vector<int64_t>> more_ints_;
  std::vector<std::vector<TensorBase>> lists_;
  std::vector<std::vector<double>> floats_;
};

// Why arguments do not fit a signature; formatted only if no other one fits.
struct Mismatch {
  enum class What : uint8_t { kNone, kType, kTooMany, kMissing, kUnexpected, kTwice };
  What what = What::kNone;
  int arg = -1;
  int position = -1;            // 0-based as the call has it, -1 by keyword
  PyObject* object = nullptr;   // borrowed: the argument, or the keyword's name
  PyObject* element = nullptr;  // the element of a list that does not fit
  Py_ssize_t element_at = 0;
  Py_ssize_t given = 0;
};

// `takes_inplace`: the function has one more argument at the end, `inplace`.
bool parse(const OpInfo& info, Form form, bool takes_inplace, const Arguments& call, Parsed& out,
           Mismatch& why);
// One argument; false if it does not fit.
bool convert(const ArgInfo& arg, PyObject* o, Value& value, Parsed& out, Mismatch& why);

// torch.channels_last and the like, as the core numbers them.
bool read_memory_format(PyObject* o, Value& value);

// Sets TypeError as PyTorch words it.
PythonError raise_mismatch(const OpSet& set, const char* name, Form form, const Arguments& call,
                           const Mismatch* whys);

}  // namespace tessera::python
