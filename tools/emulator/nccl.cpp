// Stands in for libnccl: ranks are joined by sockets, each pair by one of its own. A collective
// sends everybody's data to everybody, and each rank computes its result. Queued on the stream like
// the real ones: a rank that does not come holds up the streams of the others until they are
// aborted.
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "library.h"

namespace emulator {
namespace {

enum { kSuccess = 0, kSystemError = 2, kInvalidArgument = 4, kRemoteError = 6 };
constexpr size_t kSizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};

struct UniqueId {
  char internal[128];
};

struct Comm {
  int rank, size;
  std::vector<int> peers;  // sockets; -1 for oneself
  std::atomic<bool> aborted{false};
  std::atomic<int> error{kSuccess};

  void move(int peer, char* data, size_t n, bool out) {
    size_t at = 0;
    while (at < n && !aborted && error == kSuccess) {
      pollfd p{peers[static_cast<size_t>(peer)], static_cast<short>(out ? POLLOUT : POLLIN), 0};
      if (poll(&p, 1, 20) <= 0) continue;
      ssize_t done = out ? ::send(p.fd, data + at, n - at, MSG_NOSIGNAL | MSG_DONTWAIT)
                         : ::recv(p.fd, data + at, n - at, MSG_DONTWAIT);
      if (done > 0)
        at += static_cast<size_t>(done);
      else if (done == 0 || (errno != EAGAIN && errno != EINTR))
        error = kRemoteError;
    }
  }
};

struct Piece {
  char* data;
  size_t bytes;
  int peer;
};

// All at once: each send has a thread, so that nobody waits for room.
void exchange(Comm& c, const std::vector<Piece>& sends, const std::vector<Piece>& receives) {
  std::vector<std::thread> senders;
  std::vector<std::vector<char>> to_self;
  for (const Piece& s : sends) {
    if (s.peer == c.rank)
      to_self.emplace_back(s.data, s.data + s.bytes);
    else
      senders.emplace_back([&c, s] { c.move(s.peer, s.data, s.bytes, true); });
  }
  size_t own = 0;
  for (const Piece& r : receives) {
    if (r.peer == c.rank)
      std::memcpy(r.data, to_self[own++].data(), r.bytes);
    else
      c.move(r.peer, r.data, r.bytes, false);
  }
  for (std::thread& t : senders) t.join();
}

std::vector<char> gathered(Comm& c, const void* in, size_t bytes) {
  std::vector<char> all(bytes * static_cast<size_t>(c.size));
  std::vector<Piece> sends, receives;
  for (int r = 0; r < c.size; ++r) {
    sends.push_back({static_cast<char*>(const_cast<void*>(in)), bytes, r});
    receives.push_back({all.data() + bytes * static_cast<size_t>(r), bytes, r});
  }
  exchange(c, sends, receives);
  return all;
}

template <class T>
void fold(const std::vector<char>& all, size_t first, size_t count, size_t stride, int size, int op,
          void* out) {
  auto* in = reinterpret_cast<const T*>(all.data());
  auto* to = static_cast<T*>(out);
  for (size_t i = 0; i < count; ++i) {
    T v = in[first + i];
    for (int r = 1; r < size; ++r) {
      T w = in[static_cast<size_t>(r) * stride + first + i];
      v = op == 1   ? static_cast<T>(v * w)
          : op == 2 ? (w > v ? w : v)
          : op == 3 ? (w < v ? w : v)
                    : static_cast<T>(v + w);
    }
    to[i] = op == 4 ? static_cast<T>(v / static_cast<T>(size)) : v;
  }
}

// The upper half of a float, rounded to even.
struct Brain {
  uint16_t bits = 0;
  Brain() = default;
  explicit Brain(float f) {
    uint32_t x;
    std::memcpy(&x, &f, 4);
    bits = static_cast<uint16_t>((x + 0x7fffu + ((x >> 16) & 1u)) >> 16);
  }
  explicit Brain(int n) : Brain(static_cast<float>(n)) {}
  operator float() const {
    uint32_t x = uint32_t{bits} << 16;
    float f;
    std::memcpy(&f, &x, 4);
    return f;
  }
};

int fold_typed(int type, const std::vector<char>& all, size_t first, size_t count, size_t stride,
               int size, int op, void* out) {
  switch (type) {
    case 0:
      return fold<int8_t>(all, first, count, stride, size, op, out), kSuccess;
    case 1:
      return fold<uint8_t>(all, first, count, stride, size, op, out), kSuccess;
    case 2:
      return fold<int32_t>(all, first, count, stride, size, op, out), kSuccess;
    case 4:
      return fold<int64_t>(all, first, count, stride, size, op, out), kSuccess;
    case 6:
      return fold<_Float16>(all, first, count, stride, size, op, out), kSuccess;
    case 9:
      return fold<Brain>(all, first, count, stride, size, op, out), kSuccess;
    case 7:
      return fold<float>(all, first, count, stride, size, op, out), kSuccess;
    case 8:
      return fold<double>(all, first, count, stride, size, op, out), kSuccess;
  }
  std::fprintf(stderr, "emulated NCCL: no reductions of type %d\n", type);
  std::abort();
}

struct Group {
  int depth = 0;
  Comm* comm = nullptr;
  void* stream = nullptr;
  std::vector<Piece> sends, receives;
};
thread_local Group group;

int queued(void* stream, std::function<void()> work) {
  return enqueue(stream, std::move(work)) ? kSuccess : kSystemError;
}

sockaddr_un address(const UniqueId& id, int rank) {
  sockaddr_un a{};
  a.sun_family = AF_UNIX;  // without a name in the file system
  std::snprintf(a.sun_path + 1, sizeof a.sun_path - 1, "%.90s-%d", id.internal, rank);
  return a;
}

bool given(const void* p, size_t bytes) { return bytes == 0 || on_device(p, bytes); }

}  // namespace
}  // namespace emulator

