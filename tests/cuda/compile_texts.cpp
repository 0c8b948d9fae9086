// Compiles kernels' texts with NVRTC, for GPUs that need not be there:
//   TESSERA_KEEP_KERNELS=folder pytest ... (on the emulated GPU, say); compile_texts folder [90 75]
// Prints a line for each text that is refused, and counts.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "compile.h"

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: compile_texts FOLDER [ARCHITECTURE...]\n");
    return 2;
  }
  std::vector<int> archs;
  for (int i = 2; i < argc; ++i) archs.push_back(std::atoi(argv[i]));
  if (archs.empty()) archs = {90};
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1]))
    if (entry.path().extension() == ".cu") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  int passed = 0, failed = 0;
  for (const auto& file : files) {
    std::stringstream text;
    text << std::ifstream(file).rdbuf();
    for (int arch : archs) {
      std::vector<char> image;
      std::string error;
      bool ok = tessera::cuda::compile_text(text.str(), arch, &image, &error,
                                            tessera::cuda::effort_of_file(file.filename()));
      ++(ok ? passed : failed);
      if (!ok) std::printf("%s, sm_%d: %s\n", file.c_str(), arch, error.c_str());
    }
  }
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed ? 1 : 0;
}
