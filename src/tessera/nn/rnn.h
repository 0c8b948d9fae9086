// Recurrent networks: RNN, LSTM and GRU, and one step of each.
#pragma once
#include <tuple>

#include "tessera/nn/module.h"
#include "tessera/ops/rnn/cudnn_call.h"

namespace tessera::nn {

struct RNNOptions {
  int64_t num_layers = 1;
  std::string nonlinearity = "tanh";  // or "relu"
  bool bias = true;
  bool batch_first = false;
  double dropout = 0.0;
  bool bidirectional = false;
  std::optional<Device> device = std::nullopt;
  std::optional<DType> dtype = std::nullopt;
};

struct GRUOptions {
  int64_t num_layers = 1;
  bool bias = true;
  bool batch_first = false;
  double dropout = 0.0;
  bool bidirectional = false;
  std::optional<Device> device = std::nullopt;
  std::optional<DType> dtype = std::nullopt;
};

struct LSTMOptions {
  int64_t num_layers = 1;
  bool bias = true;
  bool batch_first = false;
  double dropout = 0.0;
  bool bidirectional = false;
  int64_t proj_size = 0;
  std::optional<Device> device = std::nullopt;
  std::optional<DType> dtype = std::nullopt;
};

// A hidden state, and the cells of an LSTM.
struct LSTMState {
  Tensor h, c;
};

// Parameters and checks; a subclass chooses the step.
class RNNBase : public Module {
 public:
  using Mode = rnn::Mode;

  void reset_parameters();
  std::string extra_repr() const override;

  Mode mode;
  int64_t input_size, hidden_size;
  LSTMOptions options;

 protected:
  RNNBase(Mode mode, int64_t input_size, int64_t hidden_size, const LSTMOptions& options);
  // The outputs and the last state; the given state may be empty.
  std::tuple<Tensor, std::vector<Tensor>> run(const Tensor& input, std::vector<Tensor> state);

 private:
  void check(const Tensor& input, const std::vector<Tensor>& state) const;
  int64_t directions() const { return options.bidirectional ? 2 : 1; }
  int64_t out_size() const { return options.proj_size > 0 ? options.proj_size : hidden_size; }
};

// h = tanh(W x + U h + b), or with relu.
class RNN : public RNNBase {
 public:
  RNN(int64_t input_size, int64_t hidden_size, const RNNOptions& options = {});
  std::tuple<Tensor, Tensor> forward(const Tensor& input, const Tensor& hx);
  std::tuple<Tensor, Tensor> operator()(const Tensor& input, const Tensor& hx = Tensor()) {
    return forward(input, hx);
  }
};

// A gated recurrent unit.
class GRU : public RNNBase {
 public:
  GRU(int64_t input_size, int64_t hidden_size, const GRUOptions& options = {});
  std::tuple<Tensor, Tensor> forward(const Tensor& input, const Tensor& hx);
  std::tuple<Tensor, Tensor> operator()(const Tensor& input, const Tensor& hx = Tensor()) {
    return forward(input, hx);
  }
};

// Long short-term memory: auto [out, state] = lstm(x); auto [h, c] = state;
class LSTM : public RNNBase {
 public:
  LSTM(int64_t input_size, int64_t hidden_size, const LSTMOptions& options = {});
  std::tuple<Tensor, LSTMState> forward(const Tensor& input, const LSTMState& hx);
  std::tuple<Tensor, LSTMState> operator()(const Tensor& input, const LSTMState& hx = {}) {
    return forward(input, hx);
  }
};

// ---- one step ---------------------------------------------------------------------------------

struct RNNCellOptions {
  bool bias = true;
  std::string nonlinearity = "tanh";  // or "relu"
  std::optional<Device> device = std::nullopt;
  std::optional<DType> dtype = std::nullopt;
};

struct CellOptions {
  bool bias = true;
  std::optional<Device> device = std::nullopt;
  std::optional<DType> dtype = std::nullopt;
};

class RNNCellBase : public Module {
 public:
  void reset_parameters();
  std::string extra_repr() const override;

  RNNBase::Mode mode;
  int64_t input_size, hidden_size;
  bool bias;

 protected:
  RNNCellBase(RNNBase::Mode mode, int64_t input_size, int64_t hidden_size,
              const CellOptions& options);
  std::vector<Tensor> run(const Tensor& input, std::vector<Tensor> state);
};

class RNNCell : public RNNCellBase {
 public:
  RNNCell(int64_t input_size, int64_t hidden_size, const RNNCellOptions& options = {});
  Tensor forward(const Tensor& input) override { return forward(input, Tensor()); }
  Tensor forward(const Tensor& input, const Tensor& hx) { return run(input, {hx})[0]; }
  Tensor operator()(const Tensor& input, const Tensor& hx = Tensor()) { return forward(input, hx); }
};

class GRUCell : public RNNCellBase {
 public:
  GRUCell(int64_t input_size, int64_t hidden_size, const CellOptions& options = {})
      : RNNCellBase(RNNBase::Mode::kGRU, input_size, hidden_size, options) {}
  Tensor forward(const Tensor& input) override { return forward(input, Tensor()); }
  Tensor forward(const Tensor& input, const Tensor& hx) { return run(input, {hx})[0]; }
  Tensor operator()(const Tensor& input, const Tensor& hx = Tensor()) { return forward(input, hx); }
};

class LSTMCell : public RNNCellBase {
 public:
  LSTMCell(int64_t input_size, int64_t hidden_size, const CellOptions& options = {})
      : RNNCellBase(RNNBase::Mode::kLSTM, input_size, hidden_size, options) {}
  LSTMState forward(const Tensor& input, const LSTMState& hx);
  LSTMState operator()(const Tensor& input, const LSTMState& hx = {}) { return forward(input, hx); }
};

}  // namespace tessera::nn
