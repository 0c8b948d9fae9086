#include "pack.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "compile.h"

namespace tessera::cuda {
namespace {

Hash128 name(uint64_t i) { return {i * 7, i % 3}; }
std::vector<char> image(uint64_t i) { return std::vector<char>(100 + i, static_cast<char>(i)); }

class CudaPack : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = ::testing::TempDir() + "tessera_pack_test_" + std::to_string(getpid());
    std::vector<PackItem> items;
    for (uint64_t i = 0; i < 20; ++i) items.push_back({name(i), image(i)});
    items.push_back(items.front());  // twice is once
    ASSERT_TRUE(write_pack(path_, items, 13000, {80, 86, 90}));
    std::stringstream all;
    all << std::ifstream(path_, std::ios::binary).rdbuf();
    bytes_ = all.str();
  }
  void TearDown() override { unlink(path_.c_str()); }
  void put(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
  }

  std::string path_, bytes_;
};

TEST_F(CudaPack, WhatWasPutInIsFound) {
  auto pack = PackFile::open(path_);
  ASSERT_TRUE(pack);
  EXPECT_EQ(pack->count(), 20u);
  EXPECT_EQ(pack->about(), "20 kernels for sm_80 sm_86 sm_90, CUDA 13.0");
  for (uint64_t i = 0; i < 20; ++i) {
    std::vector<char> found;
    EXPECT_TRUE(pack->find(name(i), &found));
    EXPECT_EQ(found, image(i));
  }
  std::vector<char> found = {'x'};
  EXPECT_FALSE(pack->find({1, 1}, &found));
  EXPECT_EQ(found.size(), 1u);
}

TEST_F(CudaPack, ArchitecturesOfOneMajorVersionRunOnLaterOnes) {
  auto pack = PackFile::open(path_);
  ASSERT_TRUE(pack);
  EXPECT_EQ(pack->archs_for(90), std::vector<int>{90});
  EXPECT_EQ(pack->archs_for(89), (std::vector<int>{86, 80}));
  EXPECT_EQ(pack->archs_for(80), std::vector<int>{80});
  EXPECT_TRUE(pack->archs_for(75).empty());
  EXPECT_TRUE(pack->archs_for(100).empty());
}

TEST_F(CudaPack, ACutFileIsNone) {
  for (size_t n = 0; n < bytes_.size(); n += n < 1300 ? 1 : 97) {
    put(bytes_.substr(0, n));
    EXPECT_FALSE(PackFile::open(path_)) << n;
  }
  put(bytes_ + "more");
  EXPECT_FALSE(PackFile::open(path_));
  EXPECT_FALSE(PackFile::open(path_ + ".not_there"));
  EXPECT_FALSE(PackFile::open(::testing::TempDir()));
}

TEST_F(CudaPack, ADamagedFileGivesNothingWrong) {
  for (size_t at = 0; at < bytes_.size(); ++at) {
    std::string damaged = bytes_;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << at % 8));
    put(damaged);
    auto pack = PackFile::open(path_);
    EXPECT_EQ(pack == nullptr, at < sizeof(PackHeader) + 20 * sizeof(PackEntry)) << at;
    int missed = 0;
    for (uint64_t i = 0; pack && i < 20; ++i) {
      std::vector<char> found;
      if (pack->find(name(i), &found))
        EXPECT_EQ(found, image(i));
      else
        ++missed;
    }
    EXPECT_EQ(missed, pack ? 1 : 0) << at;
  }
}

// While it is in use: nothing is mapped, so nothing faults.
TEST_F(CudaPack, AFileCutLaterMisses) {
  auto pack = PackFile::open(path_);
  ASSERT_TRUE(pack);
  ASSERT_EQ(truncate(path_.c_str(), 10), 0);
  std::vector<char> found;
  for (uint64_t i = 0; i < 20; ++i) EXPECT_FALSE(pack->find(name(i), &found));
}

TEST(CudaPackNames, DependOnTextArchitectureAndEffort) {
  const Hash128 a = pack_name("text", 90, Effort::kFull);
  EXPECT_EQ(a, pack_name("text", 90, Effort::kFull));
  EXPECT_NE(a, pack_name("test", 90, Effort::kFull));
  EXPECT_NE(a, pack_name("text", 80, Effort::kFull));
  EXPECT_NE(a, pack_name("text", 90, Effort::kQuick));
}

TEST(CudaPackNames, KindsOfTexts) {
  const std::string head = "extern \"C\" __global__ void __launch_bounds__(256, 2)\n ";
  const std::string tail = "(const __grid_constant__ Params p) {}";
  EXPECT_EQ(text_kind(head + "row_norm" + tail), "row_norm");
  EXPECT_EQ(text_kind("#define AFTER 1\n" + head + "reduce" + tail), "reduce+joined");
  EXPECT_EQ(text_kind("nothing"), "kernel");
  EXPECT_EQ(effort_of_file("softmax.quick.00.cu"), Effort::kQuick);
  EXPECT_EQ(effort_of_file("row_norm.full.00.cu"), Effort::kFull);
}

}  // namespace
}  // namespace tessera::cuda
