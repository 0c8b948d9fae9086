// Several reductions in one launch: see Note [Batches of reductions] in reduce_text.h.
#include <algorithm>
#include <vector>

#include "codegen.h"
#include "reduce.h"

namespace tessera::cuda {
namespace {

// One pass of one of them.
struct Entry {
  ReducePass pass;
  Joins joins;
  const void* in;
  void* out;
  Hash128 key;
  const Kernel* kernel;
};

constexpr int kCount = 1, kFirst = 1;

int row_words(const Entry& e) { return kFirst + kReduceHead + e.joins.words(); }
int rows_of(const Entry& e) { return (kMaxParamWords - kCount) / row_words(e); }

void set_key(const Device& d, Entry& e) {
  Hasher h = reduce_key(e.pass, static_cast<uint64_t>(d.ordinal));
  h.add(uint64_t{0x6261746368});  // not the one of a reduction by itself
  e.joins.add_to(h, e.pass.vec);
  e.key = h.finish();
}

// The kernels of all entries, which come to lie in the order of their structures.
Status find_kernels(Device& d, std::vector<Entry>& entries) {
  for (Entry& e : entries) set_key(d, e);
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry& a, const Entry& b) { return a.key < b.key; });
  for (Entry& e : entries)
    TS_TRY(get_kernel(d, e.key, kReduceEntry, e.pass.body->name, &e.kernel, [&] {
      const bool company = e.joins.before() || e.joins.after();
      return reduce_text(e.pass, company ? e.joins.text(e.pass.vec) : kNoJoins, rows_of(e));
    }));
  return ok();
}

// Entries of one structure.
Status run_alike(Device& d, CUstream stream, const Entry* first, const Entry* last) {
  const int rows = rows_of(*first), row = row_words(*first);
  while (first != last) {
    const Kernel& k = *first->kernel;
    uint64_t words[kMaxParamWords], alone[kReduceWords];
    int64_t blocks = 0;
    int count = 0;
    for (; first != last && count < rows; ++first, ++count) {
      uint64_t* to = words + kCount + count * row;
      to[0] = static_cast<uint64_t>(blocks);
      reduce_params(first->pass, first->in, first->out, alone);
      std::copy_n(alone, kReduceHead, to + kFirst);
      first->joins.put(to + kFirst + kReduceHead, 0);
      blocks += first->pass.blocks();
    }
    words[0] = static_cast<uint64_t>(count);
    TS_TRY(launch(d, stream, k, {blocks, kReduceThreads}, words, "launching reductions"));
  }
  return ok();
}

Status run_entries(Device& d, CUstream stream, const std::vector<Entry>& entries) {
  const Entry *at = entries.data(), *const end = at + entries.size();
  while (at != end) {
    const Entry* next = at + 1;
    while (next != end && next->key == at->key) ++next;
    TS_TRY(run_alike(d, stream, at, next));
    at = next;
  }
  return ok();
}

}  // namespace

Status run_reduces_on(Device& d, CUstream stream, const JoinedProgram* const* programs, int count) {
  std::vector<Entry> first, second;
  std::vector<PreparedReduction> apart;
  size_t partial_bytes = 0;
  for (int i = 0; i < count; ++i) {
    const ReduceProgram& r = *programs[i]->reduce;
    Entry e{{}, {programs[i]->before, programs[i]->after}, r.in, r.out, {}, nullptr};
    if (!plan_reduce(r, &e.pass) || !fits_in_batch(e.pass) || rows_of(e) < 2) {
      TS_TRY(apart.emplace_back(r, e.joins).prepare(d, stream));
      continue;
    }
    if (e.pass.splits == 1) {
      first.push_back(e);
      continue;
    }
    second.push_back({second_pass(e.pass), e.joins.only_after(), nullptr, r.out, {}, nullptr});
    e.joins = e.joins.only_before();
    // Where its partial results begin, until there is memory for all.
    e.out = reinterpret_cast<void*>(partial_bytes + 1);
    second.back().in = e.out;
    partial_bytes += (static_cast<size_t>(e.pass.splits) * reg_size(r.cls) + 15) / 16 * 16;
    first.push_back(e);
  }
  Scratch partials(d, stream);
  if (partial_bytes > 0) TS_TRY(partials.take(partial_bytes));
  const uintptr_t base = static_cast<uintptr_t>(partials.address()) - 1;
  for (Entry& e : first)
    if (e.pass.splits > 1)
      e.out = reinterpret_cast<void*>(base + reinterpret_cast<uintptr_t>(e.out));
  for (Entry& e : second)
    e.in = reinterpret_cast<const void*>(base + reinterpret_cast<uintptr_t>(e.in));
  TS_TRY(find_kernels(d, first));
  TS_TRY(find_kernels(d, second));
  for (const PreparedReduction& r : apart) TS_TRY(r.run(d, stream));
  TS_TRY(run_entries(d, stream, first));
  return run_entries(d, stream, second);
}

}  // namespace tessera::cuda
