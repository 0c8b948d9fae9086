// Kernels compiled beforehand, in one file that comes with the backend's library: those of named
// operators, so that a machine that has never run Tessera does not wait for the compiler.
//
// Note [The pack of kernels]
// The file lies beside the library (tessera_cuda.pack); $TESSERA_KERNEL_PACK names another, or is 0
// for none. A kernel's name is a hash of its text, its architecture, its effort and our options of
// the compiler, but not of the compiler's version: what is found needs no compiler to be there. A
// text that has changed has another name, so an old pack only misses. Any fault of the file is a
// miss as well: it is read and never mapped, since a mapped file that is cut short is a crash, and
// the table and each image carry checksums. What may write beside the library may write the library
// itself, so there is nothing to trust beyond that.
// The file: a PackHeader, `count` of PackEntry in the order of their names, the images.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "hash.h"

namespace tessera::cuda {

inline constexpr int kPackArchs = 8;

struct PackHeader {
  char line[128];  // what it is, for whoever looks into it; also its magic
  uint64_t count;
  uint64_t size;     // of the whole file
  int32_t toolkit;   // of the compiler: 13000 for CUDA 13.0
  int32_t archs[9];  // 90 for sm_90; the first 0 ends them
  Hash128 checksum;  // of the header before this word, and the table
};
static_assert(sizeof(PackHeader) == 200);

struct PackEntry {
  Hash128 name;
  uint64_t offset, size;
  Hash128 checksum;
};
static_assert(sizeof(PackEntry) == 48);

class PackFile {
 public:
  // Null where it is not there or is no pack.
  static std::unique_ptr<PackFile> open(const std::string& path);
  PackFile(const PackFile&) = delete;
  PackFile& operator=(const PackFile&) = delete;
  ~PackFile();

  // Null: only whether it is in the table.
  bool find(const Hash128& name, std::vector<char>* image) const;
  const std::string& path() const { return path_; }
  size_t count() const { return table_.size(); }
  int toolkit() const { return header_.toolkit; }
  // Those whose machine code runs on a device of `arch`, the best first.
  std::vector<int> archs_for(int arch) const;
  // "1534 kernels for sm_90, CUDA 13.0"
  std::string about() const;

 private:
  explicit PackFile(int fd) : fd_(fd) {}
  bool read();

  int fd_;
  std::string path_;
  PackHeader header_{};
  std::vector<PackEntry> table_;
};

struct PackItem {
  Hash128 name;
  std::vector<char> image;
};
// Under a temporary name, then renamed. False, with errno, where that fails.
bool write_pack(const std::string& path, std::vector<PackItem> items, int toolkit,
                const std::vector<int>& archs);

// The pack that belongs to this library, opened once; null if there is none.
const PackFile* installed_pack();
// Where it was looked for; empty if that is turned off.
std::string pack_path();

}  // namespace tessera::cuda
