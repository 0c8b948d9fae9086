#include <deque>
#include <map>

#include "tessera/ops/record.h"
#include "tessera/ops/schema.h"

namespace tessera {

namespace {

struct Registry {
  std::deque<OpRecord> records;
  std::deque<Op> ops;
  std::vector<const Op*> all;
  std::map<std::string, std::vector<const Op*>, std::less<>> by_name;
};

// Built by static constructors of the record files, read-only afterwards. Never destroyed: other
// threads may call operators while the process exits.
Registry& registry() {
  static Registry& r = *new Registry;
  return r;
}

std::string family_of(std::string_view file) {
  size_t slash = file.rfind('/');
  size_t before = file.rfind('/', slash - 1);
  return std::string(file.substr(before + 1, slash - before - 1));
}

int position_of(const Op& op, std::string_view name) {
  for (size_t i = 0; i < op.args.size(); ++i)
    if (op.args[i].name == name) return static_cast<int>(i);
  return -1;
}

void for_each_word(std::string_view words, auto&& f) {
  while (!words.empty()) {
    size_t space = words.find(' ');
    std::string_view word = words.substr(0, space);
    words = space == std::string_view::npos ? std::string_view() : words.substr(space + 1);
    if (!word.empty()) f(word);
  }
}

void mark_saved(Op& op, std::string_view words) {
  for_each_word(words, [&](std::string_view word) {
    size_t colon = word.find(':');
    int saved_for = -1;
    bool found = word == "result";
    if (found) op.saved_results |= 1;
    for (size_t r = 0; r < op.result_names.size(); ++r)
      if (op.result_names[r] == word) {
        op.saved_results |= 1u << r;
        found = true;
      }
    if (colon != std::string_view::npos) {
      saved_for = position_of(op, word.substr(colon + 1));
      TS_ASSERT(saved_for >= 0, "record of ", op.name, " saves for an unknown argument: ", word);
    }
    if (int at = position_of(op, word.substr(0, colon)); at >= 0) {
      op.args[static_cast<size_t>(at)].saved = found = true;
      op.args[static_cast<size_t>(at)].saved_for = saved_for;
    }
    TS_ASSERT(found, "record of ", op.name, " saves an unknown argument: ", word);
  });
}

}  // namespace

RegisterOp::RegisterOp(const char* file, OpRecord record) {
  Registry& r = registry();
  r.records.push_back(record);
  Op& op = r.ops.emplace_back();
  op.record = &r.records.back();
  op.samples.assign(record.samples.begin(), record.samples.end());
  op.family = family_of(file);
  op.kind = record.kind;
  op.id = static_cast<int>(r.all.size());
  parse_schema(record.schema, op);
  mark_saved(op, record.saves);
  op.writes_self = op.name.back() == '_' && op.self_index >= 0;
  op.has_gradient = record.backward != nullptr;
  for_each_word(record.also, [&](std::string_view word) { op.paths.emplace_back(word); });
  // What Python keeps in a module is no method, unless it has an alias that is none.
  if (op.paths[0].find('.') != std::string::npos && record.forms == (kFunction | kMethod))
    r.records.back().forms = kFunction;
  r.all.push_back(&op);
  r.by_name[op.name].push_back(&op);
}

std::span<const Op* const> find_ops(std::string_view name) {
  auto it = registry().by_name.find(name);
  if (it == registry().by_name.end()) return {};
  return it->second;
}

const Op& get_op(std::string_view name, size_t overload) {
  auto ops = find_ops(name);
  TS_CHECK_IMPLEMENTED(overload < ops.size(), "there is no operator named ", name);
  return *ops[overload];
}

const std::vector<const Op*>& all_ops() { return registry().all; }

}  // namespace tessera
