// Timing C++ code: repeated, with the spread of what was measured. The names, the rules and the
// tables are those of torch.utils.benchmark.
//   benchmark::Timer t([&] { return a.matmul(b); }, {.label = "matmul"});
//   std::printf("%s\n", t.blocked_autorange().to_string().c_str());
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

namespace tessera::benchmark {

// What was timed, and the names that tables show it under.
struct TaskSpec {
  std::string label;
  std::string sub_label;
  std::string description;
  int num_threads = 1;
};

// Times of one task: each of raw_times is that of number_per_run runs, in seconds.
class Measurement {
 public:
  Measurement(int64_t number_per_run, std::vector<double> raw_times, TaskSpec spec = {});

  int64_t number_per_run() const { return number_per_run_; }
  const std::vector<double>& times() const { return times_; }  // sorted, in seconds of one run
  const TaskSpec& spec() const { return spec_; }
  double median() const { return quantile(0.5); }
  double mean() const;
  double iqr() const { return quantile(0.75) - quantile(0.25); }
  // How many figures of the median the spread leaves.
  int significant_figures() const;
  bool meets_confidence(double threshold = 0.1) const { return iqr() / median() < threshold; }
  bool has_warnings() const { return !meets_confidence(); }
  std::string to_string() const;

 private:
  double quantile(double share) const;
  int64_t number_per_run_;
  std::vector<double> times_;
  TaskSpec spec_;
};

// Each run's work is started before the next, also what nobody would read; all of it, the GPUs'
// too, is done when a measurement ends.
class Timer {
 public:
  // `f` takes nothing. What it returns is kept until its work has been started.
  template <class F>
  explicit Timer(F f, TaskSpec spec = {}) : spec_(std::move(spec)) {
    run_ = [f = std::move(f)]() mutable {
      if constexpr (std::is_void_v<std::invoke_result_t<F&>>) {
        f();
        start_pending();
      } else {
        auto kept = f();
        start_pending();
      }
    };
  }

  // One measurement of so many runs, after a few to warm up.
  Measurement timeit(int64_t number = 1'000'000);
  // Measurements for at least so many seconds.
  Measurement blocked_autorange(double min_run_time = 0.2);
  // Measurements until the spread is below a share of the median, or the time is up.
  Measurement adaptive_autorange(double threshold = 0.1, double min_run_time = 0.01,
                                 double max_run_time = 10.0);

 private:
  static void start_pending();
  double seconds(int64_t number);
  int64_t choose_number(double min_run_time);

  std::function<void()> run_;
  TaskSpec spec_;
};

// A table for each label: a row for each sub-label, a column for each description.
class Compare {
 public:
  explicit Compare(std::vector<Measurement> results) : results_(std::move(results)) {}
  // Shows only the figures that the spread leaves.
  void trim_significant_figures() { trim_ = true; }
  std::string to_string() const;

 private:
  std::vector<Measurement> results_;
  bool trim_ = false;
};

}  // namespace tessera::benchmark
