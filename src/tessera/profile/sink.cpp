#include "tessera/profile/sink.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "tessera/base/error.h"

namespace tessera::profile {

namespace {

class File : public Sink {
 public:
  explicit File(const std::string& path) : path_(path), file_(std::fopen(path.c_str(), "wb")) {
    TS_CHECK(file_, "cannot write the trace to ", path, ": ", std::strerror(errno));
  }
  ~File() override {
    if (file_) std::fclose(file_);
  }
  void write(std::string_view text) override {
    if (std::fwrite(text.data(), 1, text.size(), file_) != text.size()) failed_ = errno;
  }
  void finish() override {
    if (std::fclose(file_) != 0 && !failed_) failed_ = errno;
    file_ = nullptr;
    TS_CHECK(!failed_, "cannot write the trace to ", path_, ": ", std::strerror(failed_));
  }

 private:
  std::string path_;
  std::FILE* file_;
  int failed_ = 0;
};

// zlib by its stable interface; its header need not be there.
struct ZStream {
  const unsigned char* next_in;
  unsigned avail_in;
  unsigned long total_in;
  unsigned char* next_out;
  unsigned avail_out;
  unsigned long total_out;
  const char* msg;
  void* state;
  void* (*zalloc)(void*, unsigned, unsigned);
  void (*zfree)(void*, void*);
  void* opaque;
  int data_type;
  unsigned long adler;
  unsigned long reserved;
};
struct Zlib {
  int (*init)(ZStream*, int level, int method, int window, int memory, int strategy,
              const char* version, int size) = nullptr;
  int (*deflate)(ZStream*, int flush) = nullptr;
  int (*end)(ZStream*) = nullptr;
  const char* (*version)() = nullptr;
};
const Zlib* zlib() {
  static const Zlib* found = []() -> const Zlib* {
    void* library = dlopen("libz.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return nullptr;
    static Zlib z;
    z.init = reinterpret_cast<decltype(z.init)>(dlsym(library, "deflateInit2_"));
    z.deflate = reinterpret_cast<decltype(z.deflate)>(dlsym(library, "deflate"));
    z.end = reinterpret_cast<decltype(z.end)>(dlsym(library, "deflateEnd"));
    z.version = reinterpret_cast<decltype(z.version)>(dlsym(library, "zlibVersion"));
    return z.init && z.deflate && z.end && z.version ? &z : nullptr;
  }();
  return found;
}

class Deflated : public Sink {
 public:
  Deflated(std::unique_ptr<File> file, const Zlib& z) : file_(std::move(file)), z_(z) {
    constexpr int kLevel = 4, kMethod = 8, kGzip = 31, kMemory = 8;
    const int r = z.init(&stream_, kLevel, kMethod, kGzip, kMemory, 0, z.version(),
                         static_cast<int>(sizeof stream_));
    TS_CHECK(r == 0, "zlib could not start (error ", r, ")");
  }
  ~Deflated() override { z_.end(&stream_); }
  void write(std::string_view text) override {
    stream_.next_in = reinterpret_cast<const unsigned char*>(text.data());
    stream_.avail_in = static_cast<unsigned>(text.size());
    run(0);
  }
  void finish() override {
    constexpr int kFinish = 4;
    stream_.avail_in = 0;
    run(kFinish);
    file_->finish();
  }

 private:
  void run(int flush) {
    do {
      stream_.next_out = out_;
      stream_.avail_out = sizeof out_;
      z_.deflate(&stream_, flush);
      file_->write({reinterpret_cast<char*>(out_), sizeof out_ - stream_.avail_out});
    } while (stream_.avail_out == 0);
  }
  std::unique_ptr<File> file_;
  const Zlib& z_;
  ZStream stream_{};
  unsigned char out_[1 << 16];
};

// Without zlib: a valid file of that form whose blocks are stored as they are.
class Stored : public Sink {
 public:
  explicit Stored(std::unique_ptr<File> file) : file_(std::move(file)) {
    file_->write({"\x1f\x8b\x08\0\0\0\0\0\0\xff", 10});
  }
  void write(std::string_view text) override {
    for (unsigned char c : text) crc_ = kTable[(crc_ ^ c) & 255] ^ (crc_ >> 8);
    size_ += static_cast<uint32_t>(text.size());
    while (!text.empty()) {
      const size_t n = std::min<size_t>(text.size(), 65535);
      block(text.substr(0, n), false);
      text.remove_prefix(n);
    }
  }
  void finish() override {
    block({}, true);
    little(crc_ ^ 0xffffffffu, 4);
    little(size_, 4);
    file_->finish();
  }

 private:
  static constexpr auto kTable = [] {
    std::array<uint32_t, 256> t{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t c = i;
      for (int k = 0; k < 8; ++k) c = c & 1 ? 0xedb88320u ^ (c >> 1) : c >> 1;
      t[i] = c;
    }
    return t;
  }();
  void little(uint32_t value, int bytes) {
    char text[4];
    for (int i = 0; i < bytes; ++i) text[i] = static_cast<char>(value >> (8 * i));
    file_->write({text, static_cast<size_t>(bytes)});
  }
  void block(std::string_view text, bool last) {
    little(last, 1);
    little(static_cast<uint32_t>(text.size()), 2);
    little(~static_cast<uint32_t>(text.size()), 2);
    file_->write(text);
  }
  std::unique_ptr<File> file_;
  uint32_t crc_ = 0xffffffffu, size_ = 0;
};

}  // namespace

std::unique_ptr<Sink> Sink::open(const std::string& path) {
  auto file = std::make_unique<File>(path);
  if (!path.ends_with(".gz")) return file;
  if (const Zlib* z = zlib()) return std::make_unique<Deflated>(std::move(file), *z);
  return std::make_unique<Stored>(std::move(file));
}

}  // namespace tessera::profile
