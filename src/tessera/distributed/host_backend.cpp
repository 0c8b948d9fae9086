#include "tessera/distributed/host_backend.h"

#include <cstdlib>
#include <cstring>
#include <numeric>

#include "tessera/distributed/error.h"
#include "tessera/distributed/packed.h"
#include "tessera/distributed/process_group.h"

namespace tessera::distributed {

namespace {

// Ranks show each other so much of their calls where these differ.
constexpr size_t kTextBytes = 240;

uint64_t hash_of(const std::string& text) {
  uint64_t h = 1469598103934665603u;
  for (unsigned char c : text) h = (h ^ c) * 1099511628211u;
  return h;
}

bool checks_asked() {
  const char* asked = std::getenv("TESSERA_DIST_CHECK");
  return !asked || std::strcmp(asked, "0") != 0;
}

// What is left of a call's time for its next step.
Engine::Time left(Deadline end) { return Engine::Time(std::max(1, milliseconds_left(end))); }

// Precedes every message between two ranks.
struct MessageHead {
  int64_t bytes;
  int64_t dtype;
};

}  // namespace

HostBackend::HostBackend(std::string name, ProcessGroup& group, std::unique_ptr<Engine> engine)
    : name_(std::move(name)), group_(group), engine_(std::move(engine)), check_(checks_asked()) {}

HostBackend::~HostBackend() {
  std::exception_ptr error;
  try {
    error = std::make_exception_ptr(
        DistError(DistErrorKind::kBackend, cat("the group '", group_.name(), "' was destroyed")));
  } catch (const std::bad_alloc&) {
    error = std::current_exception();
  }
  abort(error);
  // The program ended the group itself. Outputs of collectives in flight stay poisoned.
  set_reported(error);
}

void HostBackend::abort(std::exception_ptr error) {
  std::lock_guard lock(mutex_);
  if (!aborted_) aborted_ = error;
  collectives_.fail_all(error);
  for (auto& [key, lane] : messages_) lane->fail_all(error);
  engine_->abort();
}

Lane& HostBackend::lane_for(const Request& r) {
  if (!r.is_point_to_point()) return collectives_;
  std::lock_guard lock(mutex_);
  auto& lane = messages_[{r.kind == Collective::kSend, r.peer, r.tag}];
  if (!lane) {
    lane = std::make_unique<Lane>();
    if (aborted_) lane->fail_all(aborted_);
  }
  return *lane;
}

WorkPtr HostBackend::run(Request r) {
  auto request = std::make_shared<const Request>(std::move(r));
  using Use = Packed::Use;
  const bool in_place = request->kind == Collective::kAllReduce ||
                        request->kind == Collective::kReduce ||
                        request->kind == Collective::kBroadcast;
  auto in = std::make_shared<Packed>(request->inputs, Use::kRead);
  auto out = std::make_shared<Packed>(request->outputs, in_place ? Use::kUpdate : Use::kWrite);
  auto work = std::make_shared<Work>(request->text, request->result);
  Completion& completion = *work->completion();
  if (auto copies = out->copies()) {
    completion.on_join([copies] { copies->join(); });
    completion.on_query([copies] {
      // An error of the device is raised by the call that reads the tensor.
      using Progress = Completion::Progress;
      return copies->query().code == Code::kNotReady ? Progress::kRunning : Progress::kPassed;
    });
  }
  Lane& lane = lane_for(*request);
  completion.on_patience(
      [this, request, &lane, weak = std::weak_ptr<Completion>(work->completion())] {
        // Engines keep their deadlines; this is for one that does not.
        Deadline since;
        Milliseconds limit = group_.timeout();
        if (lane.running(&since) != request) return;
        if (Clock::now() - since < limit + std::chrono::seconds(15)) return;
        std::exception_ptr error =
            group_.fail(*request, cat(name_, " did not come back"), ProcessGroup::Cause::kTime);
        if (auto w = weak.lock()) w->fail(error);
      });
  Work* raw = work.get();
  lane.post({request, work,
             [this, request, in, out, raw] {
               in->fetch();
               out->fetch();
               carry_out(*request, in->data(), in->bytes(), out->data(), out->bytes(), *raw);
               out->store();
             },
             [this, request, raw](std::exception_ptr thrown, Deadline began) {
               return explain(*request, *raw->completion(), thrown, began);
             }});
  return work;
}

std::exception_ptr HostBackend::explain(const Request& r, Completion& completion,
                                        std::exception_ptr thrown, Deadline began) {
  if (std::exception_ptr before = group_.failure()) return before;
  using Cause = ProcessGroup::Cause;
  try {
    std::rethrow_exception(thrown);
  } catch (const DistError& e) {
    // Calls that do not fit together, seen by all: the group goes on. Of a message only its head
    // was taken.
    if (r.is_point_to_point()) return group_.fail(r, e.what(), Cause::kKnown);
    completion.set_untouched();
    return std::make_exception_ptr(
        DistError(DistErrorKind::kBackend, cat(group_.title(r), ", failed: ", e.what())));
  } catch (const std::exception& e) {
    bool late = Clock::now() - began >= group_.timeout();
    return group_.fail(r, e.what(), late ? Cause::kTime : Cause::kUnknown);
  } catch (...) {
    return group_.fail(r, "an exception of unknown type", Cause::kUnknown);
  }
}

std::shared_ptr<const Request> HostBackend::oldest_after(int64_t upto) {
  if (auto r = collectives_.running(); r && r->sequence > upto) return r;
  if (upto >= 0) return nullptr;
  std::lock_guard lock(mutex_);
  for (auto& [key, lane] : messages_)
    if (auto r = lane->running()) return r;
  return nullptr;
}

void HostBackend::agree(const Request& r, Engine::Time timeout) {
  if (!check_ || group_.size() == 1) return;
  if (engine_->all_same(hash_of(cat(r.sequence, " ", r.text)), timeout)) return;
  std::string mine = cat(r.text, ", sequence number ", r.sequence);
  mine.resize(kTextBytes);
  std::string all(kTextBytes * group_.size(), '\0');
  engine_->all_gather(mine.data(), all.data(), kTextBytes, timeout);
  std::string message = "the ranks called different collectives:";
  for (int rank = 0; rank < group_.size(); ++rank)
    message += cat("\n  rank ", group_.ranks()[rank], ": ", all.c_str() + kTextBytes * rank);
  throw DistError(DistErrorKind::kBackend, message);
}

void HostBackend::carry_out(const Request& r, char* in, size_t in_bytes, char* out,
                            size_t out_bytes, Work& work) {
  Engine& e = *engine_;
  const Deadline end = Clock::now() + group_.timeout();
  // Once more: whoever is gone from now on, the monitor's news find this call under way.
  group_.check_usable(r);
  if (r.is_point_to_point()) {
    bool sends = r.kind == Collective::kSend;
    return message(r, sends ? in : out, sends ? in_bytes : out_bytes, work, end);
  }
  agree(r, left(end));
  const Engine::Time timeout = left(end);
  const std::vector<TensorBase>& typed = r.outputs.empty() ? r.inputs : r.outputs;
  DType dtype = typed.empty() ? DType::kUInt8 : typed[0].dtype();
  const size_t item = itemsize(dtype);
  const size_t n = static_cast<size_t>(group_.size());
  const bool root = r.peer == group_.rank();
  const bool average = r.op == ReduceOp::kAvg;
  switch (r.kind) {
    case Collective::kAllReduce:
      e.all_reduce(out, out_bytes / item, dtype, r.op, timeout);
      if (average) divide_by(out, out_bytes / item, dtype, group_.size());
      return;
    case Collective::kReduce:
      e.reduce(out, out_bytes / item, dtype, r.op, r.peer, timeout);
      if (average && root) divide_by(out, out_bytes / item, dtype, group_.size());
      return;
    case Collective::kBroadcast:
      return e.broadcast(out, out_bytes, r.peer, timeout);
    case Collective::kAllGather:
      return e.all_gather(in, out, out_bytes / n, timeout);
    case Collective::kGather:
      return e.gather(in, out, in_bytes, r.peer, timeout);
    case Collective::kScatter:
      return e.scatter(in, out, out_bytes, r.peer, timeout);
    case Collective::kReduceScatter:
      e.reduce_scatter(in, out, out_bytes / item, dtype, r.op, timeout);
      if (average) divide_by(out, out_bytes / item, dtype, group_.size());
      return;
    case Collective::kAllToAll:
      return exchange(r, in, out, end);
    default: {  // a barrier: that all agree is all there is to it
      uint8_t one = 1;
      if (!check_ || n == 1) e.all_reduce(&one, 1, DType::kUInt8, ReduceOp::kMax, timeout);
    }
  }
}

void HostBackend::exchange(const Request& r, char* in, char* out, Deadline end) {
  const auto item = static_cast<int64_t>(itemsize(r.inputs[0].dtype()));
  std::vector<int64_t> to = r.to, from = r.from;
  for (int64_t& v : to) v *= item;
  for (int64_t& v : from) v *= item;
  if (check_ && group_.size() > 1) {
    std::vector<int64_t> told(to.size()), words(to.size(), sizeof(int64_t));
    engine_->all_to_all(to.data(), words, told.data(), words, left(end));
    int64_t wrong = 0;
    std::string message;
    for (size_t i = 0; i < to.size(); ++i)
      if (told[i] != from[i]) {
        wrong = 1;
        message = cat("rank ", group_.ranks()[i], " sends ", told[i], " bytes, and ", from[i],
                      " are expected");
      }
    engine_->all_reduce(&wrong, 1, DType::kInt64, ReduceOp::kMax, left(end));
    if (wrong)
      throw DistError(DistErrorKind::kBackend,
                      message.empty() ? "the split sizes of another rank do not fit" : message);
  }
  engine_->all_to_all(in, to, out, from, left(end));
}

void HostBackend::message(const Request& r, char* data, size_t bytes, Work& work, Deadline end) {
  MessageHead head{static_cast<int64_t>(bytes),
                   static_cast<int64_t>((r.inputs.empty() ? r.outputs : r.inputs)[0].dtype())};
  if (r.kind == Collective::kSend) {
    engine_->send(&head, sizeof head, r.peer, 2 * r.tag, left(end));
    return engine_->send(data, bytes, r.peer, 2 * r.tag + 1, left(end));
  }
  MessageHead sent{};
  int from = engine_->receive(&sent, sizeof sent, r.peer, 2 * r.tag, left(end));
  if (sent.bytes != head.bytes || sent.dtype != head.dtype) {
    auto type = static_cast<DType>(sent.dtype);
    throw DistError(DistErrorKind::kBackend,
                    cat("rank ", group_.ranks()[from], " sends ",
                        sent.bytes / static_cast<int64_t>(itemsize(type)), " elements of ", type));
  }
  engine_->receive(data, bytes, from, 2 * r.tag + 1, left(end));
  work.set_source(from);
}

}  // namespace tessera::distributed
