// The virtual GPU through its table. What depends on the environment, a failing kernel, fork or
// the process's end runs in a process of its own.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "tessera/driver/backend.h"

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// The virtual backend reads the variable when it is first asked for its devices; it is put back so
// that the choice of the accelerator in other tests is not touched.
const Backend* open_virtual(const char* devices = "2x64MiB") {
  const char* before = std::getenv("TESSERA_VIRTUAL_GPU");
  const std::string kept = before ? before : "";
  setenv("TESSERA_VIRTUAL_GPU", devices, 1);
  const Backend* b = find_backend("virtual");
  const char* why = "";
  const int count = b ? b->device_count(&why) : 0;
  before ? setenv("TESSERA_VIRTUAL_GPU", kept.c_str(), 1) : unsetenv("TESSERA_VIRTUAL_GPU");
  EXPECT_GT(count, 0) << why;
  return count > 0 ? b : nullptr;
}

// In a process of its own a failed expectation must show in its exit code.
void need(bool ok, const char* what, int line) {
  if (ok) return;
  std::fprintf(stderr, "virtual_test.cpp:%d: %s\n", line, what);
  _exit(1);
}
#define NEED(x) need((x), #x, __LINE__)

// The leak checker hangs in a forked child when another thread allocated during the fork.
[[noreturn]] void exit_child() {
#if defined(__SANITIZE_ADDRESS__)
  _exit(0);
#else
  exit(0);
#endif
}

class VirtualTest : public ::testing::Test {
 protected:
  void SetUp() override {
    b_ = open_virtual();
    ASSERT_NE(b_, nullptr);
  }
  void* device_memory(size_t bytes) {
    void* p = nullptr;
    EXPECT_TRUE(b_->allocate(0, bytes, &p).ok());
    return p;
  }
  void put(void* dst, const void* src, size_t n, StreamHandle s = nullptr) {
    ASSERT_TRUE(b_->copy({0, s}, CopyKind::kHostToDevice, dst, src, n, false).ok());
  }
  void get(void* dst, const void* src, size_t n, StreamHandle s = nullptr) {
    ASSERT_TRUE(b_->copy({0, s}, CopyKind::kDeviceToHost, dst, src, n, false).ok());
  }
  const Backend* b_ = nullptr;
};

// A death test's child starts over from main, so nothing of the parent's devices is in it.
class VirtualProcessTest : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(VirtualTest, SaysWhatItIs) {
  DeviceProps props{};
  ASSERT_TRUE(b_->device_props(0, &props).ok());
  EXPECT_STREQ(props.name, "Virtual GPU");
  EXPECT_TRUE(props.is_virtual);
  EXPECT_EQ(b_->device_props(-1, &props).code, Code::kFailed);
  EXPECT_EQ(b_->device_props(1000, &props).code, Code::kFailed);
}

TEST_F(VirtualTest, MemoryIsCounted) {
  int64_t before = 0, after = 0, total = 0;
  ASSERT_TRUE(b_->memory_info(0, &before, &total).ok());
  void* p = device_memory(1 << 20);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(p) % 512, 0u);
  ASSERT_TRUE(b_->memory_info(0, &after, &total).ok());
  EXPECT_EQ(before - after, 1 << 20);
  void* q = nullptr;
  EXPECT_EQ(b_->allocate(0, static_cast<size_t>(after) + 4096, &q).code, Code::kOutOfMemory);
  EXPECT_EQ(b_->allocate(0, SIZE_MAX, &q).code, Code::kOutOfMemory);
  EXPECT_TRUE(b_->allocate(0, static_cast<size_t>(after), &q).ok());
  EXPECT_TRUE(b_->deallocate(0, q).ok());
  EXPECT_TRUE(b_->deallocate(0, p).ok());
  EXPECT_EQ(b_->deallocate(0, p).code, Code::kFailed);
  ASSERT_TRUE(b_->memory_info(0, &after, &total).ok());
  EXPECT_EQ(before, after);
}

TEST_F(VirtualTest, CopiesRoundTrip) {
  for (size_t n : {size_t{1}, size_t{1000}, size_t{64} << 10, size_t{3} << 20}) {
    std::vector<char> a(n), c(n);
    std::iota(a.begin(), a.end(), 0);
    char* d = static_cast<char*>(device_memory(2 * n));
    put(d, a.data(), n);
    ASSERT_TRUE(b_->copy({0, nullptr}, CopyKind::kDeviceToDevice, d + n, d, n, true).ok());
    get(c.data(), d + n, n);
    EXPECT_EQ(a, c);
    EXPECT_TRUE(b_->deallocate(0, d).ok());
  }
}

