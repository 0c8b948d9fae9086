// A whole training loop: deferral changes no bit of it, and both devices learn the same.
#include "support/fuse_fixture.h"

namespace tessera {
namespace {

using namespace test;

// Two layers with gelu, a softmax and dropout; returns the losses and the final weights.
std::vector<Tensor> train(Device device, fuse::Mode mode) {
  FuseMode scope(mode);
  manual_seed(3);
  Tensor w1 = sample({6, 16}, DType::kFloat32, device, 1) * Value(0.1);
  Tensor b1 = sample({16}, DType::kFloat32, device, 2) * Value(0.1);
  Tensor w2 = sample({16, 4}, DType::kFloat32, device, 3) * Value(0.1);
  Tensor x = sample({8, 6}, DType::kFloat32, device, 4),
         target = sample({8, 4}, DType::kFloat32, device, 5);
  std::vector<Tensor> params{w1.detach(), b1.detach(), w2.detach()}, out;
  std::vector<TensorBase> momenta;
  for (Tensor& p : params) {
    p.requires_grad_();
    momenta.push_back(zeros_like(p));
  }
  for (int step = 0; step < 6; ++step) {
    Tensor h = gelu(x.matmul(params[0]) + Value(params[1]));
    h = dropout(h, device.is_cpu() ? 0.2 : 0.0, true);
    Tensor d = h.matmul(params[2]).softmax(-1) - Value(target.softmax(-1));
    Tensor loss = (d * Value(d)).sum();
    loss.backward();
    out.push_back(loss.detach());
    NoGrad off;
    std::vector<TensorBase> p(params.begin(), params.end()), g;
    for (Tensor& one : params) g.push_back(one.grad());
    op::_sgd_step_(p, g, momenta, 0.05, 0.9, 0.0, 0.001, false, false, step == 0);
    for (Tensor& one : params) one.grad().zero_();
  }
  for (Tensor& p : params) out.push_back(p.detach());
  std::vector<Tensor> copies;
  for (const Tensor& t : out) copies.push_back(t.cpu());
  for (const Tensor& t : copies) values(t);
  return copies;
}

TEST(TrainingTest, DeferralChangesNoBit) {
  for (Device device : {Device{}, test_gpu()}) {
    std::vector<Tensor> plain = train(device, fuse::Mode::kOff);
    fuse::stream_of(device).reset_stats();
    for (fuse::Mode mode : {fuse::Mode::kOn, fuse::Mode::kCheck}) {
      std::vector<Tensor> fused = train(device, mode);
      for (size_t i = 0; i < plain.size(); ++i) EXPECT_EQ(bytes(fused[i]), bytes(plain[i])) << i;
    }
    EXPECT_GT(fuse::stream_of(device).stats().fused_groups, 20);
    EXPECT_LT(value(plain[5]), value(plain[0]));  // it learns
  }
  clear_gpu();
}

}  // namespace
}  // namespace tessera
