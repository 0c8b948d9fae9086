// Convolutions and transposed convolutions, in 1, 2 and 3 dimensions.
#pragma once
#include "tessera/nn/module.h"

namespace tessera::nn {

// Amounts, or "same" or "valid".
class ConvPadding {
 public:
  ConvPadding(int v) : amounts_(v) {}
  ConvPadding(int64_t v) : amounts_(v) {}
  ConvPadding(std::initializer_list<int64_t> v) : amounts_(v) {}
  ConvPadding(Ints v) : amounts_(std::move(v)) {}
  ConvPadding(const char* text) : amounts_(0), text_(text) {}
  const Ints& amounts() const { return amounts_; }
  const std::string& text() const { return text_; }  // empty: amounts

 private:
  Ints amounts_;
  std::string text_;
};

struct ConvOptions {
  Ints stride = 1;
  ConvPadding padding = 0;
  Ints dilation = 1;
  int64_t groups = 1;
  bool bias = true;
  std::string padding_mode = "zeros";  // "reflect", "replicate", "circular"
  std::optional<Device> device = std::nullopt;
  std::optional<DType> dtype = std::nullopt;
};

struct ConvTransposeOptions {
  Ints stride = 1;
  Ints padding = 0;
  Ints output_padding = 0;
  int64_t groups = 1;
  bool bias = true;
  Ints dilation = 1;
  std::optional<Device> device = std::nullopt;
  std::optional<DType> dtype = std::nullopt;
};

// What all convolutions share: sizes, parameters, their first values.
class ConvNd : public Module {
 public:
  void reset_parameters();
  Tensor& weight() const { return parameter_at(0); }
  Tensor& bias() const { return parameter_at(1); }  // undefined without one
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;

  int64_t in_channels, out_channels, groups;
  Dims kernel_size, stride, padding, dilation, output_padding;
  std::string padding_text, padding_mode = "zeros";

 protected:
  ConvNd(int n, int64_t in, int64_t out, Ints kernel_size, const ConvOptions& options);
  ConvNd(int n, int64_t in, int64_t out, Ints kernel_size, const ConvTransposeOptions& options);

 private:
  void make(bool transposed, bool bias, std::optional<Device> device, std::optional<DType> dtype);
};

class ConvTransposeNd : public ConvNd {
 public:
  using ConvNd::ConvNd;
  Tensor forward(const Tensor& input) override { return forward(input, {}); }
  // With the asked size; an empty one is the smallest.
  Tensor forward(const Tensor& input, Ints output_size);
  Tensor operator()(const Tensor& input, Ints output_size = {}) {
    return forward(input, std::move(output_size));
  }
};

#define TS_CONV(Name, Base, Options, n)                                                            \
  class Name : public Base {                                                                       \
   public:                                                                                         \
    Name(int64_t in_channels, int64_t out_channels, Ints kernel_size, const Options& options = {}) \
        : Base(n, in_channels, out_channels, std::move(kernel_size), options) {}                   \
  };
TS_CONV(Conv1d, ConvNd, ConvOptions, 1)
TS_CONV(Conv2d, ConvNd, ConvOptions, 2)
TS_CONV(Conv3d, ConvNd, ConvOptions, 3)
TS_CONV(ConvTranspose1d, ConvTransposeNd, ConvTransposeOptions, 1)
TS_CONV(ConvTranspose2d, ConvTransposeNd, ConvTransposeOptions, 2)
TS_CONV(ConvTranspose3d, ConvTransposeNd, ConvTransposeOptions, 3)
#undef TS_CONV

}  // namespace tessera::nn