TEST_F(VirtualTest, UnstableSourcesAreReadBeforeTheCallReturns) {
  char* d = static_cast<char*>(device_memory(1 << 20));
  for (size_t n : {size_t{64}, size_t{64} << 10, size_t{1} << 20}) {
    std::vector<char> src(n, 'a'), back(n);
    put(d, src.data(), n);
    std::memset(src.data(), 'b', n);
    get(back.data(), d, n);
    EXPECT_EQ(back, std::vector<char>(n, 'a'));
  }
  EXPECT_TRUE(b_->deallocate(0, d).ok());
}

TEST_F(VirtualTest, PeerCopies) {
  const int other = b_->device_count(nullptr) - 1;
  int value = 42, back = 0;
  void* d0 = device_memory(sizeof value);
  void* d1 = nullptr;
  ASSERT_TRUE(b_->allocate(other, sizeof value, &d1).ok());
  put(d0, &value, sizeof value);
  ASSERT_TRUE(b_->copy_peer({0, nullptr}, d1, other, d0, 0, sizeof value).ok());
  ASSERT_TRUE(b_->stream_synchronize(0, nullptr).ok());
  ASSERT_TRUE(
      b_->copy({other, nullptr}, CopyKind::kDeviceToHost, &back, d1, sizeof back, false).ok());
  EXPECT_EQ(back, 42);
  EXPECT_EQ(b_->copy_peer({0, nullptr}, d1, 99, d0, 0, 4).code, Code::kFailed);
  EXPECT_TRUE(b_->deallocate(0, d0).ok());
  EXPECT_TRUE(b_->deallocate(other, d1).ok());
}

TEST_F(VirtualTest, EventsOrderStreams) {
  constexpr int kStreams = 4, kRounds = 200;
  StreamHandle s[kStreams];
  EventHandle e[kStreams];
  int* d = static_cast<int*>(device_memory((kRounds + 1) * sizeof(int)));
  int first = 7;
  put(d, &first, sizeof first);
  ASSERT_TRUE(b_->stream_synchronize(0, nullptr).ok());
  for (int i = 0; i < kStreams; ++i) {
    ASSERT_TRUE(b_->stream_create(0, 0, &s[i]).ok());
    ASSERT_TRUE(b_->event_create(0, false, &e[i]).ok());
    EXPECT_TRUE(b_->event_query(0, e[i]).ok()) << "an event never recorded is done";
  }
  // A value handed from one place to the next, each hop on another stream.
  for (int r = 0; r < kRounds; ++r) {
    const int at = r % kStreams, before = (r + kStreams - 1) % kStreams;
    ASSERT_TRUE(b_->stream_wait_event(0, s[at], e[before]).ok());
    ASSERT_TRUE(b_->copy({0, s[at]}, CopyKind::kDeviceToDevice, d + r + 1, d + r, 4, true).ok());
    ASSERT_TRUE(b_->event_record(0, e[at], s[at]).ok());
  }
  EXPECT_TRUE(b_->event_synchronize(0, e[(kRounds - 1) % kStreams]).ok());
  int last = 0;
  get(&last, d + kRounds, sizeof last);
  EXPECT_EQ(last, 7);
  for (int i = 0; i < kStreams; ++i) {
    EXPECT_TRUE(b_->stream_destroy(0, s[i]).ok());
    EXPECT_TRUE(b_->event_query(0, e[i]).ok()) << "an event outlives its stream";
    EXPECT_TRUE(b_->event_destroy(0, e[i]).ok());
  }
  EXPECT_TRUE(b_->deallocate(0, d).ok());
}

TEST_F(VirtualTest, ThreadsOnTheirOwnStreams) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      StreamHandle s = nullptr;
      EXPECT_TRUE(b_->stream_create(0, 0, &s).ok());
      void* d = device_memory(4096);
      EventHandle e = nullptr;
      EXPECT_TRUE(b_->event_create(0, true, &e).ok());
      for (int i = 0; i < 300; ++i) {
        int value = t * 1000 + i, back = -1;
        put(d, &value, sizeof value, s);
        EXPECT_TRUE(b_->event_record(0, e, s).ok());
        EXPECT_TRUE(b_->stream_wait_event(0, nullptr, e).ok());
        get(&back, d, sizeof back, s);
        EXPECT_EQ(back, value);
      }
      EXPECT_TRUE(b_->device_synchronize(0).ok());
      EXPECT_TRUE(b_->event_destroy(0, e).ok());
      EXPECT_TRUE(b_->stream_destroy(0, s).ok());
      EXPECT_TRUE(b_->deallocate(0, d).ok());
    });
  }
  for (auto& t : threads) t.join();
}

