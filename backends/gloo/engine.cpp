// Collectives by gloo over TCP.
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoallv.h>
#include <gloo/broadcast.h>
#include <gloo/gather.h>
#include <gloo/reduce.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/scatter.h>
#include <gloo/transport/tcp/device.h>

#include <atomic>
#include <cstring>
#include <random>

#include "tessera/distributed/engine.h"

namespace tessera::distributed {

namespace {

// Prefixes of slots, beside those that gloo's own collectives use (1 to 8).
constexpr uint64_t kAgreeSlots = uint64_t{0x21} << 56;
constexpr uint64_t kMessageSlots = uint64_t{0x22} << 56;
constexpr uint64_t kAbortSlot = uint64_t{0x23} << 56;
constexpr uint64_t kTokenSlot = uint64_t{0x24} << 56;

class Place final : public gloo::rendezvous::Store {
 public:
  Place(const MeetingPlace& place, std::string prefix, std::chrono::milliseconds timeout)
      : place_(place), prefix_(std::move(prefix)), timeout_(timeout) {}
  void set(const std::string& key, const std::vector<char>& data) override {
    place_.set(prefix_ + key, std::string(data.begin(), data.end()));
  }
  std::vector<char> get(const std::string& key) override {
    std::string data = place_.get(prefix_ + key, timeout_);
    return {data.begin(), data.end()};
  }
  void wait(const std::vector<std::string>& keys) override { wait(keys, timeout_); }
  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds& timeout) override {
    for (const std::string& key : keys) place_.get(prefix_ + key, timeout);
  }

 private:
  const MeetingPlace& place_;
  const std::string prefix_;
  std::chrono::milliseconds timeout_;
};

class GlooEngine final : public Engine {
 public:
  explicit GlooEngine(const EngineOptions& o) : rank_(o.rank), size_(o.size) {
    gloo::transport::tcp::attr attr(o.address.c_str());
    device_ = gloo::transport::tcp::CreateDevice(attr);
    // Note [Connections from outside]
    // gloo takes the first connection to a port for the peer's, and any program can make it. So
    // each peer sends a token from the store after connecting, the ranks publish the result in the
    // store, and all begin anew with other ports unless every one of them succeeded.
    constexpr int kAttempts = 12;
    Time limit = kFirstLimit;
    std::string failed;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      const std::string prefix = std::to_string(attempt) + "/";
      std::string error = connect(o, prefix, std::min(limit, o.timeout));
      o.place.set(prefix + "end/" + std::to_string(rank_), error);
      failed.clear();
      for (int r = 0; r < size_; ++r) {
        std::string end = o.place.get(prefix + "end/" + std::to_string(r), o.timeout);
        if (!end.empty() && failed.empty())
          failed = "rank " + std::to_string(o.ranks[static_cast<size_t>(r)]) + ": " + end;
      }
      if (failed.empty()) return;
      context_.reset();
      limit = std::min(2 * limit, kLongestLimit);
    }
    throw std::runtime_error("the ranks could not connect to each other in " +
                             std::to_string(kAttempts) +
                             " attempts. Another program may be connecting to their ports. The "
                             "last error was that of " +
                             failed);
  }

  // Each tells the next but 2^k what it has heard: after log2(size) rounds all have heard of all.
  bool all_same(uint64_t number, Time timeout) override {
    struct Word {
      uint64_t number, differ;
    } mine{number, 0}, theirs{};
    auto out = context_->createUnboundBuffer(&mine, sizeof mine);
    auto in = context_->createUnboundBuffer(&theirs, sizeof theirs);
    uint64_t round = 0;
    for (int step = 1; step < size_; step *= 2, ++round) {
      uint64_t slot = kAgreeSlots + round;
      in->recv((rank_ - step + size_) % size_, slot);
      out->send((rank_ + step) % size_, slot);
      await(in->waitRecv(timeout));
      await(out->waitSend(timeout));
      if (theirs.differ || theirs.number != number) mine.differ = 1;
    }
    return !mine.differ;
  }

  void all_reduce(void* data, size_t count, DType dtype, ReduceOp op, Time timeout) override {
    if (count == 0 || size_ == 1) return;
    gloo::AllreduceOptions o(context_);
    with_type(dtype, [&](auto* type) { o.setOutput(static_cast<decltype(type)>(data), count); });
    o.setReduceFunction(reduce_function(dtype, op));
    o.setTag(tag());
    o.setTimeout(timeout);
    gloo::allreduce(o);
  }

