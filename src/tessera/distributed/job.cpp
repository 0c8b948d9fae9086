#include "tessera/distributed/job.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "tessera/base/blocking.h"
#include "tessera/distributed/device_backend.h"
#include "tessera/distributed/engine.h"
#include "tessera/distributed/error.h"
#include "tessera/distributed/host_backend.h"
#include "tessera/distributed/sha256.h"
#include "tessera/driver/backend.h"

namespace tessera::distributed {

namespace {

constexpr const char* kMonitorKey = "tessera/monitor";

// "cpu:gloo,cuda:nccl", or one name for all devices.
std::map<DeviceType, std::string> by_device(const std::string& backends) {
  std::map<DeviceType, std::string> out;
  size_t at = 0;
  while (at <= backends.size()) {
    size_t end = std::min(backends.find(',', at), backends.size());
    std::string part = backends.substr(at, end - at);
    size_t colon = part.find(':');
    if (colon == std::string::npos) {
      if (part != "nccl") out[DeviceType::kCPU] = part;
      out[DeviceType::kCUDA] = part;
    } else {
      std::string device = part.substr(0, colon);
      TS_CHECK_VALUE(device == "cpu" || device == "cuda", "Invalid device type in the backend '",
                     backends, "': ", device);
      out[device == "cpu" ? DeviceType::kCPU : DeviceType::kCUDA] = part.substr(colon + 1);
    }
    at = end + 1;
  }
  return out;
}

}  // namespace

namespace {

bool is_virtual() {
  const Backend* b = accelerator();
  return b && std::string(b->name) == "virtual";
}

// On the virtual GPU "nccl" is another name for what goes through host memory.
std::string engine_name(const std::string& asked) {
  if (asked != "nccl") return asked;
  return find_engine("gloo") || !find_engine("mpi") ? "gloo" : "mpi";
}

}  // namespace

bool is_backend_available(const std::string& name, std::string* why) {
  if (name != "nccl") return find_engine(name, why) != nullptr;
  if (is_virtual()) return find_engine(engine_name(name), why) != nullptr;
  return find_device_engine(why) != nullptr;
}

std::shared_ptr<Job> Job::start(std::shared_ptr<Store> store, int rank, int size,
                                const std::string& scope, int server_rank, Milliseconds timeout) {
  TS_CHECK_VALUE(size >= 1 && rank >= 0 && rank < size, "there is no rank ", rank, " in a job of ",
                 size);
  std::shared_ptr<Job> job(new Job(std::move(store), rank, size));
  BlockingScope others_go_on;
  if (size > 1) job->watch(scope, server_rank, timeout);
  return job;
}

Job::~Job() { leave(); }

void Job::watch(const std::string& scope, int server_rank, Milliseconds timeout) {
  Deadline deadline = Clock::now() + timeout;
  Monitor::Options o{.rank = rank_, .scope = scope, .server_rank = server_rank};
  if (const Store::MeetingPoint* at = store_->meeting_point()) {
    o.host = at->host;
    o.port = at->port;
    o.secret = at->secret;
  } else {
    // The store is not a server: rank 0 is one, on this machine.
    const std::string key = cat(kMonitorKey, "/", scope);
    if (rank_ == 0) {
      std::string secret = hex(random_bytes(16));
      server_ = std::make_unique<Server>("127.0.0.1", 0, secret);
      store_->set(key, cat(int{server_->port()}, " ", secret));
    }
    std::string told = store_->get(key, timeout);
    size_t space = told.find(' ');
    o.host = "127.0.0.1";
    o.port = static_cast<uint16_t>(std::strtoul(told.c_str(), nullptr, 10));
    o.secret = told.substr(space + 1);
    o.server_rank = 0;
  }
  o.status = [this] { return status(); };
  o.news = [this](int rank, const Fate& fate) {
    for (auto& g : groups()) g->news(rank, fate);
  };
  monitor_ = std::make_unique<Monitor>(std::move(o), deadline);
}

std::string Job::address() const {
  if (const char* asked = std::getenv("TESSERA_DIST_ADDRESS"); asked && *asked) return asked;
  std::string own = store_->own_address();
  return own.empty() ? "127.0.0.1" : own;
}

std::vector<std::shared_ptr<ProcessGroup>> Job::groups() const {
  std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<ProcessGroup>> out;
  for (auto& weak : groups_)
    if (auto g = weak.lock()) out.push_back(std::move(g));
  return out;
}

std::string Job::status() const {
  std::string out;
  for (auto& g : groups()) out += (out.empty() ? "" : "; ") + g->status();
  return out;
}

std::string Job::await(Store& place, const std::string& key, int world_rank, Milliseconds timeout) {
  const Deadline deadline = Clock::now() + timeout;
  for (;;) {
    auto left = std::chrono::ceil<Milliseconds>(deadline - Clock::now());
    try {
      return place.get(key, std::clamp(left, Milliseconds(0), Milliseconds(300)));
    } catch (const DistError& e) {
      if (e.dist_kind() != DistErrorKind::kStore) throw;
    }
    std::string who = world_rank < 0 ? key : cat("rank ", world_rank);
    if (monitor_)
      for (auto& [rank, fate] : monitor_->fates())
        if (rank == world_rank)
          fail(DistErrorKind::kBackend, "[rank ", rank_, "] a group cannot be made: ", who,
               fate.died ? cat(" died (", fate.text, ")") : " left the job");
    if (left.count() <= 0)
      fail(DistErrorKind::kBackend, "[rank ", rank_, "] a group cannot be made: ", who,
           " did not come within ", timeout.count(), " ms");
  }
}

std::shared_ptr<GroupBackend> Job::make_backend(const std::string& asked, bool optional,
                                                ProcessGroup& group, std::shared_ptr<Store> place,
                                                Milliseconds timeout) {
  std::string why;
  if (asked == "nccl" && !is_virtual()) {
    const DeviceEngineTable* table = find_device_engine(&why);
    if (!table && optional) return nullptr;
    TS_CHECK(table, "ProcessGroupNCCL is only supported with GPUs and NCCL: ", why);
    return std::make_shared<DeviceBackend>(group, place, *table);
  }
  if (group.size() == 1) return std::make_shared<HostBackend>(asked, group, make_self_engine());
  const EngineTable* table = find_engine(engine_name(asked), &why);
  if (!table && optional) return nullptr;
  TS_CHECK(table, "Distributed package doesn't have ", asked, " built in: ", why);
  EngineOptions o{.rank = group.rank(),
                  .size = group.size(),
                  .ranks = group.ranks(),
                  .address = address(),
                  .timeout = timeout};
  o.place.set = [place](const std::string& k, const std::string& v) { place->set(k, v); };
  // Keys of gloo's end with a rank of the group.
  o.place.get = [this, place, ranks = group.ranks()](const std::string& k, Milliseconds t) {
    char* end = nullptr;
    const std::string last = k.substr(k.rfind('/') + 1);
    const auto member = static_cast<size_t>(std::strtoul(last.c_str(), &end, 10));
    const bool known = !last.empty() && !*end && member < ranks.size();
    return await(*place, k, known ? ranks[member] : -1, t);
  };
  // All come before a library begins that may not know of deadlines.
  place->set(cat("here/", group.rank()), "1");
  for (int r = 0; r < group.size(); ++r)
    await(*place, cat("here/", r), group.ranks()[static_cast<size_t>(r)], timeout);
  try {
    return std::make_shared<HostBackend>(asked, group, table->make(o));
  } catch (const DistError&) {
    throw;
  } catch (const std::runtime_error& e) {
    fail(DistErrorKind::kBackend, "[rank ", rank_, "] the group '", group.name(),
         "' cannot be made by ", asked, ": ", e.what());
  }
}

std::shared_ptr<ProcessGroup> Job::new_group(std::vector<int> ranks, const std::string& backends,
                                             const std::string& name, Milliseconds timeout) {
  auto at = std::find(ranks.begin(), ranks.end(), rank_);
  if (at == ranks.end()) return nullptr;
  BlockingScope others_go_on;
  const int rank = static_cast<int>(at - ranks.begin());
  auto group = std::make_shared<ProcessGroup>(
      shared_from_this(),
      ProcessGroup::Options{.name = name, .ranks = ranks, .rank = rank, .timeout = timeout});
  std::map<std::string, std::shared_ptr<GroupBackend>> made;
  const auto asked_for = by_device(backends);
  for (auto& [type, asked] : asked_for) {
    // By default devices that are not there need nothing.
    const bool optional = asked_for.size() > 1 && asked == "nccl";
    if (optional && !accelerator()) continue;
    std::shared_ptr<GroupBackend>& backend = made[asked];
    if (!backend) {
      auto place = std::make_shared<PrefixStore>(cat("tessera/", name, "/", asked), store_);
      backend = make_backend(asked, optional, *group, place, timeout);
    }
    if (!backend) continue;
    group->add_backend(type, backend);
  }
  std::lock_guard lock(mutex_);
  groups_.push_back(group);
  return group;
}

bool Job::flush(Milliseconds patience) {
  if (has_left()) return true;
  const Deadline deadline = Clock::now() + patience;
  for (auto& g : groups())
    if (!g->flush(Milliseconds(milliseconds_left(deadline)))) return false;
  return true;
}

void Job::leave() {
  {
    std::lock_guard lock(mutex_);
    if (left_) return;
    left_ = true;
  }
  BlockingScope others_go_on;
  std::string where;
  try {
    for (auto& g : groups()) where += cat(g->name(), "=", g->finished(), ";");
  } catch (const std::bad_alloc&) {  // others' messages lack where this rank was
  }
  if (monitor_) monitor_->leave(where);
}

}  // namespace tessera::distributed