TEST_F(VirtualTest, ElapsedTimeNeedsTimingAndCompletion) {
  EventHandle plain, begin, end;
  ASSERT_TRUE(b_->event_create(0, false, &plain).ok());
  ASSERT_TRUE(b_->event_create(0, true, &begin).ok());
  ASSERT_TRUE(b_->event_create(0, true, &end).ok());
  float ms = -1;
  EXPECT_EQ(b_->event_elapsed_ms(0, begin, end, &ms).code, Code::kFailed);
  ASSERT_TRUE(b_->event_record(0, begin, nullptr).ok());
  ASSERT_TRUE(b_->event_record(0, end, nullptr).ok());
  ASSERT_TRUE(b_->event_synchronize(0, end).ok());
  EXPECT_TRUE(b_->event_elapsed_ms(0, begin, end, &ms).ok());
  EXPECT_GE(ms, 0);
  EXPECT_EQ(b_->event_elapsed_ms(0, plain, end, &ms).code, Code::kFailed);
  for (EventHandle e : {plain, begin, end}) EXPECT_TRUE(b_->event_destroy(0, e).ok());
}

// A slow bus shows what is asynchronous: 4 MiB at 0.02 GB/s take 200 ms.
TEST_F(VirtualProcessTest, WorkIsAsynchronous) {
  auto body = [] {
    setenv("TESSERA_VIRTUAL_BANDWIDTH", "h2d=0.02,d2h=0.02,mem=0.02", 1);
    const Backend* b = open_virtual();
    constexpr size_t n = 4 << 20;
    void *d = nullptr, *pinned = nullptr;
    NEED(b->allocate(0, 2 * n, &d).ok() && b->host_allocate(n, &pinned).ok());
    StreamHandle s = nullptr;
    EventHandle begin, end;
    NEED(b->stream_create(0, 0, &s).ok());
    NEED(b->event_create(0, true, &begin).ok() && b->event_create(0, true, &end).ok());
    const auto t0 = Clock::now();
    NEED(b->event_record(0, begin, s).ok());
    NEED(b->copy({0, s}, CopyKind::kHostToDevice, d, pinned, n, true).ok());
    NEED(b->event_record(0, end, s).ok());
    NEED(seconds_since(t0) < 0.1);
    NEED(b->stream_query(0, s).code == Code::kNotReady);
    NEED(b->event_query(0, end).code == Code::kNotReady);
    float ms = 0;
    NEED(b->event_elapsed_ms(0, begin, end, &ms).code == Code::kNotReady);
    // The default stream does not wait for it.
    NEED(b->stream_synchronize(0, nullptr).ok() && seconds_since(t0) < 0.15);
    // Unless it is told to.
    NEED(b->stream_wait_event(0, nullptr, end).ok());
    NEED(b->stream_synchronize(0, nullptr).ok() && seconds_since(t0) > 0.19);
    NEED(b->event_elapsed_ms(0, begin, end, &ms).ok() && ms > 190);
    // Into page-locked memory: at once; into pageable memory: when done.
    const auto t1 = Clock::now();
    NEED(b->copy({0, s}, CopyKind::kDeviceToHost, pinned, d, n, false).ok());
    NEED(seconds_since(t1) < 0.1);
    std::vector<char> pageable(1024);
    NEED(b->copy({0, s}, CopyKind::kDeviceToHost, pageable.data(), d, 1024, false).ok());
    NEED(seconds_since(t1) > 0.19);
    // Memory in use by queued work goes back after it.
    const auto t2 = Clock::now();
    NEED(b->copy({0, s}, CopyKind::kDeviceToDevice, d, static_cast<char*>(d) + n, n, true).ok());
    NEED(b->deallocate(0, d).ok() && seconds_since(t2) > 0.19);
    exit(0);
  };
  EXPECT_EXIT(body(), ::testing::ExitedWithCode(0), "");
}

