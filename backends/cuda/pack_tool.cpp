// Compiles texts that $TESSERA_KEEP_KERNELS kept into a pack of kernels (pack.h), on all cores:
//   kernel_pack OUT [--arch 90]... [--jobs N] FOLDER...
// What an older file of that name holds, made by the same compiler, is taken from it. Needs NVRTC
// and no GPU. In processes, not threads: NVRTC 13 compiles one program at a time in each.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "compile.h"
#include "nvrtc_api.h"
#include "pack.h"

namespace {

using namespace tessera::cuda;

struct Work {
  std::string file, text;
  int arch;
  Effort effort;
  Hash128 name;
};

std::string read_file(const std::string& path) {
  std::string all;
  if (std::FILE* f = std::fopen(path.c_str(), "rb")) {
    char some[4096];
    while (size_t n = std::fread(some, 1, sizeof some, f)) all.append(some, n);
    std::fclose(f);
  }
  return all;
}

bool read_folders(const std::vector<std::string>& folders, const std::vector<int>& archs,
                  std::vector<Work>* work) {
  for (const std::string& folder : folders) {
    std::error_code problem;
    for (const auto& entry : std::filesystem::directory_iterator(folder, problem)) {
      if (entry.path().extension() != ".cu") continue;
      const std::string text = read_file(entry.path().string());
      const Effort effort = effort_of_file(entry.path().filename().string());
      for (int arch : archs)
        work->push_back({entry.path().string(), text, arch, effort, pack_name(text, arch, effort)});
    }
    if (problem) {
      std::fprintf(stderr, "%s: %s\n", folder.c_str(), problem.message().c_str());
      return false;
    }
  }
  return true;
}

// What one process does: takes work until none is left, and writes a pack of its own.
bool compile_part(const std::vector<Work>& work, std::atomic<size_t>& next, int toolkit,
                  const std::vector<int>& archs, const std::string& out) {
  std::vector<PackItem> items;
  bool good = true;
  for (size_t at; (at = next.fetch_add(1)) < work.size();) {
    const Work& w = work[at];
    PackItem item{w.name, {}};
    std::string error;
    if (compile_fresh(w.text, w.arch, &item.image, &error, w.effort)) {
      items.push_back(std::move(item));
    } else {
      std::fprintf(stderr, "%s, sm_%d: %s\n", w.file.c_str(), w.arch, error.c_str());
      good = false;
    }
  }
  return write_pack(out, std::move(items), toolkit, archs) && good;
}

// The parts' files, in any number of processes.
std::vector<std::string> compile_all(const std::vector<Work>& work, int jobs, int toolkit,
                                     const std::vector<int>& archs, const std::string& out) {
  void* shared = mmap(nullptr, sizeof(std::atomic<size_t>), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return {};
  auto* next = new (shared) std::atomic<size_t>(0);
  std::vector<std::string> parts;
  std::vector<pid_t> children;
  for (int i = 0; i < jobs; ++i) {
    parts.push_back(out + ".part" + std::to_string(i));
    const pid_t child = fork();
    if (child == 0) _exit(compile_part(work, *next, toolkit, archs, parts.back()) ? 0 : 1);
    if (child > 0) children.push_back(child);
  }
  for (pid_t child : children) waitpid(child, nullptr, 0);
  return parts;
}

// Moves what `from` has of `work` to `items`.
void take(const PackFile* from, std::vector<Work>* work, std::vector<PackItem>* items) {
  if (!from) return;
  std::erase_if(*work, [&](const Work& w) {
    PackItem item{w.name, {}};
    if (!from->find(w.name, &item.image)) return false;
    items->push_back(std::move(item));
    return true;
  });
}

}  // namespace

int main(int argc, char** argv) {
  std::string out;
  std::vector<int> archs;
  std::vector<std::string> folders;
  int jobs = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  for (int i = 1; i < argc; ++i) {
    const bool more = i + 1 < argc;
    if (!std::strcmp(argv[i], "--arch") && more)
      archs.push_back(std::atoi(argv[++i]));
    else if (!std::strcmp(argv[i], "--jobs") && more)
      jobs = std::max(1, std::atoi(argv[++i]));
    else if (out.empty())
      out = argv[i];
    else
      folders.push_back(argv[i]);
  }
  if (folders.empty() || archs.size() > kPackArchs) {
    std::fprintf(stderr, "usage: kernel_pack OUT [--arch 90]... [--jobs N] FOLDER...\n");
    return 2;
  }
  if (archs.empty()) archs = {90};
  std::string why;
  const NvrtcApi* api = nvrtc_api(&why);
  if (!api) {
    std::fprintf(stderr, "no pack can be made: %s\n", why.c_str());
    return 1;
  }
  std::vector<Work> work;
  if (!read_folders(folders, archs, &work)) return 1;
  const int toolkit = api->major * 1000 + std::min(api->minor, 99) * 10;
  std::vector<PackItem> items;
  std::unique_ptr<PackFile> before = PackFile::open(out);
  if (before && before->toolkit() == toolkit) take(before.get(), &work, &items);
  const size_t kept = items.size(), fresh = work.size();
  // The longest first, so that no core is left with one of them at the end.
  std::stable_sort(work.begin(), work.end(),
                   [](const Work& a, const Work& b) { return a.text.size() > b.text.size(); });
  const auto begin = std::chrono::steady_clock::now();
  if (fresh > 0)
    for (const std::string& part : compile_all(work, jobs, toolkit, archs, out)) {
      take(PackFile::open(part).get(), &work, &items);
      unlink(part.c_str());
    }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  size_t bytes = 0;
  for (const PackItem& item : items) bytes += item.image.size();
  const size_t count = items.size();
  if (!write_pack(out, std::move(items), toolkit, archs)) {
    std::perror(out.c_str());
    return 1;
  }
  std::printf("%s: %zu kernels, %.1f MB; %zu compiled in %.1f s, %zu as before, %zu failed\n",
              out.c_str(), count, static_cast<double>(bytes) / 1e6, fresh - work.size(), seconds,
              kept, work.size());
  return work.empty() ? 0 : 1;
}
