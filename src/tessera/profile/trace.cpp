#include "tessera/profile/trace.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <span>
#include <unordered_map>
#include <unordered_set>

#include "tessera/base/error.h"

namespace tessera::profile {

namespace {

// "mul_add_x3_relu": in program order, at most a few.
std::string joined_names(std::span<const Member> members) {
  constexpr int kMost = 6;
  std::string out;
  int parts = 0;
  for (size_t i = 0; i < members.size();) {
    if (parts++ == kMost) return out + cat("_and_", members.size() - i, "_more");
    size_t same = i;
    while (same < members.size() && !std::strcmp(members[same].name, members[i].name)) ++same;
    if (!out.empty()) out += '_';
    out += members[i].name;
    if (same - i > 1) out += cat("_x", same - i);
    i = same;
  }
  return out;
}

}  // namespace

Trace::Trace(std::vector<std::shared_ptr<const Buffer>> buffers, std::vector<Activity> activities,
             int64_t begin, int64_t end, uint32_t what)
    : buffers_(std::move(buffers)),
      activities_(std::move(activities)),
      begin_(begin),
      length_(end - begin),
      what_(what) {
  using namespace std::chrono;
  epoch_ = duration_cast<nanoseconds>(system_clock::now().time_since_epoch()).count() -
           (steady_ns() - begin);
  const TickScale scale;
  for (const auto& b : buffers_) read(*b, scale);
  read_activities();
  // What begins together: the longer one is outside.
  std::stable_sort(events_.begin(), events_.end(), [](const TraceEvent& a, const TraceEvent& b) {
    return a.start != b.start ? a.start < b.start : a.end > b.end;
  });
  known_.clear();
  nest();
  link_activities();
  drop_doubles();
  add_up();
  find_arrows();
}

std::string_view Trace::intern(std::string text) {
  auto it = names_.find(text);
  if (it == names_.end()) {
    auto kept = std::make_unique<std::string>(std::move(text));
    std::string key = *kept;
    it = names_.emplace(std::move(key), std::move(kept)).first;
  }
  return *it->second;
}

std::string_view Trace::name_of(const Event& e) {
  // Names of operators stay where they are: found by address.
  const bool fixed = e.kind == Kind::kOperator || e.kind == Kind::kOperatorInplace;
  if (fixed) {
    auto it = known_.find({e.name, e.kind});
    if (it != known_.end()) return it->second;
  }
  const bool accumulates = std::string_view(e.name) == "AccumulateGrad";
  std::string text;
  switch (e.kind) {
    case Kind::kOperator:
      text = cat("aten::", e.name);
      break;
    case Kind::kOperatorInplace:
      text = cat("aten::", e.name, "_");
      break;
    case Kind::kNode:
      text = cat("autograd::engine::evaluate_function: ", accumulates ? "torch::autograd::" : "",
                 e.name);
      break;
    case Kind::kNodeApply:
      text = cat(accumulates ? "torch::autograd::" : "", e.name);
      break;
    case Kind::kGroup:
      text = cat("group::", joined_names({static_cast<const Member*>(e.data), e.count}));
      break;
    default:
      text = e.name;
  }
  std::string_view name = intern(std::move(text));
  if (fixed) known_.emplace(std::pair{e.name, e.kind}, name);
  return name;
}

void Trace::read(const Buffer& buffer, const TickScale& scale) {
  const size_t before = events_.size();
  buffer.each([&](const Event& e) {
    TraceEvent t{};
    t.start = scale.ns(e.start) - begin_;
    t.end = scale.ns(e.end) - begin_;
    // What began before the profile did, or ended after it, is not of it.
    if (t.start < 0 || t.end > length_) return;
    t.name = name_of(e);
    t.thread = buffer.thread();
    t.raw = &e;
    if (e.kind == Kind::kMemory) {
      if (!(what_ & kBytes)) return;
      t.category = Category::kMemory;
      t.device = e.device;
      t.bytes = e.amount;
      t.allocated = e.sequence;
      t.address = e.id;
    } else {
      t.category = e.kind == Kind::kUser ? Category::kUser : Category::kOperator;
      t.backward = e.kind == Kind::kNode || e.kind == Kind::kNodeApply;
      t.id = e.id;
      t.sequence = e.sequence;
      t.flops = what_ & kFlops ? e.amount : 0;
    }
    events_.push_back(t);
  });
  if (events_.size() == before) return;
  for (const ThreadInfo& t : threads_)
    if (t.id == buffer.thread()) return;
  threads_.push_back({buffer.thread(), buffer.thread_name()});
}

void Trace::read_activities() {
  // What was queued before it began is not of it, also if it ran later.
  std::unordered_set<uint64_t> before;
  const auto outside = [this](const Activity& a) {
    return a.start < begin_ || a.start > begin_ + length_;
  };
  for (const Activity& a : activities_)
    if (a.kind == Activity::Kind::kCall && outside(a)) before.insert(a.correlation);
  std::erase_if(activities_, [&](const Activity& a) {
    return outside(a) || (a.correlation && before.contains(a.correlation));
  });
  for (const Activity& a : activities_) {
    TraceEvent t{};
    const bool call = a.kind == Activity::Kind::kCall;
    t.category = call                                ? Category::kRuntime
                 : a.kind == Activity::Kind::kKernel ? Category::kKernel
                 : a.kind == Activity::Kind::kCopy   ? Category::kCopy
                                                     : Category::kSet;
    t.name = intern(a.name);
    t.thread = call ? a.thread : 0;
    t.device = call ? -1 : a.device;
    t.stream = a.stream;
    t.start = a.start - begin_;
    t.end = std::max(a.end, a.start) - begin_;
    t.correlation = a.correlation;
    t.bytes = a.bytes;
    t.activity = &a;
    events_.push_back(t);
    if (!call) {
      uses_device_ = true;
      if (std::find(devices_.begin(), devices_.end(), a.device) == devices_.end())
        devices_.push_back(a.device);
    }
  }
  std::sort(devices_.begin(), devices_.end());
}

// By thread, in the order of their beginnings, with a stack of those that are open.
void Trace::nest() {
  std::unordered_map<uint32_t, std::vector<int>> open;
  for (size_t i = 0; i < events_.size(); ++i) {
    TraceEvent& e = events_[i];
    if (e.on_device()) continue;
    std::vector<int>& stack = open[e.thread];
    while (!stack.empty() && events_[static_cast<size_t>(stack.back())].end <= e.start)
      stack.pop_back();
    // Calls are timed by another clock, and the user's scopes may end in any order: what reaches
    // beyond the one it began in is cut there, as viewers would.
    const bool cut = e.category == Category::kRuntime || e.category == Category::kUser;
    if (!stack.empty() && cut)
      e.end = std::min(e.end, events_[static_cast<size_t>(stack.back())].end);
    while (!stack.empty() && events_[static_cast<size_t>(stack.back())].end < e.end)
      stack.pop_back();
    if (!stack.empty()) {
      e.parent = stack.back();
      if (e.category != Category::kMemory) ++events_[static_cast<size_t>(e.parent)].children;
    }
    if (e.category != Category::kMemory) stack.push_back(static_cast<int>(i));
  }
}

// What a call queued takes its time for the operator that the call is in. Kernels that are made of
// operators have no name of their own: theirs is the group's, or the operator's.
void Trace::link_activities() {
  std::unordered_map<uint64_t, int> calls;
  for (size_t i = 0; i < events_.size(); ++i)
    if (events_[i].category == Category::kRuntime && events_[i].correlation)
      calls.emplace(events_[i].correlation, static_cast<int>(i));
  for (size_t i = 0; i < events_.size(); ++i) {
    TraceEvent& e = events_[i];
    if (!e.on_device()) continue;
    e.device_ns = e.self_device_ns = e.duration();
    auto it = calls.find(e.correlation);
    if (it == calls.end()) continue;
    arrows_.push_back({Arrow::Kind::kLaunch, it->second, static_cast<int>(i)});
    int owner = it->second;
    while (owner >= 0 && events_[static_cast<size_t>(owner)].category == Category::kRuntime)
      owner = events_[static_cast<size_t>(owner)].parent;
    if (owner < 0) continue;
    TraceEvent& by = events_[static_cast<size_t>(owner)];
    by.self_device_ns += e.duration();
    started_.emplace_back(owner, static_cast<int>(i));
    if (e.category == Category::kKernel && e.name == "group") {
      std::string_view of = by.name;
      for (std::string_view prefix : {"group::", "aten::"})
        if (of.starts_with(prefix)) of.remove_prefix(prefix.size());
      e.name = intern(cat("group_", of));
    }
  }
}

// An operator that only calls another of its name is the same work twice, as PyTorch sees it.
void Trace::drop_doubles() {
  for (TraceEvent& e : events_) {
    if (e.parent < 0 || e.on_device() || e.category == Category::kMemory) continue;
    TraceEvent& p = events_[static_cast<size_t>(e.parent)];
    if (p.children != 1 || p.name != e.name) continue;
    e.hidden = true;
    p.children = e.children;
    p.self_device_ns += e.self_device_ns;
    e.self_device_ns = 0;
    if (p.sequence < 0) p.sequence = e.sequence;
    if (p.flops == 0) p.flops = e.flops;
  }
  // Past what is hidden.
  const auto shown = [this](int i) {
    while (i >= 0 && events_[static_cast<size_t>(i)].hidden)
      i = events_[static_cast<size_t>(i)].parent;
    return i;
  };
  for (auto& [owner, what] : started_) owner = shown(owner);
  std::sort(started_.begin(), started_.end());
  for (TraceEvent& e : events_) e.parent = shown(e.parent);
}

// Backwards: what is inside comes after what it is in.
void Trace::add_up() {
  for (TraceEvent& e : events_) {
    if (e.on_device() || e.hidden) continue;
    if (e.category == Category::kMemory) {
      (e.device < 0 ? e.host_bytes : e.device_bytes) = e.bytes;
      e.self_host_bytes = e.host_bytes;
      e.self_device_bytes = e.device_bytes;
      if (e.parent < 0) continue;
      TraceEvent& p = events_[static_cast<size_t>(e.parent)];
      p.self_host_bytes += e.host_bytes;
      p.self_device_bytes += e.device_bytes;
      continue;
    }
    e.self_ns += e.duration();
    if (e.parent >= 0) events_[static_cast<size_t>(e.parent)].self_ns -= e.duration();
  }
  for (size_t i = events_.size(); i-- > 0;) {
    TraceEvent& e = events_[i];
    if (e.on_device() || e.hidden || e.category == Category::kMemory) continue;
    e.device_ns += e.self_device_ns;
    e.host_bytes += e.self_host_bytes;
    e.device_bytes += e.self_device_bytes;
    if (e.parent < 0) continue;
    TraceEvent& p = events_[static_cast<size_t>(e.parent)];
    p.device_ns += e.device_ns;
    p.host_bytes += e.host_bytes;
    p.device_bytes += e.device_bytes;
  }
}

void Trace::find_arrows() {
  std::unordered_map<uint64_t, int> by_id;
  std::unordered_map<int64_t, int> forward;  // sequence: the innermost call that made the node
  for (size_t i = 0; i < events_.size(); ++i) {
    const TraceEvent& e = events_[i];
    if (e.id) by_id.emplace(e.id, static_cast<int>(i));
    if (e.sequence >= 0 && !e.backward && !e.hidden && e.category == Category::kOperator)
      forward[e.sequence] = static_cast<int>(i);
  }
  for (size_t i = 0; i < events_.size(); ++i) {
    TraceEvent& e = events_[i];
    if (e.hidden || !e.raw) continue;
    const int at = static_cast<int>(i);
    if (e.backward) {
      auto it = forward.find(e.sequence);
      if (it == forward.end()) continue;
      e.forward_thread = events_[static_cast<size_t>(it->second)].thread;
      if (e.raw->kind == Kind::kNode)
        arrows_.push_back({Arrow::Kind::kForwardBackward, it->second, at});
    } else if (e.raw->kind == Kind::kGroup) {
      const auto* m = static_cast<const Member*>(e.raw->data);
      for (uint32_t k = 0; k < e.raw->count; ++k)
        if (auto it = by_id.find(m[k].call); m[k].call && it != by_id.end())
          arrows_.push_back({Arrow::Kind::kDeferred, it->second, at});
    }
  }
}

std::vector<int> Trace::started_by(int event) const {
  std::vector<int> out;
  auto at = std::lower_bound(started_.begin(), started_.end(), std::pair{event, -1});
  for (; at != started_.end() && at->first == event; ++at) out.push_back(at->second);
  return out;
}

std::vector<Argument> Trace::arguments(const TraceEvent& e) const {
  const bool call =
      e.raw && (e.raw->kind == Kind::kOperator || e.raw->kind == Kind::kOperatorInplace);
  if (!call || !(what_ & kShapes) || !e.raw->data) return {};
  return read_arguments(static_cast<const int64_t*>(e.raw->data), e.raw->count);
}

std::vector<std::string> Trace::stack(const TraceEvent& e) const {
  std::vector<std::string> out;
  if (!e.raw || !(what_ & kStacks)) return out;
  for (uint32_t i = 0; i < e.raw->stack_size; ++i) {
    const SourceRef& s = e.raw->stack[i];
    std::string line = s.text();
    const size_t colon = line.rfind(':');
    if (colon != std::string::npos)
      line = cat(line.substr(0, colon), "(", line.substr(colon + 1), ")");
    out.push_back(cat(line, ": ", s.name()));
  }
  return out;
}

std::vector<std::pair<std::string, std::string>> Trace::members(const TraceEvent& e) const {
  std::vector<std::pair<std::string, std::string>> out;
  if (!e.raw || e.raw->kind != Kind::kGroup) return out;
  const auto* m = static_cast<const Member*>(e.raw->data);
  for (uint32_t i = 0; i < e.raw->count; ++i)
    out.emplace_back(m[i].name, m[i].source ? m[i].source->text() : std::string());
  return out;
}

}  // namespace tessera::profile