TEST_F(VirtualProcessTest, ExitDropsQueuedWork) {
  auto body = [] {
    setenv("TESSERA_VIRTUAL_BANDWIDTH", "mem=0.001", 1);
    const Backend* b = open_virtual();
    void* d = nullptr;
    NEED(b->allocate(0, 1 << 20, &d).ok());
    StreamHandle s[3];
    EventHandle e;
    NEED(b->event_create(0, false, &e).ok());
    for (StreamHandle& stream : s) NEED(b->stream_create(0, 0, &stream).ok());
    for (int i = 0; i < 900; ++i) {  // each 0.1 s: a minute of work, and waits across streams
      NEED(b->copy({0, s[i % 3]}, CopyKind::kDeviceToDevice, d, static_cast<char*>(d) + 500000,
                   100000, true)
               .ok());
      NEED(b->event_record(0, e, s[i % 3]).ok());
      NEED(b->stream_wait_event(0, s[(i + 1) % 3], e).ok());
    }
    std::thread([b] { b->device_synchronize(0); }).detach();  // waits, and must not hold it up
    exit(0);
  };
  const auto begin = Clock::now();
  EXPECT_EXIT(body(), ::testing::ExitedWithCode(0), "");
  EXPECT_LT(seconds_since(begin), 10);
}

