// An optimizer's state as Python lays it out: {"state": {0: {"step": ...}}, "param_groups": [...]}.
#include "tessera/save/save.h"

#include "tessera/optim/optimizer.h"

namespace tessera::optim {

namespace {

// Options that are a pair in Python.
struct Pair {
  const char *python, *first, *second;
};
constexpr Pair kPairs[] = {{"betas", "beta1", "beta2"},
                           {"etas", "eta_minus", "eta_plus"},
                           {"step_sizes", "step_size_min", "step_size_max"}};

bool among(std::string_view name, std::initializer_list<std::string_view> names) {
  for (std::string_view one : names)
    if (one == name) return true;
  return false;
}
bool is_bool(std::string_view name) {
  return among(name, {"nesterov", "maximize", "amsgrad", "centered", "decoupled_weight_decay"});
}

SaveItem group_item(const ParamGroup& group, int64_t first) {
  std::vector<std::pair<std::string, SaveItem>> out;
  for (auto& [name, value] : group.options) {
    const Pair* pair = nullptr;
    for (const Pair& one : kPairs)
      if (name == one.first || name == one.second) pair = &one;
    if (pair && name == pair->first)
      out.emplace_back(pair->python, SaveItem::list({value, group[pair->second]}));
    else if (!pair)
      out.emplace_back(name, is_bool(name) ? SaveItem(value != 0) : SaveItem(value));
  }
  std::vector<SaveItem> numbers;
  for (size_t i = 0; i < group.params.size(); ++i)
    numbers.emplace_back(first + static_cast<int64_t>(i));
  out.emplace_back("params", SaveItem::list(std::move(numbers)));
  return SaveItem::dict(std::move(out));
}

void read_group(const SavedValue& saved, const std::string& prefix, StateDict& out) {
  for (const std::string& name : saved.keys()) {
    SavedValue value = saved[name];
    const Pair* pair = nullptr;
    for (const Pair& one : kPairs)
      if (name == one.python) pair = &one;
    if (name == "params") {
      out.emplace_back(prefix + name,
                       Tensor(op::full({}, static_cast<int64_t>(value.size()), DType::kInt64)));
    } else if (pair) {
      out.emplace_back(prefix + pair->first, number_tensor(value[0].real()));
      out.emplace_back(prefix + pair->second, number_tensor(value[1].real()));
    } else if (among(name, {"foreach", "fused", "capturable", "differentiable"})) {
      continue;  // ways to step that are all one here
    } else if (value.is_tensor()) {
      out.emplace_back(prefix + name, value.tensor());
    } else if (value.is_number()) {
      out.emplace_back(prefix + name, number_tensor(value.real()));
    }
  }
}

}  // namespace

void save(const Optimizer& optimizer, const std::string& path) {
  int64_t count = 0;
  std::vector<SaveItem> groups;
  for (const ParamGroup& group : optimizer.param_groups()) {
    groups.push_back(group_item(group, count));
    count += static_cast<int64_t>(group.params.size());
  }
  StateDict flat = optimizer.state_dict();
  std::vector<std::pair<int64_t, SaveItem>> states;
  for (int64_t i = 0; i < count; ++i) {
    std::string prefix = cat("state.", i, ".");
    std::vector<std::pair<std::string, SaveItem>> own;
    for (auto& [name, value] : flat)
      if (name.starts_with(prefix)) own.emplace_back(name.substr(prefix.size()), value);
    if (!own.empty()) states.emplace_back(i, SaveItem::dict(std::move(own)));
  }
  tessera::save(SaveItem::dict({{"state", SaveItem::numbered(std::move(states))},
                                {"param_groups", SaveItem::list(std::move(groups))}}),
                path);
}

void load(Optimizer& optimizer, const std::string& path) {
  SavedValue file = tessera::load(path, Device{});
  SavedValue groups = file["param_groups"], states = file["state"];
  StateDict flat;
  int count = 0;
  for (size_t g = 0; g < groups.size(); ++g) {
    SavedValue group = groups[static_cast<int>(g)];
    read_group(group, cat("param_groups.", g, "."), flat);
    count += static_cast<int>(group["params"].size());
  }
  for (int i = 0; i < count; ++i) {
    if (!states.contains(i)) continue;
    SavedValue state = states[i];
    for (const std::string& name : state.keys()) {
      SavedValue value = state[name];
      std::string key = cat("state.", i, ".", name);
      if (value.is_tensor())
        flat.emplace_back(key, value.tensor());
      else if (value.is_number())
        flat.emplace_back(key, number_tensor(value.real()));
      else
        raise(ErrorKind::kValue, cat(path, ": ", key,
                                     " is neither a tensor nor a number: not a state that this "
                                     "optimizer can take up"));
    }
  }
  optimizer.load_state_dict(flat);
}

}  // namespace tessera::optim
