// Activations: modules over the functions of the same names.
#pragma once
#include "tessera/nn/module.h"

namespace tessera::nn {

struct InplaceOptions {
  bool inplace = false;
};

// A function of each element without options, and the one that works in place.
class Pointwise : public Module {
 public:
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;

 protected:
  using Function = TensorBase (*)(const TensorBase&);
  explicit Pointwise(Function out, Function in_place = nullptr, InplaceOptions options = {},
                     bool shown = true)
      : out_(out), in_place_(in_place), inplace_(options.inplace), shown_(shown) {}

 private:
  Function out_, in_place_;
  bool inplace_, shown_;
};

#define TS_POINTWISE(Name)                      \
  class Name : public Pointwise {               \
   public:                                      \
    explicit Name(InplaceOptions options = {}); \
  };
TS_POINTWISE(ReLU)         // max(0, x)
TS_POINTWISE(SELU)         // ELU with the scale that keeps mean and variance
TS_POINTWISE(SiLU)         // x sigmoid(x)
TS_POINTWISE(Mish)         // x tanh(softplus(x))
TS_POINTWISE(Hardsigmoid)  // sigmoid in three straight pieces
TS_POINTWISE(Hardswish)    // x hardsigmoid(x)
#undef TS_POINTWISE

#define TS_POINTWISE(Name)        \
  class Name : public Pointwise { \
   public:                        \
    Name();                       \
  };
TS_POINTWISE(Sigmoid)     // 1 / (1 + exp(-x))
TS_POINTWISE(Tanh)        // the hyperbolic tangent
TS_POINTWISE(LogSigmoid)  // log(sigmoid(x))
TS_POINTWISE(Softsign)    // x / (1 + |x|)
TS_POINTWISE(Tanhshrink)  // x - tanh(x)
#undef TS_POINTWISE

// x where it is above the threshold, a fixed value elsewhere.
class Threshold : public Module {
 public:
  Threshold(double threshold, double value, InplaceOptions options = {})
      : threshold(threshold), value(value), inplace(options.inplace) {}
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;

  double threshold, value;
  bool inplace;
};

struct RReLUOptions {
  double lower = 1.0 / 8;
  double upper = 1.0 / 3;
  bool inplace = false;
};
// A leaky ReLU whose slope is drawn for each element in training.
class RReLU : public Module {
 public:
  explicit RReLU(RReLUOptions options = {}) : options(options) {}
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;

  RReLUOptions options;
};

struct HardtanhOptions {
  double min_val = -1.0;
  double max_val = 1.0;
  bool inplace = false;
};
// x, kept between two values.
class Hardtanh : public Module {
 public:
  explicit Hardtanh(HardtanhOptions options = {});
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;

  HardtanhOptions options;
};
// x, kept between 0 and 6.
class ReLU6 : public Hardtanh {
 public:
  explicit ReLU6(InplaceOptions options = {}) : Hardtanh({0.0, 6.0, options.inplace}) {}
  std::string extra_repr() const override;
};

// x where positive, alpha (exp(x) - 1) elsewhere.
class ELU : public Module {
 public:
  explicit ELU(double alpha = 1.0, InplaceOptions options = {})
      : alpha(alpha), inplace(options.inplace) {}
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;

  double alpha;
  bool inplace;
};
// max(0, x) + min(0, alpha (exp(x / alpha) - 1)).
class CELU : public ELU {
 public:
  using ELU::ELU;
  Tensor forward(const Tensor& input) override;
};

// The first half times the sigmoid of the second.
class GLU : public Module {
 public:
  explicit GLU(int64_t dim = -1) : dim(dim) {}
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;

  int64_t dim;
};

struct GELUOptions {
  std::string approximate = "none";  // or "tanh"
};
// x times the normal distribution's function of x, or its approximation by tanh.
class GELU : public Module {
 public:
  explicit GELU(GELUOptions options = {}) : approximate(std::move(options.approximate)) {}
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;

  std::string approximate;
};

// 0 where |x| is at most lambda.
class Hardshrink : public Module {
 public:
  explicit Hardshrink(double lambd = 0.5) : lambd(lambd) {}
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;

  double lambd;
};
// x moved towards 0 by lambda.
class Softshrink : public Hardshrink {
 public:
  using Hardshrink::Hardshrink;
  Tensor forward(const Tensor& input) override;
};

// x where positive, a small multiple of it elsewhere.
class LeakyReLU : public Module {
 public:
  explicit LeakyReLU(double negative_slope = 1e-2, InplaceOptions options = {})
      : negative_slope(negative_slope), inplace(options.inplace) {}
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;

  double negative_slope;
  bool inplace;
};

struct SoftplusOptions {
  double beta = 1.0;
  double threshold = 20.0;
};
// log(1 + exp(beta x)) / beta; x itself above the threshold.
class Softplus : public Module {
 public:
  explicit Softplus(SoftplusOptions options = {}) : options(options) {}
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;

  SoftplusOptions options;
};

struct PReLUOptions {
  double init = 0.25;
  std::optional<Device> device = std::nullopt;
  std::optional<DType> dtype = std::nullopt;
};
// A leaky ReLU whose slopes are learned.
class PReLU : public Module {
 public:
  explicit PReLU(int64_t num_parameters = 1, const PReLUOptions& options = {});
  Tensor& weight() const { return parameter_at(0); }
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;

  int64_t num_parameters;
};

// exp(x), scaled to sum to 1 along dim.
class Softmax : public Module {
 public:
  explicit Softmax(int64_t dim) : dim(dim) {}
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;

  int64_t dim;
};
// The softmax of -x.
class Softmin : public Softmax {
 public:
  using Softmax::Softmax;
  Tensor forward(const Tensor& input) override;
};
// The logarithm of softmax.
class LogSoftmax : public Softmax {
 public:
  using Softmax::Softmax;
  Tensor forward(const Tensor& input) override;
};
// Softmax over the channels of an image.
class Softmax2d : public Module {
 public:
  Tensor forward(const Tensor& input) override;
};

}  // namespace tessera::nn
