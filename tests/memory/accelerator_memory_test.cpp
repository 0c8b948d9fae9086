// The per-device allocators over the virtual GPU, as tensors use them. In processes of their own,
// because the choice of the accelerator is made once.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/driver/stream_pool.h"
#include "tessera/memory/allocator.h"

namespace tessera::memory {
namespace {

void need(bool ok, const char* what, int line) {
  if (ok) return;
  std::fprintf(stderr, "accelerator_memory_test.cpp:%d: %s\n", line, what);
  _exit(1);
}
#define NEED(x) need((x), #x, __LINE__)

constexpr size_t kMiB = size_t{1} << 20;

const Backend* open_device() {
  setenv("TESSERA_VIRTUAL_GPU", "2x64MiB", 1);
  const Backend* b = accelerator();
  NEED(b && !std::strcmp(b->name, "virtual"));
  return b;
}

class AcceleratorMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(AcceleratorMemoryTest, DevicesHaveTheirOwn) {
  auto body = [] {
    const Backend* b = open_device();
    void* ctx = &ctx;
    NEED(!allocate(0, 0, nullptr, &ctx) && !ctx);
    deallocate(ctx);
    void* p = allocate(1, 1000, nullptr, &ctx);
    NEED(p && memory_allocated(1) == 1024 && memory_allocated(0) == 0);
    NEED(memory_reserved(1) == static_cast<int64_t>(2 * kMiB));
    int value = 3, back = 0;
    NEED(b->copy({1, nullptr}, CopyKind::kHostToDevice, p, &value, 4, false).ok());
    NEED(b->copy({1, nullptr}, CopyKind::kDeviceToHost, &back, p, 4, false).ok() && back == 3);
    deallocate(ctx);
    NEED(memory_allocated(1) == 0 && max_memory_allocated(1) == 1024);
    empty_cache(1);
    NEED(memory_reserved(1) == 0);
    bool refused = false;
    try {
      allocate(2, 1, nullptr, &ctx);
    } catch (const Error&) {
      refused = true;
    }
    NEED(refused);
    exit(0);
  };
  EXPECT_EXIT(body(), ::testing::ExitedWithCode(0), "");
}

// Streams on which no memory was taken are waited for too when pages move.
TEST_F(AcceleratorMemoryTest, StreamsOfThePoolAreKnown) {
  auto body = [] {
    const Backend* b = open_device();
    NEED(streams_made(b, 0).empty());
    StreamHandle first = stream_from_pool(0, 0), urgent = stream_from_pool(0, -1);
    auto known = streams_made(b, 0);
    NEED(known.size() == 2 && std::count(known.begin(), known.end(), first) == 1 &&
         std::count(known.begin(), known.end(), urgent) == 1);
    NEED(streams_made(b, 1).empty() && streams_made(cpu_backend(), 0).empty());
    exit(0);
  };
  EXPECT_EXIT(body(), ::testing::ExitedWithCode(0), "");
}

TEST_F(AcceleratorMemoryTest, AfterOutOfMemoryTheNextStepWorks) {
  auto body = [] {
    open_device();
    void *a, *b;
    allocate(0, 40 * kMiB, nullptr, &a);
    bool full = false;
    try {
      allocate(0, 40 * kMiB, nullptr, &b);
    } catch (const Error& e) {
      full = e.kind() == ErrorKind::kOutOfMemory &&
             std::strstr(e.what(), "CUDA out of memory. Tried to allocate 40.00 MiB. GPU 0") ==
                 e.what();
    }
    NEED(full && num_ooms(0) == 1);
    deallocate(a);
    NEED(allocate(0, 50 * kMiB, nullptr, &b));
    deallocate(b);
    exit(0);
  };
  EXPECT_EXIT(body(), ::testing::ExitedWithCode(0), "");
}

// A block used on a slow stream must not come back while that stream still writes it.
TEST_F(AcceleratorMemoryTest, RecordedStreamsAreWaitedFor) {
  auto body = [] {
    setenv("TESSERA_VIRTUAL_BANDWIDTH", "mem=0.01", 1);
    const Backend* b = open_device();
    StreamHandle side;
    NEED(b->stream_create(0, 0, &side).ok());
    void *ctx, *next, *last;
    char* p = static_cast<char*>(allocate(0, kMiB, nullptr, &ctx));
    NEED(b->copy({0, side}, CopyKind::kDeviceToDevice, p, p + kMiB / 2, kMiB / 2, true).ok());
    record_stream(ctx, side);
    deallocate(ctx);
    NEED(allocate(0, kMiB, nullptr, &next) != p);  // 50 ms of copying are still ahead
    NEED(b->stream_synchronize(0, side).ok());
    NEED(allocate(0, kMiB, nullptr, &last) == p);
    deallocate(next);
    deallocate(last);
    exit(0);
  };
  EXPECT_EXIT(body(), ::testing::ExitedWithCode(0), "");
}

TEST_F(AcceleratorMemoryTest, AForkedChildCanFree) {
  auto body = [] {
    open_device();
    void* ctx;
    allocate(0, 1000, nullptr, &ctx);
    NEED(accelerator()->stream_synchronize(0, nullptr).ok());
    // Others are inside the allocator all the time.
    std::atomic<bool> done{false};
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t) {
      threads.emplace_back([&] {
        void* mine;
        while (!done.load()) {
          allocate(0, 4096, nullptr, &mine);
          deallocate(mine);
        }
      });
    }
    for (int i = 0; i < 20; ++i) {
      const pid_t pid = fork();
      if (pid == 0) {
        alarm(20);
        deallocate(ctx);
        _exit(0);
      }
      int status = 0;
      NEED(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    done.store(true);
    for (auto& t : threads) t.join();
    deallocate(ctx);
    exit(0);
  };
  EXPECT_EXIT(body(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace tessera::memory
