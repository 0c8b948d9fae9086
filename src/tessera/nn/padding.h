// Padding by constants, reflection, repetition and wrapping around. The amounts are one number, or
// two for each dimension, the last dimension first.
#pragma once
#include "tessera/nn/module.h"

namespace tessera::nn {

class PadNd : public Module {
 public:
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;

  Dims padding;
  double value = 0;

 protected:
  PadNd(int n, Ints padding, const char* mode, bool shows_value = false, double value = 0.0);

 private:
  const char* mode_;
  int n_;
  bool shows_value_;
};

#define TS_PAD(Name, n, mode)                                           \
  class Name : public PadNd {                                           \
   public:                                                              \
    explicit Name(Ints padding) : PadNd(n, std::move(padding), mode) {} \
  };
TS_PAD(ZeroPad1d, 1, "constant")
TS_PAD(ZeroPad2d, 2, "constant")
TS_PAD(ZeroPad3d, 3, "constant")
TS_PAD(ReflectionPad1d, 1, "reflect")
TS_PAD(ReflectionPad2d, 2, "reflect")
TS_PAD(ReflectionPad3d, 3, "reflect")
TS_PAD(ReplicationPad1d, 1, "replicate")
TS_PAD(ReplicationPad2d, 2, "replicate")
TS_PAD(ReplicationPad3d, 3, "replicate")
TS_PAD(CircularPad1d, 1, "circular")
TS_PAD(CircularPad2d, 2, "circular")
TS_PAD(CircularPad3d, 3, "circular")
#undef TS_PAD

#define TS_PAD(Name, n)                                                                         \
  class Name : public PadNd {                                                                   \
   public:                                                                                      \
    Name(Ints padding, double value) : PadNd(n, std::move(padding), "constant", true, value) {} \
  };
TS_PAD(ConstantPad1d, 1)
TS_PAD(ConstantPad2d, 2)
TS_PAD(ConstantPad3d, 3)
#undef TS_PAD

}  // namespace tessera::nn
