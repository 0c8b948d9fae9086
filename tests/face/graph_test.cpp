// Captured graphs, as C++ programs write them.
#include "tessera/face/graph.h"
#include "support/tensors.h"
#include "tessera/tessera.h"

namespace tessera {
namespace {

using namespace test;

std::string message_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(GraphTest, ReplaysReadWhatTheInputsHold) {
  Tensor x = ones({4}, DType::kFloat32, test_gpu(0)), y;
  cuda::CUDAGraph graph;
  cuda::Stream side(0);
  {
    cuda::GraphCapture capture(graph, side);
    EXPECT_TRUE(cuda::is_current_stream_capturing());
    y = (x + 1) * 2;
    capture.end();
  }
  EXPECT_FALSE(cuda::is_current_stream_capturing());
  for (int i = 0; i < 3; ++i) {
    x.fill_(i);
    graph.replay();
    EXPECT_EQ(y.sum().item(), 8.0 * (i + 1));
  }
  graph.reset();
  EXPECT_NE(message_of([&] { graph.replay(); }), "");
}

TEST(GraphTest, ALayerTrains) {
  manual_seed(0);
  nn::Linear layer(3, 1);
  layer.to(test_gpu(0));
  optim::SGD optimizer(layer.parameters(), {.lr = 0.1});
  Tensor x = ones({8, 3}, DType::kFloat32, test_gpu(0)), loss;
  cuda::CUDAGraph graph;
  cuda::Stream side(0);
  {
    cuda::GraphCapture capture(graph, side);
    optimizer.zero_grad();
    loss = (layer(x) - 2).square().mean();
    loss.backward();
    optimizer.step();
    capture.end();
  }
  graph.replay();
  const double first = loss.item();
  for (int i = 0; i < 30; ++i) graph.replay();
  EXPECT_LT(loss.item(), first * 1e-3);
}

TEST(GraphTest, WhatTheHostWouldDoIsRefused) {
  Tensor x = ones({4}, DType::kFloat32, test_gpu(0));
  cuda::CUDAGraph graph;
  cuda::Stream side(0);
  const std::string said = message_of([&] {
    cuda::GraphCapture capture(graph, side);
    x.sum().item();
  });
  EXPECT_NE(said.find("copying to the host"), std::string::npos) << said;
  EXPECT_FALSE(graph.captured());
  EXPECT_EQ(x.sum().item(), 4.0);
  EXPECT_NE(message_of([&] { graph.capture_begin(); }).find("non-default stream"),
            std::string::npos);
}

TEST(GraphTest, ReplaysDrawNewNumbers) {
  const Device gpu = test_gpu(0);
  default_generator(gpu).manual_seed(3);
  Tensor a = rand({100}, DType::kFloat32, gpu), b = rand({100}, DType::kFloat32, gpu);
  a = a.cpu();
  b = b.cpu();
  Tensor out;
  cuda::CUDAGraph graph;
  cuda::Stream side(0);
  {
    cuda::GraphCapture capture(graph, side);
    out = rand({100}, DType::kFloat32, gpu);
    capture.end();
  }
  default_generator(gpu).manual_seed(3);
  graph.replay();
  EXPECT_TRUE(equal(out.cpu(), a));
  graph.replay();
  EXPECT_TRUE(equal(out.cpu(), b));
}

TEST(GraphTest, GraphsShareAPool) {
  cuda::Stream side(0);
  const cuda::MempoolId_t pool = cuda::graph_pool_handle();
  Tensor x = ones({1 << 16}, DType::kFloat32, test_gpu(0)), y, z;
  cuda::CUDAGraph first, second;
  {
    cuda::GraphCapture capture(first, side, pool);
    y = x.cumsum(0);
    capture.end();
  }
  {
    cuda::GraphCapture capture(second, side, pool);
    z = y.sum();
    capture.end();
  }
  EXPECT_EQ(first.pool(), second.pool());
  x.fill_(2);
  first.replay();
  second.replay();
  EXPECT_EQ(y.select(0, -1).item(), 131072.0);
}

}  // namespace
}  // namespace tessera