  void reduce(void* data, size_t count, DType dtype, ReduceOp op, int root, Time timeout) override {
    if (count == 0 || size_ == 1) return;
    // gloo's uses the memory of all.
    std::vector<char> copy(count * itemsize(dtype));
    std::memcpy(copy.data(), data, copy.size());
    gloo::ReduceOptions o(context_);
    with_type(dtype, [&](auto* type) {
      o.setOutput(reinterpret_cast<decltype(type)>(copy.data()), count);
    });
    o.setReduceFunction(reduce_function(dtype, op));
    o.setRoot(root);
    o.setTag(tag());
    o.setTimeout(timeout);
    gloo::reduce(o);
    if (root == rank_) std::memcpy(data, copy.data(), copy.size());
  }

  void broadcast(void* data, size_t bytes, int root, Time timeout) override {
    if (bytes == 0 || size_ == 1) return;
    gloo::BroadcastOptions o(context_);
    o.setOutput(static_cast<char*>(data), bytes);
    o.setRoot(root);
    o.setTag(tag());
    o.setTimeout(timeout);
    gloo::broadcast(o);
  }

  void all_gather(const void* in, void* out, size_t bytes, Time timeout) override {
    if (bytes == 0) return;
    gloo::AllgatherOptions o(context_);
    o.setInput(static_cast<char*>(const_cast<void*>(in)), bytes);
    o.setOutput(static_cast<char*>(out), bytes * size_);
    o.setTag(tag());
    o.setTimeout(timeout);
    gloo::allgather(o);
  }

  void gather(const void* in, void* out, size_t bytes, int root, Time timeout) override {
    if (bytes == 0) return;
    gloo::GatherOptions o(context_);
    o.setInput(static_cast<char*>(const_cast<void*>(in)), bytes);
    if (root == rank_) o.setOutput(static_cast<char*>(out), bytes * size_);
    o.setRoot(root);
    o.setTag(tag());
    o.setTimeout(timeout);
    gloo::gather(o);
  }

  void scatter(const void* in, void* out, size_t bytes, int root, Time timeout) override {
    if (bytes == 0) return;
    gloo::ScatterOptions o(context_);
    std::vector<char*> parts;
    if (root == rank_) {
      for (int i = 0; i < size_; ++i)
        parts.push_back(static_cast<char*>(const_cast<void*>(in)) + bytes * i);
      o.setInputs(parts, bytes);
    }
    o.setOutput(static_cast<char*>(out), bytes);
    o.setRoot(root);
    o.setTag(tag());
    o.setTimeout(timeout);
    gloo::scatter(o);
  }

  // gloo has none of the kind: everything is reduced, and a part kept.
  void reduce_scatter(const void* in, void* out, size_t count, DType dtype, ReduceOp op,
                      Time timeout) override {
    const size_t bytes = count * itemsize(dtype);
    if (bytes == 0) return;
    std::vector<char> all(bytes * size_);
    std::memcpy(all.data(), in, all.size());
    all_reduce(all.data(), count * size_, dtype, op, timeout);
    std::memcpy(out, all.data() + bytes * rank_, bytes);
  }

  void all_to_all(const void* in, const std::vector<int64_t>& to, void* out,
                  const std::vector<int64_t>& from, Time timeout) override {
    gloo::AlltoallvOptions o(context_);
    o.setInput(static_cast<char*>(const_cast<void*>(in)), to);
    o.setOutput(static_cast<char*>(out), from);
    o.setTag(tag());
    o.setTimeout(timeout);
    gloo::alltoallv(o);
  }

  void send(const void* data, size_t bytes, int to, uint32_t tag, Time timeout) override {
    auto buffer = context_->createUnboundBuffer(const_cast<void*>(data), bytes);
    buffer->send(to, kMessageSlots + tag);
    await(buffer->waitSend(timeout));
  }

  int receive(void* data, size_t bytes, int from, uint32_t tag, Time timeout) override {
    auto buffer = context_->createUnboundBuffer(data, bytes);
    int source = from;
    if (from >= 0) {
      buffer->recv(from, kMessageSlots + tag);
    } else {
      std::vector<int> others;
      for (int i = 0; i < size_; ++i)
        if (i != rank_) others.push_back(i);
      buffer->recv(others, kMessageSlots + tag);
    }
    await(buffer->waitRecv(&source, timeout));
    return source;
  }

