// The parts of several processes that need only one: digests, stores, the loops of reductions.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <cstdint>
#include <thread>

#include "tessera/distributed/environment.h"
#include "tessera/distributed/error.h"
#include "tessera/distributed/monitor.h"
#include "tessera/distributed/reduce.h"
#include "tessera/distributed/sha256.h"
#include "tessera/distributed/store.h"

namespace tessera::distributed {
namespace {

std::string digest_text(const Digest& d) {
  return hex({reinterpret_cast<const char*>(d.data()), 32});
}

// The examples of FIPS 180-4 and RFC 4231.
TEST(Distributed, DigestsAreThoseOfTheStandards) {
  EXPECT_EQ(digest_text(sha256("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(digest_text(sha256("")),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(digest_text(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(digest_text(hmac_sha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(digest_text(hmac_sha256(std::string(131, '\xaa'),
                                    "Test Using Larger Than Block-Size Key - Hash Key First")),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
  EXPECT_TRUE(same_digest("abc", "abc"));
  EXPECT_FALSE(same_digest("abc", "abd"));
  EXPECT_FALSE(same_digest("abc", "abcd"));
}

TEST(Distributed, WaitersOfAStoreAreWoken) {
  TCPStore master({.is_master = true, .secret = "s"});
  TCPStore other({.port = master.port(), .secret = "s"});
  std::string got;
  std::thread waits([&] { got = other.get("key", std::chrono::seconds(20)); });
  std::this_thread::sleep_for(Milliseconds(50));
  master.set("key", "value");
  waits.join();
  EXPECT_EQ(got, "value");
  EXPECT_THROW(other.wait({"key", "never"}, Milliseconds(50)), DistError);
  EXPECT_THROW(TCPStore({.port = master.port(), .secret = "t"}), DistError);
  EXPECT_THROW(TCPStore({.host = "0.0.0.0", .is_master = true, .secret = ""}), DistError);
}

// What each of two ranks hears of a third that dies and of one that leaves.
TEST(Distributed, FatesAreToldApart) {
  Server server("127.0.0.1", 0, "s");
  auto options = [&](int rank) {
    Monitor::Options o{.host = "127.0.0.1", .port = server.port(), .secret = "s", .rank = rank};
    o.scope = "job";
    o.status = [rank] { return cat("rank ", rank, " is here"); };
    o.news = [](int, const Fate&) {};
    return o;
  };
  Deadline soon = Clock::now() + std::chrono::seconds(20);
  Monitor watches(options(0), soon), leaves(options(1), soon);
  auto answers = watches.roll_call(Milliseconds(300));
  EXPECT_EQ(answers[1], "rank 1 is here");
  leaves.leave("group=7;");
  {
    // A process that is killed: its connection ends without a word.
    Socket s = connect_to("127.0.0.1", server.port(), soon);
    enter(s, "s", soon);
    std::string join = "J";
    put(join, int64_t{2});
    put(join, "job");
    put(join, "host x");
    s.send_message(join, soon);
    s.receive_message(soon);
  }
  EXPECT_TRUE(watches.await_death(std::chrono::seconds(20)));
  auto fates = watches.fates();
  EXPECT_FALSE(fates.at(1).died);
  EXPECT_EQ(fates.at(1).text, "group=7;");
  EXPECT_TRUE(fates.at(2).died);
  EXPECT_EQ(fates.at(2).text, "host x");
  // One who joins later hears of them, too.
  Monitor late(options(3), soon);
  EXPECT_TRUE(late.await_death(std::chrono::seconds(20)));
}

// Else one who holds the store and ends would be taken for dead. The test is a server that takes
// its time to answer.
TEST(Distributed, WhoLeavesWaitsUntilTheServerKnows) {
  uint16_t port = 0;
  Socket listener = listen_at("127.0.0.1", 0, port);
  const Deadline soon = Clock::now() + std::chrono::seconds(20);
  std::atomic<bool> gone{false};
  std::thread rank([&] {
    Monitor::Options o{.host = "127.0.0.1", .port = port, .secret = "s"};
    o.status = [] { return std::string(); };
    o.news = [](int, const Fate&) {};
    Monitor m(std::move(o), soon);
    m.leave("group=7;");
    gone = true;
  });
  Socket s(::accept(listener.fd(), nullptr, nullptr));
  auto write = [&](const std::string& bytes) {
    EXPECT_EQ(::send(s.fd(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  };
  const std::string nonce(32, 'n');
  write("tessera1" + nonce);
  const std::string theirs = s.receive_message(soon).substr(0, 32);
  Digest proof = hmac_sha256("s", "server" + theirs + nonce);
  write("ok" + std::string(proof.begin(), proof.end()));
  EXPECT_EQ(s.receive_message(soon)[0], 'J');
  s.send_message("k", soon);
  EXPECT_EQ(s.receive_message(soon)[0], 'L');
  std::this_thread::sleep_for(Milliseconds(200));
  EXPECT_FALSE(gone);
  s.send_message("k", soon);
  rank.join();
  EXPECT_LT(Clock::now(), soon);
}

TEST(Distributed, ReductionsOfEveryKind) {
  int8_t a[3] = {100, -5, 7}, b[3] = {100, 3, 7}, c[3];
  reduce_function(DType::kInt8, ReduceOp::kSum)(c, a, b, 3);
  EXPECT_EQ(c[0], -56);  // wraps, as PyTorch's integers do
  reduce_function(DType::kInt8, ReduceOp::kBxor)(c, a, b, 3);
  EXPECT_EQ(c[2], 0);
  float nan = __builtin_nanf(""), x[2] = {nan, 2}, y[2] = {1, nan}, z[2];
  for (ReduceOp op : {ReduceOp::kMin, ReduceOp::kMax}) {
    reduce_function(DType::kFloat32, op)(z, x, y, 2);
    EXPECT_NE(z[0], z[0]);
    EXPECT_NE(z[1], z[1]);
  }
  bool t[2] = {true, false}, f[2] = {false, false}, r[2];
  reduce_function(DType::kBool, ReduceOp::kSum)(r, t, f, 2);
  EXPECT_TRUE(r[0] && !r[1]);
  EXPECT_THROW(reduce_function(DType::kFloat32, ReduceOp::kBand), Error);
  EXPECT_THROW(reduce_function(DType::kComplex64, ReduceOp::kMax), Error);
  EXPECT_THROW(reduce_function(DType::kBool, ReduceOp::kAvg), Error);
}

}  // namespace
}  // namespace tessera::distributed
