// Logic, and operators on the bits of integers.
#include "tessera/ops/gradient.h"
#include "tessera/ops/loops.h"

namespace tessera {

TS_BODY(logical_and, "tt", 'b', 0, (bool), return a && b;)
TS_OP({
    .schema = "logical_and(Tensor self, Tensor other) -> Tensor",
    .doc = "True where both are not zero.",
    .example = "torch.logical_and(torch.tensor([True, False]), torch.tensor([True, True]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kBool,
    .forms = kFunction | kMethod | kInplace | kOut,
    .body = &logical_and_body,
    .not_differentiable = true,
    .samples = {{"T(3, 4), T(3, 4)"}, {"T(3, 4), B(4)"}},
});

TS_BODY(logical_or, "tt", 'b', 0, (bool), return a || b;)
TS_OP({
    .schema = "logical_or(Tensor self, Tensor other) -> Tensor",
    .doc = "True where one is not zero.",
    .example = "torch.logical_or(torch.tensor([True, False]), torch.tensor([True, True]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kBool,
    .forms = kFunction | kMethod | kInplace | kOut,
    .body = &logical_or_body,
    .not_differentiable = true,
    .samples = {{"T(3, 4), T(3, 4)"}, {"T(3, 4), B(4)"}},
});

TS_BODY(logical_xor, "tt", 'b', 0, (bool), return a != b;)
TS_OP({
    .schema = "logical_xor(Tensor self, Tensor other) -> Tensor",
    .doc = "True where exactly one is not zero.",
    .example = "torch.logical_xor(torch.tensor([True, False]), torch.tensor([True, True]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kBool,
    .forms = kFunction | kMethod | kInplace | kOut,
    .body = &logical_xor_body,
    .not_differentiable = true,
    .samples = {{"T(3, 4), T(3, 4)"}, {"T(3, 4), B(4)"}},
});

TS_BODY(logical_not, "t", 'b', 0, (bool), return !a;)
TS_OP({
    .schema = "logical_not(Tensor self) -> Tensor",
    .doc = "True where an element is zero.",
    .example = "torch.logical_not(torch.tensor([0, 1, 2]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kBool,
    .forms = kFunction | kMethod | kInplace | kOut,
    .body = &logical_not_body,
    .not_differentiable = true,
    .samples = {{"T(3, 4)"}},
});

TS_BODY(
    bitwise_not, "t", 't', 0, (int64_t, bool),
    if constexpr (std::is_same_v<T, bool>) { return !a; } else { return ~a; })
TS_OP({
    .schema = "bitwise_not(Tensor self) -> Tensor",
    .doc = "Each element with all bits changed; a bool negated.",
    .example = "torch.bitwise_not(torch.tensor([0, 1, -2]))",
    .kind = Kind::kPointwise,
    .forms = kFunction | kMethod | kInplace | kOut,
    .body = &bitwise_not_body,
    .exact_out = true,
    .not_differentiable = true,
    .samples = {{"B(3, 4)"}, {"I([5, -3], 99)"}},
});
// Python's ~ has words of its own for what has no bits.
TS_OP({
    .schema = "_invert(Tensor self) -> Tensor",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      TS_CHECK_TYPE(is_integral(c.dtype_of(0), true),
                    "~ (operator.invert) is only implemented on integer and Boolean-type tensors");
      return op::bitwise_not(c.tensor(0));
    },
    .not_differentiable = true,
    .operators = "__invert__",
});

TS_BODY(bitwise_and, "tt", 't', 0, (int64_t, bool), return static_cast<T>(a & b);)
TS_OP({
    .schema = "bitwise_and(Tensor self, Tensor|Scalar other) -> Tensor",
    .doc = "The bits set in both.",
    .example = "torch.bitwise_and(torch.tensor([1, 6]), 2)",
    .kind = Kind::kPointwise,
    .forms = kFunction | kMethod | kInplace | kOut,
    .body = &bitwise_and_body,
    .not_differentiable = true,
    .operators = "__and__ __rand__ __iand__",
    .samples = {{"I([5, -3], 99), I([3, 2], 99)"}, {"I([5, -3], 99), 2"}},
});
TS_OP({
    .schema = "bitwise_and(Number self, Tensor other) -> Tensor",
    .doc = "The bits set in both.",
    .example = "torch.bitwise_and(6, torch.tensor([1, 2]))",
    .kind = Kind::kPointwise,
    .forms = kFunction,
    .body = &bitwise_and_body,
    .not_differentiable = true,
    .samples = {{"6, I([1, 2], 99)"}},
});

