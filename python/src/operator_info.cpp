#include "operator_info.h"

#include <map>
#include <string>

namespace tessera::python {

namespace {

auto& g_by_name = *new std::map<std::string, OpSet*, std::less<>>;
auto& g_all = *new std::vector<OpSet*>;

PyObject* intern(const std::string& s) { return checked(PyUnicode_InternFromString(s.c_str())); }

OpInfo make_info(const Op& op) {
  OpInfo info{&op};
  int info_index = 0;
  bool takes_tensor = false;
  for (const ArgSpec& spec : op.args) {
    bool required = !spec.has_default && !(spec.optional && spec.keyword_only);
    if (required) info.required |= uint64_t{1} << info.args.size();
    if (spec.varargs && info.varargs < 0) info.varargs = static_cast<int>(info.args.size());
    if (!spec.keyword_only) ++info.num_positional;
    info.args.push_back(
        {intern(spec.name), &spec, spec.type, spec.optional, spec.one_int, required});
    info.defaults.push_back(spec.default_value);
    if (spec.type == ArgSpec::Type::kDevice) info.factory_device = info_index;
    takes_tensor |= spec.type == ArgSpec::Type::kTensor || spec.type == ArgSpec::Type::kTensors;
    ++info_index;
  }
  if (takes_tensor) info.factory_device = -1;
  return info;
}

}  // namespace

const std::vector<OpSet*>& op_sets() { return g_all; }

OpSet* find_op_set(std::string_view name) {
  auto it = g_by_name.find(name);
  return it == g_by_name.end() ? nullptr : it->second;
}

void load_op_sets() {
  for (const Op* op : all_ops()) {
    for (const std::string& path : op->paths) {
      OpSet*& set = g_by_name[path];
      size_t dot = path.rfind('.');
      bool top = dot == std::string::npos;
      if (!set) {
        set = new OpSet{intern(top ? path : path.substr(dot + 1)), path, {}, 0};
        g_all.push_back(set);
      }
      set->overloads.push_back(make_info(*op));
      // Methods go by names without a module; in-place forms too, but for nn.functional's relu_.
      uint8_t forms = op->record->forms;
      if (!top) {
        bool functional = path.starts_with("nn.functional.");
        set->takes_inplace |= (forms & kInplace) && functional;
        forms &= functional ? kFunction | kInplace | kOut : kFunction | kOut;
      }
      set->forms |= forms;
    }
  }
}

}  // namespace tessera::python
