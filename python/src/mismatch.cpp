// What is said about arguments that fit no signature: PyTorch's words.
#include <string>

#include "parse.h"

namespace tessera::python {

namespace {

using Type = ArgSpec::Type;
using What = Mismatch::What;

const char* type_text(Type t) {
  switch (t) {
    case Type::kTensor:
    case Type::kTensorOrScalar:
      return "Tensor";
    case Type::kScalar:
    case Type::kNumber:
      return "Number";
    case Type::kInt:
      return "int";
    case Type::kFloat:
      return "float";
    case Type::kBool:
      return "bool";
    case Type::kInts:
      return "tuple of ints";
    case Type::kFloats:
      return "tuple of floats";
    case Type::kTensors:
    case Type::kOptionalTensors:
      return "tuple of Tensors";
    case Type::kDType:
      return "torch.dtype";
    case Type::kDevice:
      return "torch.device";
    case Type::kString:
      return "str";
    case Type::kMemoryFormat:
      return "torch.memory_format";
    case Type::kLayout:
      return "torch.layout";
    case Type::kGenerator:
      return "torch.Generator";
  }
  return "";
}

// The last part of a type's name: "numpy.ndarray" says numpy, "builtins.str" says nothing.
std::string type_of(PyObject* o) {
  return is_tensor(o) && is_plain_tensor(o) ? "Tensor" : Py_TYPE(o)->tp_name;
}

std::string arg_name(const OpInfo& info, Form form, int arg) {
  const std::string& name = info.op->args[static_cast<size_t>(arg)].name;
  return !is_method(form) && name == "self" ? "input" : name;
}

std::string describe(const OpInfo& info, const std::string& name, Form form, const Mismatch& why) {
  int hidden = is_method(form) ? 1 : 0;  // self is not counted
  if (why.what == What::kType) {
    std::string arg = why.arg < 0 ? "out" : arg_name(info, form, why.arg);
    const char* wanted =
        why.arg < 0 ? "Tensor" : type_text(info.args[static_cast<size_t>(why.arg)].type);
    std::string text = cat(name, "(): argument '", arg, "'");
    if (why.position >= 0) text += cat(" (position ", why.position + 1 - hidden, ")");
    if (why.element)
      return text + cat(" must be ", wanted, ", but found element of type ", type_of(why.element),
                        " at pos ", static_cast<int64_t>(why.element_at));
    return text + cat(" must be ", wanted, ", not ", type_of(why.object));
  }
  if (why.what == What::kTooMany) {
    int most = info.num_positional - hidden;
    int least = 0;
    for (int i = hidden; i < info.num_positional; ++i) least += info.args[i].required;
    int64_t given = why.given - hidden;
    if (least != most)
      return cat(name, "() takes from ", least, " to ", most, " positional arguments but ", given,
                 given == 1 ? " was given" : " were given");
    return cat(name, "() takes ", most, " positional argument", most == 1 ? "" : "s", " but ",
               given, given == 1 ? " was given" : " were given");
  }
  if (why.what == What::kUnexpected)
    return cat(name, "() got an unexpected keyword argument '", PyUnicode_AsUTF8(why.object), "'");
  if (why.what == What::kTwice)
    return cat(name, "() got multiple values for argument '", PyUnicode_AsUTF8(why.object), "'");
  std::string missing;
  int n = 0;
  for (size_t i = 0; i < info.args.size(); ++i) {
    if (!info.args[i].required || (static_cast<uint64_t>(why.given) >> i & 1)) continue;
    missing += cat(n ? ", \"" : "\"", arg_name(info, form, static_cast<int>(i)), "\"");
    ++n;
  }
  return cat(name, "() missing ", n, " required positional argument", n == 1 ? "" : "s", ": ",
             missing);
}

std::string signature(const OpInfo& info, Form form) {
  std::string text = " * (";
  bool starred = false;
  for (size_t i = is_method(form) ? 1 : 0; i < info.args.size(); ++i) {
    const ArgInfo& arg = info.args[i];
    if (text.back() != '(') text += ", ";
    if (arg.spec->keyword_only && !starred) {
      text += "*, ";
      starred = true;
    }
    text += cat(type_text(arg.type), " ", arg_name(info, form, static_cast<int>(i)));
    if (arg.spec->has_default) text += cat(" = ", arg.spec->default_text);
  }
  return text + ")";
}

std::string given(const Arguments& call, Form form) {
  std::string text = "(";
  for (Py_ssize_t i = is_method(form) ? 1 : 0; i < call.count; ++i) {
    if (text.size() > 1) text += ", ";
    text += type_of(call.items[i]);
  }
  for (Py_ssize_t k = 0; call.names && k < PyTuple_GET_SIZE(call.names); ++k) {
    if (text.size() > 1) text += ", ";
    text += cat(PyUnicode_AsUTF8(PyTuple_GET_ITEM(call.names, k)), "=",
                type_of(call.items[call.count + k]));
  }
  return text + ")";
}

}  // namespace

PythonError raise_mismatch(const OpSet& set, const char* name, Form form, const Arguments& call,
                           const Mismatch* whys) {
  size_t shown = 0, last = 0;
  for (size_t i = 0; i < set.overloads.size(); ++i) {
    if (set.overloads[i].op->record->hidden) continue;
    ++shown;
    last = i;
  }
  std::string text;
  if (shown == 1) {
    text = describe(set.overloads[last], name, form, whys[last]);
  } else {
    text = cat(name, "() received an invalid combination of arguments - got ", given(call, form),
               ", but expected one of:");
    for (const OpInfo& info : set.overloads)
      if (!info.op->record->hidden) text += "\n" + signature(info, form);
  }
  PyErr_SetString(PyExc_TypeError, text.c_str());
  return {};
}

}  // namespace tessera::python
