// Recurrent networks of several layers over a sequence: one step after another by operators, or all
// of it by a vendor's library.
#pragma once
#include "tessera/ops/call.h"
#include "tessera/ops/rnn/cudnn_call.h"

namespace tessera::rnn {

inline size_t states_of(Mode m) { return m == Mode::kLSTM ? 2 : 1; }

// The weights of one direction of one layer.
struct Weights {
  TensorBase w_ih, w_hh, b_ih, b_hh, w_hr;  // biases and the projection may be undefined
};

struct Network {
  Mode mode;
  bool has_biases;
  int64_t layers;
  double dropout;  // of what goes from layer to layer, in training
  bool train, both_ways;
  // Of layer after layer, of direction after direction: w_ih, w_hh, then b_ih, b_hh, then w_hr.
  std::span<const TensorBase> weights;

  int64_t directions() const { return both_ways ? 2 : 1; }
  size_t per_direction() const {
    return weights.size() / static_cast<size_t>(layers * directions());
  }
  bool has_projection() const { return per_direction() == (has_biases ? 5u : 3u); }
  Weights at(int64_t layer_and_direction) const;
  // One of its layers, as a network.
  Network part(int64_t layer) const;
};

// The outputs, and the last state of each layer and direction.
struct Result {
  TensorBase out;
  std::vector<TensorBase> state;
};

// One step: x is W x + b of the input already; the state (h, and c of an LSTM) becomes the next.
void step(Mode mode, const TensorBase& x, std::vector<TensorBase>& state, const Weights& w);

// `data` is T x N x size; or packed where `batch_sizes` is not empty: the rows of each moment one
// after the other, of fewer and fewer samples. `state`: of all layers and directions.
Result run_steps(const Network& net, TensorBase data, const std::vector<TensorBase>& state,
                 const Dims& batch_sizes);

// cuDNN's whole network; false where it does not take it.
bool run_by_cudnn(const Network& net, const TensorBase& data, const std::vector<TensorBase>& state,
                  const Dims& batch_sizes, Result* out);

// By cuDNN where it can, else by steps.
Result run(const Network& net, const TensorBase& data, const std::vector<TensorBase>& state,
           const Dims& batch_sizes);

}  // namespace tessera::rnn
