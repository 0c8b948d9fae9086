#include "nn/faces/faces.h"

namespace tessera::faces {

namespace {

// `python` fills and returns its tensor.
template <class Fill>
void filled(const char* python, Fill fill) {
  manual_seed(0);
  line("value", python, "\"value\": " + numbers(fill()));
}

}  // namespace

void first_values() {
  namespace init = nn::init;
  filled("init.uniform_(torch.empty(3, 4), -1, 2)", [] {
    return init::uniform_(empty({3, 4}), -1, 2);
  });
  filled("init.normal_(torch.empty(3, 7), 1, 0.5)", [] {
    return init::normal_(empty({3, 7}), 1, 0.5);
  });
  filled("init.trunc_normal_(torch.empty(3, 4), 0.1, 0.5, -1, 1)", [] {
    return init::trunc_normal_(empty({3, 4}), 0.1, 0.5, -1, 1);
  });
  filled("init.constant_(torch.empty(2), 0.25)", [] { return init::constant_(empty({2}), 0.25); });
  filled("init.ones_(torch.empty(2))", [] { return init::ones_(empty({2})); });
  filled("init.zeros_(torch.empty(2))", [] { return init::zeros_(empty({2})); });
  filled("init.eye_(torch.empty(2, 3))", [] { return init::eye_(empty({2, 3})); });
  filled("init.dirac_(torch.empty(4, 2, 3, 3), 2)", [] {
    return init::dirac_(empty({4, 2, 3, 3}), 2);
  });
  filled("init.xavier_uniform_(torch.empty(3, 4, 2), 0.5)", [] {
    return init::xavier_uniform_(empty({3, 4, 2}), 0.5);
  });
  filled("init.xavier_normal_(torch.empty(3, 4))", [] {
    return init::xavier_normal_(empty({3, 4}));
  });
  filled("init.kaiming_uniform_(torch.empty(3, 4), a=0.5, mode='fan_out')", [] {
    return init::kaiming_uniform_(empty({3, 4}), {.a = 0.5, .mode = "fan_out"});
  });
  filled("init.kaiming_normal_(torch.empty(3, 4), nonlinearity='relu')", [] {
    return init::kaiming_normal_(empty({3, 4}), {.nonlinearity = "relu"});
  });
  filled("init.orthogonal_(torch.empty(3, 4), 2)", [] {
    return init::orthogonal_(empty({3, 4}), 2);
  });
  filled("init.orthogonal_(torch.empty(4, 3))", [] { return init::orthogonal_(empty({4, 3})); });
  filled("init.sparse_(torch.empty(4, 3), 0.5)", [] { return init::sparse_(empty({4, 3}), 0.5); });
  filled("torch.tensor([init.calculate_gain('tanh'), init.calculate_gain('leaky_relu', 0.2)])", [] {
    return tensor({init::calculate_gain("tanh"), init::calculate_gain("leaky_relu", 0.2)});
  });
  filled("F.gumbel_softmax(torch.randn(3, 4), 0.5)", [] {
    return nn::functional::gumbel_softmax(randn({3, 4}), 0.5);
  });
  filled("F.grid_sample(torch.randn(1, 2, 3, 4), torch.rand(1, 2, 2, 2), align_corners=False)", [] {
    Tensor x = randn({1, 2, 3, 4});
    return nn::functional::grid_sample(x, rand({1, 2, 2, 2}));
  });
}

}  // namespace tessera::faces
