// Generators in several threads and during forks. Each test runs in a child with a time limit, so
// that a hang is a failure.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <mutex>
#include <thread>

#include "tessera/base/blocking.h"
#include "tessera/gen/random.h"
#include "tessera/tensor/generators.h"

namespace tessera {
namespace {

constexpr int64_t kLong = 40'000;  // elements: launch() opens a BlockingScope

// Returns true if `program` returns true within `seconds`, in a forked child.
template <class Program>
bool ends(Program program, unsigned seconds = 60) {
  const pid_t pid = fork();
  if (pid == 0) {
    std::signal(SIGALRM, SIG_DFL);
    alarm(seconds);
    _exit(program() ? 0 : 1);
  }
  int status = 0;
  return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Stands for Python's lock.
std::mutex host_lock;
thread_local bool holds_host_lock = false;
void* leave_host() {
  if (!holds_host_lock) return nullptr;
  holds_host_lock = false;
  host_lock.unlock();
  return &host_lock;
}
void enter_host(void*) {
  host_lock.lock();
  holds_host_lock = true;
}

template <class Work>
void in_threads(int count, Work work) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back(work, i);
  for (std::thread& t : threads) t.join();
}

void draw(int64_t n, Mt19937Generator* generator = nullptr) {
  op::rand(Dims{n}, {}, {}, false, generator);
}

TEST(Generators, ThreadsThatShareTheHostsLockDraw) {
  EXPECT_TRUE(ends([] {
    set_blocking_hooks(leave_host, enter_host);
    in_threads(4, [](int which) {
      enter_host(nullptr);
      for (int i = 0; i < 300; ++i) {
        if (which == 3 && i % 10 == 0) manual_seed(5);
        draw(which == 2 ? 10 : kLong);
      }
      leave_host();
    });
    return true;
  }));
}

TEST(Generators, AForkLeavesNoGeneratorLocked) {
  EXPECT_TRUE(ends([] {
    static std::atomic<bool> stopping{false};
    Mt19937Generator mine(3);
    std::vector<std::thread> threads;
    threads.emplace_back([] {
      while (!stopping) draw(kLong);
    });
    threads.emplace_back([&] {
      while (!stopping) draw(kLong, &mine);
    });
    threads.emplace_back([] {
      while (!stopping) Mt19937Generator brief(4);
    });
    bool good = true;
    for (int i = 0; i < 60 && good; ++i)
      good = ends(
          [&] {
            manual_seed(1);
            draw(kLong);
            draw(kLong, &mine);
            Mt19937Generator another(2);
            draw(10, &another);
            return true;
          },
          20);
    stopping = true;
    for (std::thread& t : threads) t.join();
    return good;
  }));
}

TEST(Generators, NumbersOfOneCallAreConsecutive) {
  auto numbers = [](Mt19937Generator* g) {
    TensorBase t = op::rand(Dims{kLong}, {}, {}, false, g);
    const float* p = reinterpret_cast<const float*>(t.raw());
    return std::vector<float>{p[0], p[1], p[kLong - 1]};
  };
  Mt19937Generator generator(9);
  std::vector<std::vector<float>> want, got;
  for (int i = 0; i < 30; ++i) want.push_back(numbers(&generator));
  generator.manual_seed(9);
  std::mutex mutex;
  in_threads(3, [&](int) {
    for (int i = 0; i < 10; ++i) {
      std::vector<float> drawn = numbers(&generator);
      std::lock_guard lock(mutex);
      got.push_back(std::move(drawn));
    }
  });
  std::sort(want.begin(), want.end());
  std::sort(got.begin(), got.end());
  EXPECT_EQ(got, want);
}

TEST(Generators, AScopeUnderALockIsFound) {
#ifdef TESSERA_LOCK_CHECKS
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        Mutex mutex;
        std::lock_guard lock(mutex);
        BlockingScope scope;
      },
      "a BlockingScope opens while the thread holds 1 locks");
  // The inner scope does nothing.
  BlockingScope outer;
  Mutex mutex;
  std::lock_guard lock(mutex);
  BlockingScope inner;
#else
  GTEST_SKIP() << "needs a build with TESSERA_LOCK_CHECKS";
#endif
}

}  // namespace
}  // namespace tessera
