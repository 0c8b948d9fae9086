#include "tessera/fuse/pointwise.h"

#include "tessera/driver/current.h"

namespace tessera::fuse {

namespace {
// Apart from compute_class(), which would otherwise keep a string's place on its stack.
[[noreturn, gnu::noinline]] void raise_no_class(const Op& op, DType common) {
  raise(ErrorKind::kNotImplemented, cat("\"", op.name, "\" is not implemented for ", common));
}
}  // namespace

RegClass compute_class(const Op& op, const PointwiseBody& body, DType common) {
  RegClass cls = reg_class(common);
  if (body.tiles[0][static_cast<int>(cls)]) return cls;
  // Integers hold bools: the sum of two is their "or" once rounded to bool again.
  if (cls == RegClass::kB8 && body.tiles[0][static_cast<int>(RegClass::kI64)])
    return RegClass::kI64;
  raise_no_class(op, common);
}

uint16_t ProgramBuilder::convert(Source s, DType from, DType to) {
  Instr& i = instrs[num_instrs];
  i.kind = Instr::Kind::kConvert;
  i.cls = reg_class(from);
  i.result_cls = reg_class(to);
  i.round_to = to;
  i.num_sources = 1;
  i.num_scalars = 0;
  i.first_scalar = 0;
  i.body = nullptr;
  i.sources[0] = s;
  return static_cast<uint16_t>(num_instrs++);
}

uint16_t ProgramBuilder::immediate(const Scalar& s, RegClass cls) {
  Imm& v = immediates[num_immediates];
  v.c = c128(0);
  switch (cls) {
    case RegClass::kF32:
      v.f32 = s.is_double() ? static_cast<float>(s.d) : static_cast<float>(s.i);
      break;
    case RegClass::kF64:
      v.f64 = s.to_double();
      break;
    case RegClass::kI64:
      v.i64 = s.to_int();
      break;
    case RegClass::kB8:
      v.b8 = !s.is_zero();
      break;
    case RegClass::kC64:
      v.c32 = c64(s.to_complex());
      break;
    case RegClass::kC128:
      v.c = s.to_complex();
      break;
  }
  immediate_cls[num_immediates] = cls;
  return static_cast<uint16_t>(num_immediates++);
}

namespace {

// The dtype whose register form is `cls` itself: rounding to it changes nothing.
DType natural_dtype(RegClass cls) {
  constexpr DType types[] = {DType::kFloat32, DType::kFloat64,   DType::kInt64,
                             DType::kBool,    DType::kComplex64, DType::kComplex128};
  return types[static_cast<int>(cls)];
}

// The class of a source or result that a body's pattern names by a letter.
RegClass letter_class(char letter, RegClass cls) {
  switch (letter) {
    case 'b':
      return RegClass::kB8;
    case 'r':
      if (cls == RegClass::kC64) return RegClass::kF32;
      return cls == RegClass::kC128 ? RegClass::kF64 : cls;
    case 'c':
      if (cls == RegClass::kF32) return RegClass::kC64;
      return cls == RegClass::kF64 ? RegClass::kC128 : cls;
    default:
      return cls;
  }
}

}  // namespace

uint16_t ProgramBuilder::lower(const PointwiseBody& body, RegClass cls, DType common, DType result,
                               DType out, const LoweredSource* sources, int num_sources,
                               const Scalar* scalars, int num_scalars) {
  Source converted[kMaxSources];
  for (int k = 0; k < num_sources; ++k) {
    const LoweredSource& s = sources[k];
    RegClass want_cls = letter_class(body.sources[k], cls);
    if (s.immediate) {
      converted[k] = {SourceKind::kImmediate, immediate(s.scalar, want_cls)};
      continue;
    }
    DType want = want_cls == cls && !s.wide ? common : natural_dtype(want_cls);
    Source from = s.source;
    DType have = s.dtype;
    if (have != want) {
      from = {SourceKind::kValue, convert(from, have, want)};
      have = want;
    }
    if (reg_class(have) != want_cls)
      from = {SourceKind::kValue, convert(from, have, natural_dtype(want_cls))};
    converted[k] = from;
  }
  uint16_t first_scalar = static_cast<uint16_t>(num_immediates);
  for (int k = 0; k < num_scalars; ++k) immediate(scalars[k], cls);

  RegClass made = letter_class(body.result, cls);
  bool in_place_class = made == reg_class(result);
  Instr& i = instrs[num_instrs];
  i.kind = Instr::Kind::kBody;
  i.cls = cls;
  i.result_cls = made;
  i.round_to = in_place_class ? result : natural_dtype(made);
  i.num_sources = static_cast<uint8_t>(num_sources);
  i.num_scalars = static_cast<uint8_t>(num_scalars);
  i.first_scalar = first_scalar;
  i.body = &body;
  for (int k = 0; k < num_sources; ++k) i.sources[k] = converted[k];
  uint16_t value = static_cast<uint16_t>(num_instrs++);
  if (!in_place_class) value = convert({SourceKind::kValue, value}, natural_dtype(made), result);
  if (result != out) value = convert({SourceKind::kValue, value}, result, out);
  return value;
}

void merge_dims(Dims& sizes, std::span<Dims> strides, size_t leading) {
  int n = 0;
  for (int d = 0; d < sizes.ndim(); ++d) {
    if (sizes[d] == 1) continue;
    sizes[n] = sizes[d];
    for (Dims& s : strides) s[n] = s[d];
    ++n;
  }
  // Largest stride of the leading operand first (insertion sort: n is small and mostly sorted).
  const Dims& lead = strides[leading];
  for (int i = 1; i < n; ++i)
    for (int j = i; j > 0 && lead[j] > lead[j - 1]; --j) {
      std::swap(sizes[j - 1], sizes[j]);
      for (Dims& s : strides) std::swap(s[j - 1], s[j]);
    }

  int kept = 0;
  for (int d = 0; d < n; ++d) {
    bool merged = kept > 0;
    for (size_t k = 0; merged && k < strides.size(); ++k)
      merged = strides[k][kept - 1] == strides[k][d] * sizes[d];
    if (merged) {
      sizes[kept - 1] *= sizes[d];
      for (Dims& s : strides) s[kept - 1] = s[d];
    } else {
      sizes[kept] = sizes[d];
      for (Dims& s : strides) s[kept] = s[d];
      ++kept;
    }
  }
  if (kept == 0) {  // a single element
    sizes.resize(1);
    sizes[0] = 1;
    for (Dims& s : strides) {
      s.resize(1);
      s[0] = 0;
    }
    return;
  }
  sizes.resize(static_cast<size_t>(kept));
  for (Dims& s : strides) s.resize(static_cast<size_t>(kept));
}

void run_now(const Pointwise& p, const TensorBase& out) {
  if (out.numel() == 0) return;
  Instr instrs[kMaxInstrsPerOp];
  Imm immediates[kMaxImmediatesPerOp];
  RegClass immediate_cls[kMaxImmediatesPerOp];
  ProgramBuilder b{instrs, immediates, immediate_cls};
  LoweredSource lowered[kMaxSources];
  Operand inputs[kMaxSources];
  const TensorBase* tensors[kMaxSources];
  int num_inputs = 0;
  bool dense = out.is_contiguous();
  for (int k = 0; k < p.num_sources; ++k) {
    const PointwiseSource& s = p.sources[k];
    if (!s.tensor) {
      lowered[k].immediate = true;
      lowered[k].scalar = s.immediate;
      continue;
    }
    ensure_arrived(s.tensor->storage());
    lowered[k].source = {SourceKind::kInput, static_cast<uint16_t>(num_inputs)};
    lowered[k].dtype = s.tensor->dtype();
    lowered[k].wide = s.wide;
    dense &= s.tensor->is_contiguous() && s.tensor->numel() == out.numel();
    inputs[num_inputs] = {s.tensor->raw(), s.tensor->dtype(), nullptr};
    tensors[num_inputs++] = s.tensor;
  }
  RegClass cls = compute_class(*p.op, *p.body, p.common);
  uint16_t value = b.lower(*p.body, cls, p.common, p.result, out.dtype(), lowered, p.num_sources,
                           p.scalars, p.num_scalars);

  ensure_arrived(out.storage());
  GroupOutput output{{out.raw(), out.dtype(), nullptr}, value};
  GroupProgram program{1,      nullptr, out.numel(), num_inputs,       inputs,     b.num_instrs,
                       instrs, 1,       &output,     b.num_immediates, immediates, immediate_cls};
  const Backend& backend = backend_of(out.device());
  if (dense) {
    int64_t size = out.numel();
    static constexpr int64_t kOne = 1;
    program.sizes = &size;
    for (int k = 0; k < num_inputs; ++k) inputs[k].strides = &kOne;
    output.to.strides = &kOne;
    check(backend.run_group(exec_for(out.device()), &program), p.op->name.c_str());
    return;
  }
  Dims sizes = out.sizes();
  Dims strides[kMaxSources + 1];
  strides[0] = out.strides();
  for (int k = 0; k < num_inputs; ++k)
    strides[k + 1] = broadcast_strides(tensors[k]->sizes(), tensors[k]->strides(), out.sizes());
  merge_dims(sizes, {strides, static_cast<size_t>(num_inputs) + 1});
  program.ndim = sizes.ndim();
  program.sizes = sizes.data();
  output.to.strides = strides[0].data();
  for (int k = 0; k < num_inputs; ++k) inputs[k].strides = strides[k + 1].data();
  check(backend.run_group(exec_for(out.device()), &program), p.op->name.c_str());
}

}  // namespace tessera::fuse
