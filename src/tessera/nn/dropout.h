// Dropout of elements, channels and features, in training.
#pragma once
#include "tessera/nn/activation.h"

namespace tessera::nn {

class DropoutBase : public Module {
 public:
  std::string extra_repr() const override;

  double p;
  bool inplace;

 protected:
  DropoutBase(double p, InplaceOptions options);
  // The result in the input's place where that was asked for.
  Tensor placed(const Tensor& input, Tensor result) const;
};

#define TS_DROPOUT(Name)                                                                    \
  class Name : public DropoutBase {                                                         \
   public:                                                                                  \
    explicit Name(double p = 0.5, InplaceOptions options = {}) : DropoutBase(p, options) {} \
    Tensor forward(const Tensor& input) override;                                           \
  };
TS_DROPOUT(Dropout)              // elements
TS_DROPOUT(Dropout1d)            // whole channels of a sequence
TS_DROPOUT(Dropout2d)            // ... of an image
TS_DROPOUT(Dropout3d)            // ... of a volume
TS_DROPOUT(AlphaDropout)         // keeps mean and variance, for SELU
TS_DROPOUT(FeatureAlphaDropout)  // AlphaDropout of whole channels
#undef TS_DROPOUT

}  // namespace tessera::nn
