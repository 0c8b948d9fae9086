// Stands in for libnvrtc: kernels are compiled by the host's compiler into shared objects, whose
// bytes are the "cubin".
#include <fcntl.h>
#include <nvrtc.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "options.h"
#include "translate.h"

extern char** environ;

namespace emulator {
namespace {

constexpr const char* kHead =
#include "kernel_abi.inc"
    "\n"
#include "shim.inc"
    ;

constexpr const char* kCompiler = EMULATOR_COMPILER;
// As a GPU: integers wrap, memory has the type it is read with. An address that is not aligned as
// its type asks is a trap.
constexpr const char* kFlags[] = {
    "-x",
    "c++",
    "-std=c++17",
    "-O1",
    "-shared",
    "-fPIC",
    "-pipe",
    "-w",
    "-nostdlib",
    "-fwrapv",
    "-fno-strict-aliasing",
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-threadsafe-statics",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fvisibility=hidden",
    "-fno-semantic-interposition",
    "-fno-stack-protector",
    "-fsanitize=alignment",
    "-fsanitize-undefined-trap-on-error",
};

class TemporaryFile {
 public:
  explicit TemporaryFile(const char* suffix) {
    const char* folder = std::getenv("TMPDIR");
    path_ = std::string(folder && *folder ? folder : "/tmp") + "/tessera-emulator-XXXXXX" + suffix;
    int fd = mkstemps(path_.data(), static_cast<int>(std::strlen(suffix)));
    if (fd >= 0) close(fd);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { unlink(path_.c_str()); }
  const std::string& path() const { return path_; }
  std::string read() const {
    std::ifstream file(path_, std::ios::binary);
    std::ostringstream all;
    all << file.rdbuf();
    return all.str();
  }
  bool write(const std::string& text) const {
    std::ofstream file(path_, std::ios::binary);
    file << text;
    return static_cast<bool>(file.flush());
  }

 private:
  std::string path_;
};

struct Program {
  std::string source, name, log, image;
};
Program& of(nvrtcProgram p) { return *reinterpret_cast<Program*>(p); }

// Output and errors of the command go to `log`.
bool run(const std::vector<std::string>& words, const std::string& log) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  // The libraries that stand in for CUDA's are no business of the compiler's.
  std::vector<char*> env;
  for (char** e = environ; *e; ++e)
    if (std::strncmp(*e, "LD_LIBRARY_PATH=", 16) != 0) env.push_back(*e);
  env.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t pid = 0;
  int failed = posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), env.data());
  posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  return failed == 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
         WEXITSTATUS(status) == 0;
}

nvrtcResult compile(Program& p, const std::vector<std::string>& options) {
  if (emulator::options().idle) {
    p.image.assign(kIdleImage, sizeof kIdleImage);
    return NVRTC_SUCCESS;
  }
  std::string arch = "900", contract = "fast";
  for (const std::string& option : options) {
    if (size_t at = option.find("sm_"); at != std::string::npos) arch = option.substr(at + 3) + "0";
    if (size_t at = option.find("compute_"); at != std::string::npos)
      arch = option.substr(at + 8) + "0";
    if (option.find("fmad=false") != std::string::npos) contract = "off";
  }
  Translation t = translate(p.source);
  std::string text = "#define EMULATED_ARCH " + arch + "\n" + kHead +
                     "\nextern \"C\" __attribute__((visibility(\"default\"))) const int "
                     "emulator_waits = " +
                     (t.waits ? "1" : "0") + ";\n#line 1 \"" + p.name + "\"\n" + t.text + "\n";
  TemporaryFile source(".cpp"), object(".so"), log(".log");
  if (!source.write(text)) {
    p.log = "no temporary file can be written";
    return NVRTC_ERROR_OUT_OF_MEMORY;
  }
  std::vector<std::string> words = {kCompiler};
  for (const char* flag : kFlags) words.push_back(flag);
  words.push_back("-ffp-contract=" + contract);
  words.insert(words.end(), {"-o", object.path(), source.path()});
  bool compiled = run(words, log.path());
  p.log = log.read();
  if (const char* keep = std::getenv("TESSERA_EMULATOR_KEEP"); !compiled && keep && *keep) {
    std::ofstream(keep) << text;
    p.log += "\nthe text is in " + std::string(keep);
  }
  if (!compiled) return NVRTC_ERROR_COMPILATION;
  p.image = object.read();
  return p.image.empty() ? NVRTC_ERROR_COMPILATION : NVRTC_SUCCESS;
}

// Part of the version that the caller's cache of kernels depends on.
int fingerprint() {
  unsigned h = 2166136261u;
  auto add = [&](const char* text) {
    for (; *text; ++text) h = (h ^ static_cast<unsigned char>(*text)) * 16777619u;
  };
  add(kHead);
  add(kCompiler);
  add(EMULATOR_COMPILER_VERSION);
  for (const char* flag : kFlags) add(flag);
  if (options().idle) add(kIdleImage);
  return static_cast<int>(h & 0x3fffffffu) + 1000;
}

}  // namespace
}  // namespace emulator

using emulator::of;

nvrtcResult nvrtcVersion(int* major, int* minor) {
  *major = 13;
  *minor = emulator::fingerprint();
  return NVRTC_SUCCESS;
}

const char* nvrtcGetErrorString(nvrtcResult r) {
  return r == NVRTC_SUCCESS             ? "NVRTC_SUCCESS"
         : r == NVRTC_ERROR_COMPILATION ? "NVRTC_ERROR_COMPILATION"
                                        : "NVRTC_ERROR";
}

nvrtcResult nvrtcGetNumSupportedArchs(int* count) {
  *count = 5;
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetSupportedArchs(int* archs) {
  for (int arch : {75, 80, 86, 89, 90}) *archs++ = arch;
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcCreateProgram(nvrtcProgram* out, const char* source, const char* name, int,
                               const char* const*, const char* const*) {
  *out = reinterpret_cast<nvrtcProgram>(
      new emulator::Program{source, name ? name : "kernel.cu", "", ""});
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcDestroyProgram(nvrtcProgram* p) {
  delete &of(*p);
  *p = nullptr;
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcCompileProgram(nvrtcProgram p, int count, const char* const* options) {
  return emulator::compile(of(p), std::vector<std::string>(options, options + count));
}

nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram p, size_t* size) {
  *size = of(p).log.size() + 1;
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetProgramLog(nvrtcProgram p, char* log) {
  std::memcpy(log, of(p).log.c_str(), of(p).log.size() + 1);
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetCUBINSize(nvrtcProgram p, size_t* size) {
  *size = of(p).image.size();
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetCUBIN(nvrtcProgram p, char* image) {
  std::memcpy(image, of(p).image.data(), of(p).image.size());
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetPTXSize(nvrtcProgram p, size_t* size) { return nvrtcGetCUBINSize(p, size); }
nvrtcResult nvrtcGetPTX(nvrtcProgram p, char* image) { return nvrtcGetCUBIN(p, image); }