TS_BODY(bitwise_or, "tt", 't', 0, (int64_t, bool), return static_cast<T>(a | b);)
TS_OP({
    .schema = "bitwise_or(Tensor self, Tensor|Scalar other) -> Tensor",
    .doc = "The bits set in one of the two.",
    .example = "torch.bitwise_or(torch.tensor([1, 6]), 2)",
    .kind = Kind::kPointwise,
    .forms = kFunction | kMethod | kInplace | kOut,
    .body = &bitwise_or_body,
    .not_differentiable = true,
    .operators = "__or__ __ror__ __ior__",
    .samples = {{"I([5, -3], 99), I([3, 2], 99)"}, {"I([5, -3], 99), 2"}},
});
TS_OP({
    .schema = "bitwise_or(Number self, Tensor other) -> Tensor",
    .doc = "The bits set in one of the two.",
    .example = "torch.bitwise_or(6, torch.tensor([1, 2]))",
    .kind = Kind::kPointwise,
    .forms = kFunction,
    .body = &bitwise_or_body,
    .not_differentiable = true,
    .samples = {{"6, I([1, 2], 99)"}},
});

TS_BODY(bitwise_xor, "tt", 't', 0, (int64_t, bool), return static_cast<T>(a ^ b);)
TS_OP({
    .schema = "bitwise_xor(Tensor self, Tensor|Scalar other) -> Tensor",
    .doc = "The bits set in exactly one of the two.",
    .example = "torch.bitwise_xor(torch.tensor([1, 6]), 2)",
    .kind = Kind::kPointwise,
    .forms = kFunction | kMethod | kInplace | kOut,
    .body = &bitwise_xor_body,
    .not_differentiable = true,
    .operators = "__xor__ __rxor__ __ixor__",
    .samples = {{"I([5, -3], 99), I([3, 2], 99)"}, {"I([5, -3], 99), 2"}},
});
TS_OP({
    .schema = "bitwise_xor(Number self, Tensor other) -> Tensor",
    .doc = "The bits set in exactly one of the two.",
    .example = "torch.bitwise_xor(6, torch.tensor([1, 2]))",
    .kind = Kind::kPointwise,
    .forms = kFunction,
    .body = &bitwise_xor_body,
    .not_differentiable = true,
    .samples = {{"6, I([1, 2], 99)"}},
});

TS_BODY(bitwise_left_shift, "tt", 't', 0, (int64_t), return shift_left(a, b);)
TS_OP({
    .schema = "bitwise_left_shift(Tensor self, Tensor|Scalar other) -> Tensor",
    .doc = "The bits moved up: self * 2 ** other.",
    .example = "torch.bitwise_left_shift(torch.tensor([1, 6]), 2)",
    .kind = Kind::kPointwise,
    .forms = kFunction | kMethod | kInplace | kOut,
    .check = refuse_bool,
    .body = &bitwise_left_shift_body,
    .not_differentiable = true,
    .operators = "__lshift__ __ilshift__",
    .samples = {{"I([5, -3], 99), I([3, 2], 99)"}, {"I([5, -3], 99), 2"}},
});
TS_OP({
    .schema = "bitwise_left_shift(Number self, Tensor other) -> Tensor",
    .doc = "The bits moved up: self * 2 ** other.",
    .example = "torch.bitwise_left_shift(6, torch.tensor([1, 2]))",
    .kind = Kind::kPointwise,
    .forms = kFunction,
    .check = refuse_bool,
    .body = &bitwise_left_shift_body,
    .not_differentiable = true,
    .operators = "__rlshift__",
    .samples = {{"6, I([1, 2], 99)"}},
});

TS_BODY(bitwise_right_shift, "tt", 't', 0, (int64_t), return shift_right(a, b);)
TS_OP({
    .schema = "bitwise_right_shift(Tensor self, Tensor|Scalar other) -> Tensor",
    .doc = "The bits moved down, the sign kept: self / 2 ** other, rounded down.",
    .example = "torch.bitwise_right_shift(torch.tensor([1, 6]), 2)",
    .kind = Kind::kPointwise,
    .forms = kFunction | kMethod | kInplace | kOut,
    .check = refuse_bool,
    .body = &bitwise_right_shift_body,
    .not_differentiable = true,
    .operators = "__rshift__ __irshift__",
    .samples = {{"I([5, -3], 99), I([3, 2], 99)"}, {"I([5, -3], 99), 2"}},
});
TS_OP({
    .schema = "bitwise_right_shift(Number self, Tensor other) -> Tensor",
    .doc = "The bits moved down, the sign kept: self / 2 ** other, rounded down.",
    .example = "torch.bitwise_right_shift(6, torch.tensor([1, 2]))",
    .kind = Kind::kPointwise,
    .forms = kFunction,
    .check = refuse_bool,
    .body = &bitwise_right_shift_body,
    .not_differentiable = true,
    .operators = "__rrshift__",
    .samples = {{"6, I([1, 2], 99)"}},
});

}  // namespace tessera