TEST_F(VirtualProcessTest, AForkedChildIsToldSo) {
  auto body = [] {
    const Backend* b = open_virtual();
    void* d = nullptr;
    NEED(b->allocate(0, 4096, &d).ok() && b->stream_synchronize(0, nullptr).ok());
    const pid_t pid = fork();
    if (pid == 0) {
      alarm(20);
      int value = 1;
      NEED(b->copy({0, nullptr}, CopyKind::kHostToDevice, d, &value, 4, false).code ==
           Code::kFailed);
      Status status = b->device_synchronize(0);
      NEED(status.code == Code::kFailed && std::strstr(status.message, "spawn"));
      NEED(b->deallocate(0, d).code == Code::kFailed);
      exit_child();
    }
    int status = 0;
    NEED(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    NEED(b->stream_synchronize(0, nullptr).ok() && b->deallocate(0, d).ok());
    exit(0);
  };
  EXPECT_EXIT(body(), ::testing::ExitedWithCode(0), "");
}

TEST_F(VirtualProcessTest, AChildForkedBeforeFirstUseWorks) {
  auto body = [] {
    const Backend* b = open_virtual();
    const pid_t pid = fork();
    if (pid == 0) {
      alarm(20);
      NEED(b->device_synchronize(0).ok() && b->stream_synchronize(0, nullptr).ok());
      exit_child();
    }
    int status = 0;
    NEED(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    exit(0);
  };
  EXPECT_EXIT(body(), ::testing::ExitedWithCode(0), "");
}

TEST_F(VirtualProcessTest, TheHostCannotTouchProtectedMemory) {
  auto open = [](void** d) {
    setenv("TESSERA_VIRTUAL_PROTECT", "1", 1);
    const Backend* b = open_virtual();
    NEED(b->allocate(0, 1 << 20, d).ok());
    return b;
  };
  auto through_copies = [&] {
    void* d = nullptr;
    const Backend* b = open(&d);
    int value = 5, back = 0;
    NEED(b->copy({0, nullptr}, CopyKind::kHostToDevice, d, &value, 4, false).ok());
    char* far = static_cast<char*>(d) + 1000;
    NEED(b->copy({0, nullptr}, CopyKind::kDeviceToDevice, far, d, 4, true).ok());
    NEED(b->copy({0, nullptr}, CopyKind::kDeviceToHost, &back, far, 4, false).ok() && back == 5);
    NEED(b->copy({0, nullptr}, CopyKind::kDeviceToDevice, d, &value, 4, true).code ==
         Code::kFailed);
    NEED(b->deallocate(0, d).ok());
    exit(0);
  };
  auto by_touching = [&] {
    void* d = nullptr;
    open(&d);
    *static_cast<volatile int*>(d) = 1;
    exit(0);
  };
  EXPECT_EXIT(through_copies(), ::testing::ExitedWithCode(0), "");
  EXPECT_DEATH(by_touching(), "");
}

// Stands in for the cpu backend: what it is called with is what the workers were given.
Status fake_kernel(Exec, const char* name, const KernelArgs* args) {
  if (!std::strcmp(name, "bad_index")) return {Code::kInvalid, "index 5 is out of bounds"};
  if (!std::strcmp(name, "bad_device")) return {Code::kDeviceFault, "it broke"};
  const KernelTensor& out = args->outputs[0];
  for (int64_t i = 0; i < out.sizes[0]; ++i)
    static_cast<int64_t*>(out.data)[i * out.strides[0]] =
        static_cast<const int64_t*>(args->inputs[0].data)[i] * args->ints[0] +
        static_cast<int64_t>(args->doubles[0]);
  return {};
}

const Backend* register_fake_cpu() {
  static Backend fake{};
  fake.abi = kBackendAbi;
  fake.name = "cpu";
  fake.has_kernel = [](const char* name) { return std::strcmp(name, "missing") != 0; };
  fake.run_kernel = fake_kernel;
  register_backend(&fake);
  return &fake;
}

TEST_F(VirtualProcessTest, KernelsGetCopiesOfTheirArguments) {
  auto body = [](bool protect) {
    setenv("TESSERA_VIRTUAL_PROTECT", protect ? "1" : "0", 1);
    register_fake_cpu();
    const Backend* b = open_virtual();
    void* d = nullptr;
    NEED(b->allocate(0, 4096, &d).ok());
    int64_t in[4] = {1, 2, 3, 4}, back[8] = {};
    char* out = static_cast<char*>(d) + 1024;
    NEED(b->copy({0, nullptr}, CopyKind::kHostToDevice, d, in, sizeof in, false).ok());
    {
      std::vector<int64_t> sizes{4}, strides{2}, dense{1}, ints{10};
      std::vector<double> doubles{3};
      std::string name = "scale";
      KernelTensor o{out, DType::kInt64, 1, sizes.data(), strides.data(), 4};
      KernelTensor i{d, DType::kInt64, 1, sizes.data(), dense.data(), 4};
      KernelArgs args{1, &o, 1, &i, 1, ints.data(), 1, doubles.data()};
      NEED(b->run_kernel({0, nullptr}, name.c_str(), &args).ok());
      for (auto* v : {&sizes, &strides, &dense, &ints}) v->assign(1, 1 << 30);
      name.assign("XXXXX");
      doubles[0] = -1;
      NEED(b->run_kernel({0, nullptr}, "missing", &args).code == Code::kUnsupported);
    }
    NEED(b->copy({0, nullptr}, CopyKind::kDeviceToHost, back, out, sizeof back, false).ok());
    for (int i = 0; i < 4; ++i) NEED(back[2 * i] == in[i] * 10 + 3);
    exit(0);
  };
  EXPECT_EXIT(body(false), ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(body(true), ::testing::ExitedWithCode(0), "");
}

TEST_F(VirtualProcessTest, FailuresComeWithTheNextSynchronisation) {
  auto body = [] {
    register_fake_cpu();
    const Backend* b = open_virtual();
    KernelArgs none{};
    int value = 0;
    void* d = nullptr;
    EventHandle e;
    NEED(b->allocate(0, 4096, &d).ok() && b->event_create(0, false, &e).ok());
    auto fails = [&](Status s) {
      return s.code == Code::kInvalid && !std::strcmp(s.message, "index 5 is out of bounds");
    };
    auto launch = [&] { NEED(b->run_kernel({0, nullptr}, "bad_index", &none).ok()); };
    launch();
    NEED(fails(b->stream_synchronize(0, nullptr)) && b->stream_synchronize(0, nullptr).ok());
    launch();
    NEED(fails(b->device_synchronize(0)) && b->device_synchronize(0).ok());
    launch();
    NEED(b->event_record(0, e, nullptr).ok() && fails(b->event_synchronize(0, e)));
    launch();
    NEED(b->device_synchronize(1).ok());  // another device knows nothing of it
    NEED(fails(b->copy({0, nullptr}, CopyKind::kDeviceToHost, &value, d, 4, false)));
    NEED(b->run_kernel({0, nullptr}, "bad_device", &none).ok());
    for (int i = 0; i < 2; ++i) NEED(b->device_synchronize(0).code == Code::kDeviceFault);
    NEED(b->run_kernel({0, nullptr}, "bad_index", &none).code == Code::kDeviceFault);
    exit(0);
  };
  EXPECT_EXIT(body(), ::testing::ExitedWithCode(0), "");
}

TEST_F(VirtualProcessTest, SizesAreRead) {
  auto body = [](const char* text, int count, int64_t bytes) {
    setenv("TESSERA_VIRTUAL_GPU", text, 1);
    const Backend* b = find_backend("virtual");
    const char* why = nullptr;
    NEED(b && b->device_count(&why) == count);
    int64_t free = 0, total = 0;
    if (count) NEED(b->memory_info(count - 1, &free, &total).ok() && total == bytes);
    if (!count) NEED(std::strstr(why, text) && !accelerator(&why) && *why);
    exit(0);
  };
  EXPECT_EXIT(body("2x2GiB", 2, int64_t{2} << 30), ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(body("2GiB", 1, int64_t{2} << 30), ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(body("3x512MiB", 3, int64_t{512} << 20), ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(body("1000000", 1, 1000000), ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(body("0x2GiB", 0, 0), ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(body("lots", 0, 0), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace tessera
