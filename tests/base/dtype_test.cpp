// Promotion and casting against PyTorch's tables, written out.
#include "tessera/base/dtype.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

constexpr DType b1 = DType::kBool, u1 = DType::kUInt8, i1 = DType::kInt8, i2 = DType::kInt16,
                i4 = DType::kInt32, i8 = DType::kInt64, f2 = DType::kFloat16, bf = DType::kBFloat16,
                f4 = DType::kFloat32, f8 = DType::kFloat64, c6 = DType::kComplex64,
                c1 = DType::kComplex128;

// c10/core/ScalarType.cpp, promoteTypes, without quantised types.
constexpr DType kPromotion[kNumDTypes][kNumDTypes] = {
    /*       b1  u1  i1  i2  i4  i8  f2  bf  f4  f8  c6  c1 */
    /* b1 */ {b1, u1, i1, i2, i4, i8, f2, bf, f4, f8, c6, c1},
    /* u1 */ {u1, u1, i2, i2, i4, i8, f2, bf, f4, f8, c6, c1},
    /* i1 */ {i1, i2, i1, i2, i4, i8, f2, bf, f4, f8, c6, c1},
    /* i2 */ {i2, i2, i2, i2, i4, i8, f2, bf, f4, f8, c6, c1},
    /* i4 */ {i4, i4, i4, i4, i4, i8, f2, bf, f4, f8, c6, c1},
    /* i8 */ {i8, i8, i8, i8, i8, i8, f2, bf, f4, f8, c6, c1},
    /* f2 */ {f2, f2, f2, f2, f2, f2, f2, f4, f4, f8, c6, c1},
    /* bf */ {bf, bf, bf, bf, bf, bf, f4, bf, f4, f8, c6, c1},
    /* f4 */ {f4, f4, f4, f4, f4, f4, f4, f4, f4, f8, c6, c1},
    /* f8 */ {f8, f8, f8, f8, f8, f8, f8, f8, f8, f8, c1, c1},
    /* c6 */ {c6, c6, c6, c6, c6, c6, c6, c6, c6, c1, c6, c1},
    /* c1 */ {c1, c1, c1, c1, c1, c1, c1, c1, c1, c1, c1, c1},
};

TEST(DTypeTest, PromotesAsPyTorch) {
  for (int a = 0; a < kNumDTypes; ++a)
    for (int b = 0; b < kNumDTypes; ++b)
      EXPECT_EQ(promote(DType(a), DType(b)), kPromotion[a][b])
          << dtype_name(DType(a)) << " with " << dtype_name(DType(b));
}

TEST(DTypeTest, CastsKeepTheKind) {
  for (int a = 0; a < kNumDTypes; ++a) {
    for (int b = 0; b < kNumDTypes; ++b) {
      DType from = DType(a), to = DType(b);
      int kind_from = from == b1 ? 0 : from <= i8 ? 1 : from <= f8 ? 2 : 3;
      int kind_to = to == b1 ? 0 : to <= i8 ? 1 : to <= f8 ? 2 : 3;
      EXPECT_EQ(can_cast(from, to), kind_from <= kind_to)
          << dtype_name(from) << " to " << dtype_name(to);
    }
  }
}

TEST(DTypeTest, SizesNamesAndKinds) {
  const size_t sizes[] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16};
  for (int t = 0; t < kNumDTypes; ++t) {
    EXPECT_EQ(itemsize(DType(t)), sizes[t]);
    EXPECT_EQ(is_floating(DType(t)), t >= 6 && t < 10);
    EXPECT_EQ(is_complex(DType(t)), t >= 10);
    EXPECT_EQ(is_integral(DType(t), true), t < 6);
    EXPECT_EQ(is_integral(DType(t), false), t > 0 && t < 6);
    EXPECT_LE(itemsize(DType(t)), reg_size(reg_class(DType(t))));
  }
  EXPECT_EQ(cat(f4, " ", b1, " ", bf), "torch.float32 torch.bool torch.bfloat16");
}

}  // namespace
}  // namespace tessera
