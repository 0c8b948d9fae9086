// What the C++ face computes, as text, for tests/python/test_cpp_face.py: it makes the same with
// the Python face, from the Python text that stands beside each case, and compares every number.
#pragma once
#include <string>
#include <vector>

#include "tessera/tessera.h"

namespace tessera::faces {

using Outs = std::vector<Tensor>;

std::string numbers(const Tensor& t);
std::string named(const StateDict& tensors);
// One line: a JSON object of "kind", "python" and the rest, which is a piece of JSON.
void line(const char* kind, const char* python, const std::string& rest);
// After the run: what came out, and what gradients the parameters have of the sum of all of it.
void finish_layer(const char* python, const char* inputs, const nn::Module& module,
                  const std::string& before, const Outs& outs);

// A layer made and run from seed 0; in Python, `python` is the layer and `inputs` its arguments.
template <class Make, class Run>
void layer(const char* python, const char* inputs, Make make, Run run) {
  manual_seed(0);
  auto module = make();
  std::string before = named(module.state_dict());
  finish_layer(python, inputs, module, before, run(module));
}

// The cases, a file each.
void linear_layers();
void activations();
void convolutions();
void pools();
void norms_and_dropouts();
void paddings_and_shapes();
void losses();
void recurrent();
void attention();
void first_values();
void optimizers();
void schedulers();

}  // namespace tessera::faces
