// Groups that do not depend on each other: see Note [Batches] in codegen.h.
#include <algorithm>
#include <vector>

#include "codegen.h"
#include "group.h"
#include "interpret.h"
#include "kernel.h"

namespace tessera::cuda {

namespace {

struct Entry {
  const GroupProgram* program;
  GroupPlan plan;
  Hash128 key;
};

// Entries of one structure, as many as the parameters of a launch have room for at a time.
Status run_batches(Device& d, CUstream stream, const Entry* first, const Entry* last) {
  const GroupProgram& g = *first->program;
  const Hash128 key = group_key(g, first->plan, static_cast<uint64_t>(d.ordinal), true);
  const int bodies = num_bodies(g);
  const Kernel* k = never_compiles(bodies) ? nullptr : find_kernel(key);
  if (!k && interprets(d, stream, bodies)) {
    if (!never_compiles(bodies))
      TS_TRY(ask_kernel(d, key, group_text(g, first->plan, true), kGroupEntry, name_of(g), &k,
                        effort_of(first->plan)));
    for (; !k && first != last; ++first) {
      Status s = interpret_group(d, stream, *first->program);
      if (s.code == Code::kUnsupported) s = run_group_on(d, stream, *first->program, false);
      TS_TRY(s);
    }
    if (first == last) return ok();
  }
  if (!k)
    TS_TRY(get_kernel(
        d, key, kGroupEntry, name_of(g), &k, [&] { return group_text(g, first->plan, true); },
        effort_of(first->plan)));
  while (first != last) {
    uint64_t words[kMaxParamWords], params[kMaxParamWords];
    int used = kBatchHead;
    int64_t blocks = 0, count = 0;
    for (; first != last; ++first) {
      const int n = group_params(*first->program, first->plan, params);
      if (used + kBatchRow + n > kMaxParamWords) break;
      words[used] = static_cast<uint64_t>(blocks);
      std::copy_n(params, n, words + used + kBatchRow);
      used += kBatchRow + n;
      blocks += group_blocks(*first->program, first->plan);
      ++count;
    }
    words[0] = static_cast<uint64_t>(count);
    TS_TRY(launch(d, stream, *k, {blocks, kGroupThreads}, words, "launching pointwise kernels"));
  }
  return ok();
}

}  // namespace

Status run_groups_on(Device& d, CUstream stream, const GroupProgram* const* programs, int count) {
  static thread_local std::vector<Entry> entries;
  entries.clear();
  uint64_t words[kMaxParamWords];
  for (int i = 0; i < count; ++i) {
    const GroupProgram& g = *programs[i];
    if (g.numel == 0 || g.num_outputs == 0) continue;
    Entry& e = entries.emplace_back();
    e.program = &g;
    if (!plan_group(g, &e.plan) || group_params(g, e.plan, words) == 0)
      return fail(Code::kUnsupported, "a group of %d inputs and %d outputs is too large",
                  g.num_inputs, g.num_outputs);
    e.key = group_key(g, e.plan, static_cast<uint64_t>(d.ordinal));
  }
  // Now or never: once one has run, to run them all again one by one would be wrong.
  for (const Entry& e : entries)
    if (!find_kernel(e.key) && is_refused(d, stream, *e.program))
      return fail(Code::kUnsupported, "the kernel of a group is not there, and is not waited for");
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry& a, const Entry& b) { return a.key < b.key; });
  const Entry *at = entries.data(), *const end = at + entries.size();
  while (at != end) {
    const Entry* next = at + 1;
    while (next != end && next->key == at->key) ++next;
    const int row = kBatchRow + group_params(*at->program, at->plan, words);
    const bool batch = next - at > 1 && at->plan.mode == GroupMode::kLinear && !at->plan.wide &&
                       kBatchHead + 2 * row <= kMaxParamWords;
    if (batch) {
      TS_TRY(run_batches(d, stream, at, next));
    } else {
      for (; at != next; ++at) TS_TRY(run_group_on(d, stream, *at->program, false));
    }
    at = next;
  }
  return ok();
}

}  // namespace tessera::cuda
