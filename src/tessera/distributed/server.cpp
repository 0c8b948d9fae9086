#include "tessera/distributed/server.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "tessera/distributed/error.h"
#include "tessera/distributed/fork_guard.h"
#include "tessera/distributed/sha256.h"

namespace tessera::distributed {

namespace {

constexpr size_t kNonce = 32;
constexpr std::string_view kHello = "tessera1";
// Of one who has not proven anything yet no more than a handshake is read.
constexpr size_t kStrangersMessage = 256;
constexpr size_t kLargestMessage = size_t{1} << 30;

std::string proof(const std::string& secret, std::string_view who, std::string_view a,
                  std::string_view b) {
  Digest d = hmac_sha256(secret, cat(who, a, b));
  return {d.begin(), d.end()};
}

std::string number_reply(int64_t n) {
  std::string out = "n";
  put(out, n);
  return out;
}

}  // namespace

struct Server::Peer {
  Socket socket;
  std::string in, out;
  std::string nonce;
  bool known = false;   // has proven the secret
  bool ending = false;  // nothing more is read
  Deadline since = Clock::now();
  // A get or a wait that has not been answered.
  std::vector<std::string> awaits;
  bool wants_value = false;
  Deadline deadline;
  // Set by joining.
  std::string scope, title;
  int64_t rank = -1;
  bool left = false;
};

Server::Server(const std::string& host, uint16_t port, std::string secret)
    : secret_(std::move(secret)) {
  if (secret_.empty() && !is_loopback(host))
    fail(DistErrorKind::kDist, "refusing to listen at ", host,
         " without a secret: everybody who can reach this address could take part. Set the same "
         "TESSERA_DIST_SECRET on all ranks (export TESSERA_DIST_SECRET=$(openssl rand -hex 32)), "
         "start the job with `tessera run --nproc`, or use a loopback address such as 127.0.0.1");
  listener_ = listen_at(host, port, port_);
  fcntl(listener_.fd(), F_SETFL, O_NONBLOCK);
  TS_CHECK(::pipe2(wake_, O_CLOEXEC | O_NONBLOCK) == 0, "pipe: ", std::strerror(errno));
  thread_ = std::thread([this] { serve(); });
}

Server::~Server() {
  stop_ = true;
  [[maybe_unused]] ssize_t n = ::write(wake_[1], "x", 1);
  thread_.join();
  ::close(wake_[0]);
  ::close(wake_[1]);
}

void Server::serve() {
  std::vector<pollfd> polled;
  while (!stop_) try {
      Deadline next = Clock::now() + std::chrono::seconds(5);
      // Without free file descriptors a connection stays in the listener's queue, and poll() would
      // return at once.
      const bool accepts = Clock::now() >= accepts_from_;
      if (!accepts) next = accepts_from_;
      polled.assign({{wake_[0], POLLIN, 0}, {accepts ? listener_.fd() : -1, POLLIN, 0}});
      for (auto& p : peers_) {
        auto events = static_cast<short>(POLLIN | (p->out.empty() ? 0 : POLLOUT));
        polled.push_back({p->socket.fd(), events, 0});
        if (!p->awaits.empty()) next = std::min(next, p->deadline);
      }
      if (::poll(polled.data(), polled.size(), milliseconds_left(next)) < 0 && errno != EINTR)
        return;
      // Peers that join below have no place in `polled` yet.
      const size_t count = polled.size() - 2;
      for (size_t i = 0; i < count; ++i) {
        Peer& p = *peers_[i];
        try {
          if (polled[i + 2].revents & POLLOUT) flush(p);
          if (polled[i + 2].revents & ~POLLOUT) read_from(p);
        } catch (const std::bad_alloc&) {
          p.socket.close();  // half of its message is lost: it gets an error
        }
      }
      if (polled[1].revents) accept_one();
      expire();
      std::erase_if(peers_, [&](const std::unique_ptr<Peer>& p) { return !p->socket.open(); });
    } catch (const std::bad_alloc&) {
      // Nothing was read: the next turn finds the same to do.
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  // A farewell may wait in the buffers.
  for (auto& p : peers_) flush(*p);
}

void Server::accept_one() {
  Socket s(::accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!s.open()) {
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
      accepts_from_ = Clock::now() + Milliseconds(100);
    return;
  }
  set_options(s.fd(), kStoreLimit);
  guard_from_forks(s.fd());
  auto p = std::make_unique<Peer>();
  p->socket = std::move(s);
  p->nonce = random_bytes(kNonce);
  p->out = std::string(kHello) + p->nonce;
  flush(*p);
  peers_.push_back(std::move(p));
}

void Server::read_from(Peer& peer) {
  char buffer[65536];
  while (peer.socket.open()) {
    ssize_t n = ::recv(peer.socket.fd(), buffer, sizeof buffer, 0);
    if (n > 0) {
      peer.in.append(buffer, static_cast<size_t>(n));
      if (static_cast<size_t>(n) == sizeof buffer) continue;
      break;
    }
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) break;
    peer.ending = true;
    break;
  }
  size_t at = 0;
  while (peer.socket.open() && peer.in.size() - at >= 4) {
    uint32_t n = 0;
    std::memcpy(&n, peer.in.data() + at, 4);
    if (n > (peer.known ? kLargestMessage : kStrangersMessage)) return drop(peer);
    if (peer.in.size() - at - 4 < n) break;
    try {
      message(peer, std::string_view(peer.in).substr(at + 4, n));
    } catch (const std::exception&) {
      return drop(peer);
    }
    at += 4 + n;
  }
  peer.in.erase(0, at);
  if (peer.ending) drop(peer);
}

void Server::shake_hands(Peer& peer, std::string_view data) {
  if (data.size() != kNonce + 32) return drop(peer);
  std::string_view theirs = data.substr(0, kNonce);
  if (!same_digest(proof(secret_, "client", peer.nonce, theirs), data.substr(kNonce))) {
    peer.out += "no";
    flush(peer);
    return drop(peer);
  }
  peer.known = true;
  peer.out += "ok" + proof(secret_, "server", theirs, peer.nonce);
  flush(peer);
}

bool Server::ready(const Peer& peer) const {
  return std::all_of(peer.awaits.begin(), peer.awaits.end(),
                     [&](const std::string& key) { return values_.count(key); });
}

void Server::answer_waiting(Peer& peer) {
  std::string out = "k";
  if (peer.wants_value) {
    out = "v";
    put(out, values_[peer.awaits[0]]);
  }
  peer.awaits.clear();
  auto n = static_cast<uint32_t>(out.size());
  peer.out.append(reinterpret_cast<const char*>(&n), 4);
  peer.out += out;
  flush(peer);
}

void Server::changed(const std::string& key) {
  for (auto& p : peers_)
    if (std::count(p->awaits.begin(), p->awaits.end(), key) && ready(*p)) answer_waiting(*p);
}

void Server::expire() {
  Deadline now = Clock::now();
  for (auto& p : peers_) {
    if (!p->known && now - p->since > std::chrono::seconds(20)) drop(*p);
    if (p->awaits.empty() || p->deadline > now) continue;
    std::string missing = "t";
    for (const std::string& key : p->awaits)
      if (!values_.count(key)) put(missing, key);
    p->awaits.clear();
    auto n = static_cast<uint32_t>(missing.size());
    p->out.append(reinterpret_cast<const char*>(&n), 4);
    p->out += missing;
    flush(*p);
  }
}

void Server::tell_others(const Peer& about, const std::string& text) {
  auto n = static_cast<uint32_t>(text.size());
  for (auto& p : peers_) {
    if (p.get() == &about || p->rank < 0 || p->left || p->scope != about.scope) continue;
    p->out.append(reinterpret_cast<const char*>(&n), 4);
    p->out += text;
    flush(*p);
  }
}

void Server::message(Peer& peer, std::string_view data) {
  if (!peer.known) return shake_hands(peer, data);
  if (data.empty()) return drop(peer);
  Reader in(data.substr(1));
  auto reply = [&](const std::string& text) {
    auto n = static_cast<uint32_t>(text.size());
    peer.out.append(reinterpret_cast<const char*>(&n), 4);
    peer.out += text;
    flush(peer);
  };
  switch (data[0]) {
    case 'S': {
      std::string key = in.text();
      values_[key] = in.text();
      reply("k");
      return changed(key);
    }
    case 'P': {
      std::string key = in.text();
      values_[key] += in.text();
      reply("k");
      return changed(key);
    }
    case 'A': {
      std::string key = in.text();
      std::string& value = values_[key];
      int64_t sum = std::strtoll(value.c_str(), nullptr, 10) + in.number();
      value = std::to_string(sum);
      reply(number_reply(sum));
      return changed(key);
    }
    case 'X': {  // compare and set
      std::string key = in.text(), expected = in.text(), desired = in.text();
      auto at = values_.find(key);
      bool fits = at == values_.end() ? expected.empty() : at->second == expected;
      if (fits) values_[key] = desired;
      std::string out = "v";
      put(out, fits ? desired : at == values_.end() ? expected : at->second);
      reply(out);
      return fits ? changed(key) : void();
    }
    case 'G':
    case 'W': {
      peer.deadline = Clock::now() + Milliseconds(in.number());
      peer.wants_value = data[0] == 'G';
      while (!in.done()) peer.awaits.push_back(in.text());
      if (peer.awaits.empty()) return reply("k");
      return ready(peer) ? answer_waiting(peer) : void();
    }
    case 'C': {
      bool all = true;
      while (!in.done()) all = values_.count(in.text()) && all;
      return reply(number_reply(all));
    }
    case 'D':
      return reply(number_reply(static_cast<int64_t>(values_.erase(in.text()))));
    case 'N':
      return reply(number_reply(static_cast<int64_t>(values_.size())));
    case 'J': {
      set_options(peer.socket.fd(), kMonitorLimit);
      peer.rank = in.number();
      peer.scope = in.text();
      peer.title = in.text();
      reply("k");
      for (auto& [rank, fate] : fates_[peer.scope]) reply(fate);
      return;
    }
    case 'L': {  // farewell: where the rank has got to
      peer.left = true;
      std::string out = "l";
      put(out, peer.rank);
      put(out, in.text());
      fates_[peer.scope][peer.rank] = out;
      tell_others(peer, out);
      return reply("k");
    }
    case 'R': {  // roll call
      std::string out = "r";
      put(out, in.number());
      put(out, peer.rank);
      return tell_others(peer, out);
    }
    case 'Y': {  // an answer to it, for one rank
      int64_t call = in.number(), asker = in.number();
      std::string out = "y";
      put(out, call);
      put(out, peer.rank);
      put(out, in.text());
      auto n = static_cast<uint32_t>(out.size());
      for (auto& p : peers_)
        if (p->rank == asker && p->scope == peer.scope && !p->left) {
          p->out.append(reinterpret_cast<const char*>(&n), 4);
          p->out += out;
          flush(*p);
        }
      return;
    }
    default:
      return drop(peer);
  }
}

void Server::flush(Peer& peer) {
  while (peer.socket.open() && !peer.out.empty()) {
    ssize_t n =
        ::send(peer.socket.fd(), peer.out.data(), peer.out.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) {
      peer.out.erase(0, static_cast<size_t>(n));
    } else if (errno != EINTR) {
      return;  // full, or broken: the next read tells
    }
  }
}

void Server::drop(Peer& peer) {
  if (!peer.socket.open()) return;
  peer.socket.close();
  if (peer.rank < 0 || peer.left) return;
  std::string out = "d";
  put(out, peer.rank);
  put(out, peer.title);
  fates_[peer.scope][peer.rank] = out;
  tell_others(peer, out);
}

void enter(const Socket& socket, const std::string& secret, Deadline deadline) {
  std::string hello = socket.read_exactly(kHello.size() + kNonce, deadline);
  if (hello.compare(0, kHello.size(), kHello) != 0)
    fail(DistErrorKind::kNetwork, "at this address is no store of Tessera's");
  std::string theirs = hello.substr(kHello.size()), ours = random_bytes(kNonce);
  socket.send_message(ours + proof(secret, "client", theirs, ours), deadline);
  if (socket.read_exactly(2, deadline) != "ok")
    fail(DistErrorKind::kNetwork, "the store does not know this job's secret: ",
         secret.empty() ? "TESSERA_DIST_SECRET is not set here, and it is at the store"
                        : "TESSERA_DIST_SECRET differs from the store's");
  if (!same_digest(socket.read_exactly(32, deadline), proof(secret, "server", ours, theirs)))
    fail(DistErrorKind::kNetwork, "the store at this address does not know this job's secret");
}

std::string job_secret() {
  const char* s = std::getenv("TESSERA_DIST_SECRET");
  return s ? s : "";
}

}  // namespace tessera::distributed
