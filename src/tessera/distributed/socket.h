// TCP with deadlines: addresses, connections, messages with a length in front.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace tessera::distributed {

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;
using Milliseconds = std::chrono::milliseconds;

// What is left, at least 0; for poll().
int milliseconds_left(Deadline deadline);

class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& o) noexcept : fd_(o.fd_) { o.fd_ = -1; }
  Socket& operator=(Socket&& o) noexcept;
  ~Socket() { close(); }

  int fd() const { return fd_; }
  bool open() const { return fd_ >= 0; }
  void close();
  // Wakes whoever waits on it, in this process and at the other end.
  void shut();

  // Whole, or a DistError of the network kind.
  void write_all(std::string_view data, Deadline deadline) const;
  std::string read_exactly(size_t n, Deadline deadline) const;
  // One message: its length (4 bytes), then its bytes.
  void send_message(std::string_view message, Deadline deadline) const;
  std::string receive_message(Deadline deadline) const;

  // The numeric address at this end.
  std::string local_address() const;

 private:
  int fd_ = -1;
};

// Ends the connection `limit` after the other host stopped answering. A stopped process does not
// count, since its kernel answers, unless it leaves so much unread that its buffers are full.
void set_options(int fd, std::chrono::milliseconds limit);
// Connections to the store carry values of any size; those of monitors a few bytes. Probes are sent
// every second: the second one that is not answered is later than 1.9 s after the last answer.
inline constexpr std::chrono::milliseconds kStoreLimit{30000}, kMonitorLimit{1900};

// Listens at this one address, not at all of the machine's; port 0: any, which `bound` then names.
Socket listen_at(const std::string& host, uint16_t port, uint16_t& bound);
// Tries again until the deadline: the other side may not be there yet.
Socket connect_to(const std::string& host, uint16_t port, Deadline deadline);
// Does the name mean this machine, for itself only?
bool is_loopback(const std::string& host);

// Messages are made of these: numbers in 8 bytes, texts with their length in front.
void put(std::string& out, std::string_view text);
void put(std::string& out, int64_t value);
class Reader {
 public:
  explicit Reader(std::string_view data) : data_(data) {}
  std::string text();
  int64_t number();
  bool done() const { return data_.empty(); }

 private:
  std::string_view take(size_t n);
  std::string_view data_;
};

}  // namespace tessera::distributed
