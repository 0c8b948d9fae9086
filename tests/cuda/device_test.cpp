// The table on a real device: what no compiler can show. Skipped where there is none.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tessera/driver/backend.h"
#include "tessera/memory/services.h"

namespace tessera {
namespace {

class CudaDevice : public testing::Test {
 protected:
  void SetUp() override {
    backend_ = find_backend("cuda");
    const char* why = "the backend was not built";
    if (!backend_ || backend_->device_count(&why) == 0) GTEST_SKIP() << (why ? why : "");
    backend_->use_services(&memory::host_services());
  }
  void TearDown() override {
    for (void* p : memory_) backend_->deallocate(0, p);
  }
  static void ok(Status s) { ASSERT_TRUE(s.ok()) << (s.message ? s.message : "not ready"); }

  template <class T>
  T* device(const std::vector<T>& host) {
    void* p = nullptr;
    ok(backend_->allocate(0, std::max<size_t>(host.size() * sizeof(T), 16), &p));
    memory_.push_back(p);
    ok(backend_->copy(exec_, CopyKind::kHostToDevice, p, host.data(), host.size() * sizeof(T),
                      false));
    return static_cast<T*>(p);
  }
  template <class T>
  std::vector<T> host(const T* p, size_t n) {
    std::vector<T> out(n);
    ok(backend_->copy(exec_, CopyKind::kDeviceToHost, out.data(), p, n * sizeof(T), false));
    return out;
  }
  Status kernel(const char* name, std::vector<KernelTensor> out, std::vector<KernelTensor> in,
                std::vector<int64_t> ints = {}, std::vector<double> doubles = {}) {
    KernelArgs args{static_cast<int>(out.size()),     out.data(),
                    static_cast<int>(in.size()),      in.data(),
                    static_cast<int>(ints.size()),    ints.data(),
                    static_cast<int>(doubles.size()), doubles.data()};
    return backend_->run_kernel(exec_, name, &args);
  }

