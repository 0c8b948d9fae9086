// The process that others meet at: keys and values, and who of the job is still there.
//
// Note [The job's secret]
// A connection is let in only if it proves to know the job's secret: the server sends a random
// number, the client answers with one of its own and an HMAC over both, and the server proves the
// same in turn. Without a secret the server listens on a loopback address only.
//
// Note [Who is there]
// Each rank keeps one connection on which it has joined. When such a connection ends without a
// farewell the rank is dead, and the server tells the others at once; it also carries a roll call:
// one rank asks where everybody is, and their monitors answer, whatever their programs do.
#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tessera/distributed/socket.h"

namespace tessera::distributed {

class Server {
 public:
  // Raises where `host` is not a loopback address and there is no secret.
  Server(const std::string& host, uint16_t port, std::string secret);
  ~Server();
  Server(const Server&) = delete;

  uint16_t port() const { return port_; }

 private:
  struct Peer;
  void serve();
  void accept_one();
  void read_from(Peer& peer);
  void message(Peer& peer, std::string_view data);
  void shake_hands(Peer& peer, std::string_view data);
  void changed(const std::string& key);
  void expire();
  bool ready(const Peer& peer) const;
  void answer_waiting(Peer& peer);
  void tell_others(const Peer& about, const std::string& message);
  void flush(Peer& peer);
  void drop(Peer& peer);

  std::string secret_;
  Socket listener_;
  uint16_t port_ = 0;
  int wake_[2] = {-1, -1};
  Deadline accepts_from_{};  // the listener is not polled before
  std::atomic<bool> stop_{false};
  std::map<std::string, std::string> values_;
  std::vector<std::unique_ptr<Peer>> peers_;
  // What befell ranks, by scope: told to those who join later.
  std::map<std::string, std::map<int64_t, std::string>> fates_;
  std::thread thread_;
};

// The client's half of the handshake; raises where the server does not know the secret, or we do
// not.
void enter(const Socket& socket, const std::string& secret, Deadline deadline);
// TESSERA_DIST_SECRET; empty if there is none.
std::string job_secret();

}  // namespace tessera::distributed