  // Closing the connections would wake nobody here. A receive whose time is up makes all of them
  // fail, and with them whoever waits; it has to be from a rank that is still there.
  void abort() noexcept override {
    if (aborted_.exchange(true)) return;
    for (int peer = 0; peer < size_; ++peer) {
      if (peer == rank_) continue;
      try {
        char never = 0;
        auto buffer = context_->createUnboundBuffer(&never, 1);
        buffer->recv(peer, kAbortSlot);
        buffer->waitRecv(std::chrono::milliseconds(1));
      } catch (...) {
        // That is what was wanted.
      }
    }
  }

 private:
  static constexpr Time kFirstLimit{3000}, kLongestLimit{30000};

  // Returns the error; empty if all peers are connected and have shown the token.
  std::string connect(const EngineOptions& o, const std::string& prefix, Time limit) {
    try {
      constexpr size_t kTokenBytes = 32;
      if (rank_ == 0) {
        std::random_device random;
        std::string token;
        while (token.size() < kTokenBytes) token += static_cast<char>(random());
        o.place.set(prefix + "token", token);
      }
      const std::string token = o.place.get(prefix + "token", o.timeout);
      auto context = std::make_shared<gloo::rendezvous::Context>(rank_, size_);
      context->setTimeout(limit);
      Place place(o.place, prefix, o.timeout);
      context->connectFullMesh(place, device_);
      context_ = context;
      const auto deadline = std::chrono::steady_clock::now() + limit;
      std::string own = token + std::to_string(rank_);
      std::vector<std::string> theirs(static_cast<size_t>(size_));
      std::vector<std::unique_ptr<gloo::transport::UnboundBuffer>> out, in;
      for (int r = 0; r < size_; ++r) {
        if (r == rank_) continue;
        std::string& text = theirs[static_cast<size_t>(r)];
        text.resize((token + std::to_string(r)).size());
        in.push_back(context->createUnboundBuffer(text.data(), text.size()));
        in.back()->recv(r, kTokenSlot);
        out.push_back(context->createUnboundBuffer(own.data(), own.size()));
        out.back()->send(r, kTokenSlot);
      }
      auto left = [&] {
        auto rest = std::chrono::duration_cast<Time>(deadline - std::chrono::steady_clock::now());
        return std::max(rest, Time(1));
      };
      for (auto& buffer : in) await(buffer->waitRecv(left()));
      for (auto& buffer : out) await(buffer->waitSend(left()));
      for (int r = 0; r < size_; ++r)
        if (r != rank_ && theirs[static_cast<size_t>(r)] != token + std::to_string(r))
          return "another program answered in place of rank " +
                 std::to_string(o.ranks[static_cast<size_t>(r)]);
      context->setTimeout(o.timeout);
      return "";
    } catch (const std::exception& e) {
      // Waiting peers of this attempt see their connections end.
      context_.reset();
      return *e.what() ? e.what() : "unknown";
    }
  }

  static void await(bool completed) {
    if (!completed) throw std::runtime_error("aborted");
  }
  uint32_t tag() { return ++tag_; }

  // gloo wants to know the size of an element, by a type.
  template <class F>
  static void with_type(DType dtype, F&& use) {
    struct alignas(8) Sixteen {
      char bytes[16];
    };
    switch (itemsize(dtype)) {
      case 1:
        return use(static_cast<uint8_t*>(nullptr));
      case 2:
        return use(static_cast<uint16_t*>(nullptr));
      case 4:
        return use(static_cast<uint32_t*>(nullptr));
      case 8:
        return use(static_cast<uint64_t*>(nullptr));
      default:
        return use(static_cast<Sixteen*>(nullptr));
    }
  }

  const int rank_, size_;
  std::shared_ptr<gloo::transport::Device> device_;
  std::shared_ptr<gloo::Context> context_;
  std::atomic<bool> aborted_{false};
  uint32_t tag_ = 0;
};

std::unique_ptr<Engine> make(const EngineOptions& options) {
  return std::make_unique<GlooEngine>(options);
}
bool world(int*, int*) { return false; }
void shut_down() {}

}  // namespace

}  // namespace tessera::distributed

extern "C" __attribute__((visibility("default"))) const tessera::distributed::EngineTable*
tessera_engine_v1() {
  using namespace tessera::distributed;
  static const EngineTable table{kEngineVersion, make, world, shut_down};
  return &table;
}
