// Recurrent networks of cuDNN's stand-in: what a call is about, once it is checked.
#pragma once
#include <cudnn_adv.h>

#include <vector>

#include "cudnn_shared.h"

struct cudnnTensorStruct {
  cudnnDataType_t type;
  std::vector<int> sizes, strides;
};
struct cudnnDropoutStruct {
  bool ready = false;
  float probability = 0;
};
struct cudnnRNNStruct {
  bool ready = false;
  cudnnRNNAlgo_t algo;
  cudnnRNNMode_t mode;
  int directions;
  cudnnDataType_t type;
  int input, hidden, out, layers;
  bool padded;

  int parts() const { return layers * directions; }
  int gates() const { return mode == CUDNN_LSTM ? 4 : mode == CUDNN_GRU ? 3 : 1; }
  bool projects() const { return out != hidden; }
  int columns(int part) const { return part < directions ? input : out * directions; }
};
struct cudnnRNNDataStruct {
  bool ready = false;
  cudnnDataType_t type;
  cudnnRNNDataLayout_t layout;
  int steps, batch, size;
  std::vector<int> lengths;
};

namespace emulator {

size_t bytes_of(cudnnDataType_t t);

// A weight in the weight space.
struct RnnPlace {
  size_t offset;
  int rows, columns;
};
// Of a part (layer and direction) the matrix `id`, or its bias.
RnnPlace rnn_place(const cudnnRNNStruct& r, int part, int id, bool bias);
size_t rnn_weight_bytes(const cudnnRNNStruct& r);

struct RnnProblem {
  cudnnRNNStruct net;
  cudnnRNNDataStruct data;  // of the input
  const void *x = nullptr, *hx = nullptr, *cx = nullptr, *weights = nullptr;
  void *y = nullptr, *hy = nullptr, *cy = nullptr, *reserve = nullptr;
  // Backward.
  const void *dy = nullptr, *dhy = nullptr, *dcy = nullptr;
  void *dx = nullptr, *dhx = nullptr, *dcx = nullptr, *dweights = nullptr;

  int rows() const;              // of the data
  int row(int t, int b) const;   // of one sample at one moment
  size_t reserve_bytes() const;  // of training
};

void rnn_forward(const RnnProblem& p);
// What the forward left in the reserve space is replaced by what the weights' gradient needs: a
// second call on it gives NaN.
void rnn_backward_data(const RnnProblem& p);
void rnn_backward_weights(const RnnProblem& p);

}  // namespace emulator
