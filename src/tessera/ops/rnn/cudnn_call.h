// What the kernels of a whole recurrent network are told, by place in their ints:
//   cudnn_rnn_plan      out: y (it says where), nothing is computed: fills the reply
//   cudnn_rnn_forward   y, hy, cy of an LSTM, weight space, reserve in training
//                       <- x, hx, cx of an LSTM, weights
//   cudnn_rnn_backward  dx, dhx, dcx of an LSTM, gradients of the weights where wanted, reserve
//                       (which it wears out)
//                       <- x, hx, cx, y, dy, weight space, dhy and dcy where there are such
// All tensors are dense.
#pragma once
#include <cstdint>

namespace tessera::rnn {

// The numbers are what kernels are told.
enum class Mode : int64_t { kTanh, kReLU, kLSTM, kGRU };

inline int64_t gates_of(Mode m) { return m == Mode::kLSTM ? 4 : m == Mode::kGRU ? 3 : 1; }

enum Told : int {
  kReply,  // address of a PlanReply; of a plan only
  kMode,
  kHasBiases,
  kLayers,
  kBothWays,
  kInputSize,
  kHiddenSize,
  kProjectionSize,  // 0: none
  kSteps,
  kBatch,
  kDType,
  kTrain,  // a backward will come
  kFlags,  // conv/settings.h
  kHasGradH,
  kHasGradC,
  kPacked,     // how many batch sizes follow; 0: the data is steps x batch x size
  kFirstBatch  // the first of them
};

struct PlanReply {
  bool possible = false;
  int64_t reserve = 0, weights = 0;  // bytes
};

}  // namespace tessera::rnn
