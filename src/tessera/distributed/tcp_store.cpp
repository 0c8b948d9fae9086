// The client of a server's keys and values.
#include "tessera/base/blocking.h"
#include "tessera/base/fork.h"
#include "tessera/distributed/error.h"
#include "tessera/distributed/store.h"

namespace tessera::distributed {

namespace {

std::string request(char what, const std::string& key) {
  std::string out(1, what);
  put(out, key);
  return out;
}

// A server that lives answers long before that.
constexpr auto kPatience = std::chrono::seconds(30);

constinit Mutex g_servers;
Mutex& lock_of_servers() { return g_servers; }
const HeldDuringFork<ForkStage::kStores, lock_of_servers> g_at_fork;

std::shared_ptr<Server> kept_server(const Store::MeetingPoint& at) {
  static auto* all = new std::map<std::string, std::shared_ptr<Server>>;
  std::lock_guard lock(g_servers);
  auto& server = (*all)[cat(at.host, ":", int{at.port}, " ", at.secret)];
  if (!server) server = std::make_shared<Server>(at.host, at.port, at.secret);
  return server;
}

}  // namespace

TCPStore::TCPStore(Options options)
    : Store(options.timeout), at_{options.host, options.port, options.secret} {
  BlockingScope others_go_on;
  Deadline deadline = Clock::now() + options.timeout;
  if (options.is_master) {
    server_ = options.keep_server ? kept_server(at_)
                                  : std::make_shared<Server>(at_.host, at_.port, at_.secret);
    at_.port = server_->port();
  }
  socket_ = connect_to(at_.host, at_.port, deadline);
  enter(socket_, options.secret, deadline);
  if (options.world_size < 0 || !options.wait_for_workers) return;
  const std::string arrived = "tessera/workers", all = "tessera/all_workers";
  if (add(arrived, 1) == options.world_size) set(all, "1");
  try {
    wait({all}, options.timeout);
  } catch (const DistError&) {
    fail(DistErrorKind::kStore, "Timed out after ", options.timeout.count() / 1000,
         " seconds waiting for clients. ", add(arrived, 0), "/", options.world_size,
         " clients joined.");
  }
}

std::string TCPStore::ask(const std::string& message, Milliseconds more) {
  BlockingScope others_go_on;
  std::lock_guard lock(mutex_);
  Deadline deadline = Clock::now() + more + kPatience;
  try {
    socket_.send_message(message, deadline);
    return socket_.receive_message(deadline);
  } catch (const DistError& e) {
    fail(DistErrorKind::kNetwork, "the store at ", at_.host, ":", int{at_.port}, ": ", e.what());
  }
}

int64_t TCPStore::ask_number(const std::string& message) {
  std::string answer = ask(message);
  return Reader(std::string_view(answer).substr(1)).number();
}

void TCPStore::set(const std::string& key, const std::string& value) {
  std::string m = request('S', key);
  put(m, value);
  ask(m);
}

void TCPStore::append(const std::string& key, const std::string& value) {
  std::string m = request('P', key);
  put(m, value);
  ask(m);
}

void TCPStore::wait(const std::vector<std::string>& keys, Milliseconds timeout) {
  std::string m = "W";
  put(m, int64_t{timeout.count()});
  for (const std::string& key : keys) put(m, key);
  std::string answer = ask(m, timeout);
  if (answer[0] != 't') return;
  std::string missing;
  for (Reader in(std::string_view(answer).substr(1)); !in.done();)
    missing += (missing.empty() ? "" : ", ") + in.text();
  fail(DistErrorKind::kStore, "wait timeout after ", timeout.count(), "ms, keys: ", missing);
}

std::string TCPStore::get(const std::string& key, Milliseconds timeout) {
  std::string m = "G";
  put(m, int64_t{timeout.count()});
  put(m, key);
  std::string answer = ask(m, timeout);
  if (answer[0] == 't')
    fail(DistErrorKind::kStore, "wait timeout after ", timeout.count(), "ms, keys: ", key);
  return Reader(std::string_view(answer).substr(1)).text();
}

int64_t TCPStore::add(const std::string& key, int64_t amount) {
  std::string m = request('A', key);
  put(m, amount);
  return ask_number(m);
}

bool TCPStore::check(const std::vector<std::string>& keys) {
  std::string m = "C";
  for (const std::string& key : keys) put(m, key);
  return ask_number(m) != 0;
}

bool TCPStore::delete_key(const std::string& key) { return ask_number(request('D', key)) != 0; }

std::string TCPStore::compare_set(const std::string& key, const std::string& expected,
                                  const std::string& desired) {
  std::string m = request('X', key);
  put(m, expected);
  put(m, desired);
  std::string answer = ask(m);
  return Reader(std::string_view(answer).substr(1)).text();
}

int64_t TCPStore::num_keys() { return ask_number("N"); }

}  // namespace tessera::distributed
