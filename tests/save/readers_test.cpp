// The readers of files against changed and made-up bytes: each input is refused by an Error or
// read; the sanitizers watch. TESSERA_FUZZ says how many inputs of each kind (20,000 unless told).
#include <cstdlib>
#include <cstring>
#include <random>

#include "tessera/save/json_cursor.h"
#include "tessera/save/loaded.h"
#include "tessera/save/pickle_writer.h"
#include "tessera/save/safetensors.h"
#include "tessera/save/write_archive.h"
#include "tessera/tessera.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace tessera {
namespace {

using Random = std::mt19937_64;

int inputs() {
  const char* text = std::getenv("TESSERA_FUZZ");
  return text ? std::atoi(text) : 20000;
}

std::span<const uint8_t> as_bytes(const std::string& s) {
  return {reinterpret_cast<const uint8_t*>(s.data()), s.size()};
}

// Changes a few bytes: other values, numbers that matter, pieces removed, doubled, exchanged.
std::string changed(std::string s, Random& rng) {
  constexpr uint64_t numbers[] = {
      0, 1, 0x7f, 0x80, 0xff, 0xffff, 0x7fffffff, 0xffffffff, uint64_t{1} << 62, ~uint64_t{0}};
  for (int n = 1 + static_cast<int>(rng() % 4); n && !s.empty(); --n) {
    size_t at = rng() % s.size(), size = 1 + rng() % std::min<size_t>(16, s.size() - at);
    switch (rng() % 6) {
      case 0:
        s[at] = static_cast<char>(rng());
        break;
      case 1:
        s[at] = static_cast<char>(s[at] ^ (1 << (rng() % 8)));
        break;
      case 2: {
        uint64_t v = numbers[rng() % std::size(numbers)];
        std::memcpy(s.data() + at, &v, std::min<size_t>({size, 8, s.size() - at}));
        break;
      }
      case 3:
        s.erase(at, size);
        break;
      case 4:
        s.insert(rng() % (s.size() + 1), s.substr(at, size));
        break;
      default:
        s.resize(rng() % 8 ? s.size() : at);
    }
  }
  return s;
}

std::string archive() {
  files::PickleWriter writer;
  writer.begin_dict(true);
  Tensor x = tensor({{1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}});
  writer.text("w");
  writer.tensor(x.t());
  writer.text("part");
  writer.tensor(x[1]);
  writer.text("list");
  writer.begin_list();
  writer.integer(-70000);
  writer.real(0.5);
  writer.boolean(true);
  writer.none();
  writer.tensor(tensor({1, 2, 3}));
  writer.end_list();
  writer.end_dict();
  std::string pickle = writer.finish();
  files::TextSink out;
  files::write_archive(out, "x", pickle, writer.storages());
  return out.text;
}

std::string pickle_in(const std::string& archive) {
  files::ZipReader zip(files::Source::memory(as_bytes(archive), "seed"));
  std::vector<uint8_t> bytes = zip.read(*zip.find("data.pkl"));
  return {bytes.begin(), bytes.end()};
}

// Reads every element, so that a tensor beyond its memory is noticed.
void touch(const files::Loaded& file) {
  for (const TensorBase& t : file.tensors)
    if (t.numel() && t.numel() < 1000) Tensor(t).to(DType::kFloat64).sum().item();
}

TEST(ReadersTest, ChangedArchives) {
  std::string seed = archive();
  Random rng(1);
  int read = 0;
  for (int i = 0; i < inputs(); ++i) {
    std::string bytes = changed(seed, rng);
    try {
      auto file = files::load_values(files::Source::memory(as_bytes(bytes), "changed"), {});
      if (read++ % 16 == 0) touch(*file);
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()), "");
    }
  }
  EXPECT_LT(read, inputs());
}

TEST(ReadersTest, ChangedPickles) {
  std::string seed = pickle_in(archive());
  Random rng(2);
  int read = 0;
  for (int i = 0; i < inputs(); ++i) {
    std::string bytes = changed(seed, rng);
    files::Graph graph;
    try {
      files::PickleReader reader(as_bytes(bytes), graph, "changed", "data.pkl");
      size_t at = 0;
      graph.root = reader.read(at);
      ++read;
      EXPECT_LE(at, bytes.size());
      EXPECT_LT(graph.root, graph.nodes.size());
      for (files::Id id = 0; id < graph.nodes.size(); ++id)
        for (files::Id item : graph.items(id)) EXPECT_LT(item, graph.nodes.size());
    } catch (const files::Refused& e) {
      EXPECT_EQ(e.kind_of_refusal(), files::Refused::What::kPickle);
    }
  }
  EXPECT_GT(read, 0);
}

