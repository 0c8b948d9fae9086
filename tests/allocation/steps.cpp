// Has every allocation of a step fail in turn: allocation_failures [OPTIONS] [STEP...]
//
// For each N the step runs with its N-th allocation failing. It must raise an exception or succeed;
// after that the same step, run again, must give the numbers of a run without failures. Each N runs
// in a forked child of the warmed-up process; with --sequential (for devices, which a child cannot
// use) all run one after another in one child, and in a new one after a crash.
//   --from N, --to N, --every K  which allocations
//   --only N                     one, in this process, and prints the stack of the allocation
//   --list                       names of the steps
// Exit status 1: some N ended the process, hung, or left wrong numbers behind.
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <tessera/tessera.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "failing_malloc.h"

using namespace tessera;

namespace {

using Numbers = std::vector<double>;

// A step that can be brought back to its beginning.
struct Step {
  virtual ~Step() = default;
  virtual void reset() {}
  virtual Numbers run() = 0;
};

double number(const Tensor& t) { return t.to(DType::kFloat64).sum().item(); }

// A model, its start values and an optimizer.
struct Training : Step {
  std::vector<Tensor> parameters, start;
  std::unique_ptr<optim::Adam> optimizer;

  void keep(nn::Module& model) {
    parameters = model.parameters();
    for (const Tensor& p : parameters) start.push_back(p.detach().clone());
  }
  void reset() override {
    manual_seed(1);
    NoGrad off;
    for (size_t i = 0; i < parameters.size(); ++i) parameters[i].copy_(start[i]);
    optimizer = std::make_unique<optim::Adam>(parameters, optim::AdamOptions{.lr = 0.01});
  }
  Numbers train(const std::function<Tensor()>& forward) {
    Numbers out;
    optimizer->zero_grad();
    Tensor loss = forward();
    loss.backward();
    optimizer->step();
    NoGrad off;
    out.push_back(loss.item());
    for (const Tensor& p : parameters) out.push_back(number(p));
    return out;
  }
};

struct Mlp : Training {
  Device device = best_device();
  nn::Sequential model{nn::Linear(8, 16), nn::ReLU(), nn::LayerNorm(16), nn::Linear(16, 1)};
  Tensor x = randn({32, 8}).to(device), y = randn({32, 1}).to(device);
  Mlp() {
    model.to(device);
    keep(model);
  }
  Numbers run() override {
    return train([&] { return (model(x) - y).square().mean(); });
  }
};

struct Cnn : Training {
  Device device = best_device();
  nn::Sequential model{nn::Conv2d(3, 8, 3, {.padding = 1}),
                       nn::BatchNorm2d(8),
                       nn::ReLU(),
                       nn::MaxPool2d(2),
                       nn::Flatten(),
                       nn::Linear(8 * 8 * 8, 10)};
  Tensor x = randn({4, 3, 16, 16}).to(device), y = randint(0, 10, {4}).to(device);
  nn::CrossEntropyLoss criterion;
  Cnn() {
    model.to(device);
    keep(model);
  }
  Numbers run() override {
    return train([&] { return criterion(model(x), y); });
  }
};

struct Transformer : Training {
  Device device = best_device();
  nn::TransformerEncoderLayer layer{16, 2, {.dim_feedforward = 32, .batch_first = true}};
  Tensor x = randn({2, 5, 16}).to(device);
  Transformer() {
    layer.to(device);
    keep(layer);
  }
  Numbers run() override {
    return train([&] { return layer(x).square().mean(); });
  }
};

struct Recurrent : Training {
  Device device = best_device();
  nn::LSTM lstm{4, 6};
  Tensor x = randn({3, 2, 4}).to(device);
  Recurrent() {
    lstm.to(device);
    keep(lstm);
  }
  Numbers run() override {
    return train([&] { return std::get<0>(lstm(x)).square().mean(); });
  }
};

// Operators that training does not use, without gradients.
struct Operators : Step {
  Device device = best_device();
  Tensor x = randn({12, 12}).to(device), ints = randint(0, 9, {40}).to(device);
  Numbers run() override {
    NoGrad off;
    Numbers out;
    auto add = [&](const Tensor& t) { out.push_back(number(t)); };
    add(std::get<0>(sort(x)));
    add(std::get<1>(topk(x, 3)).to(DType::kFloat32));
    add(cat({x, x.t()}, 1));
    add(linalg_inv(x));
    add(std::get<1>(linalg_svd(x)));
    add(real(fft_fft(x)));
    add(x.to(DType::kComplex64).abs());
    add(matmul(x.to(DType::kComplex64), x.to(DType::kComplex64)).abs());
    add(bincount(ints).to(DType::kFloat32));
    add(cumsum(x, 0));
    add(softmax(x, 1));
    add(x.masked_select(x > 0.0));
    add(index_select(x, 0, ints.narrow(0, 0, 5)));
    add(einsum("ij,jk->ik", {x, x}));
    add(histc(x, 8));
    add(x.var());
    return out;
  }
};

struct Deferred : Step {
  Device device = best_device();
  Tensor x = randn({4096}).to(device), big = randn({100000}).to(device);
  Numbers run() override {
    NoGrad off;
    Tensor a = x;
    for (int i = 0; i < 12; ++i) a = (a * 0.5 + x).tanh();
    Tensor view = a.view({64, 64}).t();
    view.add_(1);
    Tensor sums = view.sum(0) + big.narrow(0, 0, 64);
    Tensor kept = (big * 2).exp();
    return {number(a), number(sums), number(kept), number(kept.mean())};
  }
};

struct Files : Step {
  nn::Sequential model{nn::Linear(4, 4), nn::BatchNorm1d(4)};
  std::string path = (std::filesystem::temp_directory_path() /
                      ("tessera-allocation-" + std::to_string(getpid()) + ".pt"));
  ~Files() override { std::filesystem::remove(path); }
  Numbers run() override {
    save(SaveItem::dict({{"model", model.state_dict()}, {"epoch", 3}}), path);
    SavedValue v = load(path);
    Numbers out{static_cast<double>(v["epoch"].integer())};
    for (const auto& [name, tensor] : v["model"].state_dict()) out.push_back(number(tensor));
    return out;
  }
};

struct Loader : Step {
  Tensor x = arange(20.0).view({10, 2}), y = arange(10.0);
  Numbers run() override {
    manual_seed(3);
    Numbers out;
    data::DataLoader loader(data::TensorDataset(x, y), {.batch_size = 4, .shuffle = true});
    for (auto [batch_x, batch_y] : loader) out.push_back(number(batch_x) + 100 * number(batch_y));
    return out;
  }
};

struct Errors : Step {
  Tensor x = randn({3, 4});
  Numbers run() override {
    Numbers out;
    auto refuse = [&](auto f) {
      try {
        f();
      } catch (const Error& e) {
        out.push_back(static_cast<double>(std::strlen(e.what())));
      }
    };
    refuse([&] { matmul(x, x); });
    refuse([&] { x.view({5}); });
    refuse([&] { (x + ones({7})).sum(); });
    refuse([&] { x.index_select(0, tensor({9})).sum(); });
    return out;
  }
};

template <class S>
std::unique_ptr<Step> make() {
  return std::make_unique<S>();
}
const std::map<std::string, std::unique_ptr<Step> (*)()> kSteps = {
    {"training", make<Mlp>},
    {"convolution", make<Cnn>},
    {"transformer", make<Transformer>},
    {"recurrent", make<Recurrent>},
    {"operators", make<Operators>},
    {"deferred", make<Deferred>},
    {"files", make<Files>},
    {"loader", make<Loader>},
    {"errors", make<Errors>},
};

struct Options {
  int64_t from = 1, to = 1 << 20, every = 1, only = 0;
  bool sequential = false;
};

enum Outcome : int { kNothingFailed = 0, kRaised = 10, kAbsorbed = 11, kWrong = 12, kStuck = 13 };

bool same(const Numbers& a, const Numbers& b) {
  return a.size() == b.size() && !std::memcmp(a.data(), b.data(), a.size() * sizeof(double));
}

// Numbers that are compared are made without failures before the first and after each.
Outcome try_one(Step& step, int64_t n, const Numbers& expected, const char** why) {
  static char text[256];
  *why = "";
  step.reset();
  Numbers got;
  bool raised = false;
  failing_malloc_arm(n, kFailAll);
  try {
    got = step.run();
  } catch (const std::bad_alloc&) {
    raised = true;
  } catch (const Error& e) {
    raised = true;
    std::snprintf(text, sizeof text, "%s", e.what());
    *why = text;
  } catch (const std::exception& e) {
    raised = true;
    std::snprintf(text, sizeof text, "%s", e.what());
    *why = text;
  }
  const bool failed = failing_malloc_failed();
  failing_malloc_arm(0, 0);
  if (!failed) return kNothingFailed;
  if (!raised && !same(got, expected)) {
    *why = "the step that did not raise gave other numbers";
    return kWrong;
  }
  try {
    step.reset();
    if (!same(step.run(), expected)) {
      *why = "the next step gave other numbers";
      return kWrong;
    }
  } catch (const std::exception& e) {
    std::snprintf(text, sizeof text, "the next step raised: %s", e.what());
    *why = text;
    return kWrong;
  }
  return raised ? kRaised : kAbsorbed;
}

// Written by children, read by the parent.
struct Report {
  int64_t n;
  int outcome;
  int64_t raised, absorbed, wrong;
  bool end;
};

int sweep(const std::string& name, const Options& o) {
  auto* report = static_cast<Report*>(
      mmap(nullptr, sizeof(Report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  *report = {};
  std::unique_ptr<Step> step;
  Numbers expected;
  auto warm_up = [&] {
    step = kSteps.at(name)();
    for (int i = 0; i < 3; ++i) {
      step->reset();
      expected = step->run();
    }
  };
  if (!o.sequential) warm_up();
  auto one = [&](int64_t n) {
    report->n = n;
    alarm(20);
    const char* why = "";
    const Outcome outcome = try_one(*step, n, expected, &why);
    if (outcome == kNothingFailed) report->end = true;
    if (outcome == kRaised) ++report->raised;
    if (outcome == kAbsorbed) ++report->absorbed;
    if (outcome == kWrong) {
      ++report->wrong;
      std::printf("%s: allocation %ld: %s\n", name.c_str(), static_cast<long>(n), why);
      std::fflush(stdout);
    }
  };
  int64_t died = 0;
  for (int64_t n = o.from; n <= o.to && !report->end;) {
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      if (o.sequential) {
        warm_up();
        for (; n <= o.to && !report->end; n += o.every) one(n);
      } else {
        one(n);
      }
      std::fflush(stdout);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) {
      ++died;
      std::printf("%s: allocation %ld: %s\n", name.c_str(), static_cast<long>(report->n),
                  WTERMSIG(status) == SIGALRM ? "hung" : strsignal(WTERMSIG(status)));
    }
    n = (o.sequential ? report->n : n) + o.every;
  }
  std::printf("%s: %ld allocations: %ld raised, %ld absorbed, %ld wrong, %ld ended the process\n",
              name.c_str(), static_cast<long>(report->n - 1), static_cast<long>(report->raised),
              static_cast<long>(report->absorbed), static_cast<long>(report->wrong),
              static_cast<long>(died));
  const bool bad = report->wrong || died;
  munmap(report, sizeof(Report));
  return bad;
}

int look_at(const std::string& name, int64_t n) {
  std::unique_ptr<Step> step = kSteps.at(name)();
  Numbers expected;
  for (int i = 0; i < 3; ++i) {
    step->reset();
    expected = step->run();
  }
  failing_malloc_trace(1);
  const char* why = "";
  const Outcome outcome = try_one(*step, n, expected, &why);
  std::printf("outcome %d: %s\n", outcome, why);
  return outcome == kWrong;
}

}  // namespace

int main(int argc, char** argv) {
  setenv("TESSERA_NUM_THREADS", "1", 0);
  setenv("OMP_NUM_THREADS", "1", 0);
  Options o;
  std::vector<std::string> names;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    auto value = [&] { return i + 1 < argc ? std::atoll(argv[++i]) : 0; };
    if (word == "--from") {
      o.from = value();
    } else if (word == "--to") {
      o.to = value();
    } else if (word == "--every") {
      o.every = std::max<int64_t>(value(), 1);
    } else if (word == "--only") {
      o.only = value();
    } else if (word == "--sequential") {
      o.sequential = true;
    } else if (word == "--list") {
      for (const auto& [name, make] : kSteps) std::printf("%s\n", name.c_str());
      return 0;
    } else if (kSteps.count(word)) {
      names.push_back(word);
    } else {
      std::fprintf(stderr, "allocation_failures: no option or step is called %s\n", word.c_str());
      return 2;
    }
  }
  if (names.empty())
    for (const auto& [name, make] : kSteps) names.push_back(name);
  int bad = 0;
  for (const std::string& name : names) bad |= o.only ? look_at(name, o.only) : sweep(name, o);
  return bad;
}
