// Profiles: what a piece of a program did, and how long that took.
//   profiler::Profile profile({.record_shapes = true});
//   {
//     profiler::RecordFunction scope("forward");
//     y = model(x);
//   }
//   profile.stop();
//   std::cout << profile.table("self_cpu_time_total");
//   profile.export_chrome_trace("trace.json.gz");
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/profile/averages.h"
#include "tessera/profile/chrome.h"

namespace tessera::profiler {

struct ProfileOptions {
  bool cpu = true;
  bool cuda = true;  // where there is a device
  bool record_shapes = false;
  bool profile_memory = false;
  bool with_stack = false;
  bool with_flops = false;
};

// Several may be on at a time; each tells what happened while it was.
class Profile {
 public:
  // Starts at once; `started` false: by start().
  explicit Profile(ProfileOptions options = {}, bool started = true);
  ~Profile();
  Profile(const Profile&) = delete;

  // What start() would do at length: done before what is to be measured begins.
  void prepare();
  void start();
  // Runs what is pending, waits for the devices, and takes what was noted.
  void stop();
  bool started() const { return started_; }

  // After stop().
  const profile::Trace& trace() const;
  std::shared_ptr<const profile::Trace> shared_trace() const { return trace_; }
  std::vector<profile::Row> key_averages(bool by_input_shape = false, int by_stack = 0) const;
  std::string table(const std::string& sort_by = "", int64_t row_limit = 100) const;
  profile::TableOptions table_options() const;
  // Compressed where the name ends in .gz.
  profile::Written export_chrome_trace(const std::string& path);
  // One line for each stack, for flame graphs: self_cpu_time_total or self_cuda_time_total.
  void export_stacks(const std::string& path, const std::string& metric) const;
  void add_metadata_json(const std::string& key, std::string value);

 private:
  void release();

  ProfileOptions options_;
  uint32_t what_ = 0;
  bool prepared_ = false, started_ = false, on_device_ = false;
  int64_t begin_ = 0;
  std::shared_ptr<profile::Trace> trace_;
  std::map<std::string, std::string> metadata_;
};

// A scope with a name; nothing while no profile is on.
class RecordFunction {
 public:
  explicit RecordFunction(std::string_view name, std::string_view arguments = {});
  ~RecordFunction() { end(); }
  RecordFunction(const RecordFunction&) = delete;
  void end();

 private:
  std::unique_ptr<profile::Scope> scope_;
  uint32_t thread_ = 0;
};

// Every scope becomes a range of NVIDIA's profilers, through NVTX's library where that is found;
// calls of true and false are counted.
void emit_ranges(bool on);

// What takes the times of device work, in a few words; empty where nothing does.
std::string device_times();

}  // namespace tessera::profiler
