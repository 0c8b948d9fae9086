// The bit of a tensor's reference count that says whether the tensor owns its Python object.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <thread>

#include "tessera/tensor/tensor.h"

namespace tessera {
namespace {

std::atomic<int> g_released{0};
void* g_object = nullptr;

using Release = void (*)(void*);

// The library's own variable: the linker gives an executable a copy of it.
Release& release_hook() {
  static void* library = dlopen("libtessera.so", RTLD_NOW | RTLD_NOLOAD);
  return *static_cast<Release*>(dlsym(library, "_ZN7tessera21release_python_objectE"));
}

class OwnershipTest : public ::testing::Test {
 protected:
  void SetUp() override {
    before_ = release_hook();
    release_hook() = [](void* o) {
      g_object = o;
      g_released.fetch_add(1);
    };
    g_released = 0;
    made_.impl()->python = this;
  }
  void TearDown() override { release_hook() = before_; }
  const TensorImpl& impl() const { return *made_.impl(); }

  TensorBase made_ = new_unallocated({1}, DType::kFloat32, Device{});  // the object's reference

 private:
  Release before_ = nullptr;
};

TEST_F(OwnershipTest, TheLastOtherReferenceReleasesTheObject) {
  EXPECT_FALSE(impl().own_python());  // there is no other owner
  TensorBase other = made_, third = made_;
  EXPECT_TRUE(impl().own_python());
  EXPECT_FALSE(impl().own_python());
  EXPECT_EQ(impl().use_count(), 3u);
  third = TensorBase();
  EXPECT_FALSE(g_released);
  EXPECT_TRUE(impl().is_held_once());
  other = TensorBase();
  EXPECT_EQ(g_released, 1);
  EXPECT_EQ(g_object, this);
  EXPECT_EQ(impl().use_count(), 1u);
  // The bit is clear: further owners come and go.
  other = made_;
  other = TensorBase();
  EXPECT_EQ(g_released, 1);
}

TEST_F(OwnershipTest, ToPythonAndBack) {
  TensorBase other = made_;
  EXPECT_FALSE(impl().disown_python());
  EXPECT_TRUE(impl().own_python());
  EXPECT_TRUE(impl().disown_python());
  EXPECT_FALSE(impl().disown_python());
  other = TensorBase();
  EXPECT_EQ(g_released, 0);
  other = made_;
  EXPECT_TRUE(impl().own_python());
  other = TensorBase();
  EXPECT_EQ(g_released, 1);
}

TEST_F(OwnershipTest, OneOfSeveralThreadsReleasesIt) {
  for (int round = 1; round <= 300; ++round) {
    std::vector<TensorBase> owners(4, made_);
    EXPECT_TRUE(impl().own_python());
    std::vector<std::thread> threads;
    for (TensorBase& owner : owners)
      threads.emplace_back([&owner] {
        TensorBase again = owner;  // as many copies as an operator makes
        owner = TensorBase();
      });
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(g_released, round);
    EXPECT_EQ(impl().use_count(), 1u);
  }
}

TEST_F(OwnershipTest, EitherPythonOrTheLastOwnerTakesTheObject) {
  int taken = 0;
  const int rounds = 2000;
  for (int i = 0; i < rounds; ++i) {
    TensorBase owner = made_;
    EXPECT_TRUE(impl().own_python());
    std::thread drops([&owner] { owner = TensorBase(); });
    taken += impl().disown_python();
    drops.join();
    EXPECT_EQ(taken + g_released, i + 1);
  }
}

}  // namespace
}  // namespace tessera
