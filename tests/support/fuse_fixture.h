// A test with deferral on and the stream's counters from zero.
#pragma once
#include "support/tensors.h"

namespace tessera::test {

class FuseTest : public ::testing::Test {
 protected:
  explicit FuseTest(Device device = Device{}) : device_(device) {}
  void SetUp() override {
    fuse::set_mode(fuse::Mode::kOff);
    fuse::set_mode(fuse::Mode::kOn);
    fuse::set_tiny(0);
    stream().reset_stats();
  }
  void TearDown() override {
    fuse::set_mode(fuse::Mode::kOff);
    fuse::set_tiny(1024);
  }

  fuse::Stream& stream() { return fuse::stream_of(device_); }
  size_t pending() { return stream().pending_ops(); }
  fuse::Stats stats() { return stream().stats(); }
  int64_t runs(fuse::Reason r) { return stats().runs[static_cast<size_t>(r)]; }
  std::string explain() { return stream().explain(); }
  void run_all() { stream().run_all(fuse::Reason::kUser); }
  static int count(const std::string& text, const std::string& word) {
    int n = 0;
    for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
    return n;
  }

  Device device_;
};

}  // namespace tessera::test
