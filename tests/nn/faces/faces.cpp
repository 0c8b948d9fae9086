#include "nn/faces/faces.h"

#include <cmath>
#include <cstdio>

namespace tessera::faces {

namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out + "\"";
}

std::string number(double v) {
  if (std::isnan(v)) return "NaN";
  if (std::isinf(v)) return v < 0 ? "-Infinity" : "Infinity";
  if (v == 0 && std::signbit(v)) return "-0.0";
  char buf[40];
  std::snprintf(buf, sizeof buf, "%.17g", v);
  return buf;
}

}  // namespace

std::string numbers(const Tensor& t) {
  if (!t.defined()) return "null";
  Tensor flat = t.detach().reshape({-1}).to(DType::kFloat64).contiguous();
  const auto* at = flat.data_ptr<double>();
  std::string out = "{\"shape\": " + cat(t.sizes()) + ", \"dtype\": \"" + dtype_name(t.dtype()) +
                    "\", \"values\": [";
  for (int64_t i = 0; i < flat.numel(); ++i) out += (i ? ", " : "") + number(at[i]);
  return out + "]}";
}

std::string named(const StateDict& tensors) {
  std::string out = "[";
  for (auto& [name, value] : tensors)
    out += (out.size() > 1 ? ", [" : "[") + quoted(name) + ", " + numbers(value) + "]";
  return out + "]";
}

void line(const char* kind, const char* python, const std::string& rest) {
  std::printf("{\"kind\": \"%s\", \"python\": %s, %s}\n", kind, quoted(python).c_str(),
              rest.c_str());
}

void finish_layer(const char* python, const char* inputs, const nn::Module& module,
                  const std::string& before, const Outs& outs) {
  std::string rest = "\"class\": " + quoted(module.name()) + ", \"inputs\": " + quoted(inputs) +
                     ", \"repr\": " + quoted(module.repr()) + ", \"before\": " + before +
                     ", \"out\": [";
  Tensor total;
  for (size_t i = 0; i < outs.size(); ++i) {
    rest += (i ? ", " : "") + numbers(outs[i]);
    if (!outs[i].defined() || !outs[i].requires_grad()) continue;
    total = total.defined() ? total + outs[i].sum() : outs[i].sum();
  }
  StateDict grads;
  if (total.defined()) {
    total.backward();
    for (auto& [name, p] : module.named_parameters()) grads.emplace_back(name, p.grad());
  }
  line("layer", python,
       rest + "], \"grads\": " + named(grads) + ", \"after\": " + named(module.state_dict()));
}

}  // namespace tessera::faces

namespace {

// A network of several kinds of layers, with buffers.
tessera::nn::Sequential network() {
  using namespace tessera::nn;
  tessera::manual_seed(7);
  return Sequential{{"conv", Conv1d(2, 3, 2)},
                    {"norm", BatchNorm1d(3)},
                    {"flat", Flatten()},
                    {"fc", Linear(9, 2)}};
}

// What a file of Python's, loaded here, computes.
void loaded(const char* path) {
  tessera::nn::Sequential net = network();
  tessera::nn::load(net, path);
  net.eval();
  tessera::manual_seed(0);
  std::printf("%s\n", tessera::faces::numbers(net(tessera::randn({2, 2, 4}))).c_str());
}

// Three steps of training from what is in PREFIX.net.pt and PREFIX.opt.pt, or from the start; the
// losses, and the states in files again.
template <class Optimizer, class Options>
void go_on(const std::string& prefix, bool from_files, Options options) {
  tessera::nn::Linear net(3, 2);
  Optimizer optimizer(net.parameters(), options);
  if (from_files) {
    tessera::nn::load(net, prefix + ".net.pt");
    tessera::optim::load(optimizer, prefix + ".opt.pt");
  }
  tessera::manual_seed(0);
  tessera::Tensor x = tessera::randn({5, 3});
  for (int i = 0; i < 3; ++i) {
    optimizer.zero_grad();
    tessera::Tensor loss = net(x).pow(2).mean();
    std::printf("%s\n", tessera::faces::numbers(loss).c_str());
    loss.backward();
    optimizer.step();
  }
  tessera::nn::save(net, prefix + ".net.pt");
  tessera::optim::save(optimizer, prefix + ".opt.pt");
}

void train(const std::string& prefix, const std::string& name, bool from_files) {
  using namespace tessera::optim;
  if (name == "SGD")
    go_on<SGD>(prefix, from_files, SGDOptions{.lr = 0.1, .momentum = 0.9, .nesterov = true});
  if (name == "AdamW") go_on<AdamW>(prefix, from_files, AdamWOptions{.lr = 0.1, .amsgrad = true});
  if (name == "NAdam") go_on<NAdam>(prefix, from_files, NAdamOptions{});
  if (name == "Rprop") go_on<Rprop>(prefix, from_files, RpropOptions{.lr = 0.1});
}

}  // namespace

// Without arguments: all cases. `save FILE`, `load FILE`: a network's state. `train` or `resume`
// PREFIX OPTIMIZER: a network's and an optimizer's.
int main(int argc, char** argv) {
  std::string what = argc >= 3 ? argv[1] : "";
  if (what == "save") tessera::nn::save(network(), argv[2]);
  if (what == "load") loaded(argv[2]);
  if (argc == 4) train(argv[2], argv[3], what == "resume");
  if (!what.empty()) return 0;
  using namespace tessera::faces;
  linear_layers();
  activations();
  convolutions();
  pools();
  norms_and_dropouts();
  paddings_and_shapes();
  losses();
  recurrent();
  attention();
  first_values();
  optimizers();
  schedulers();
}
