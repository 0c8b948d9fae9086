// The operators as the binder sees them: their records, with names as Python strings.
#pragma once
#include <string>
#include <vector>

#include "py.h"
#include "tessera/ops/call.h"

namespace tessera::python {

struct ArgInfo {
  PyObject* name;  // interned
  const ArgSpec* spec;
  ArgSpec::Type type;
  bool optional;
  bool one_int;
  bool required;
};

struct OpInfo {
  const Op* op;
  std::vector<ArgInfo> args;
  std::vector<Value> defaults;
  int num_positional = 0;
  int varargs = -1;         // the argument that takes the rest of the positional ones
  uint64_t required = 0;    // a bit for each argument
  int factory_device = -1;  // the device argument of an operator that takes no tensor
};

// All overloads of a name, tried in order. An alias, and each module a function is in, has a set of
// its own.
struct OpSet {
  PyObject* name;    // interned: the last part of the path
  std::string path;  // "relu", "nn.functional.relu", "linalg.det"
  std::vector<OpInfo> overloads;
  uint8_t forms = 0;
  bool takes_inplace = false;  // nn.functional: `inplace` comes last
};

enum class Form : uint8_t { kFunction, kMethod, kInplaceFunction, kInplaceMethod };
inline bool is_method(Form f) { return f == Form::kMethod || f == Form::kInplaceMethod; }
inline bool is_inplace(Form f) { return f == Form::kInplaceFunction || f == Form::kInplaceMethod; }

const std::vector<OpSet*>& op_sets();
OpSet* find_op_set(std::string_view path);
void load_op_sets();

}  // namespace tessera::python
