#include "tessera/tensor/outcome.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "tessera/base/blocking.h"

namespace tessera {

std::atomic<int64_t> marked_storages{0};

namespace {

struct Range {
  int64_t begin, end;  // bytes of the storage
};

struct Mark {
  Range range;
  CollectiveOutcomePtr outcome;
};

struct Failure {
  std::exception_ptr error;
  std::string text;
  bool reported;
};

struct Registry {
  std::mutex mutex;
  std::unordered_map<const Storage*, std::vector<Mark>> marks;
  std::mutex failures_mutex;
  std::vector<Failure> failures;  // in the order in which they came
  std::vector<std::weak_ptr<CollectiveOutcome>> open;
};

std::atomic<int> g_forks{0};

// Never destroyed: tensors in static storage are freed after main.
Registry* g_registry = nullptr;

// Note [Marks across a fork]
// A thread may free a storage, which takes the registry's lock, while it holds a lock that another
// fork handler waits for. So the lock is tried for a while only; if it stays taken, the child gets
// an empty registry.
bool g_held_for_fork = false;

void prepare_fork() {
  for (int i = 0; i < 100 && !g_held_for_fork; ++i) {
    if (i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    g_held_for_fork = std::try_lock(g_registry->mutex, g_registry->failures_mutex) == -1;
  }
}

void release_fork() {
  if (!g_held_for_fork) return;
  g_held_for_fork = false;
  g_registry->mutex.unlock();
  g_registry->failures_mutex.unlock();
}

void release_child() {
  g_forks.fetch_add(1, std::memory_order_relaxed);
  if (!g_held_for_fork) {
    g_registry = new Registry;
    return;
  }
  // Failures of the parent are reported by the parent.
  g_registry->failures.clear();
  g_registry->open.clear();
  release_fork();
}

Registry& registry() {
  [[maybe_unused]] static const bool made = [] {
    g_registry = new Registry;
    pthread_atfork(prepare_fork, release_fork, release_child);
    return true;
  }();
  return *g_registry;
}

Range range_of(const TensorBase& t) {
  const auto item = static_cast<int64_t>(itemsize(t.dtype()));
  int64_t last = 0;
  for (int d = 0; d < t.dim(); ++d) last += (t.sizes()[d] - 1) * t.strides()[d];
  const int64_t begin = t.storage_offset() * item;
  return {begin, begin + (last + 1) * item};
}

bool overlap(Range a, Range b) { return a.begin < b.end && b.begin < a.end; }

bool has_bit(const Storage& s) { return s.arriving.load(std::memory_order_acquire) & kMarked; }

// With the registry's lock held; outcomes whose last reference went are moved to `dead`, to be
// destroyed without it.
void store_marks(Storage& s, std::vector<Mark> marks, std::vector<Mark>& dead) {
  auto& all = registry().marks;
  auto at = all.find(&s);
  if (at == all.end()) {
    if (marks.empty()) return;
    all.emplace(&s, std::move(marks));
    s.arriving.fetch_or(kMarked, std::memory_order_release);
    marked_storages.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  std::move(at->second.begin(), at->second.end(), std::back_inserter(dead));
  if (!marks.empty()) {
    at->second = std::move(marks);
    return;
  }
  all.erase(at);
  s.arriving.fetch_and(~kMarked, std::memory_order_release);
  marked_storages.fetch_sub(1, std::memory_order_relaxed);
}

// Removes `cut` from the marks of `s` and puts `outcomes` there.
void replace(Storage& s, Range range, bool cut, const std::vector<CollectiveOutcomePtr>& outcomes) {
  std::vector<Mark> dead;
  std::lock_guard lock(registry().mutex);
  std::vector<Mark> marks;
  if (auto at = registry().marks.find(&s); at != registry().marks.end()) {
    for (const Mark& m : at->second) {
      if (!cut || !overlap(m.range, range)) {
        marks.push_back(m);
        continue;
      }
      if (m.range.begin < range.begin) marks.push_back({{m.range.begin, range.begin}, m.outcome});
      if (range.end < m.range.end) marks.push_back({{range.end, m.range.end}, m.outcome});
    }
  } else if (outcomes.empty()) {
    return;
  }
  for (const CollectiveOutcomePtr& o : outcomes) {
    const bool there = std::any_of(marks.begin(), marks.end(), [&](const Mark& m) {
      return m.outcome == o && m.range.begin <= range.begin && range.end <= m.range.end;
    });
    if (!there) marks.push_back({range, o});
  }
  store_marks(s, std::move(marks), dead);
}

std::vector<CollectiveOutcomePtr> outcomes_of(const TensorBase& t) {
  std::vector<CollectiveOutcomePtr> found;
  if (t.numel() == 0 || !has_bit(t.storage())) return found;
  const Range range = range_of(t);
  std::lock_guard lock(registry().mutex);
  auto at = registry().marks.find(&t.storage());
  if (at == registry().marks.end()) return found;
  for (const Mark& m : at->second)
    if (overlap(m.range, range)) found.push_back(m.outcome);
  return found;
}

void forget(Storage& s, const CollectiveOutcomePtr& outcome) {
  std::vector<Mark> dead;
  std::lock_guard lock(registry().mutex);
  auto at = registry().marks.find(&s);
  if (at == registry().marks.end()) return;
  std::vector<Mark> marks;
  for (const Mark& m : at->second)
    if (m.outcome != outcome) marks.push_back(m);
  store_marks(s, std::move(marks), dead);
}

// Adds `outcome` unless one of its domain stands for it already.
void add_outcome(std::vector<CollectiveOutcomePtr>& all, const CollectiveOutcomePtr& outcome) {
  for (CollectiveOutcomePtr& o : all) {
    if (o == outcome) return;
    if (!o->domain || o->domain != outcome->domain) continue;
    if (o->number < outcome->number) o = outcome;
    return;
  }
  all.push_back(outcome);
}

// Waits, and raises the failure. Removes the mark if there is none.
void await_outcome(const TensorBase& t, const CollectiveOutcomePtr& outcome) {
  if (outcome->state() == CollectiveOutcome::State::kOpen) outcome->wait();
  if (outcome->state() == CollectiveOutcome::State::kFailed) outcome->raise();
  forget(t.storage(), outcome);
}

}  // namespace

void mark_collective(const TensorBase& t, const CollectiveOutcomePtr& outcome) {
  if (t.numel() == 0 || outcome->state() == CollectiveOutcome::State::kDone) return;
  replace(t.storage(), range_of(t), false, {outcome});
}

void check_outcome(const TensorBase& t) {
  for (const CollectiveOutcomePtr& o : outcomes_of(t)) await_outcome(t, o);
}

void drop_marks(Storage& s) {
  std::vector<Mark> dead;
  std::lock_guard lock(registry().mutex);
  store_marks(s, {}, dead);
}

void PassedMarks::read(const TensorBase& t) {
  for (const CollectiveOutcomePtr& o : outcomes_of(t)) {
    if (t.device().is_cpu()) {
      await_outcome(t, o);
      continue;
    }
    switch (o->state()) {
      case CollectiveOutcome::State::kDone:
        forget(t.storage(), o);
        break;
      case CollectiveOutcome::State::kFailed:
        o->raise();
        break;
      case CollectiveOutcome::State::kOpen:
        o->join();
        add_outcome(outcomes_, o);
    }
  }
}

void PassedMarks::update(const TensorBase& t) {
  for (const CollectiveOutcomePtr& o : outcomes_of(t)) {
    if (o->state() == CollectiveOutcome::State::kOpen) t.device().is_cpu() ? o->wait() : o->join();
    if (o->state() == CollectiveOutcome::State::kDone)
      forget(t.storage(), o);
    else
      add_outcome(outcomes_, o);
  }
}

void PassedMarks::write(const TensorBase& t, bool overwrites) {
  if (t.numel() == 0 || t.device().is_meta()) return;
  const bool cut = overwrites && has_bit(t.storage()) && (t.is_contiguous() || is_dense(t));
  if (cut || !outcomes_.empty()) replace(t.storage(), range_of(t), cut, outcomes_);
}

namespace {

// With failures_mutex held.
Failure& failure_of(const std::exception_ptr& error) {
  auto& all = registry().failures;
  for (Failure& f : all)
    if (f.error == error) return f;
  return all.emplace_back(Failure{error, "", false});
}

}  // namespace

void record_failure(const std::exception_ptr& error, const std::string& text) {
  std::lock_guard lock(registry().failures_mutex);
  failure_of(error).text = text;
}

// It may be reported before its collectives are failed.
void set_reported(const std::exception_ptr& error) {
  std::lock_guard lock(registry().failures_mutex);
  failure_of(error).reported = true;
}

void watch_outcome(const CollectiveOutcomePtr& outcome) {
  std::lock_guard lock(registry().failures_mutex);
  auto& open = registry().open;
  open.erase(std::remove_if(open.begin(), open.end(), [](auto& w) { return w.expired(); }),
             open.end());
  open.push_back(outcome);
}

void raise_unreported_failure() {
  std::vector<std::weak_ptr<CollectiveOutcome>> open;
  {
    std::lock_guard lock(registry().failures_mutex);
    if (registry().open.empty() && registry().failures.empty()) return;
    open = registry().open;
  }
  for (auto& weak : open)
    if (CollectiveOutcomePtr o = weak.lock())
      if (o->state() == CollectiveOutcome::State::kOpen && o->is_failing()) o->wait();
  std::exception_ptr error;
  {
    std::lock_guard lock(registry().failures_mutex);
    auto& all = registry().failures;
    auto first = std::find_if(all.begin(), all.end(), [](Failure& f) { return !f.reported; });
    if (first == all.end()) return;
    first->reported = true;
    error = first->error;
  }
  std::rethrow_exception(error);
}

std::vector<std::string> unreported_failures() {
  std::vector<std::string> texts;
  std::lock_guard lock(registry().failures_mutex);
  for (const Failure& f : registry().failures)
    if (!f.reported) texts.push_back(f.text);
  return texts;
}

int fork_generation() { return g_forks.load(std::memory_order_relaxed); }

}  // namespace tessera
