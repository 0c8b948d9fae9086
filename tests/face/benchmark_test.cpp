// The timer: what it measures, and its tables, which are PyTorch's.
#include "tessera/face/benchmark.h"

#include <gtest/gtest.h>

#include "support/tensors.h"
#include "tessera/fuse/stream.h"

namespace tessera {
namespace {

using benchmark::Compare;
using benchmark::Measurement;
using benchmark::TaskSpec;
using benchmark::Timer;

TEST(BenchmarkTest, NumbersOfAMeasurement) {
  Measurement m(10, {4e-4, 1e-4, 3e-4, 2e-4}, {.label = "a + b"});
  EXPECT_DOUBLE_EQ(m.median(), 2.5e-5);
  EXPECT_DOUBLE_EQ(m.mean(), 2.5e-5);
  EXPECT_NEAR(m.iqr(), 1.5e-5, 1e-12);
  EXPECT_TRUE(m.has_warnings());
  EXPECT_EQ(m.significant_figures(), 1);
  EXPECT_EQ(m.to_string(),
            "a + b\n  Median: 25.00 us\n  IQR:    15.00 us (17.50 to 32.50)\n"
            "  4 measurements, 10 runs per measurement, 1 thread\n"
            "  WARNING: Interquartile range is 60.0% of the median measurement.");
  EXPECT_EQ(Measurement(1, {2e-3}).to_string(),
            "[a function]\n  2.00 ms\n  1 measurement, 1 run , 1 thread");
  EXPECT_EQ(Measurement(1, {1.0, 1.0, 1.0}).significant_figures(), 4);
  EXPECT_THROW(Measurement(1, {}), Error);
}

TEST(BenchmarkTest, TablesArePyTorchs) {
  auto m = [](std::vector<double> times, const char* sub, const char* name, int threads) {
    return Measurement(10, times, {"mm", sub, name, threads});
  };
  Compare compare({m({5.7e-5}, "64", "f", 1), m({1.8e-5}, "64", "g", 1),
                   m({3e-5, 3e-5, 3e-5, 3e-5, 3e-5, 4e-5}, "256", "g", 2),
                   m({3e-2}, "256 and a long name", "g", 2)});
  EXPECT_EQ(compare.to_string(),
            "[------------------- mm -------------------]\n"
            "                           |   f   |    g   \n"
            "1 threads: ---------------------------------\n"
            "      64                   |  5.7  |     1.8\n"
            "2 threads: ---------------------------------\n"
            "      256                  |       |     3.0\n"
            "      256 and a long name  |       |  3000.0\n"
            "\nTimes are in microseconds (us).\n");
  compare.trim_significant_figures();
  EXPECT_EQ(compare.to_string(),
            "[------------------ mm ------------------]\n"
            "                           |   f   |   g  \n"
            "1 threads: -------------------------------\n"
            "      64                   |  5.7  |     2\n"
            "2 threads: -------------------------------\n"
            "      256                  |       |     3\n"
            "      256 and a long name  |       |  3000\n"
            "\nTimes are in microseconds (us).\n");
}

TEST(BenchmarkTest, EveryRunIsDone) {
  int calls = 0;
  Measurement m = Timer([&] { ++calls; }).timeit(100);
  EXPECT_EQ(calls, 102);  // two to warm up
  EXPECT_EQ(m.number_per_run(), 100);
  auto groups = [] { return fuse::stream_of(Device{}).stats().groups; };
  Tensor a = ones({1 << 16});
  const auto before = groups();
  Timer([&] { return a + 1; }).timeit(50);
  if (fuse::mode() == fuse::Mode::kOn) {
    EXPECT_GE(groups() - before, 52);
  }
  EXPECT_GE(Timer([&] { return a * 2; }).blocked_autorange(0.01).times().size(), 1u);
  // Four runs where any spread will do, one where no time is left; a clock's limits would be the
  // machine's.
  EXPECT_EQ(Timer([&] { return a * 2; }).adaptive_autorange(1e9, 0, 1e9).times().size(), 4u);
  EXPECT_EQ(Timer([&] { return a * 2; }).adaptive_autorange(0, 0, 0).times().size(), 1u);
}

}  // namespace
}  // namespace tessera
