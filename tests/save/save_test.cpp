// Saving and loading from C++.
#include "tessera/tessera.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "tessera/save/crc32.h"
#include "tessera/save/errors.h"
#include "tessera/save/loaded.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

// A folder of its own, gone afterwards.
class Save : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/tessera-save-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  size_t files() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  std::string folder_;
};

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}
bool same(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.sizes() == b.sizes() && a.strides() == b.strides() &&
         a.eq(b).all().item<int64_t>() == 1;
}

TEST_F(Save, StateDictsKeepOrderValuesAndGeometry) {
  Tensor w = tensor({{1.0, 2.0}, {3.0, 4.0}});
  StateDict s{{"layer.weight", w.t()}, {"layer.bias", tensor({1, 2, 3})}, {"a", w[1]}};
  save(s, path("x.pt"));
  StateDict back = load_state_dict(path("x.pt"));
  ASSERT_EQ(back.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(back[i].first, s[i].first);
    EXPECT_TRUE(same(back[i].second, s[i].second));
  }
  EXPECT_TRUE(same(back.at("a"), w[1]));
  EXPECT_FALSE(back.contains("b"));
  EXPECT_THROW(back.at("b"), Error);
  // The first and the third shared memory, and still do.
  EXPECT_EQ(&back[0].second.storage(), &back[2].second.storage());
  EXPECT_EQ(files(), 1u);
}

TEST_F(Save, NestedValues) {
  StateDict s{{"w", tensor({1.0f, 2.0f})}};
  save(SaveItem::dict({{"model", s},
                       {"epoch", 3},
                       {"big", int64_t{1} << 40},
                       {"loss", 0.25},
                       {"done", false},
                       {"note", "two words"},
                       {"none", SaveItem()},
                       {"history", SaveItem::list({1, 2.5, SaveItem::list({})})}}),
       path("c.pt"));
  SavedValue v = load(path("c.pt"));
  EXPECT_EQ(v.size(), 8u);
  EXPECT_EQ(v.keys()[1], "epoch");
  EXPECT_EQ(v["epoch"].integer(), 3);
  EXPECT_EQ(v["big"].integer(), int64_t{1} << 40);
  EXPECT_EQ(v["loss"].real(), 0.25);
  EXPECT_FALSE(v["done"].boolean());
  EXPECT_EQ(v["note"].text(), "two words");
  EXPECT_TRUE(v["none"].is_none());
  EXPECT_EQ(v["history"][1].real(), 2.5);
  EXPECT_EQ(v["history"][2].size(), 0u);
  EXPECT_TRUE(same(v["model"].state_dict().at("w"), s.at("w")));
  EXPECT_THROW(v["epoch"].text(), Error);
  EXPECT_THROW(v["nothing"], Error);
  EXPECT_THROW(v["history"][3], Error);
  EXPECT_THROW(v.state_dict(), Error);
}

TEST_F(Save, EveryDTypeAndNoElements) {
  for (int i = 0; i < kNumDTypes; ++i) {
    Tensor t = tensor({1, 0, 3}).to(static_cast<DType>(i));
    save(t, path("t.pt"));
    EXPECT_TRUE(same(load(path("t.pt")).tensor(), t)) << dtype_name(t.dtype());
    Tensor none = t.slice(0, 0, 0);
    save(none, path("t.pt"));
    EXPECT_EQ(load(path("t.pt")).tensor().sizes(), none.sizes());
  }
  Tensor wants = tensor({1.0}).requires_grad_();
  save(wants, path("t.pt"));
  EXPECT_TRUE(load(path("t.pt")).tensor().requires_grad());
}

TEST_F(Save, AFileIsReplacedWholeOrNotAtAll) {
  save(tensor({1.0}), path("t.pt"));
  ASSERT_EQ(chmod(path("t.pt").c_str(), 0640), 0);
  std::string before = bytes_of(path("t.pt"));
  EXPECT_THROW(save(Tensor(), path("t.pt")), Error);  // refused before anything is written
  EXPECT_EQ(bytes_of(path("t.pt")), before);
  // What a killed process left goes with the next save; what is another's stays.
  write(path(".t.pt.abcdef.tessera-tmp"), "half");
  write(path(".t.pt.mine"), "mine");
  fs::create_symlink("t.pt", path("link.pt"));
  save(tensor({2.0}), path("link.pt"));
  save(tensor({2.0}), path("t.pt"));
  EXPECT_TRUE(fs::is_symlink(path("link.pt")));
  EXPECT_EQ(load(path("t.pt")).tensor().item(), 2.0);
  EXPECT_EQ(fs::status(path("t.pt")).permissions(), fs::perms(0640));
  EXPECT_FALSE(fs::exists(path(".t.pt.abcdef.tessera-tmp")));
  EXPECT_EQ(files(), 3u);
}

TEST_F(Save, ErrorsNameThePath) {
  try {
    load(path("none.pt"));
    FAIL();
  } catch (const files::SystemError& e) {
    EXPECT_EQ(e.code(), ENOENT);
    EXPECT_NE(std::string(e.what()).find("none.pt"), std::string::npos);
  }
  EXPECT_THROW(save(tensor({1.0}), path("no/such/folder.pt")), files::SystemError);
  EXPECT_THROW(save(tensor({1.0}), folder_), files::SystemError);
  EXPECT_THROW(load(folder_), files::SystemError);
}

// Every cut and every changed byte of a small file: refused with a reason, or the same values.
TEST_F(Save, DamagedFilesAreRefused) {
  StateDict s{{"w", tensor({{1.0, 2.0}, {3.0, 4.0}})}, {"n", tensor({7, 8})}};
  save(s, path("x.pt"));
  std::string good = bytes_of(path("x.pt"));
  int refused = 0;
  auto attempt = [&](const std::string& bytes) {
    auto data = reinterpret_cast<const uint8_t*>(bytes.data());
    try {
      auto file = files::load_values(files::Source::memory({data, bytes.size()}, "y.pt"), {});
      for (const TensorBase& t : file->tensors)
        EXPECT_TRUE(same(Tensor(t), s.at("w")) || same(Tensor(t), s.at("n")));
    } catch (const Error&) {
      ++refused;
    }
  };
  for (size_t n = 0; n < good.size(); ++n) attempt(good.substr(0, n));
  EXPECT_EQ(refused, static_cast<int>(good.size()));
  refused = 0;
  for (size_t i = 0; i < good.size(); ++i) {
    for (unsigned char flip : {0x01, 0x80, 0xff}) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ flip);
      attempt(bad);
    }
  }
  // What is not noticed lies in padding, dates and version numbers.
  EXPECT_GT(refused, static_cast<int>(good.size()));
}

TEST(Crc32, ProductsAndTablesAgree) {
  std::vector<uint8_t> bytes(1000);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * i * 31 + 7);
  for (size_t n = 0; n < bytes.size(); ++n) {
    size_t at = n % 17, size = std::min(n, bytes.size() - at);
    uint32_t before = static_cast<uint32_t>(n * 2654435761u);
    EXPECT_EQ(files::crc32(&bytes[at], size, before),
              files::crc32_by_table(&bytes[at], size, before));
  }
  EXPECT_EQ(files::crc32("123456789", 9), 0xcbf43926u);
}

}  // namespace
}  // namespace tessera