// Opcodes at random, most of them allowed ones with operands that fit.
TEST(ReadersTest, MadeUpPickles) {
  const std::string pieces[] = {"(",
                                "N",
                                "\x88",
                                "\x89",
                                "K\x03",
                                "M\x01\x02",
                                "J\xff\xff\xff\xff",
                                "}",
                                "]",
                                ")",
                                "t",
                                "\x85",
                                "\x86",
                                "\x87",
                                "a",
                                "e",
                                "s",
                                "u",
                                "q",
                                "h",
                                "R",
                                "b",
                                "\x81",
                                "Q",
                                "\x8f",
                                "X\x01",
                                "U\x01z",
                                "\x8a\x01\x7f",
                                "ctorch._utils\n_rebuild_tensor_v2\n",
                                "ccollections\nOrderedDict\n",
                                "ctorch\nFloatStorage\n",
                                "ctorch\nSize\n",
                                "cbuiltins\nset\n",
                                "c_codecs\nencode\n",
                                "ccollections\nCounter\n",
                                "ctorch._utils\n_rebuild_parameter\n"};
  Random rng(3);
  for (int i = 0; i < inputs(); ++i) {
    std::string bytes = "\x80\x02";
    for (int n = static_cast<int>(rng() % 60); n; --n) {
      const std::string& piece = pieces[rng() % std::size(pieces)];
      bytes += piece;
      if (piece == "q" || piece == "h") bytes += static_cast<char>(rng() % 8);
      if (piece == "X\x01") bytes += std::string("\0\0\0w", 4);
    }
    bytes += '.';
    files::Graph graph;
    try {
      files::PickleReader reader(as_bytes(bytes), graph, "made up", "data.pkl");
      size_t at = 0;
      reader.read(at);
    } catch (const files::Refused&) {
    }
  }
}

TEST(ReadersTest, ChangedSafetensors) {
  StateDict tensors{{"w", tensor({{1.0, 2.0}, {3.0, 4.0}})}, {"b\n\"", tensor({1, 2})}};
  files::TextSink out;
  files::write_safetensors(out, tensors, {{"key", "value \xc3\xa4"}});
  Random rng(4);
  int read = 0;
  for (int i = 0; i < inputs(); ++i) {
    std::string bytes = changed(out.text, rng);
    auto source = files::Source::memory(as_bytes(bytes), "changed");
    try {
      files::SafeHeader header = files::read_safetensors_header(*source);
      for (const files::SafeEntry& e : header.entries) files::read_safetensor(source, e, false);
      ++read;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()), "");
    }
  }
  EXPECT_GT(read, 0);
  EXPECT_LT(read, inputs());
}

TEST(ReadersTest, LimitsHold) {
  auto read = [](const std::string& bytes, files::PickleLimits limits) {
    files::Graph graph;
    files::PickleReader reader(as_bytes(bytes), graph, "limits", "data.pkl", nullptr, limits);
    size_t at = 0;
    return reader.read(at);
  };
  std::string many = "\x80\x02]" + std::string(100, '(') + std::string(100, 't') + "a.";
  EXPECT_NO_THROW(read(many, {}));
  EXPECT_THROW(read(many, {.marks = 99}), files::Refused);
  EXPECT_THROW(read(many, {.nodes = 100}), files::Refused);
  EXPECT_THROW(read(many, {.depth = 99}), files::Refused);
  std::string wide = "\x80\x02(" + std::string(100, 'N') + "t.";
  EXPECT_NO_THROW(read(wide, {}));
  EXPECT_THROW(read(wide, {.stack = 99}), files::Refused);
}

// An archive of more than 4 GiB, of which only the headers are kept: what 64-bit fields are for.
TEST(ReadersTest, SizesBeyond32Bits) {
  if (!std::getenv("TESSERA_FULL")) GTEST_SKIP() << "sums 5 GiB: only with TESSERA_FULL";
  constexpr uint64_t kHuge = uint64_t{5} << 30;
  void* zeros = nullptr;
  if (sizeof(void*) == 8) zeros = std::calloc(kHuge, 1);  // pages that are never touched
  if (!zeros) GTEST_SKIP() << "no address space";
  struct Sparse : files::Sink {
    void write(const void* data, size_t n) override {
      if (n < kHuge) kept.emplace_back(at, std::string(static_cast<const char*>(data), n));
      at += n;
    }
    uint64_t at = 0;
    std::vector<std::pair<uint64_t, std::string>> kept;
  } sink;
  files::ZipWriter zip(sink, "x");
  zip.add("first", "1");
  zip.add("huge", zeros, kHuge);
  zip.add("behind", "2");
  zip.finish();
  std::free(zeros);
  char name[] = "/tmp/tessera-sparse-XXXXXX";
  int fd = mkstemp(name);
  ASSERT_GE(fd, 0);
  unlink(name);
  for (const auto& [at, bytes] : sink.kept)
    ASSERT_EQ(pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(at)),
              static_cast<ssize_t>(bytes.size()));
  auto source = files::Source::descriptor(fd, "sparse");
  close(fd);
  files::ZipReader reader(source);
  ASSERT_EQ(reader.entries().size(), 3u);
  EXPECT_EQ(reader.find("huge")->size, kHuge);
  EXPECT_EQ(reader.find("huge")->offset % 64, 0u);
  EXPECT_GT(reader.find("behind")->offset, kHuge);
  EXPECT_EQ(reader.read(*reader.find("behind")), std::vector<uint8_t>{'2'});
}

}  // namespace
}  // namespace tessera