using namespace emulator;

extern "C" {

int ncclGetVersion(int* v) { return *v = 22700, kSuccess; }
const char* ncclGetErrorString(int code) {
  return code == kRemoteError       ? "remote process exited or there was a network error"
         : code == kInvalidArgument ? "invalid argument"
                                    : "system error";
}
int ncclGetUniqueId(UniqueId* id) {
  std::snprintf(id->internal, sizeof id->internal, "emulated-nccl-%d-%d", int(getpid()),
                std::rand());
  return kSuccess;
}

int ncclCommInitRank(Comm** out, int size, UniqueId id, int rank) {
  auto c = std::make_unique<Comm>();
  c->rank = rank;
  c->size = size;
  c->peers.assign(static_cast<size_t>(size), -1);
  int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un own = address(id, rank);
  if (bind(listener, reinterpret_cast<sockaddr*>(&own), sizeof own) || listen(listener, size))
    return kSystemError;
  for (int r = 0; r < rank; ++r) {
    int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un there = address(id, r);
    while (connect(s, reinterpret_cast<sockaddr*>(&there), sizeof there))
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (write(s, &rank, sizeof rank) != sizeof rank) return kSystemError;
    c->peers[static_cast<size_t>(r)] = s;
  }
  for (int r = rank + 1; r < size; ++r) {
    int s = accept(listener, nullptr, nullptr), who = 0;
    if (read(s, &who, sizeof who) != sizeof who) return kSystemError;
    c->peers[static_cast<size_t>(who)] = s;
  }
  close(listener);
  *out = c.release();
  return kSuccess;
}
int ncclCommDestroy(Comm*) { return kSuccess; }
int ncclCommAbort(Comm* c) {
  c->aborted = true;
  return kSuccess;
}
int ncclCommGetAsyncError(Comm* c, int* error) { return *error = c->error, kSuccess; }

int ncclAllReduce(const void* in, void* out, size_t n, int type, int op, Comm* c, void* stream) {
  if (!given(in, n * kSizes[type]) || !given(out, n * kSizes[type])) return kInvalidArgument;
  return queued(stream, [=] {
    auto all = gathered(*c, in, n * kSizes[type]);
    fold_typed(type, all, 0, n, n, c->size, op, out);
  });
}
int ncclReduce(const void* in, void* out, size_t n, int type, int op, int root, Comm* c,
               void* stream) {
  if (!given(in, n * kSizes[type])) return kInvalidArgument;
  return queued(stream, [=] {
    auto all = gathered(*c, in, n * kSizes[type]);
    if (root == c->rank) fold_typed(type, all, 0, n, n, c->size, op, out);
  });
}
int ncclBroadcast(const void* in, void* out, size_t n, int type, int root, Comm* c, void* stream) {
  const size_t bytes = n * kSizes[type];
  if (!given(in, bytes) || !given(out, bytes)) return kInvalidArgument;
  return queued(stream, [=] {
    auto all = gathered(*c, in, bytes);
    if (bytes) std::memcpy(out, all.data() + bytes * static_cast<size_t>(root), bytes);
  });
}
int ncclAllGather(const void* in, void* out, size_t n, int type, Comm* c, void* stream) {
  const size_t bytes = n * kSizes[type];
  if (!given(in, bytes) || !given(out, bytes * static_cast<size_t>(c->size)))
    return kInvalidArgument;
  return queued(stream, [=] {
    auto all = gathered(*c, in, bytes);
    if (bytes) std::memcpy(out, all.data(), all.size());
  });
}
int ncclReduceScatter(const void* in, void* out, size_t n, int type, int op, Comm* c,
                      void* stream) {
  const size_t whole = n * static_cast<size_t>(c->size);
  if (!given(in, whole * kSizes[type]) || !given(out, n * kSizes[type])) return kInvalidArgument;
  return queued(stream, [=] {
    auto all = gathered(*c, in, whole * kSizes[type]);
    fold_typed(type, all, n * static_cast<size_t>(c->rank), n, whole, c->size, op, out);
  });
}

int ncclGroupStart() { return ++group.depth, kSuccess; }
int ncclGroupEnd() {
  if (--group.depth || !group.comm) return kSuccess;
  Group g = std::move(group);
  group = {};
  return queued(g.stream, [g] { exchange(*g.comm, g.sends, g.receives); });
}
int ncclSend(const void* data, size_t n, int type, int peer, Comm* c, void* stream) {
  if (!given(data, n * kSizes[type])) return kInvalidArgument;
  ncclGroupStart();
  group.comm = c;
  group.stream = stream;
  group.sends.push_back({static_cast<char*>(const_cast<void*>(data)), n * kSizes[type], peer});
  return ncclGroupEnd();
}
int ncclRecv(void* data, size_t n, int type, int peer, Comm* c, void* stream) {
  if (!given(data, n * kSizes[type])) return kInvalidArgument;
  ncclGroupStart();
  group.comm = c;
  group.stream = stream;
  group.receives.push_back({static_cast<char*>(data), n * kSizes[type], peer});
  return ncclGroupEnd();
}
}
