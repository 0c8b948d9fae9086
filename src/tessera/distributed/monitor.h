// This rank's connection to the others' fates: see Note [Who is there] in server.h.
#pragma once
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "tessera/distributed/socket.h"

namespace tessera::distributed {

struct Fate {
  bool died;         // else it took its leave
  std::string text;  // host and process of a dead one; where one that left had got to
};

class Monitor {
 public:
  struct Options {
    std::string host;
    uint16_t port = 0;
    std::string secret;
    int rank = 0;
    std::string scope;                    // ranks of one scope hear of each other
    int server_rank = -1;                 // whose process the server is in; -1: not known
    std::function<std::string()> status;  // where this rank is, for a roll call
    std::function<void(int rank, const Fate&)> news;  // called on the monitor's thread
  };
  Monitor(Options options, Deadline deadline);
  ~Monitor();
  Monitor(const Monitor&) = delete;

  std::map<int, Fate> fates() const;
  // Waits up to `patience` until somebody is known to have died.
  bool await_death(Milliseconds patience) const;
  // What the others answer within `patience`.
  std::map<int, std::string> roll_call(Milliseconds patience);
  // Tells the others how far this rank got, and hears no more; the server has told them when it
  // returns.
  void leave(const std::string& where);

 private:
  void listen();
  void send(const std::string& message);
  void set_fate(int rank, Fate fate);

  Options options_;
  Socket socket_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::mutex sending_;
  std::map<int, Fate> fates_;
  std::map<int64_t, std::map<int, std::string>> answers_;  // by roll call, then by rank
  int64_t call_ = 0;
  bool leaving_ = false;
  bool told_ = false;  // the server knows that we leave, or is gone
  std::thread thread_;
};

}  // namespace tessera::distributed
