#include "nn/faces/faces.h"

namespace tessera::faces {

using namespace nn;

void losses() {
  layer(
      "L1Loss()", "torch.randn(3, 4), torch.randn(3, 4)", [] { return L1Loss(); },
      [](auto& m) {
        Tensor x0 = randn({3, 4});
        Tensor x1 = randn({3, 4});
        return Outs{m(x0, x1)};
      });
  layer(
      "L1Loss(reduction='sum')", "torch.randn(3, 4), torch.randn(3, 4)",
      [] { return L1Loss({.reduction = "sum"}); },
      [](auto& m) {
        Tensor x0 = randn({3, 4});
        Tensor x1 = randn({3, 4});
        return Outs{m(x0, x1)};
      });
  layer(
      "L1Loss(reduction='none')", "torch.randn(3, 4), torch.randn(3, 4)",
      [] { return L1Loss({.reduction = "none"}); },
      [](auto& m) {
        Tensor x0 = randn({3, 4});
        Tensor x1 = randn({3, 4});
        return Outs{m(x0, x1)};
      });
  layer(
      "MSELoss()", "torch.randn(3, 4), torch.randn(3, 4)", [] { return MSELoss(); },
      [](auto& m) {
        Tensor x0 = randn({3, 4});
        Tensor x1 = randn({3, 4});
        return Outs{m(x0, x1)};
      });
  layer(
      "MSELoss(reduction='sum')", "torch.randn(3, 4), torch.randn(3, 4)",
      [] { return MSELoss({.reduction = "sum"}); },
      [](auto& m) {
        Tensor x0 = randn({3, 4});
        Tensor x1 = randn({3, 4});
        return Outs{m(x0, x1)};
      });
  layer(
      "MSELoss(reduction='none')", "torch.randn(3, 4), torch.randn(3, 4)",
      [] { return MSELoss({.reduction = "none"}); },
      [](auto& m) {
        Tensor x0 = randn({3, 4});
        Tensor x1 = randn({3, 4});
        return Outs{m(x0, x1)};
      });
  layer(
      "SmoothL1Loss()", "torch.randn(3, 4), torch.randn(3, 4)", [] { return SmoothL1Loss(); },
      [](auto& m) {
        Tensor x0 = randn({3, 4});
        Tensor x1 = randn({3, 4});
        return Outs{m(x0, x1)};
      });
  layer(
      "SmoothL1Loss(reduction='sum')", "torch.randn(3, 4), torch.randn(3, 4)",
      [] { return SmoothL1Loss({.reduction = "sum"}); },
      [](auto& m) {
        Tensor x0 = randn({3, 4});
        Tensor x1 = randn({3, 4});
        return Outs{m(x0, x1)};
      });
  layer(
      "SmoothL1Loss(reduction='none')", "torch.randn(3, 4), torch.randn(3, 4)",
      [] { return SmoothL1Loss({.reduction = "none"}); },
      [](auto& m) {
        Tensor x0 = randn({3, 4});
        Tensor x1 = randn({3, 4});
        return Outs{m(x0, x1)};
      });
  layer(
      "HuberLoss()", "torch.randn(3, 4), torch.randn(3, 4)", [] { return HuberLoss(); },
      [](auto& m) {
        Tensor x0 = randn({3, 4});
        Tensor x1 = randn({3, 4});
        return Outs{m(x0, x1)};
      });
  layer(
      "HuberLoss(reduction='sum')", "torch.randn(3, 4), torch.randn(3, 4)",
      [] { return HuberLoss({.reduction = "sum"}); },
      [](auto& m) {
        Tensor x0 = randn({3, 4});
        Tensor x1 = randn({3, 4});
        return Outs{m(x0, x1)};
      });
  layer(
      "HuberLoss(reduction='none')", "torch.randn(3, 4), torch.randn(3, 4)",
      [] { return HuberLoss({.reduction = "none"}); },
      [](auto& m) {
        Tensor x0 = randn({3, 4});
        Tensor x1 = randn({3, 4});
        return Outs{m(x0, x1)};
      });
  layer(
      "SmoothL1Loss(beta=0.5)", "torch.randn(3, 4), torch.randn(3, 4)",
      [] { return SmoothL1Loss({.beta = 0.5}); },
      [](auto& m) {
        Tensor x0 = randn({3, 4});
        Tensor x1 = randn({3, 4});
        return Outs{m(x0, x1)};
      });
  layer(
      "HuberLoss(delta=0.5)", "torch.randn(3, 4), torch.randn(3, 4)",
      [] { return HuberLoss({.delta = 0.5}); },
      [](auto& m) {
        Tensor x0 = randn({3, 4});
        Tensor x1 = randn({3, 4});
        return Outs{m(x0, x1)};
      });
  layer(
      "NLLLoss()", "torch.randn(3, 4), torch.tensor([1, 0, 3])", [] { return NLLLoss(); },
      [](auto& m) {
        Tensor x0 = randn({3, 4});
        Tensor x1 = tensor({1, 0, 3});
        return Outs{m(x0, x1)};
      });
  layer(
      "NLLLoss(weight=torch.tensor([0.5, 1.0, 2.0, 0.25]), reduction='sum')",
      "torch.randn(3, 4), torch.tensor([1, 0, 3])",
      [] {
        return NLLLoss({.weight = tensor({0.5, 1.0, 2.0, 0.25}), .reduction = "sum"});
      },
      [](auto& m) {
        Tensor x0 = randn({3, 4});
        Tensor x1 = tensor({1, 0, 3});
        return Outs{m(x0, x1)};
      });
  layer(
      "CrossEntropyLoss()", "torch.randn(3, 4), torch.tensor([1, 0, 3])",
      [] { return CrossEntropyLoss(); },
      [](auto& m) {
        Tensor x0 = randn({3, 4});
        Tensor x1 = tensor({1, 0, 3});
        return Outs{m(x0, x1)};
      });
  layer(
      "CrossEntropyLoss(weight=torch.tensor([0.5, 1.0, 2.0, 0.25]), reduction='sum')",
      "torch.randn(3, 4), torch.tensor([1, 0, 3])",
      [] {
        return CrossEntropyLoss({.weight = tensor({0.5, 1.0, 2.0, 0.25}), .reduction = "sum"});
      },
      [](auto& m) {
        Tensor x0 = randn({3, 4});
        Tensor x1 = tensor({1, 0, 3});
        return Outs{m(x0, x1)};
      });
  layer(
      "MultiMarginLoss()", "torch.randn(3, 4), torch.tensor([1, 0, 3])",
      [] { return MultiMarginLoss(); },
      [](auto& m) {
        Tensor x0 = randn({3, 4});
        Tensor x1 = tensor({1, 0, 3});
        return Outs{m(x0, x1)};
      });
  layer(
      "MultiMarginLoss(weight=torch.tensor([0.5, 1.0, 2.0, 0.25]), reduction='sum')",
      "torch.randn(3, 4), torch.tensor([1, 0, 3])",
      [] {
        return MultiMarginLoss({.weight = tensor({0.5, 1.0, 2.0, 0.25}), .reduction = "sum"});
      },
      [](auto& m) {
        Tensor x0 = randn({3, 4});
        Tensor x1 = tensor({1, 0, 3});
        return Outs{m(x0, x1)};
      });
  layer(
      "NLLLoss(ignore_index=3)", "torch.randn(3, 4), torch.tensor([1, 0, 3])",
      [] { return NLLLoss({.ignore_index = 3}); },
      [](auto& m) {
        Tensor x0 = randn({3, 4});
        Tensor x1 = tensor({1, 0, 3});
        return Outs{m(x0, x1)};
      });
  layer(
      "CrossEntropyLoss(ignore_index=0, label_smoothing=0.1)",
      "torch.randn(3, 4), torch.tensor([1, 0, 3])",
      [] { return CrossEntropyLoss({.ignore_index = 0, .label_smoothing = 0.1}); },
      [](auto& m) {
        Tensor x0 = randn({3, 4});
        Tensor x1 = tensor({1, 0, 3});
        return Outs{m(x0, x1)};
      });
  layer(
      "MultiMarginLoss(p=2, margin=0.5)", "torch.randn(3, 4), torch.tensor([1, 0, 3])",
      [] { return MultiMarginLoss({.p = 2, .margin = 0.5}); },
      [](auto& m) {
        Tensor x0 = randn({3, 4});
        Tensor x1 = tensor({1, 0, 3});
        return Outs{m(x0, x1)};
      });
  layer(
      "KLDivLoss(reduction='batchmean')", "torch.randn(3, 4), torch.rand(3, 4)",
      [] { return KLDivLoss({.reduction = "batchmean"}); },
      [](auto& m) {
        Tensor x0 = randn({3, 4});
        Tensor x1 = rand({3, 4});
        return Outs{m(x0, x1)};
      });
  layer(
      "KLDivLoss(reduction='sum', log_target=True)", "torch.randn(3, 4), torch.randn(3, 4)",
      [] { return KLDivLoss({.reduction = "sum", .log_target = true}); },
      [](auto& m) {
        Tensor x0 = randn({3, 4});
        Tensor x1 = randn({3, 4});
        return Outs{m(x0, x1)};
      });
  layer(
      "PoissonNLLLoss()", "torch.randn(3, 4), torch.rand(3, 4)", [] { return PoissonNLLLoss(); },
      [](auto& m) {
        Tensor x0 = randn({3, 4});
        Tensor x1 = rand({3, 4});
        return Outs{m(x0, x1)};
      });
  layer(
      "PoissonNLLLoss(log_input=False, full=True, eps=1e-4)", "torch.rand(3, 4), torch.rand(3, 4)",
      [] { return PoissonNLLLoss({.log_input = false, .full = true, .eps = 1e-4}); },
      [](auto& m) {
        Tensor x0 = rand({3, 4});
        Tensor x1 = rand({3, 4});
        return Outs{m(x0, x1)};
      });
  layer(
      "GaussianNLLLoss()", "torch.randn(3, 4), torch.randn(3, 4), torch.rand(3, 4)",
      [] { return GaussianNLLLoss(); },
      [](auto& m) {
        Tensor x0 = randn({3, 4});
        Tensor x1 = randn({3, 4});
        Tensor x2 = rand({3, 4});
        return Outs{m(x0, x1, x2)};
      });
  layer(
      "GaussianNLLLoss(full=True, eps=1e-3, reduction='sum')",
      "torch.randn(3, 4), torch.randn(3, 4), torch.rand(3, 4)",
      [] { return GaussianNLLLoss({.full = true, .eps = 1e-3, .reduction = "sum"}); },
      [](auto& m) {
        Tensor x0 = randn({3, 4});
        Tensor x1 = randn({3, 4});
        Tensor x2 = rand({3, 4});
        return Outs{m(x0, x1, x2)};
      });
  layer(
      "BCELoss()", "torch.rand(3, 4), torch.rand(3, 4)", [] { return BCELoss(); },
      [](auto& m) {
        Tensor x0 = rand({3, 4});
        Tensor x1 = rand({3, 4});
        return Outs{m(x0, x1)};
      });
  layer(
      "BCELoss(weight=torch.tensor([0.5, 1.0, 2.0, 0.25]), reduction='none')",
      "torch.rand(3, 4), torch.rand(3, 4)",
      [] {
        return BCELoss({.weight = tensor({0.5, 1.0, 2.0, 0.25}), .reduction = "none"});
      },
      [](auto& m) {
        Tensor x0 = rand({3, 4});
        Tensor x1 = rand({3, 4});
        return Outs{m(x0, x1)};
      });
  layer(
      "BCEWithLogitsLoss()", "torch.randn(3, 4), torch.rand(3, 4)",
      [] { return BCEWithLogitsLoss(); },
      [](auto& m) {
        Tensor x0 = randn({3, 4});
        Tensor x1 = rand({3, 4});
        return Outs{m(x0, x1)};
      });
  layer(
      "BCEWithLogitsLoss(weight=torch.tensor([0.5, 1.0, 2.0, 0.25]), pos_weight=torch.tensor([0.5, "
      "1.0, 2.0, 0.25]))",
      "torch.randn(3, 4), torch.rand(3, 4)",
      [] {
        return BCEWithLogitsLoss(
            {.weight = tensor({0.5, 1.0, 2.0, 0.25}), .pos_weight = tensor({0.5, 1.0, 2.0, 0.25})});
      },
      [](auto& m) {
        Tensor x0 = randn({3, 4});
        Tensor x1 = rand({3, 4});
        return Outs{m(x0, x1)};
      });
  layer(
      "HingeEmbeddingLoss()", "torch.randn(3), torch.tensor([1, -1, 1])",
      [] { return HingeEmbeddingLoss(); },
      [](auto& m) {
        Tensor x0 = randn({3});
        Tensor x1 = tensor({1, -1, 1});
        return Outs{m(x0, x1)};
      });
  layer(
      "HingeEmbeddingLoss(margin=0.5, reduction='sum')", "torch.randn(3), torch.tensor([1, -1, 1])",
      [] { return HingeEmbeddingLoss({.margin = 0.5, .reduction = "sum"}); },
      [](auto& m) {
        Tensor x0 = randn({3});
        Tensor x1 = tensor({1, -1, 1});
        return Outs{m(x0, x1)};
      });
  layer(
      "MultiLabelMarginLoss()", "torch.randn(2, 4), torch.tensor([[3, 0, -1, 1], [1, -1, 0, 0]])",
      [] { return MultiLabelMarginLoss(); },
      [](auto& m) {
        Tensor x0 = randn({2, 4});
        Tensor x1 = tensor({{3, 0, -1, 1}, {1, -1, 0, 0}});
        return Outs{m(x0, x1)};
      });
  layer(
      "SoftMarginLoss()", "torch.randn(3), torch.tensor([1.0, -1.0, 1.0])",
      [] { return SoftMarginLoss(); },
      [](auto& m) {
        Tensor x0 = randn({3});
        Tensor x1 = tensor({1.0, -1.0, 1.0});
        return Outs{m(x0, x1)};
      });
  layer(
      "MultiLabelSoftMarginLoss()", "torch.randn(3, 4), torch.rand(3, 4)",
      [] { return MultiLabelSoftMarginLoss(); },
      [](auto& m) {
        Tensor x0 = randn({3, 4});
        Tensor x1 = rand({3, 4});
        return Outs{m(x0, x1)};
      });
  layer(
      "MultiLabelSoftMarginLoss(weight=torch.tensor([0.5, 1.0, 2.0, 0.25]))",
      "torch.randn(3, 4), torch.rand(3, 4)",
      [] {
        return MultiLabelSoftMarginLoss({.weight = tensor({0.5, 1.0, 2.0, 0.25})});
      },
      [](auto& m) {
        Tensor x0 = randn({3, 4});
        Tensor x1 = rand({3, 4});
        return Outs{m(x0, x1)};
      });
  layer(
      "CosineEmbeddingLoss()", "torch.randn(3, 4), torch.randn(3, 4), torch.tensor([1, -1, 1])",
      [] { return CosineEmbeddingLoss(); },
      [](auto& m) {
        Tensor x0 = randn({3, 4});
        Tensor x1 = randn({3, 4});
        Tensor x2 = tensor({1, -1, 1});
        return Outs{m(x0, x1, x2)};
      });
  layer(
      "CosineEmbeddingLoss(margin=0.2, reduction='none')",
      "torch.randn(3, 4), torch.randn(3, 4), torch.tensor([1, -1, 1])",
      [] { return CosineEmbeddingLoss({.margin = 0.2, .reduction = "none"}); },
      [](auto& m) {
        Tensor x0 = randn({3, 4});
        Tensor x1 = randn({3, 4});
        Tensor x2 = tensor({1, -1, 1});
        return Outs{m(x0, x1, x2)};
      });
  layer(
      "MarginRankingLoss()", "torch.randn(3), torch.randn(3), torch.tensor([1, -1, 1])",
      [] { return MarginRankingLoss(); },
      [](auto& m) {
        Tensor x0 = randn({3});
        Tensor x1 = randn({3});
        Tensor x2 = tensor({1, -1, 1});
        return Outs{m(x0, x1, x2)};
      });
  layer(
      "MarginRankingLoss(margin=0.2)", "torch.randn(3), torch.randn(3), torch.tensor([1, -1, 1])",
      [] { return MarginRankingLoss({.margin = 0.2}); },
      [](auto& m) {
        Tensor x0 = randn({3});
        Tensor x1 = randn({3});
        Tensor x2 = tensor({1, -1, 1});
        return Outs{m(x0, x1, x2)};
      });
  layer(
      "TripletMarginLoss()", "torch.randn(3, 4), torch.randn(3, 4), torch.randn(3, 4)",
      [] { return TripletMarginLoss(); },
      [](auto& m) {
        Tensor x0 = randn({3, 4});
        Tensor x1 = randn({3, 4});
        Tensor x2 = randn({3, 4});
        return Outs{m(x0, x1, x2)};
      });
  layer(
      "TripletMarginLoss(margin=0.5, p=1.0, swap=True, reduction='none')",
      "torch.randn(3, 4), torch.randn(3, 4), torch.randn(3, 4)",
      [] {
        return TripletMarginLoss({.margin = 0.5, .p = 1.0, .swap = true, .reduction = "none"});
      },
      [](auto& m) {
        Tensor x0 = randn({3, 4});
        Tensor x1 = randn({3, 4});
        Tensor x2 = randn({3, 4});
        return Outs{m(x0, x1, x2)};
      });
  layer(
      "TripletMarginWithDistanceLoss()", "torch.randn(3, 4), torch.randn(3, 4), torch.randn(3, 4)",
      [] { return TripletMarginWithDistanceLoss(); },
      [](auto& m) {
        Tensor x0 = randn({3, 4});
        Tensor x1 = randn({3, 4});
        Tensor x2 = randn({3, 4});
        return Outs{m(x0, x1, x2)};
      });
  layer(
      "TripletMarginWithDistanceLoss(distance_function=lambda a, b: (a - b).abs().sum(1), "
      "swap=True)",
      "torch.randn(3, 4), torch.randn(3, 4), torch.randn(3, 4)",
      [] {
        return TripletMarginWithDistanceLoss(
            {.distance_function = [](const Tensor& a,
                                     const Tensor& b) { return (a - b).abs().sum(1); },
             .swap = true});
      },
      [](auto& m) {
        Tensor x0 = randn({3, 4});
        Tensor x1 = randn({3, 4});
        Tensor x2 = randn({3, 4});
        return Outs{m(x0, x1, x2)};
      });
  layer(
      "CTCLoss()",
      "torch.randn(6, 2, 4).log_softmax(2), torch.tensor([[2, 3], [3, 2]]), torch.tensor([6, 5]), "
      "torch.tensor([2, 1])",
      [] { return CTCLoss(); },
      [](auto& m) {
        Tensor x0 = randn({6, 2, 4}).log_softmax(2);
        Tensor x1 = tensor({{2, 3}, {3, 2}});
        Tensor x2 = tensor({6, 5});
        Tensor x3 = tensor({2, 1});
        return Outs{m(x0, x1, x2, x3)};
      });
  layer(
      "CTCLoss(blank=1, reduction='sum', zero_infinity=True)",
      "torch.randn(6, 2, 4).log_softmax(2), torch.tensor([[2, 3], [3, 2]]), torch.tensor([6, 5]), "
      "torch.tensor([2, 1])",
      [] { return CTCLoss({.blank = 1, .reduction = "sum", .zero_infinity = true}); },
      [](auto& m) {
        Tensor x0 = randn({6, 2, 4}).log_softmax(2);
        Tensor x1 = tensor({{2, 3}, {3, 2}});
        Tensor x2 = tensor({6, 5});
        Tensor x3 = tensor({2, 1});
        return Outs{m(x0, x1, x2, x3)};
      });
  layer(
      "AdaptiveLogSoftmaxWithLoss(8, 10, [3, 6], div_value=2.0)",
      "torch.randn(5, 8), torch.tensor([0, 7, 4, 9, 2])",
      [] {
        return AdaptiveLogSoftmaxWithLoss(8, 10, {3, 6}, {.div_value = 2.0});
      },
      [](auto& m) {
        auto [out, loss] = m(randn({5, 8}), tensor({0, 7, 4, 9, 2}));
        return Outs{out, loss};
      });
}

}  // namespace tessera::faces
