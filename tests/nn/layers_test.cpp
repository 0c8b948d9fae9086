// What layers refuse, and what tests/python/test_cpp_face.py cannot see: gradients of inputs,
// modes, devices.
#include "support/tensors.h"

namespace tessera {
namespace {

using namespace test;
using namespace nn;

TEST(LayersTest, RefuseWrongOptions) {
  EXPECT_ERROR(Conv2d(3, 4, 3, {.groups = 2}), kValue, "in_channels must be divisible by groups");
  EXPECT_ERROR(Conv2d(4, 3, 3, {.groups = 2}), kValue, "out_channels must be divisible by groups");
  EXPECT_ERROR(Conv1d(1, 1, 1, {.groups = 0}), kValue, "groups must be a positive integer");
  EXPECT_ERROR(Conv1d(1, 1, 3, {.padding = "half"}), kValue, "Invalid padding string 'half'");
  EXPECT_ERROR(Conv1d(1, 1, 3, {.stride = 2, .padding = "same"}), kValue,
               "padding='same' is not supported for strided convolutions");
  EXPECT_ERROR(Conv1d(1, 1, 3, {.padding_mode = "mirror"}), kValue, "padding_mode must be one of");
  EXPECT_ERROR(Dropout(1.5), kValue, "dropout probability has to be between 0 and 1, but got 1.5");
  EXPECT_ERROR(GroupNorm(2, 3), kValue, "num_channels (3) must be divisible by num_groups (2)");
  EXPECT_ERROR(Embedding(3, 2, {.padding_idx = 3}), kValue, "Padding_idx must be within");
  EXPECT_ERROR(Hardtanh({.min_val = 1, .max_val = 1}), kValue, "max_val must be larger");
  EXPECT_ERROR(LSTM(2, 3, {.proj_size = 3}), kValue, "proj_size has to be smaller");
  EXPECT_ERROR(RNN(2, 3, {.nonlinearity = "sin"}), kValue, "Unknown nonlinearity 'sin'");
  EXPECT_ERROR(GRU(2, 0), kValue, "hidden_size must be greater than zero");
  EXPECT_ERROR(MultiheadAttention(5, 2), kValue, "embed_dim must be divisible by num_heads");
  EXPECT_ERROR(MultiheadAttention(0, 2), kValue, "must be greater than 0");
  EXPECT_ERROR(TransformerEncoderLayer(4, 2, {.activation = "tanh"}), kRuntime,
               "activation should be relu/gelu, not tanh");
  EXPECT_ERROR(TripletMarginLoss({.margin = 0}), kValue, "greater than 0, got 0.0 instead");
  EXPECT_ERROR(MultiMarginLoss({.p = 3}), kValue, "only p == 1 and p == 2 supported");
  EXPECT_ERROR(FractionalMaxPool2d(2), kValue, "either an output size, or a pooling ratio");
  EXPECT_ERROR(AdaptiveLogSoftmaxWithLoss(4, 5, {3, 2}), kValue, "sorted in an increasing order");
  EXPECT_ERROR(AvgPool1d(2, {.divisor_override = 2}), kType, "has no divisor_override");
}

TEST(LayersTest, RefuseWrongInputs) {
  EXPECT_ERROR(Linear(3, 2)(ones({4, 2})), kRuntime, "shape");
  EXPECT_ERROR(BatchNorm2d(3)(ones({2, 3})), kValue, "expected 4D input (got 2D input)");
  EXPECT_ERROR(BatchNorm1d(3)(ones({3})), kValue, "expected 2D or 3D input (got 1D input)");
  EXPECT_ERROR(InstanceNorm1d(3, {.affine = true})(ones({2, 4, 5})), kValue,
               "to match num_features (3), but got: 4.");
  EXPECT_ERROR(CircularPad1d(1)(ones({2})), kValue, "expected 2D or 3D input (got 1D input)");
  EXPECT_ERROR(Softmax2d()(ones({2})), kValue, "expected input to be 3D or 4D");
  EXPECT_ERROR(LSTM(3, 2)(ones({4, 2, 5})), kRuntime, "Expected 3, got 5");
  EXPECT_ERROR(GRU(3, 2)(ones({4, 2, 3}), ones({2, 2, 2})), kRuntime,
               "Expected hidden size (1, 2, 2), got [2, 2, 2]");
  EXPECT_ERROR(LSTM(3, 2)(ones({3})), kValue, "LSTM: Expected input to be 2D or 3D");
  MultiheadAttention attention(4, 2);
  EXPECT_ERROR(attention(ones({4}), ones({4}), ones({4})), kValue, "unbatched 2D or batched 3D");
  EXPECT_ERROR(attention(ones({2, 6}), ones({2, 6}), ones({2, 6})), kValue,
               "was expecting embedding dimension of 4, but got 6");
  EXPECT_ERROR(attention(ones({2, 4}), ones({2, 4}), ones({2, 4}), {.is_causal = true}), kRuntime,
               "Need attn_mask if specifying the is_causal hint");
  EXPECT_ERROR(ConvTranspose2d(1, 1, 3, {.stride = 2})(ones({1, 1, 2, 2}), {9, 9}), kValue,
               "but valid sizes range from 5 to 6 in dimension 0");
  EXPECT_ERROR(Upsample({.size = 2, .scale_factor = {2}})(ones({1, 1, 2})), kValue,
               "only one of size or scale_factor");
  EXPECT_ERROR(Upsample({.size = 2, .mode = "bilinear"})(ones({1, 1, 2})), kNotImplemented,
               "got bilinear");
}

TEST(LayersTest, ModesChangeWhatIsComputed) {
  BatchNorm1d norm(2);
  Tensor x = sample({8, 2});
  std::vector<double> in_training = values(norm(x));
  norm.eval();
  EXPECT_NE(values(norm(x)), in_training);
  EXPECT_EQ(norm.num_batches_tracked().item<int64_t>(), 1);
  Dropout dropout(0.9);
  dropout.eval();
  EXPECT_EQ(values(dropout(x)), values(x));
  TransformerEncoderLayer layer(4, 2, {.dim_feedforward = 8, .dropout = 0.5});
  layer.eval();
  Tensor src = sample({3, 1, 4});
  EXPECT_EQ(values(layer(src)), values(layer(src)));
}

TEST(LayersTest, GradientsReachInputsAndParameters) {
  Sequential net{Conv2d(1, 2, 3), BatchNorm2d(2), GELU(), MaxPool2d(2), Flatten(), Linear(8, 3)};
  Tensor x = sample({2, 1, 6, 6}).requires_grad_();
  CrossEntropyLoss()(net(x), tensor({0, 2})).backward();
  EXPECT_EQ(x.grad().sizes(), x.sizes());
  for (auto& [name, p] : net.named_parameters()) EXPECT_TRUE(p.grad().defined()) << name;
}

TEST(LayersTest, WeightsOfALossMoveWithIt) {
  CrossEntropyLoss loss({.weight = tensor({1.0, 2.0})});
  loss.to(test_gpu());
  EXPECT_EQ(loss.weight().device(), test_gpu());
  double there = loss(sample({3, 2}).to(test_gpu()), tensor({0, 1, 1}).to(test_gpu())).item();
  loss.cpu();
  EXPECT_NEAR(there, loss(sample({3, 2}), tensor({0, 1, 1})).item(), 1e-6);
}

TEST(LayersTest, PretrainedTables) {
  Embedding table = Embedding::from_pretrained(tensor({{1.0, 2.0}, {3.0, 4.0}}));
  EXPECT_FALSE(table.weight().requires_grad());
  EXPECT_EQ(values(table(tensor({1, 0}))), (std::vector<double>{3, 4, 1, 2}));
  EXPECT_TRUE(Embedding::from_pretrained(ones({2, 2}), false).weight().requires_grad());
}

}  // namespace
}  // namespace tessera
