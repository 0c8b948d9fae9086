#include "tessera/distributed/world.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <numeric>

#include "tessera/base/blocking.h"
#include "tessera/base/fork.h"
#include "tessera/distributed/engine.h"
#include "tessera/distributed/environment.h"
#include "tessera/distributed/error.h"
#include "tessera/distributed/sha256.h"

namespace tessera::distributed {

namespace {

struct World {
  Mutex mutex;
  std::shared_ptr<Job> job;
  std::shared_ptr<ProcessGroup> group;
  int times = 0;   // it was initialized: jobs that share a store are told apart by it
  int groups = 0;  // made since
  bool uses_mpi = false;
  int generation = 0;  // fork_generation() of the process that joined the job
};

// Never destroyed: threads may use it while the process ends.
World& the_world() {
  static World* w = new World;
  return *w;
}
Mutex& lock_of_world() { return the_world().mutex; }
const HeldDuringFork<ForkStage::kProcessGroup, lock_of_world> g_at_fork;

std::string parameter(const std::string& url, const std::string& name) {
  size_t at = url.find('?');
  while (at != std::string::npos && at < url.size()) {
    size_t end = std::min(url.find('&', at + 1), url.size());
    std::string part = url.substr(at + 1, end - at - 1);
    if (part.compare(0, name.size() + 1, name + "=") == 0) return part.substr(name.size() + 1);
    at = end;
  }
  return "";
}

int number(const std::string& text, const char* what) {
  char* end = nullptr;
  long n = std::strtol(text.c_str(), &end, 10);
  TS_CHECK_VALUE(!text.empty() && !*end && n >= 0, what, " is not a number: '", text, "'");
  return static_cast<int>(n);
}

std::shared_ptr<Store> tcp_store(const std::string& host, int port, int rank,
                                 Milliseconds timeout) {
  TS_CHECK_VALUE(port > 0 && port < 65536, "the port of the store is ", port);
  TCPStore::Options o{.host = host,
                      .port = static_cast<uint16_t>(port),
                      .is_master = rank == 0,
                      .timeout = timeout,
                      .wait_for_workers = false,
                      .keep_server = true};
  return std::make_shared<TCPStore>(o);
}

Rendezvous by_environment(const InitOptions& o) {
  auto env = launch_environment();
  auto need = [&](const char* name) -> const std::string& {
    auto at = env.find(name);
    TS_CHECK_VALUE(at != env.end(),
                   "Error initializing torch.distributed using env:// rendezvous: ",
                   "environment variable ", name,
                   " expected, but not set. `tessera run --nproc N "
                   "script.py` sets it, as torchrun, mpirun and srun do");
    return at->second;
  };
  int rank = o.rank >= 0 ? o.rank : number(need("RANK"), "RANK");
  int size = o.world_size >= 0 ? o.world_size : number(need("WORLD_SIZE"), "WORLD_SIZE");
  const std::string& host = need("MASTER_ADDR");
  return {tcp_store(host, number(need("MASTER_PORT"), "MASTER_PORT"), rank, o.timeout), rank, size};
}

// MPI knows ranks and size by itself; the address of a store and its secret go through it.
Rendezvous by_mpi(const InitOptions& o) {
  std::string why;
  const EngineTable* mpi = find_engine("mpi", &why);
  TS_CHECK(mpi, "Distributed package doesn't have MPI built in: ", why);
  int rank = 0, size = 1;
  TS_CHECK(mpi->world(&rank, &size), "MPI could not be started");
  the_world().uses_mpi = true;
  // Without an MPI launcher every process is a world of its own.
  const char* given = std::getenv("WORLD_SIZE");
  const int expected = o.world_size > 0 ? o.world_size : given ? std::atoi(given) : size;
  TS_CHECK_VALUE(expected == size,
                 "init_process_group(\"mpi\"): ", o.world_size > 0 ? "world_size" : "WORLD_SIZE",
                 " is ", expected, ", but MPI has started ", size,
                 size == 1 ? " process" : " processes", ". Start the program with mpirun -n ",
                 expected, ", or use the backend gloo with this launcher");
  if (size == 1) return {std::make_shared<HashStore>(), rank, size};
  std::vector<int> all(static_cast<size_t>(size));
  std::iota(all.begin(), all.end(), 0);
  auto engine = mpi->make({.rank = rank, .size = size, .ranks = all, .timeout = o.timeout});
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  uint64_t hash = 1469598103934665603u;
  for (const char* c = host; *c; ++c)
    hash = (hash ^ static_cast<unsigned char>(*c)) * 1099511628211u;
  std::string at = engine->all_same(hash, o.timeout) ? "127.0.0.1" : host;
  char card[512] = "";
  std::shared_ptr<Store> store;
  std::string secret = hex(random_bytes(16));
  if (rank == 0) {
    auto made = std::make_shared<TCPStore>(
        TCPStore::Options{.host = at, .is_master = true, .timeout = o.timeout, .secret = secret});
    std::string text = cat(at, " ", int{made->port()}, " ", secret);
    text.copy(card, sizeof card - 1);
    store = made;
  }
  engine->broadcast(card, sizeof card, 0, o.timeout);
  if (rank != 0) {
    std::string text = card;
    size_t first = text.find(' '), second = text.find(' ', first + 1);
    store = std::make_shared<TCPStore>(TCPStore::Options{
        .host = text.substr(0, first),
        .port = static_cast<uint16_t>(std::strtoul(text.c_str() + first, nullptr, 10)),
        .timeout = o.timeout,
        .secret = text.substr(second + 1)});
  }
  return {store, rank, size};
}

}  // namespace

Rendezvous rendezvous(const InitOptions& o) {
  if (o.store) {
    TS_CHECK_VALUE(o.rank >= 0 && o.world_size > 0,
                   "rank and world_size have to be given together with a store");
    return {o.store, o.rank, o.world_size};
  }
  BlockingScope others_go_on;
  std::string method = o.init_method.empty() ? "env://" : o.init_method;
  if (o.backend == "mpi" && method == "env://") return by_mpi(o);
  if (method.compare(0, 6, "env://") == 0) return by_environment(o);
  auto given = [&](int argument, const char* name, const char* variable) {
    if (argument >= 0) return argument;
    std::string text = parameter(method, name);
    if (text.empty()) text = launch_environment()[variable];
    TS_CHECK_VALUE(!text.empty(), "Error initializing torch.distributed using ",
                   method.substr(0, 6), " rendezvous: ", name, " parameter missing");
    return number(text, name);
  };
  int rank = given(o.rank, "rank", "RANK"), size = given(o.world_size, "world_size", "WORLD_SIZE");
  std::string rest = method.substr(0, method.find('?'));
  if (rest.compare(0, 6, "tcp://") == 0) {
    size_t colon = rest.rfind(':');
    TS_CHECK_VALUE(colon > 6, "tcp:// needs a host and a port: ", method);
    std::string host = rest.substr(6, colon - 6);
    if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
    return {tcp_store(host, number(rest.substr(colon + 1), "port"), rank, o.timeout), rank, size};
  }
  TS_CHECK(rest.compare(0, 7, "file://") == 0, "No rendezvous handler for ", method,
           ": env://, tcp://host:port and file:///path are known");
  TS_CHECK_VALUE(rest.size() > 7, "file:// needs a path");
  auto store = std::make_shared<FileStore>(rest.substr(7), size);
  store->set_timeout(o.timeout);
  return {store, rank, size};
}

bool is_initialized() {
  std::lock_guard lock(the_world().mutex);
  return the_world().group != nullptr;
}

std::shared_ptr<ProcessGroup> world() {
  std::lock_guard lock(the_world().mutex);
  TS_CHECK_VALUE(the_world().group,
                 "Default process group has not been initialized, please make sure to call "
                 "init_process_group.");
  return the_world().group;
}

namespace {

// Runs at the end of the process.
void end_job(int status, void*) {
  if (fork_generation() != the_world().generation) return;  // a child has no job
  // A process that ends with an error does not wait for the collectives that it left behind.
  if (status == 0) flush_job(std::chrono::hours(1000));
  leave_job();
  if (!report_failures() || status != 0) return;
  std::fflush(nullptr);
  _exit(1);
}

}  // namespace

std::shared_ptr<ProcessGroup> init_process_group(InitOptions o) {
  TS_CHECK_VALUE(!is_initialized(), "trying to initialize the default process group twice!");
  Rendezvous r = rendezvous(o);
  World& w = the_world();
  const std::string scope = cat("init", w.times++);
  auto store = std::make_shared<PrefixStore>(scope, r.store);
  auto job = Job::start(store, r.rank, r.world_size, scope, 0, o.timeout);
  std::vector<int> all(static_cast<size_t>(r.world_size));
  std::iota(all.begin(), all.end(), 0);
  auto group = job->new_group(all, o.backend.empty() ? "cpu:gloo,cuda:nccl" : o.backend,
                              "default_pg", o.timeout);
  // Otherwise the other ranks take the end of this process for a death.
  static const int at_exit = on_exit(&end_job, nullptr);
  (void)at_exit;
  std::lock_guard lock(w.mutex);
  w.job = job;
  w.generation = fork_generation();
  w.group = group;
  w.groups = 0;
  return group;
}

bool report_failures() {
  const std::vector<std::string> failures = unreported_failures();
  for (const std::string& text : failures)
    std::fprintf(
        stderr,
        "tessera: a collective failed, and the process ended before the error was raised: %s\n",
        text.substr(0, text.find('\n')).c_str());
  return !failures.empty();
}

bool flush_job(Milliseconds patience) {
  std::shared_ptr<Job> job;
  {
    std::lock_guard lock(the_world().mutex);
    job = the_world().job;
  }
  return !job || job->flush(patience);
}

void leave_job() {
  World& w = the_world();
  std::shared_ptr<Job> job;
  {
    std::lock_guard lock(w.mutex);
    job = w.job;
  }
  if (job) job->leave();
  if (w.uses_mpi) find_engine("mpi")->shut_down();
}

void destroy_process_group() {
  World& w = the_world();
  std::shared_ptr<Job> job;
  std::shared_ptr<ProcessGroup> group;
  {
    std::lock_guard lock(w.mutex);
    job.swap(w.job);
    group.swap(w.group);
  }
  BlockingScope others_go_on;
  // Collectives in flight end or fail first: the other ranks take part in them.
  if (job) job->flush(group->timeout() + std::chrono::seconds(5));
  if (job) job->leave();
  group.reset();
  job.reset();
}

std::shared_ptr<ProcessGroup> new_group(std::vector<int> ranks, GroupOptions o) {
  auto whole = world();
  World& w = the_world();
  std::string name = o.name.empty() ? cat("group", ++w.groups) : o.name;
  if (ranks.empty()) ranks = whole->ranks();
  for (int r : ranks)
    TS_CHECK_VALUE(r >= 0 && r < whole->size(), "new_group: there is no rank ", r,
                   " in a world of ", whole->size());
  return w.job->new_group(ranks, o.backend.empty() ? whole->backend_name() : o.backend, name,
                          o.timeout.count() ? o.timeout : whole->timeout());
}

}  // namespace tessera::distributed
