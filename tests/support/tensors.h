// What the tests share: devices, tensors of known content, reading them back, expectations.
#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tessera/tessera.h"

namespace tessera::test {

// The accelerator's first device: the virtual GPU, or the real one with DEVICE=cuda in the
// environment.
Device test_gpu(int index = 0);
bool gpu_is_virtual();

// Row-major values, converted to `dtype` here and not by the library.
Tensor make(const Dims& sizes, const std::vector<double>& values, DType dtype = DType::kFloat32,
            Device device = Device{});
// `make` with values that differ from each other, small and of both signs.
Tensor sample(const Dims& sizes, DType dtype = DType::kFloat32, Device device = Device{},
              int seed = 0);

// The elements in logical order. Walks the strides itself, so that no operator under test is asked.
std::vector<double> values(const TensorBase& t);
std::string bytes(const TensorBase& t);
double value(const TensorBase& t);  // of a tensor with one element

// One element as memory holds it, and back.
double load_element(const char* p, DType dtype);
void store_element(char* p, DType dtype, double v);
// What a double becomes when stored in `dtype`.
double rounded(double v, DType dtype);

// Equal within `tolerance` relative to the larger of 1 and the expected value; NaN equals NaN.
::testing::AssertionResult close(const std::vector<double>& got, const std::vector<double>& want,
                                 double tolerance);
// Units in the last place a dtype's results may be off by, as a relative tolerance.
double tolerance_of(DType dtype);

// The message of the error that `f` raises, or "" if it raises none; `kind` is set where given.
std::string error_of(const std::function<void()>& f, ErrorKind* kind = nullptr);
#define EXPECT_ERROR(statement, expected_kind, text)                                           \
  do {                                                                                         \
    ::tessera::ErrorKind kind_{};                                                              \
    std::string message_ = ::tessera::test::error_of([&] { statement; }, &kind_);              \
    EXPECT_NE(message_, "") << #statement << " raised nothing";                                \
    EXPECT_NE(message_.find(text), std::string::npos) << message_;                             \
    EXPECT_EQ(static_cast<int>(kind_), static_cast<int>(::tessera::ErrorKind::expected_kind)); \
  } while (0)

// Deferral for a while; what is pending at the end runs.
class FuseMode {
 public:
  explicit FuseMode(fuse::Mode m) : before_(fuse::mode()), tiny_(fuse::tiny()) {
    fuse::set_mode(m);
    fuse::set_tiny(0);  // small tensors wait too
  }
  ~FuseMode() {
    fuse::set_mode(fuse::Mode::kOff);
    fuse::set_mode(before_);
    fuse::set_tiny(tiny_);
  }
  FuseMode(const FuseMode&) = delete;
  FuseMode& operator=(const FuseMode&) = delete;

 private:
  fuse::Mode before_;
  int64_t tiny_;
};

// Runs `program` unfused and fused and expects the same bits of every tensor it returns, whether
// they are read in order, backwards, or after all ran at once. True when a group of two or more
// ran, which is what most callers want to be sure of.
bool same_fused(Device device, const std::function<std::vector<Tensor>()>& program);

// Waits for both devices and gives their memory back, so that no test sees another's.
void clear_gpu();

}  // namespace tessera::test
