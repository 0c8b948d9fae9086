#include "tessera/distributed/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "tessera/distributed/error.h"
#include "tessera/distributed/fork_guard.h"

namespace tessera::distributed {

namespace {

constexpr size_t kLargestMessage = size_t{1} << 30;

// Blocks until the socket is ready; raises when the deadline has passed.
void await(int fd, short what, Deadline deadline) {
  for (;;) {
    pollfd p{fd, what, 0};
    int n = ::poll(&p, 1, milliseconds_left(deadline));
    if (n > 0) return;
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(DistErrorKind::kNetwork, "poll: ", std::strerror(errno));
    if (Clock::now() >= deadline)
      fail(DistErrorKind::kNetwork, "the other side did not answer in time");
  }
}

struct Addresses {
  addrinfo* first = nullptr;
  Addresses(const std::string& host, uint16_t port, bool passive) {
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = passive ? AI_PASSIVE : 0;
    int rc = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &first);
    if (rc != 0)
      fail(DistErrorKind::kNetwork, "the address ", host, " is not known: ", gai_strerror(rc));
  }
  ~Addresses() { freeaddrinfo(first); }
  Addresses(const Addresses&) = delete;
};

std::string numeric(const sockaddr* address, socklen_t length) {
  char text[NI_MAXHOST] = "";
  getnameinfo(address, length, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  return text;
}

}  // namespace

void set_options(int fd, std::chrono::milliseconds limit) {
  const int on = 1, count = 2;
  const int interval = std::max(1, static_cast<int>(limit.count()) / 3000);
  const auto most = static_cast<unsigned>(limit.count());
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &interval, sizeof interval);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
  // Keepalive probes stop while data is not acknowledged: this limit holds then, and for an idle
  // connection as well.
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &most, sizeof most);
}

int milliseconds_left(Deadline deadline) {
  auto left = std::chrono::ceil<Milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30));
}

Socket& Socket::operator=(Socket&& o) noexcept {
  if (this != &o) {
    close();
    std::swap(fd_, o.fd_);
  }
  return *this;
}

void Socket::close() {
  if (fd_ >= 0) {
    forget_guarded(fd_);
    ::close(fd_);
  }
  fd_ = -1;
}

void Socket::shut() {
  if (fd_ >= 0) ::shutdown(fd_, SHUT_RDWR);
}

void Socket::write_all(std::string_view data, Deadline deadline) const {
  while (!data.empty()) {
    ssize_t n = ::send(fd_, data.data(), data.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) {
      data.remove_prefix(static_cast<size_t>(n));
    } else if (errno == EAGAIN) {
      await(fd_, POLLOUT, deadline);
    } else if (errno != EINTR) {
      fail(DistErrorKind::kNetwork, "sending: ", std::strerror(errno));
    }
  }
}

std::string Socket::read_exactly(size_t n, Deadline deadline) const {
  std::string out(n, '\0');
  size_t at = 0;
  while (at < n) {
    ssize_t got = ::recv(fd_, out.data() + at, n - at, MSG_DONTWAIT);
    if (got > 0) {
      at += static_cast<size_t>(got);
    } else if (got == 0) {
      fail(DistErrorKind::kNetwork, "the other side closed the connection");
    } else if (errno == EAGAIN) {
      await(fd_, POLLIN, deadline);
    } else if (errno != EINTR) {
      fail(DistErrorKind::kNetwork, "receiving: ", std::strerror(errno));
    }
  }
  return out;
}

void Socket::send_message(std::string_view message, Deadline deadline) const {
  auto n = static_cast<uint32_t>(message.size());
  std::string out(reinterpret_cast<const char*>(&n), 4);
  out += message;
  write_all(out, deadline);
}

std::string Socket::receive_message(Deadline deadline) const {
  std::string head = read_exactly(4, deadline);
  uint32_t n = 0;
  std::memcpy(&n, head.data(), 4);
  if (n > kLargestMessage) fail(DistErrorKind::kNetwork, "this is not a message of Tessera's");
  return read_exactly(n, deadline);
}