  const Backend* backend_ = nullptr;
  Exec exec_{0, nullptr};
  std::vector<void*> memory_;
};

std::vector<float> counted(size_t n) {
  std::vector<float> v(n);
  for (size_t i = 0; i < n; ++i) v[i] = static_cast<float>(static_cast<int>(i * 7 % 23) - 11);
  return v;
}

TEST_F(CudaDevice, CopiesOfEverySizeArriveWhole) {
  // Under and over what one staging piece holds, and what one thread copies.
  for (size_t n : {1u, 1000u, 600000u, 1500000u, 9000001u}) {
    std::vector<float> v = counted(n);
    EXPECT_EQ(host(device(v), n), v) << n;
  }
  void* pinned = nullptr;
  ok(backend_->host_allocate(4096, &pinned));
  std::memset(pinned, 7, 4096);
  float* to = device(counted(1024));
  ok(backend_->copy(exec_, CopyKind::kHostToDevice, to, pinned, 4096, true));
  EXPECT_EQ(std::memcmp(host(to, 1024).data(), pinned, 4096), 0);
  ok(backend_->host_deallocate(pinned));
}

TEST_F(CudaDevice, SourceMayChangeAtOnce) {
  std::vector<float> v = counted(3000000), kept = v;
  float* p = device(v);
  std::fill(v.begin(), v.end(), 0.0f);
  EXPECT_EQ(host(p, kept.size()), kept);
}

TEST_F(CudaDevice, StreamsAndEvents) {
  StreamHandle stream = nullptr;
  EventHandle begin = nullptr, end = nullptr;
  ok(backend_->stream_create(0, 0, &stream));
  ok(backend_->event_create(0, true, &begin));
  ok(backend_->event_create(0, true, &end));
  ok(backend_->event_record(0, begin, stream));
  ok(backend_->event_record(0, end, stream));
  ok(backend_->stream_wait_event(0, nullptr, end));
  ok(backend_->event_synchronize(0, end));
  float ms = -1;
  ok(backend_->event_elapsed_ms(0, begin, end, &ms));
  EXPECT_GE(ms, 0);
  ok(backend_->stream_synchronize(0, stream));
  ok(backend_->event_destroy(0, begin));
  ok(backend_->event_destroy(0, end));
  ok(backend_->stream_destroy(0, stream));
}

const PointwiseBody kAdd{"add", "return a + s0 * b;", "tt", 't', 1, {}};

TEST_F(CudaDevice, GroupsInEveryLayout) {
  struct Case {
    int64_t sizes[2], a[2], b[2];
  };
  for (Case c : {Case{{1, 100003}, {100003, 1}, {100003, 1}}, Case{{300, 256}, {256, 1}, {0, 1}},
                 Case{{300, 255}, {255, 1}, {1, 0}}, Case{{300, 200}, {1, 300}, {200, 1}},
                 Case{{300, 200}, {0, 0}, {200, 1}}}) {
    int64_t n = c.sizes[0] * c.sizes[1], dense[] = {c.sizes[1], 1};
    std::vector<float> a = counted(static_cast<size_t>(n)), b = counted(static_cast<size_t>(n));
    float* out = device(std::vector<float>(static_cast<size_t>(n)));
    Operand in[] = {{device(a), DType::kFloat32, c.a}, {device(b), DType::kFloat32, c.b}};
    Instr add{};
    add.kind = Instr::Kind::kBody;
    add.cls = add.result_cls = RegClass::kF32;
    add.round_to = DType::kFloat32;
    add.num_sources = 2;
    add.num_scalars = 1;
    add.body = &kAdd;
    add.sources[0] = {SourceKind::kInput, 0};
    add.sources[1] = {SourceKind::kInput, 1};
    Imm two{};
    two.f32 = 2;
    RegClass cls = RegClass::kF32;
    GroupOutput to{{out, DType::kFloat32, dense}, 0};
    GroupProgram g{2, c.sizes, n, 2, in, 1, &add, 1, &to, 1, &two, &cls};
    ok(backend_->run_group(exec_, &g));
    std::vector<float> got = host(out, static_cast<size_t>(n));
    for (int64_t i = 0; i < c.sizes[0]; ++i)
      for (int64_t j = 0; j < c.sizes[1]; ++j)
        ASSERT_EQ(got[static_cast<size_t>(i * dense[0] + j)],
                  a[static_cast<size_t>(i * c.a[0] + j * c.a[1])] +
                      2 * b[static_cast<size_t>(i * c.b[0] + j * c.b[1])]);
  }
}

TEST_F(CudaDevice, SumsOfRowsColumnsAndAll) {
  static const ReduceBody sum{"sum", "a", "x + y", "x", "T(0)", {}};
  int64_t rows = 700, columns = 1000;
  std::vector<float> v = counted(static_cast<size_t>(rows * columns));
  float* in = device(v);
  float* out = device(std::vector<float>(1000));
  auto run = [&](std::vector<int64_t> kept, std::vector<int64_t> kept_strides,
                 std::vector<int64_t> reduced, std::vector<int64_t> reduced_strides) {
    ReduceProgram r{&sum,
                    RegClass::kF32,
                    static_cast<int>(kept.size()),
                    kept.data(),
                    static_cast<int>(reduced.size()),
                    reduced.data(),
                    1,
                    1,
                    in,
                    DType::kFloat32,
                    kept_strides.data(),
                    reduced_strides.data(),
                    out,
                    DType::kFloat32};
    for (int64_t s : kept) r.kept_numel *= s;
    for (int64_t s : reduced) r.reduced_numel *= s;
    ok(backend_->run_reduce(exec_, &r));
    return host(out, static_cast<size_t>(r.kept_numel));
  };
  std::vector<float> by_row(700), by_column(1000);
  float all = 0;  // small integers: every order gives the same sum
  for (size_t i = 0; i < v.size(); ++i) {
    by_row[i / 1000] += v[i];
    by_column[i % 1000] += v[i];
    all += v[i];
  }
  EXPECT_EQ(run({rows}, {columns}, {columns}, {1}), by_row);
  EXPECT_EQ(run({columns}, {1}, {rows}, {columns}), by_column);
  EXPECT_EQ(run({}, {}, {rows, columns}, {columns, 1}), std::vector<float>{all});
}

TEST_F(CudaDevice, MatrixProductsInEveryLayout) {
  int64_t m = 65, n = 33, k = 47;
  std::vector<float> a = counted(static_cast<size_t>(m * k)),
                     b = counted(static_cast<size_t>(k * n)),
                     bias = counted(static_cast<size_t>(n));
  float *pa = device(a), *pb = device(b), *pbias = device(bias);
  float* out = device(std::vector<float>(static_cast<size_t>(m * n)));
  int64_t sa[] = {1, m, k}, sb[] = {1, k, n}, so[] = {1, m, n}, dense[] = {m * n, n, 1},
          one[] = {1};
  for (bool ta : {false, true})
    for (bool tb : {false, true})
      for (bool with_bias : {false, true}) {
        int64_t ra[] = {0, ta ? 1 : k, ta ? m : 1}, rb[] = {0, tb ? 1 : n, tb ? k : 1};
        std::vector<KernelTensor> in = {{pa, DType::kFloat32, 3, sa, ra, m * k},
                                        {pb, DType::kFloat32, 3, sb, rb, k * n}};
        if (with_bias) in.push_back({pbias, DType::kFloat32, 1, &n, one, n});
        ok(kernel("matmul", {{out, DType::kFloat32, 3, so, dense, m * n}}, in));
        std::vector<float> got = host(out, static_cast<size_t>(m * n));
        for (int64_t i = 0; i < m; ++i)
          for (int64_t j = 0; j < n; ++j) {
            float want = with_bias ? bias[static_cast<size_t>(j)] : 0;
            for (int64_t x = 0; x < k; ++x)
              want += a[static_cast<size_t>(i * ra[1] + x * ra[2])] *
                      b[static_cast<size_t>(x * rb[1] + j * rb[2])];
            ASSERT_EQ(got[static_cast<size_t>(i * n + j)], want) << ta << tb << with_bias;
          }
      }
}

TEST_F(CudaDevice, SoftmaxSumsToOne) {
  for (int64_t n : {5, 128, 1000, 4096, 40001}) {
    int64_t sizes[] = {3, n}, strides[] = {n, 1};
    float* x = device(counted(static_cast<size_t>(3 * n)));
    float* y = device(std::vector<float>(static_cast<size_t>(3 * n)));
    ok(kernel("softmax", {{y, DType::kFloat32, 2, sizes, strides, 3 * n}},
              {{x, DType::kFloat32, 2, sizes, strides, 3 * n}}, {1}));
    std::vector<float> got = host(y, static_cast<size_t>(3 * n));
    for (size_t r = 0; r < 3; ++r) {
      double sum = 0;
      for (size_t j = 0; j < static_cast<size_t>(n); ++j)
        sum += got[r * static_cast<size_t>(n) + j];
      EXPECT_NEAR(sum, 1.0, 1e-4) << n;
    }
  }
}

// Of the emulated GPU only; with TESSERA_LAUNCH=graph from the first launch on.
TEST_F(CudaDevice, AStreamTakesItsGraphsAlong) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  auto graphs =
      driver ? reinterpret_cast<uint64_t (*)()>(dlsym(driver, "emulator_executables")) : nullptr;
  const char* way = std::getenv("TESSERA_LAUNCH");
  if (!graphs || !way || std::string(way) != "graph") GTEST_SKIP() << "nobody counts graphs here";
  int64_t sizes[] = {3, 128}, strides[] = {128, 1};
  float* x = device(counted(384));
  float* y = device(std::vector<float>(384));
  ok(backend_->stream_create(0, 0, &exec_.stream));
  const uint64_t before = graphs();
  for (int i = 0; i < 3; ++i)
    ok(kernel("softmax", {{y, DType::kFloat32, 2, sizes, strides, 384}},
              {{x, DType::kFloat32, 2, sizes, strides, 384}}, {1}));
  EXPECT_EQ(graphs(), before + 1);
  ok(backend_->stream_destroy(0, exec_.stream));
  exec_.stream = nullptr;
  EXPECT_EQ(graphs(), before);
}

TEST_F(CudaDevice, AWrongIndexIsReportedOnceByTheNextWait) {
  int64_t sizes[] = {3, 4}, strides[] = {4, 1}, picked[] = {2, 4}, two = 2, one = 1;
  float* self = device(counted(12));
  int64_t* index = device(std::vector<int64_t>{1, 7});
  float* out = device(std::vector<float>(8));
  ok(kernel(
      "index_select", {{out, DType::kFloat32, 2, picked, strides, 8}},
      {{self, DType::kFloat32, 2, sizes, strides, 12}, {index, DType::kInt64, 1, &two, &one, 2}},
      {0}));
  Status s = backend_->device_synchronize(0);
  EXPECT_EQ(s.code, Code::kInvalid);
  ASSERT_NE(s.message, nullptr);
  EXPECT_STREQ(s.message, "index out of range in self: index 7 in dimension 0 with size 3");
  ok(backend_->device_synchronize(0));
}

}  // namespace
}  // namespace tessera
