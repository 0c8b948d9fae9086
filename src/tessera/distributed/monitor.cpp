#include "tessera/distributed/monitor.h"

#include <unistd.h>

#include "tessera/distributed/error.h"
#include "tessera/distributed/server.h"

namespace tessera::distributed {

namespace {

std::string this_process() {
  char host[256] = "?";
  gethostname(host, sizeof host - 1);
  return cat("host ", host, ", process ", int64_t{getpid()});
}

Deadline soon() { return Clock::now() + std::chrono::seconds(5); }

}  // namespace

Monitor::Monitor(Options options, Deadline deadline) : options_(std::move(options)) {
  socket_ = connect_to(options_.host, options_.port, deadline);
  set_options(socket_.fd(), kMonitorLimit);
  enter(socket_, options_.secret, deadline);
  std::string join = "J";
  put(join, int64_t{options_.rank});
  put(join, options_.scope);
  put(join, this_process());
  socket_.send_message(join, deadline);
  socket_.receive_message(deadline);
  thread_ = std::thread([this] { listen(); });
}

Monitor::~Monitor() { leave(""); }

void Monitor::leave(const std::string& where) {
  {
    std::lock_guard lock(mutex_);
    if (leaving_) return;
    leaving_ = true;
  }
  try {
    std::string m = "L";
    put(m, where);
    send(m);
  } catch (const std::bad_alloc&) {  // the server takes the closed socket for a death
  }
  {
    // The server may end with this process: it has to have told the others before.
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, soon(), [&] { return told_; });
  }
  socket_.shut();
  thread_.join();
}

void Monitor::send(const std::string& message) {
  std::lock_guard lock(sending_);
  try {
    socket_.send_message(message, soon());
  } catch (const DistError&) {
    // The server is gone: the listening thread finds out.
  }
}

void Monitor::set_fate(int rank, Fate fate) {
  {
    std::lock_guard lock(mutex_);
    auto [at, fresh] = fates_.emplace(rank, fate);
    if (!fresh) return;
  }
  changed_.notify_all();
  options_.news(rank, fate);
}

void Monitor::listen() {
  try {
    for (;;) {
      std::string message = socket_.receive_message(Clock::now() + std::chrono::hours(1000));
      if (message.empty()) continue;
      Reader in(std::string_view(message).substr(1));
      if (message[0] == 'd' || message[0] == 'l') {
        int rank = static_cast<int>(in.number());
        set_fate(rank, {message[0] == 'd', in.text()});
      } else if (message[0] == 'r') {
        std::string answer = "Y";
        put(answer, in.number());
        put(answer, in.number());
        put(answer, options_.status());
        send(answer);
      } else if (message[0] == 'y') {
        int64_t call = in.number();
        int rank = static_cast<int>(in.number());
        std::lock_guard lock(mutex_);
        if (auto at = answers_.find(call); at != answers_.end()) at->second[rank] = in.text();
        changed_.notify_all();
      } else if (message[0] == 'k') {  // our farewell was heard
        std::lock_guard lock(mutex_);
        told_ = true;
        changed_.notify_all();
      }
    }
  } catch (const std::exception&) {
    bool leaving;
    {
      std::lock_guard lock(mutex_);
      leaving = leaving_ || fates_.count(options_.server_rank);
      told_ = true;  // or there is nobody to tell
    }
    changed_.notify_all();
    if (leaving) return;
    try {
      set_fate(options_.server_rank,
               {true, cat("it held the store at ", options_.host, ":", int{options_.port})});
    } catch (const std::bad_alloc&) {  // calls that wait for that rank end at their time limit
    }
  }
}

std::map<int, Fate> Monitor::fates() const {
  std::lock_guard lock(mutex_);
  return fates_;
}

bool Monitor::await_death(Milliseconds patience) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, patience, [&] {
    for (auto& [rank, fate] : fates_)
      if (fate.died) return true;
    return false;
  });
}

// Groups that fail together call it from several threads.
std::map<int, std::string> Monitor::roll_call(Milliseconds patience) {
  std::unique_lock lock(mutex_);
  const int64_t call = ++call_;
  answers_[call];
  lock.unlock();
  std::string m = "R";
  put(m, call);
  send(m);
  std::this_thread::sleep_for(patience);
  lock.lock();
  return answers_.extract(call).mapped();
}

}  // namespace tessera::distributed
