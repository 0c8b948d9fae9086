#include "tessera/distributed/process_group.h"

#include <algorithm>
#include <numeric>

#include "tessera/base/blocking.h"
#include "tessera/distributed/error.h"
#include "tessera/distributed/job.h"

namespace tessera::distributed {

const char* collective_name(Collective kind) {
  constexpr const char* names[] = {
      "all_reduce",     "reduce",     "broadcast", "all_gather", "gather", "scatter",
      "reduce_scatter", "all_to_all", "barrier",   "send",       "recv"};
  return names[static_cast<int>(kind)];
}

namespace {

// "16" of "default_pg=16;sub=3": how far a rank had got in a group when it left; -1: not told.
int64_t progress_in(const std::string& text, const std::string& group) {
  std::string all = ";" + text, key = ";" + group + "=";
  size_t at = all.find(key);
  return at == std::string::npos ? -1 : std::strtoll(all.c_str() + at + key.size(), nullptr, 10);
}

std::string sizes_text(const TensorBase& t) { return cat(t.numel(), " elements of ", t.dtype()); }

}  // namespace

ProcessGroup::ProcessGroup(std::shared_ptr<Job> job, Options options)
    : job_(std::move(job)), options_(std::move(options)), timeout_(options_.timeout.count()) {}

// Threads of the backends look at the group: they end first. One of them may let go of a tensor
// that Python knows.
ProcessGroup::~ProcessGroup() {
  BlockingScope others_go_on;
  backends_.clear();
}

std::string ProcessGroup::backend_name() const {
  std::string first, all;
  bool same = true;
  for (auto& [type, backend] : backends_) {
    if (first.empty()) first = backend->name();
    same = same && first == backend->name();
    all +=
        cat(all.empty() ? "" : ",", type == DeviceType::kCPU ? "cpu:" : "cuda:", backend->name());
  }
  return same ? first : all;
}

void ProcessGroup::add_backend(DeviceType type, std::shared_ptr<GroupBackend> backend) {
  backends_[type] = std::move(backend);
}

GroupBackend& ProcessGroup::backend_for(const Request& r) {
  DeviceType type = DeviceType::kCPU;
  if (!r.inputs.empty())
    type = r.inputs[0].device().type;
  else if (!r.outputs.empty())
    type = r.outputs[0].device().type;
  else
    type = static_cast<DeviceType>(r.tag);  // a barrier
  auto at = backends_.find(type);
  if (at == backends_.end() && r.kind == Collective::kBarrier) at = backends_.begin();
  TS_CHECK(at != backends_.end(), "No backend type associated with device type ",
           type == DeviceType::kCPU    ? "cpu"
           : type == DeviceType::kCUDA ? "cuda"
                                       : "meta",
           ": the group '", name(), "' has ", backend_name());
  return *at->second;
}

std::string ProcessGroup::title(const Request& r) const {
  return cat("[rank ", job_->rank(), "] ", r.text, ", sequence number ", r.sequence, " of group '",
             name(), "'");
}

void ProcessGroup::check_usable(const Request& r) {
  {
    std::lock_guard lock(mutex_);
    if (failure_)
      throw DistError(DistErrorKind::kBackend,
                      cat(title(r), ", was not started; the group failed before: ", failure_text_));
  }
  if (!job_->monitor()) return;
  for (auto& [rank, fate] : job_->monitor()->fates()) {
    if (std::find(ranks().begin(), ranks().end(), rank) == ranks().end()) continue;
    if (fate.died || (!r.is_point_to_point() && progress_in(fate.text, name()) < r.sequence))
      std::rethrow_exception(fail(r, "", Cause::kKnown));
  }
}

WorkPtr ProcessGroup::submit(Request r) {
  GroupBackend& backend = backend_for(r);
  auto check_tensors = [&](const std::vector<TensorBase>& all) {
    for (const TensorBase& t : all) {
      TS_CHECK_VALUE(t.is_contiguous(), "Tensors must be contiguous");
      const TensorBase& first = r.inputs.empty() ? r.outputs[0] : r.inputs[0];
      TS_CHECK_VALUE(t.dtype() == first.dtype(), "Tensors must have identical type");
      TS_CHECK_VALUE(t.device() == first.device(), "Tensors must be on the same device");
    }
  };
  check_tensors(r.inputs);
  check_tensors(r.outputs);
  TS_CHECK_VALUE(r.peer >= (r.kind == Collective::kReceive ? -1 : 0) && r.peer < size(),
                 collective_name(r.kind), ": there is no rank ", r.peer, " in a group of ", size());
  r.sequence = 1 + (r.is_point_to_point() ? messages_ : sequence_).fetch_add(1);
  {
    std::lock_guard lock(mutex_);
    last_ = cat(r.text, ", sequence number ", r.sequence);
  }
  try {
    check_usable(r);
  } catch (const DistError&) {
    if (std::exception_ptr error = failure()) set_reported(error);  // its text is part of this one
    throw;
  }
  // Reductions in place and broadcasts have their input in `outputs`.
  const bool reads_outputs = r.kind == Collective::kAllReduce || r.kind == Collective::kReduce ||
                             (r.kind == Collective::kBroadcast && r.peer == rank());
  PassedMarks marks;
  if (has_marks()) {
    for (const TensorBase& t : r.inputs) marks.read(t);
    if (reads_outputs)
      for (const TensorBase& t : r.outputs) marks.read(t);
  }
  const std::vector<TensorBase> outputs = r.outputs;
  WorkPtr work = backend.run(std::move(r));
  for (const TensorBase& t : outputs) {
    marks.write(t, true);
    mark_collective(t, work->completion());
  }
  return work;
}

WorkPtr ProcessGroup::all_reduce(TensorBase t, ReduceOp op) {
  reduce_function(t.dtype(), op);
  std::string text = cat("all_reduce of ", sizes_text(t), ", ", reduce_name(op));
  return submit(
      {.kind = Collective::kAllReduce, .outputs = {t}, .op = op, .text = text, .result = {t}});
}

WorkPtr ProcessGroup::reduce(TensorBase t, int root, ReduceOp op) {
  reduce_function(t.dtype(), op);
  std::string text = cat("reduce to rank ", root, " of ", sizes_text(t), ", ", reduce_name(op));
  return submit({.kind = Collective::kReduce,
                 .outputs = {t},
                 .op = op,
                 .peer = root,
                 .text = text,
                 .result = {t}});
}

WorkPtr ProcessGroup::broadcast(TensorBase t, int root) {
  std::string text = cat("broadcast from rank ", root, " of ", sizes_text(t));
  return submit(
      {.kind = Collective::kBroadcast, .outputs = {t}, .peer = root, .text = text, .result = {t}});
}

namespace {

// One tensor with a part for each rank, or as many tensors of the size of `part`.
void check_parts(const char* what, const std::vector<TensorBase>& parts, const TensorBase& part,
                 int size) {
  int64_t all = 0;
  for (const TensorBase& t : parts) all += t.numel();
  TS_CHECK_VALUE(all == part.numel() * size, what, ": expected ", size, " times ", part.numel(),
                 " elements, got ", all, " in ", static_cast<int64_t>(parts.size()), " tensor",
                 parts.size() == 1 ? "" : "s");
  if (parts.size() == 1) return;
  TS_CHECK_VALUE(static_cast<int>(parts.size()) == size, what, ": expected ", size,
                 " tensors, got ", static_cast<int64_t>(parts.size()));
  for (const TensorBase& t : parts)
    TS_CHECK_VALUE(t.numel() == part.numel(), what,
                   ": all tensors must have the same number of elements");
}

}  // namespace

WorkPtr ProcessGroup::all_gather(std::vector<TensorBase> out, TensorBase in) {
  check_parts("all_gather", out, in, size());
  std::string text = cat("all_gather of ", sizes_text(in));
  return submit({.kind = Collective::kAllGather,
                 .inputs = {in},
                 .outputs = out,
                 .text = text,
                 .result = out});
}

WorkPtr ProcessGroup::gather(std::vector<TensorBase> out, TensorBase in, int root) {
  if (root == rank())
    check_parts("gather", out, in, size());
  else
    out.clear();
  std::string text = cat("gather to rank ", root, " of ", sizes_text(in));
  return submit({.kind = Collective::kGather,
                 .inputs = {in},
                 .outputs = out,
                 .peer = root,
                 .text = text,
                 .result = out});
}

WorkPtr ProcessGroup::scatter(TensorBase out, std::vector<TensorBase> in, int root) {
  if (root == rank())
    check_parts("scatter", in, out, size());
  else
    in.clear();
  std::string text = cat("scatter from rank ", root, " of ", sizes_text(out));
  return submit({.kind = Collective::kScatter,
                 .inputs = in,
                 .outputs = {out},
                 .peer = root,
                 .text = text,
                 .result = {out}});
}

WorkPtr ProcessGroup::reduce_scatter(TensorBase out, std::vector<TensorBase> in, ReduceOp op) {
  reduce_function(out.dtype(), op);
  check_parts("reduce_scatter", in, out, size());
  std::string text = cat("reduce_scatter of ", sizes_text(out), ", ", reduce_name(op));
  return submit({.kind = Collective::kReduceScatter,
                 .inputs = in,
                 .outputs = {out},
                 .op = op,
                 .text = text,
                 .result = {out}});
}

WorkPtr ProcessGroup::all_to_all(std::vector<TensorBase> out, std::vector<TensorBase> in) {
  TS_CHECK_VALUE(static_cast<int>(in.size()) == size() && static_cast<int>(out.size()) == size(),
                 "all_to_all: expected ", size(), " input and ", size(), " output tensors");
  std::vector<int64_t> to, from;
  for (const TensorBase& t : in) to.push_back(t.numel());
  for (const TensorBase& t : out) from.push_back(t.numel());
  std::string text = cat("all_to_all of ", in[0].dtype());
  return submit({.kind = Collective::kAllToAll,
                 .inputs = in,
                 .outputs = out,
                 .to = to,
                 .from = from,
                 .text = text,
                 .result = out});
}

WorkPtr ProcessGroup::all_to_all_single(TensorBase out, TensorBase in,
                                        std::vector<int64_t> out_split,
                                        std::vector<int64_t> in_split) {
  auto elements = [&](const TensorBase& t, std::vector<int64_t> split, const char* which) {
    const int64_t rows = t.dim() ? t.sizes()[0] : 1;
    if (split.empty()) {
      TS_CHECK_VALUE(rows % size() == 0,
                     "Tensor's dim 0 does not divide equally across group size");
      split.assign(size(), rows / size());
    }
    TS_CHECK_VALUE(static_cast<int>(split.size()) == size(),
                   "Number of tensor splits not equal to group size");
    TS_CHECK_VALUE(std::all_of(split.begin(), split.end(), [](int64_t n) { return n >= 0; }) &&
                       std::accumulate(split.begin(), split.end(), int64_t{0}) == rows,
                   "Split sizes doesn't match total dim 0 size: ", which, " of all_to_all_single");
    for (int64_t& n : split) n *= rows ? t.numel() / rows : 0;
    return split;
  };
  std::vector<int64_t> to = elements(in, std::move(in_split), "input");
  std::vector<int64_t> from = elements(out, std::move(out_split), "output");
  std::string text = cat("all_to_all of ", in.dtype());
  return submit({.kind = Collective::kAllToAll,
                 .inputs = {in},
                 .outputs = {out},
                 .to = to,
                 .from = from,
                 .text = text,
                 .result = {out}});
}

WorkPtr ProcessGroup::send(TensorBase t, int to, uint32_t tag) {
  TS_CHECK_VALUE(to != rank(), "Invalid destination rank: destination rank should not be the same ",
                 "as the rank of the current process.");
  std::string text = cat("send to rank ", to, " (tag ", int64_t{tag}, ") of ", sizes_text(t));
  return submit({.kind = Collective::kSend, .inputs = {t}, .peer = to, .tag = tag, .text = text});
}

WorkPtr ProcessGroup::receive(TensorBase t, int from, uint32_t tag) {
  TS_CHECK_VALUE(from != rank(), "Invalid source rank: source rank should not be the same as ",
                 "the rank of the current process.");
  std::string whom = from < 0 ? "any rank" : cat("rank ", from);
  std::string text = cat("recv from ", whom, " (tag ", int64_t{tag}, ") of ", sizes_text(t));
  return submit({.kind = Collective::kReceive,
                 .outputs = {t},
                 .peer = from,
                 .tag = tag,
                 .text = text,
                 .result = {t}});
}

WorkPtr ProcessGroup::barrier(DeviceType type) {
  return submit(
      {.kind = Collective::kBarrier, .tag = static_cast<uint32_t>(type), .text = "barrier"});
}

int64_t ProcessGroup::finished() const {
  int64_t last = sequence_;
  for (auto& [type, backend] : backends_)
    if (int64_t n = backend->oldest_collective()) last = std::min(last, n - 1);
  std::lock_guard lock(mutex_);
  return failed_at_ ? std::min(last, failed_at_ - 1) : last;
}

bool ProcessGroup::flush(Milliseconds patience) {
  BlockingScope others_go_on;
  const Deadline deadline = Clock::now() + patience;
  for (auto& [type, backend] : backends_)
    if (!backend->flush(Milliseconds(milliseconds_left(deadline)))) return false;
  return true;
}

void ProcessGroup::begin_batch(DeviceType type) {
  if (auto at = backends_.find(type); at != backends_.end()) at->second->begin_batch();
}
void ProcessGroup::end_batch(DeviceType type) {
  if (auto at = backends_.find(type); at != backends_.end()) at->second->end_batch();
}

std::exception_ptr ProcessGroup::failure() const {
  std::lock_guard lock(mutex_);
  return failure_;
}

std::exception_ptr ProcessGroup::fail(const Request& r, const std::string& reason, Cause known) {
  if (std::exception_ptr before = failure()) return before;
  const bool timed_out = known == Cause::kTime;
  // Nobody is left to tell, and the process may be ending.
  if (job_->has_left()) known = Cause::kKnown;
  std::string cause;
  bool gone = false;
  if (Monitor* monitor = job_->monitor()) {
    // The library may notice first; and one that failed in turn looks dead to it.
    if (known == Cause::kUnknown) monitor->await_death(Milliseconds(1500));
    auto fates = monitor->fates();
    for (int rank : ranks()) {
      auto at = fates.find(rank);
      if (at == fates.end()) continue;
      gone = true;
      cause += cat(cause.empty() ? "" : "; ", "rank ", rank);
      if (at->second.died)
        cause += cat(" died (", at->second.text, ")");
      else
        cause += cat(" left the job after sequence number ", progress_in(at->second.text, name()),
                     " of this group");
    }
    // A member may have left because of one that is in no group of ours.
    for (auto& [rank, fate] : fates)
      if (gone && fate.died && std::find(ranks().begin(), ranks().end(), rank) == ranks().end())
        cause += cat("; rank ", rank, " died (", fate.text, ")");
    if (!gone && known != Cause::kKnown) {
      cause = timed_out ? cat("no answer within ", timeout().count(), " ms") : reason;
      auto answers = monitor->roll_call(Milliseconds(500));
      for (int rank : ranks()) {
        if (rank == job_->rank()) continue;
        auto at = answers.find(rank);
        cause += cat("\n  rank ", rank, ": ", at == answers.end() ? "does not answer" : at->second);
      }
    }
  } else if (timed_out) {
    cause = cat("no answer within ", timeout().count(), " ms");
  }
  if (cause.empty()) cause = reason;
  if ((gone || timed_out) && !reason.empty()) cause += cat("\n  (", reason, ")");
  std::string text = cat(title(r), ", failed: ", cause);
  auto error = std::make_exception_ptr(DistError(DistErrorKind::kBackend, text));
  {
    std::lock_guard lock(mutex_);
    if (failure_) return failure_;
    failure_ = error;
    failure_text_ = text;
    if (!r.is_point_to_point()) failed_at_ = r.sequence;
  }
  abort(error);
  return error;
}

void ProcessGroup::abort(std::exception_ptr error) {
  for (auto& [type, backend] : backends_) backend->abort(error);
}

void ProcessGroup::news(int world_rank, const Fate& fate) {
  if (std::find(ranks().begin(), ranks().end(), world_rank) == ranks().end()) return;
  const int64_t upto = fate.died ? -1 : progress_in(fate.text, name());
  for (auto& [type, backend] : backends_)
    if (auto request = backend->oldest_after(upto)) fail(*request, "", Cause::kKnown);
}

std::string ProcessGroup::status() const {
  std::lock_guard lock(mutex_);
  return cat("last called ", last_, " of group '", name(), "'", failure_ ? ", which failed" : "");
}

}  // namespace tessera::distributed