std::string Socket::local_address() const {
  sockaddr_storage a{};
  socklen_t n = sizeof a;
  if (getsockname(fd_, reinterpret_cast<sockaddr*>(&a), &n) != 0) return "";
  return numeric(reinterpret_cast<sockaddr*>(&a), n);
}

Socket listen_at(const std::string& host, uint16_t port, uint16_t& bound) {
  Addresses found(host, port, true);
  std::string why;
  for (addrinfo* a = found.first; a; a = a->ai_next) {
    Socket s(::socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!s.open()) continue;
    int on = 1;
    setsockopt(s.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (::bind(s.fd(), a->ai_addr, a->ai_addrlen) != 0 || ::listen(s.fd(), 1024) != 0) {
      why = std::strerror(errno);
      continue;
    }
    guard_from_forks(s.fd());
    sockaddr_storage at{};
    socklen_t n = sizeof at;
    getsockname(s.fd(), reinterpret_cast<sockaddr*>(&at), &n);
    bound = ntohs(at.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(at).sin6_port
                                           : reinterpret_cast<sockaddr_in&>(at).sin_port);
    return s;
  }
  fail(DistErrorKind::kNetwork, "cannot listen at ", host, ":", int{port}, ": ", why,
       why == "Address already in use"
           ? " (another job may use this port: set MASTER_PORT to a free one)"
           : "");
}

Socket connect_to(const std::string& host, uint16_t port, Deadline deadline) {
  std::string why = "nothing was tried";
  auto pause = Milliseconds(5);
  do {
    Addresses found(host, port, false);
    for (addrinfo* a = found.first; a; a = a->ai_next) {
      Socket s(::socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      if (!s.open()) continue;
      int error = 0;
      if (::connect(s.fd(), a->ai_addr, a->ai_addrlen) != 0) error = errno;
      if (error == EINPROGRESS) {
        pollfd p{s.fd(), POLLOUT, 0};
        socklen_t n = sizeof error;
        error = ETIMEDOUT;
        if (::poll(&p, 1, std::min(milliseconds_left(deadline), 10000)) > 0)
          getsockopt(s.fd(), SOL_SOCKET, SO_ERROR, &error, &n);
      }
      if (error == 0) {
        fcntl(s.fd(), F_SETFL, fcntl(s.fd(), F_GETFL) & ~O_NONBLOCK);
        set_options(s.fd(), kStoreLimit);
        guard_from_forks(s.fd());
        return s;
      }
      why = std::strerror(error);
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, Milliseconds(200));
  } while (Clock::now() < deadline);
  fail(DistErrorKind::kNetwork, "cannot connect to ", host, ":", int{port}, " in time: ", why);
}

bool is_loopback(const std::string& host) {
  Addresses found(host, 0, false);
  for (addrinfo* a = found.first; a; a = a->ai_next) {
    if (a->ai_family == AF_INET) {
      auto ip = ntohl(reinterpret_cast<sockaddr_in*>(a->ai_addr)->sin_addr.s_addr);
      if (ip >> 24 != 127) return false;
    } else if (a->ai_family == AF_INET6) {
      if (!IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<sockaddr_in6*>(a->ai_addr)->sin6_addr))
        return false;
    }
  }
  return true;
}

void put(std::string& out, int64_t value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}
void put(std::string& out, std::string_view text) {
  put(out, static_cast<int64_t>(text.size()));
  out += text;
}

std::string_view Reader::take(size_t n) {
  if (n > data_.size()) fail(DistErrorKind::kNetwork, "a message ends too early");
  std::string_view out = data_.substr(0, n);
  data_.remove_prefix(n);
  return out;
}
int64_t Reader::number() {
  int64_t v = 0;
  std::memcpy(&v, take(sizeof v).data(), sizeof v);
  return v;
}
std::string Reader::text() { return std::string(take(static_cast<size_t>(number()))); }

}  // namespace tessera::distributed
