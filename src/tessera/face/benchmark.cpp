#include "tessera/face/benchmark.h"

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <numeric>

#include "tessera/base/error.h"
#include "tessera/driver/about.h"
#include "tessera/driver/cpu.h"
#include "tessera/driver/current.h"
#include "tessera/driver/used.h"
#include "tessera/face/cuda.h"
#include "tessera/fuse/stream.h"

namespace tessera::benchmark {
namespace {

struct Unit {
  const char* name;
  const char* english;
  double seconds;
};

// In which a time is easy to read.
Unit unit_of(double seconds) {
  static constexpr Unit units[] = {{"ns", "nanosecond", 1e-9},
                                   {"us", "microsecond", 1e-6},
                                   {"ms", "millisecond", 1e-3},
                                   {"s", "second", 1.0}};
  if (seconds <= 0) return units[3];
  return units[std::clamp(static_cast<int>(std::floor(std::log10(seconds) / 3)), -3, 0) + 3];
}

std::string fixed(double value, int decimals) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

std::string counted(int64_t n, const char* what) { return cat(n, " ", what, n > 1 ? "s" : ""); }

// Within it, the CPU's kernels use so many threads.
class Threads {
 public:
  explicit Threads(int n) {
    cpu();  // loads it
    void* library = dlopen(backend_file("cpu").c_str(), RTLD_NOW | RTLD_NOLOAD);
    if (!library) return;
    auto get = reinterpret_cast<int (*)()>(dlsym(library, "tessera_cpu_get_num_threads"));
    set_ = reinterpret_cast<void (*)(int)>(dlsym(library, "tessera_cpu_set_num_threads"));
    if (!get || !set_) return;
    before_ = get();
    set_(n);
  }
  ~Threads() {
    if (before_ > 0) set_(before_);
  }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  void (*set_)(int) = nullptr;
  int before_ = 0;
};

// When all work is done.
double clock_now() {
  fuse::run_everything(fuse::Reason::kUser);
  if (accelerator_used())
    for (int d = 0; d < cuda::device_count(); ++d) cuda::synchronize(d);
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string pad_right(std::string text, size_t width) {
  text.resize(std::max(width, text.size()), ' ');
  return text;
}
std::string centered(const std::string& text, size_t width, char fill = ' ') {
  if (text.size() >= width) return text;
  const size_t left = (width - text.size()) / 2;
  return std::string(left, fill) + text + std::string(width - text.size() - left, fill);
}

double rounded(double value, int figures) {
  if (value == 0) return 0;
  const double scale = std::pow(10.0, figures - 1 - std::floor(std::log10(std::abs(value))));
  return std::round(value * scale) / scale;
}

// How the numbers of one column are written: all with the same digits.
struct Column {
  std::string name;
  int decimals = 1;
  int width = 0;

  Column(std::string title, const std::vector<const Measurement*>& cells, double scale, bool trim)
      : name(std::move(title)) {
    int digits = 1, fewest = 4;
    for (const Measurement* m : cells) {
      if (!m) continue;
      const int own = static_cast<int>(std::ceil(std::log10(m->median() / scale)));
      digits = std::max(digits, own);
      fewest = std::min(fewest, std::max(m->significant_figures() - own, 0));
    }
    if (trim) decimals = fewest;
    width = digits + decimals + (decimals ? 1 : 0);
  }
  std::string text(const Measurement* m, double scale, bool trim) const {
    if (!m) return std::string(static_cast<size_t>(width), ' ');
    double value = m->median() / scale;
    if (trim) value = rounded(value, m->significant_figures());
    std::string number = fixed(value, decimals);
    return std::string(
               static_cast<size_t>(std::max<int>(width - static_cast<int>(number.size()), 0)),
               ' ') +
           number;
  }
};

template <class T>
void add_once(std::vector<T>& all, const T& value) {
  if (std::find(all.begin(), all.end(), value) == all.end()) all.push_back(value);
}

std::string table(const std::string& label, const std::vector<const Measurement*>& results,
                  bool trim) {
  double shortest = results[0]->median();
  std::vector<std::string> descriptions;
  std::vector<std::pair<int, std::string>> rows;
  std::map<std::pair<std::pair<int, std::string>, std::string>, const Measurement*> at;
  for (const Measurement* m : results) {
    shortest = std::min(shortest, m->median());
    const TaskSpec& s = m->spec();
    std::pair<int, std::string> row{s.num_threads, s.sub_label.empty() ? s.label : s.sub_label};
    add_once(descriptions, s.description);
    add_once(rows, row);
    at[{row, s.description}] = m;
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  const Unit unit = unit_of(shortest);
  auto cell = [&](const auto& row, const std::string& column) -> const Measurement* {
    auto found = at.find({row, column});
    return found == at.end() ? nullptr : found->second;
  };
  std::vector<Column> columns;
  std::vector<size_t> widths;
  for (const std::string& name : descriptions) {
    std::vector<const Measurement*> cells;
    for (const auto& row : rows) cells.push_back(cell(row, name));
    columns.emplace_back(name, cells, unit.seconds, trim);
    widths.push_back(std::max(name.size(), static_cast<size_t>(columns.back().width)));
  }
  size_t first = 0;
  for (const auto& row : rows) first = std::max(first, row.second.size() + 6);
  std::string header(first, ' ');
  for (size_t i = 0; i < columns.size(); ++i)
    header += cat("  |  ", centered(columns[i].name, widths[i]));
  std::string out =
      cat("[", centered(cat(" ", label, " "), header.size() - 2, '-'), "]\n", header, "\n");
  int threads = 0;
  for (const auto& row : rows) {
    if (row.first != threads) {
      threads = row.first;
      std::string line = cat(threads, " threads: ");
      line.resize(std::max(header.size(), line.size()), '-');
      out += line + "\n";
    }
    out += pad_right(cat("      ", row.second), first);
    for (size_t i = 0; i < columns.size(); ++i)
      out += "  |  " +
             centered(columns[i].text(cell(row, columns[i].name), unit.seconds, trim), widths[i]);
    out += "\n";
  }
  return cat(out, "\nTimes are in ", unit.english, "s (", unit.name, ").\n");
}

}  // namespace

Measurement::Measurement(int64_t number_per_run, std::vector<double> raw_times, TaskSpec spec)
    : number_per_run_(number_per_run), times_(std::move(raw_times)), spec_(std::move(spec)) {
  TS_CHECK_VALUE(!times_.empty() && number_per_run > 0, "a measurement has at least one time");
  for (double& t : times_) t /= static_cast<double>(number_per_run);
  std::sort(times_.begin(), times_.end());
}

double Measurement::quantile(double share) const {
  const double at = share * static_cast<double>(times_.size() - 1);
  const auto low = static_cast<size_t>(at);
  const size_t high = std::min(low + 1, times_.size() - 1);
  return times_[low] + (times_[high] - times_[low]) * (at - static_cast<double>(low));
}

double Measurement::mean() const {
  return std::accumulate(times_.begin(), times_.end(), 0.0) / static_cast<double>(times_.size());
}

int Measurement::significant_figures() const {
  // The middle half is taken for normal: its mean lies within 1.645 standard errors nine times in
  // ten. No clock is better than 25 ns.
  const size_t n = times_.size(), begin = n / 4, end = (3 * n + 3) / 4;
  const auto count = static_cast<double>(end - begin);
  double sum = 0, squares = 0;
  for (size_t i = begin; i < end; ++i) sum += times_[i];
  for (size_t i = begin; i < end; ++i) squares += std::pow(times_[i] - sum / count, 2);
  const double error = std::max(1.645 * std::sqrt(squares / count) / std::sqrt(count), 25e-9);
  return std::clamp(static_cast<int>(std::floor(std::log10(median() / error))), 1, 4);
}

std::string Measurement::to_string() const {
  const Unit unit = unit_of(median());
  std::string out = spec_.label.empty() ? "[a function]" : spec_.label;
  if (!spec_.sub_label.empty()) out += cat(": ", spec_.sub_label);
  if (!spec_.description.empty()) out += cat("\n", spec_.description);
  const std::string runs = counted(number_per_run_, "run");
  const std::string threads = counted(spec_.num_threads, "thread");
  auto shown = [&](double seconds) { return fixed(seconds / unit.seconds, 2); };
  if (times_.size() == 1)
    return cat(out, "\n  ", shown(median()), " ", unit.name, "\n  1 measurement, ", runs, " , ",
               threads);
  out += cat("\n  Median: ", shown(median()), " ", unit.name);
  if (times_.size() > 2)
    out += cat("\n  IQR:    ", shown(iqr()), " ", unit.name, " (", shown(quantile(0.25)), " to ",
               shown(quantile(0.75)), ")");
  out += cat("\n  ", times_.size(), " measurements, ", runs, " per measurement, ", threads);
  if (has_warnings())
    out += cat("\n  WARNING: Interquartile range is ", fixed(100 * iqr() / median(), 1),
               "% of the median measurement.");
  return out;
}

void Timer::start_pending() { fuse::run_everything(fuse::Reason::kUser); }

double Timer::seconds(int64_t number) {
  const double begin = clock_now();
  for (int64_t i = 0; i < number; ++i) run_();
  return std::max(clock_now() - begin, 1e-9);
}

int64_t Timer::choose_number(double min_run_time) {
  std::vector<double> none;
  for (int i = 0; i < 5; ++i) none.push_back(seconds(0));
  const double clock = Measurement(1, none).median();
  for (int64_t number = 1;; number *= 10) {
    const double taken = seconds(number);
    if ((taken >= min_run_time / 1000 && clock / taken <= 1e-4) || taken > min_run_time ||
        number >= 200'000'000)
      return number;
  }
}

Measurement Timer::timeit(int64_t number) {
  Threads threads(spec_.num_threads);
  seconds(std::max<int64_t>(number / 100, 2));
  return {number, {seconds(number)}, spec_};
}

Measurement Timer::blocked_autorange(double min_run_time) {
  Threads threads(spec_.num_threads);
  const int64_t number = choose_number(min_run_time);
  std::vector<double> times;
  for (double total = 0; total < min_run_time || times.empty(); total += times.back())
    times.push_back(seconds(number));
  return {number, times, spec_};
}

Measurement Timer::adaptive_autorange(double threshold, double min_run_time, double max_run_time) {
  Threads threads(spec_.num_threads);
  const int64_t number = choose_number(0.05);
  std::vector<double> times;
  double total = 0;
  while (total <= max_run_time) {
    times.push_back(seconds(number));
    total += times.back();
    if (total >= min_run_time && times.size() > 3 &&
        Measurement(number, times).meets_confidence(threshold))
      break;
  }
  return {number, times, spec_};
}

std::string Compare::to_string() const {
  std::vector<std::string> labels;
  for (const Measurement& m : results_) add_once(labels, m.spec().label);
  std::string out;
  for (const std::string& label : labels) {
    std::vector<const Measurement*> mine;
    for (const Measurement& m : results_)
      if (m.spec().label == label) mine.push_back(&m);
    out += cat(out.empty() ? "" : "\n", table(label, mine, trim_));
  }
  return out;
}

}  // namespace tessera::benchmark
