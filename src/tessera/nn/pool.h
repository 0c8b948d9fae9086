// Pooling: the largest, the mean or a norm over windows. An empty stride is the kernel's size.
#pragma once
#include <tuple>

#include "tessera/nn/module.h"

namespace tessera::nn {

struct MaxPoolOptions {
  Ints stride = {};
  Ints padding = 0;
  Ints dilation = 1;
  bool ceil_mode = false;
};

class MaxPoolNd : public Module {
 public:
  Tensor forward(const Tensor& input) override;
  // Python's return_indices=True: the values and where they were, for MaxUnpool.
  std::tuple<Tensor, Tensor> forward_with_indices(const Tensor& input);
  std::string extra_repr() const override;

  Dims kernel_size, stride, padding, dilation;
  bool ceil_mode;

 protected:
  MaxPoolNd(int n, Ints kernel_size, const MaxPoolOptions& options);

 private:
  int n_;
};

struct AvgPoolOptions {
  Ints stride = {};
  Ints padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;
  std::optional<int64_t> divisor_override = std::nullopt;  // not for AvgPool1d
};

class AvgPoolNd : public Module {
 public:
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;

  Dims kernel_size, stride, padding;
  bool ceil_mode, count_include_pad;
  std::optional<int64_t> divisor_override;

 protected:
  AvgPoolNd(int n, Ints kernel_size, const AvgPoolOptions& options);

 private:
  int n_;
};

struct MaxUnpoolOptions {
  Ints stride = {};
  Ints padding = 0;
};

// Puts what MaxPool kept back in its place.
class MaxUnpoolNd : public Module {
 public:
  Tensor forward(const Tensor& input, const Tensor& indices, Ints output_size = {});
  Tensor operator()(const Tensor& input, const Tensor& indices, Ints output_size = {}) {
    return forward(input, indices, std::move(output_size));
  }
  std::string extra_repr() const override;

  Dims kernel_size, stride, padding;

 protected:
  MaxUnpoolNd(int n, Ints kernel_size, const MaxUnpoolOptions& options);

 private:
  int n_;
};

struct LPPoolOptions {
  Ints stride = {};
  bool ceil_mode = false;
};

// The p-norm of each window.
class LPPoolNd : public Module {
 public:
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;

  double norm_type;
  Dims kernel_size, stride;
  bool ceil_mode;

 protected:
  LPPoolNd(int n, double norm_type, Ints kernel_size, const LPPoolOptions& options);

 private:
  int n_;
};

// As many windows as the result has elements. A size of -1 is the input's own: Python's None.
class AdaptivePoolNd : public Module {
 public:
  std::string extra_repr() const override;

  Dims output_size;

 protected:
  AdaptivePoolNd(int n, Ints output_size) : output_size(output_size), n_(n) {}
  int n_;
};
class AdaptiveMaxPoolNd : public AdaptivePoolNd {
 public:
  using AdaptivePoolNd::AdaptivePoolNd;
  Tensor forward(const Tensor& input) override;
  std::tuple<Tensor, Tensor> forward_with_indices(const Tensor& input);
};
class AdaptiveAvgPoolNd : public AdaptivePoolNd {
 public:
  using AdaptivePoolNd::AdaptivePoolNd;
  Tensor forward(const Tensor& input) override;
};

// One of the two; the size of the result is that, or its share of the input's.
struct FractionalMaxPoolOptions {
  Ints output_size = {};
  std::vector<double> output_ratio = {};  // one, or one for each dimension
  Tensor random_samples = {};             // in the place of draws
};

// The largest in windows whose places are drawn.
class FractionalMaxPoolNd : public Module {
 public:
  Tensor forward(const Tensor& input) override;
  std::tuple<Tensor, Tensor> forward_with_indices(const Tensor& input);

  Dims kernel_size, output_size;
  std::vector<double> output_ratio;

 protected:
  FractionalMaxPoolNd(int n, Ints kernel_size, const FractionalMaxPoolOptions& options);

 private:
  int n_;
};

#define TS_POOL(Name, Base, Options, n)                          \
  class Name : public Base {                                     \
   public:                                                       \
    explicit Name(Ints kernel_size, const Options& options = {}) \
        : Base(n, std::move(kernel_size), options) {}            \
  };
TS_POOL(MaxPool1d, MaxPoolNd, MaxPoolOptions, 1)
TS_POOL(MaxPool2d, MaxPoolNd, MaxPoolOptions, 2)
TS_POOL(MaxPool3d, MaxPoolNd, MaxPoolOptions, 3)
TS_POOL(AvgPool1d, AvgPoolNd, AvgPoolOptions, 1)
TS_POOL(AvgPool2d, AvgPoolNd, AvgPoolOptions, 2)
TS_POOL(AvgPool3d, AvgPoolNd, AvgPoolOptions, 3)
TS_POOL(MaxUnpool1d, MaxUnpoolNd, MaxUnpoolOptions, 1)
TS_POOL(MaxUnpool2d, MaxUnpoolNd, MaxUnpoolOptions, 2)
TS_POOL(MaxUnpool3d, MaxUnpoolNd, MaxUnpoolOptions, 3)
TS_POOL(FractionalMaxPool2d, FractionalMaxPoolNd, FractionalMaxPoolOptions, 2)
TS_POOL(FractionalMaxPool3d, FractionalMaxPoolNd, FractionalMaxPoolOptions, 3)
#undef TS_POOL

#define TS_POOL(Name, n)                                                        \
  class Name : public LPPoolNd {                                                \
   public:                                                                      \
    Name(double norm_type, Ints kernel_size, const LPPoolOptions& options = {}) \
        : LPPoolNd(n, norm_type, std::move(kernel_size), options) {}            \
  };
TS_POOL(LPPool1d, 1)
TS_POOL(LPPool2d, 2)
TS_POOL(LPPool3d, 3)
#undef TS_POOL

#define TS_POOL(Name, Base, n)                                           \
  class Name : public Base {                                             \
   public:                                                               \
    explicit Name(Ints output_size) : Base(n, std::move(output_size)) {} \
  };
TS_POOL(AdaptiveMaxPool1d, AdaptiveMaxPoolNd, 1)
TS_POOL(AdaptiveMaxPool2d, AdaptiveMaxPoolNd, 2)
TS_POOL(AdaptiveMaxPool3d, AdaptiveMaxPoolNd, 3)
TS_POOL(AdaptiveAvgPool1d, AdaptiveAvgPoolNd, 1)
TS_POOL(AdaptiveAvgPool2d, AdaptiveAvgPoolNd, 2)
TS_POOL(AdaptiveAvgPool3d, AdaptiveAvgPoolNd, 3)
#undef TS_POOL

}  // namespace tessera::nn
