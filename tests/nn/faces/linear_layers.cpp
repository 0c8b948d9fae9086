#include "nn/faces/faces.h"

namespace tessera::faces {

using namespace nn;

void linear_layers() {
  layer(
      "Identity()", "torch.randn(2, 3)", [] { return Identity(); },
      [](auto& m) {
        return Outs{m(randn({2, 3}))};
      });
  layer(
      "Linear(5, 3)", "torch.randn(4, 5)", [] { return Linear(5, 3); },
      [](auto& m) {
        return Outs{m(randn({4, 5}))};
      });
  layer(
      "Linear(5, 3, bias=False)", "torch.randn(2, 4, 5)",
      [] { return Linear(5, 3, {.bias = false}); },
      [](auto& m) {
        return Outs{m(randn({2, 4, 5}))};
      });
  layer(
      "Linear(2, 3, dtype=torch.float64)", "torch.randn(2, 2, dtype=torch.float64)",
      [] { return Linear(2, 3, {.dtype = DType::kFloat64}); },
      [](auto& m) {
        return Outs{m(randn({2, 2}, DType::kFloat64))};
      });
  layer(
      "NonDynamicallyQuantizableLinear(3, 2)", "torch.randn(2, 3)",
      [] { return NonDynamicallyQuantizableLinear(3, 2); },
      [](auto& m) {
        return Outs{m(randn({2, 3}))};
      });
  layer(
      "Bilinear(3, 4, 2)", "torch.randn(5, 3), torch.randn(5, 4)", [] { return Bilinear(3, 4, 2); },
      [](auto& m) {
        Tensor x0 = randn({5, 3});
        Tensor x1 = randn({5, 4});
        return Outs{m(x0, x1)};
      });
  layer(
      "Bilinear(3, 4, 2, bias=False)", "torch.randn(5, 3), torch.randn(5, 4)",
      [] { return Bilinear(3, 4, 2, {.bias = false}); },
      [](auto& m) {
        Tensor x0 = randn({5, 3});
        Tensor x1 = randn({5, 4});
        return Outs{m(x0, x1)};
      });
  layer(
      "Sequential(Linear(3, 4), Tanh(), Sequential(Linear(4, 2)))", "torch.randn(2, 3)",
      [] {
        return Sequential{Linear(3, 4), Tanh(), Sequential{Linear(4, 2)}};
      },
      [](auto& m) {
        return Outs{m(randn({2, 3}))};
      });
  layer(
      "ModuleList([Linear(2, 2), Linear(2, 2), ReLU()])", "",
      [] {
        return ModuleList{Linear(2, 2), Linear(2, 2), ReLU()};
      },
      [](auto&) { return Outs{}; });
  layer(
      "ModuleDict({'a': Linear(2, 2), 'b': ReLU()})", "",
      [] {
        return ModuleDict{{"a", Linear(2, 2)}, {"b", ReLU()}};
      },
      [](auto&) { return Outs{}; });
  layer(
      "Embedding(6, 3)", "torch.tensor([[0, 5], [2, 2]])", [] { return Embedding(6, 3); },
      [](auto& m) {
        return Outs{m(tensor({{0, 5}, {2, 2}}))};
      });
  layer(
      "Embedding(6, 3, padding_idx=-2, max_norm=1.0, norm_type=1.5, scale_grad_by_freq=True)",
      "torch.tensor([4, 5, 5, 1])",
      [] {
        return Embedding(
            6, 3,
            {.padding_idx = -2, .max_norm = 1.0, .norm_type = 1.5, .scale_grad_by_freq = true});
      },
      [](auto& m) {
        return Outs{m(tensor({4, 5, 5, 1}))};
      });
  layer(
      "EmbeddingBag(6, 3)", "torch.tensor([[0, 5], [2, 2]])", [] { return EmbeddingBag(6, 3); },
      [](auto& m) {
        return Outs{m(tensor({{0, 5}, {2, 2}}))};
      });
  layer(
      "EmbeddingBag(6, 3, mode='sum', padding_idx=1)",
      "torch.tensor([0, 5, 1, 2]), torch.tensor([0, 2])",
      [] { return EmbeddingBag(6, 3, {.mode = "sum", .padding_idx = 1}); },
      [](auto& m) {
        return Outs{m(tensor({0, 5, 1, 2}), tensor({0, 2}))};
      });
  layer(
      "Sequential(OrderedDict(a=Linear(2, 3), b=Linear(3, 1)))", "torch.randn(2, 2)",
      [] {
        return Sequential{{"a", Linear(2, 3)}, {"b", Linear(3, 1)}};
      },
      [](auto& m) {
        return Outs{m(randn({2, 2}))};
      });
}

}  // namespace tessera::faces
