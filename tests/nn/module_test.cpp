// What modules do beside computing: names, state, copies, moves, printing.
#include <sstream>

#include "support/tensors.h"

namespace tessera {
namespace {

using namespace test;

struct Block : nn::Module {
  nn::Linear in = register_module("in", nn::Linear(3, 4));
  nn::BatchNorm1d norm = register_module("norm", nn::BatchNorm1d(4));
  Tensor scale = register_parameter("scale", ones({4}));
  Tensor forward(const Tensor& x) override { return norm(in(x)) * scale; }
};

struct Net : nn::Module {
  Block block = register_module("block", Block());
  nn::Sequential head =
      register_module("head", nn::Sequential{nn::ReLU(), nn::Linear(4, 2, {.bias = false})});
  Tensor forward(const Tensor& x) override { return head(block(x)); }
};

std::vector<std::string> names(const nn::StateDict& named) {
  std::vector<std::string> out;
  for (auto& [name, value] : named) out.push_back(name);
  return out;
}

using Names = std::vector<std::string>;

TEST(ModuleTest, NamesComeInPythonsOrder) {
  Net net;
  EXPECT_EQ(names(net.named_parameters()),
            (Names{"block.scale", "block.in.weight", "block.in.bias", "block.norm.weight",
                   "block.norm.bias", "head.1.weight"}));
  EXPECT_EQ(names(net.named_buffers()), (Names{"block.norm.running_mean", "block.norm.running_var",
                                               "block.norm.num_batches_tracked"}));
  EXPECT_EQ(names(net.state_dict()),
            (Names{"block.scale", "block.in.weight", "block.in.bias", "block.norm.weight",
                   "block.norm.bias", "block.norm.running_mean", "block.norm.running_var",
                   "block.norm.num_batches_tracked", "head.1.weight"}));
  EXPECT_EQ(net.parameters().size(), 6u);
  EXPECT_EQ(net.get_submodule("head.1").as<nn::Linear>().out_features, 2);
  EXPECT_TRUE(net.get_parameter("block.in.weight").is_same(net.block.in.weight()));
  EXPECT_ERROR(net.get_submodule("head.7"), kValue, "has no attribute `7`");
}

TEST(ModuleTest, ACopyIsTheSameModule) {
  nn::Linear layer(2, 2);
  nn::Linear other = layer;
  EXPECT_TRUE(other.is_same(layer));
  EXPECT_TRUE(other.weight().is_same(layer.weight()));
  other.eval();
  EXPECT_FALSE(layer.is_training());
  // Tied weights are one parameter.
  struct Tied : nn::Module {
    nn::Linear a = register_module("a", nn::Linear(2, 2, {.bias = false}));
    nn::Linear b = register_module("b", nn::Linear(2, 2, {.bias = false}));
  } tied;
  tied.b.weight() = tied.a.weight();
  EXPECT_EQ(names(tied.named_parameters()), (Names{"a.weight"}));
  EXPECT_EQ(names(tied.state_dict()), (Names{"a.weight", "b.weight"}));
}

TEST(ModuleTest, ACloneIsAnotherOne) {
  Net net;
  Net copy = nn::clone(net);
  EXPECT_FALSE(copy.is_same(net));
  EXPECT_EQ(names(copy.state_dict()), names(net.state_dict()));
  // Members and children of the copy are one.
  EXPECT_TRUE(copy.block.in.weight().is_same(copy.get_parameter("block.in.weight")));
  EXPECT_FALSE(copy.block.in.weight().is_same(net.block.in.weight()));
  EXPECT_TRUE(copy.block.in.weight().requires_grad());
  EXPECT_TRUE(copy.block.in.weight().is_leaf());
  EXPECT_EQ(values(copy.block.in.weight()), values(net.block.in.weight()));
  nn::init::zeros_(copy.block.in.weight());
  EXPECT_NE(values(copy.block.in.weight()), values(net.block.in.weight()));
  Tensor x = sample({5, 3});
  EXPECT_NE(values(copy(x)), values(net(x)));
  // After it, copies are shared again.
  EXPECT_TRUE(Net(net).is_same(net));
}

TEST(ModuleTest, LoadsWhatItSaved) {
  Net a, b;
  a(sample({6, 3}));
  nn::IncompatibleKeys keys = b.load_state_dict(a.state_dict());
  EXPECT_TRUE(keys.missing_keys.empty() && keys.unexpected_keys.empty());
  a.eval();
  b.eval();
  Tensor x = sample({4, 3}, DType::kFloat32, {}, 3);
  EXPECT_EQ(values(a(x)), values(b(x)));
  EXPECT_EQ(b.block.norm.num_batches_tracked().item<int64_t>(), 1);
}

TEST(ModuleTest, SavesToAFile) {
  std::string path = testing::TempDir() + "tessera_module_test.pt";
  Net a, b;
  nn::save(a, path);
  nn::load(b, path);
  EXPECT_EQ(values(a.block.in.weight()), values(b.block.in.weight()));
  nn::Linear other(3, 4);
  EXPECT_ERROR(nn::load(other, path), kRuntime, "Missing key(s) in state_dict: \"weight\"");
  std::remove(path.c_str());
}

TEST(ModuleTest, RefusesStateThatDoesNotFit) {
  nn::Sequential net{nn::Linear(3, 4), nn::Linear(4, 2)};
  nn::StateDict state = net.state_dict();
  state[0].second = zeros({4, 5});
  state[1].first = "0.offset";
  ErrorKind kind{};
  std::string text = error_of([&] { net.load_state_dict(state); }, &kind);
  EXPECT_EQ(text,
            "Error(s) in loading state_dict for Sequential:\n"
            "\tMissing key(s) in state_dict: \"0.bias\". \n"
            "\tUnexpected key(s) in state_dict: \"0.offset\". \n"
            "\tsize mismatch for 0.weight: copying a param with shape torch.Size([4, 5]) from "
            "checkpoint, the shape in current model is torch.Size([4, 3]).");
  EXPECT_EQ(kind, ErrorKind::kRuntime);
  state[0].second = zeros({4, 3});
  nn::IncompatibleKeys keys = net.load_state_dict(state, false);
  EXPECT_EQ(keys.missing_keys, (Names{"0.bias"}));
  EXPECT_EQ(keys.unexpected_keys, (Names{"0.offset"}));
  // Batches were not always counted.
  nn::BatchNorm1d norm(2);
  nn::StateDict old = norm.state_dict();
  old.pop_back();
  norm.load_state_dict(old);
}

TEST(ModuleTest, PrintsAsPyTorchDoes) {
  std::ostringstream out;
  out << Net();
  EXPECT_EQ(out.str(),
            "Net(\n"
            "  (block): Block(\n"
            "    (in): Linear(in_features=3, out_features=4, bias=True)\n"
            "    (norm): BatchNorm1d(4, eps=1e-05, momentum=0.1, affine=True, "
            "track_running_stats=True)\n"
            "  )\n"
            "  (head): Sequential(\n"
            "    (0): ReLU()\n"
            "    (1): Linear(in_features=4, out_features=2, bias=False)\n"
            "  )\n"
            ")");
  EXPECT_EQ((nn::ModuleList{nn::Tanh(), nn::Tanh(), nn::GELU()}).repr(),
            "ModuleList(\n  (0-1): 2 x Tanh()\n  (2): GELU(approximate='none')\n)");
}

TEST(ModuleTest, MovesInPlace) {
  Net net;
  Tensor weight = net.block.in.weight();
  optim::SGD optimizer(net.parameters());
  net(sample({5, 3})).sum().backward();
  net.to(DType::kFloat64);
  EXPECT_TRUE(weight.is_same(net.block.in.weight()));
  EXPECT_EQ(weight.dtype(), DType::kFloat64);
  EXPECT_EQ(weight.grad().dtype(), DType::kFloat64);
  EXPECT_EQ(net.block.norm.num_batches_tracked().dtype(), DType::kInt64);
  EXPECT_ERROR(net.to(DType::kInt32), kType, "only accepts floating point");
  Device gpu = test_gpu();
  net.to(gpu, DType::kFloat32);
  EXPECT_EQ(weight.device(), gpu);
  EXPECT_EQ(weight.grad().device(), gpu);
  EXPECT_EQ(net.block.norm.running_mean().device(), gpu);
  EXPECT_TRUE(optimizer.param_groups()[0].params[1].is_same(weight));
  net.cpu();
  EXPECT_TRUE(net.block.norm.running_mean().device().is_cpu());
}

TEST(ModuleTest, ModesAndGradients) {
  Net net;
  net.eval();
  EXPECT_FALSE(net.head[0].is_training());
  net.train();
  net(sample({5, 3})).sum().backward();
  EXPECT_TRUE(net.block.scale.grad().defined());
  net.zero_grad(false);
  EXPECT_EQ(values(net.block.scale.grad()), (std::vector<double>(4, 0.0)));
  net.zero_grad();
  EXPECT_FALSE(net.block.scale.grad().defined());
  net.requires_grad_(false);
  EXPECT_FALSE(net(sample({5, 3})).requires_grad());
  int layers = 0;
  net.apply([&](nn::Module& m) {
    if (auto* linear = m.as<nn::Linear>()) {
      nn::init::constant_(linear->weight(), 0.5);
      ++layers;
    }
  });
  EXPECT_EQ(layers, 2);
  EXPECT_EQ(values(net.block.in.weight()), std::vector<double>(12, 0.5));
}

TEST(ModuleTest, RefusesWrongRegistrations) {
  struct Empty : nn::Module {
  } m;
  EXPECT_ERROR(m.register_parameter("a.b", ones({1})), kValue, "name can't contain \".\"");
  EXPECT_ERROR(m.register_buffer("", ones({1})), kValue, "can't be empty string");
  m.register_buffer("x", ones({1}));
  EXPECT_ERROR(m.register_parameter("x", ones({1})), kValue, "attribute 'x' already exists");
  Tensor leaf = ones({1}).requires_grad_();
  EXPECT_ERROR(m.register_parameter("y", leaf * 2), kValue, "Cannot assign non-leaf Tensor");
  EXPECT_ERROR(m.forward(leaf), kNotImplemented, "Module [Empty]");
  // A child of a name that is there takes its place.
  nn::Linear a = m.register_module("fc", nn::Linear(1, 2));
  nn::Linear b = m.register_module("fc", nn::Linear(1, 3));
  EXPECT_EQ(m.named_children().size(), 1u);
  EXPECT_EQ(m.parameters()[0].size(0), 3);
  EXPECT_ERROR(m.get_submodule("fc").as<nn::ReLU>(), kType, "this module is a Linear");
}

TEST(ModuleTest, BuffersThatAreNotSaved) {
  struct WithCache : nn::Module {
    Tensor cache = register_buffer("cache", ones({2}), false);
    Tensor kept = register_buffer("kept", ones({2}));
  } m;
  EXPECT_EQ(names(m.state_dict()), (Names{"kept"}));
  EXPECT_EQ(names(m.named_buffers()), (Names{"cache", "kept"}));
  m.load_state_dict({{"kept", zeros({2})}});
  EXPECT_EQ(values(m.kept), (std::vector<double>{0, 0}));
}

TEST(ModuleTest, Containers) {
  nn::Sequential named{{"a", nn::Linear(2, 3)}, {"act", nn::Tanh()}};
  EXPECT_EQ(names(named.named_parameters()), (Names{"a.weight", "a.bias"}));
  named.append("b", nn::Linear(3, 1));
  EXPECT_EQ(named(sample({4, 2})).sizes(), (Dims{4, 1}));
  EXPECT_EQ(named.at<nn::Linear>(-1).out_features, 1);
  EXPECT_ERROR(named[3], kIndex, "index 3 is out of range");
  nn::ModuleDict dict{{"x", nn::Linear(1, 1)}};
  dict.insert("y", nn::ReLU());
  EXPECT_TRUE(dict.contains("y"));
  EXPECT_EQ(dict.keys(), (Names{"x", "y"}));
  EXPECT_EQ(values(dict["y"](make({2}, {-1, 1}))), (std::vector<double>{0, 1}));
}

TEST(ModuleTest, ClipsGradients) {
  nn::Linear layer(2, 2);
  (layer(sample({3, 2})) * 100.0).sum().backward();
  double before = value(nn::utils::clip_grad_norm_(layer.parameters(), 1.0));
  EXPECT_GT(before, 1.0);
  EXPECT_NEAR(value(nn::utils::clip_grad_norm_(layer.parameters(), 1.0)), 1.0, 1e-4);
  nn::utils::clip_grad_value_(layer.parameters(), 0.01);
  for (double g : values(layer.weight().grad())) EXPECT_LE(std::abs(g), 0.01f);
  Tensor flat = nn::utils::parameters_to_vector(layer.parameters());
  EXPECT_EQ(flat.sizes(), (Dims{6}));
  nn::utils::vector_to_parameters(zeros({6}), layer.parameters());
  EXPECT_EQ(values(layer.bias()), (std::vector<double>{0, 0}));
}

}  // namespace
}  // namespace tessera
