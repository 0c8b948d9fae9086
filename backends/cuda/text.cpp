#include "text.h"

#include <cstring>

#include "codegen.h"
#include "prelude.h"
#include "walk.h"

namespace tessera::cuda {
namespace {

constexpr const char* kPhilox =
#include "philox_text.inc"
    ;

// What every such kernel may use.
constexpr const char* kCommon = R"(
TS_FN int64_t thread() { return (int64_t)blockIdx.x * blockDim.x + threadIdx.x; }
TS_FN int64_t threads() { return (int64_t)gridDim.x * blockDim.x; }
// Several threads may find wrong data: any one of them is reported. `kind` is 1 + a DataError.
struct ErrorSlot { int kind; int dim; long long index; long long size; };
TS_FN void report(ErrorSlot* where, int kind, int64_t index, int64_t size, int64_t dim) {
  volatile ErrorSlot* slot = where;
  if (slot->kind != 0) return;
  slot->dim = (int)dim;
  slot->index = index;
  slot->size = size;
  __threadfence_system();
  slot->kind = kind;
}
)";

std::string type_text(const char* name, DType t) {
  RegClass c = reg_class(t);
  std::string out = std::string("struct ") + name + " {\n  typedef " + storage_type(t) +
                    " S; typedef " + register_type(c) + " A;\n  TS_FN A ld(S s) { return " +
                    load_text(t, "s") + "; }\n  TS_FN S st(A a) { return " + store_text(t, "a") +
                    "; }\n";
  for (int from = 0; from < kNumRegClasses; ++from) {
    auto f = static_cast<RegClass>(from);
    if (is_complex(f) && !is_complex(c)) continue;
    out += std::string("  TS_FN A take(") + register_type(f) + " x) { return " +
           convert_text(f, t, "x") + "; }\n";
  }
  return out + "};\n";
}

const char* bytes_type(int64_t bytes) {
  switch (bytes) {
    case 1:
      return "unsigned char";
    case 2:
      return "unsigned short";
    case 4:
      return "unsigned int";
    case 8:
      return "unsigned long long";
    default:
      return "uint4";
  }
}

}  // namespace

std::string full_text(const TextKernel& k, const Def* defs, size_t n, const std::string& joins) {
  bool complex = false;
  for (size_t i = 0; i < n; ++i)
    complex |=
        defs[i].kind == Def::Kind::kType && tessera::is_complex(static_cast<DType>(defs[i].value));
  std::string out = (k.philox ? kPhilox : "") + prelude_text(complex) + kCommon + kWalkText;
  if (!complex) {  // so that `take` can name them
    out += "template <class R> struct Complex;\n";
  }
  for (size_t i = 0; i < n; ++i) {
    const Def& def = defs[i];
    if (def.kind == Def::Kind::kNumber)
      out += std::string("enum : int64_t { ") + def.name + " = " + std::to_string(def.value) +
             "L };\n";
    else if (def.kind == Def::Kind::kBytes)
      out += std::string("typedef ") + bytes_type(def.value) + " " + def.name + ";\n";
    else
      out += type_text(def.name, static_cast<DType>(def.value));
  }
  return out + joins + k.text + "\n}\n";
}

Status find_text_kernel(Device& d, const TextKernel& k, std::initializer_list<Def> defs,
                        const Kernel** out, const Joins* joins, int vec) {
  Hasher h(static_cast<uint64_t>(d.ordinal) << 8 | 9);
  h.add(std::string_view(k.entry));
  for (const Def& def : defs)
    h.add(static_cast<uint64_t>(def.value) << 2 | static_cast<uint64_t>(def.kind));
  if (joins) joins->add_to(h, vec);
  return get_kernel(d, h.finish(), k.entry, k.entry, out, [&] {
    return full_text(k, defs.begin(), defs.size(), joins ? joins->text(vec) : kNoJoins);
  });
}

namespace {

Status launch_found(Device& d, CUstream stream, const TextKernel& k, const Kernel& kernel,
                    const Grid& grid, const void* params) {
  if (!kernel.function) return ok();  // it is being compiled: see PutOff
  // What a kernel has of its own counts towards the 48 KiB it may have unasked.
  if (grid.shared > 16 * 1024)
    TS_TRY(check(d,
                 driver().cuFuncSetAttribute(
                     kernel.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, grid.shared),
                 k.entry));
  return launch(d, stream, kernel, grid, params, k.entry);
}

}  // namespace

Status launch_text(Device& d, CUstream stream, const TextKernel& k, std::initializer_list<Def> defs,
                   const Grid& grid, const void* params) {
  const Kernel* kernel = nullptr;
  TS_TRY(find_text_kernel(d, k, defs, &kernel));
  return launch_found(d, stream, k, *kernel, grid, params);
}

Status launch_text(Device& d, CUstream stream, const TextKernel& k, std::initializer_list<Def> defs,
                   const Grid& grid, const void* params, size_t size, const Joins* joins, int vec) {
  if (!joins) return launch_text(d, stream, k, defs, grid, params);
  const Kernel* kernel = nullptr;
  TS_TRY(find_text_kernel(d, k, defs, &kernel, joins, vec));
  uint64_t words[kMaxParamWords];
  std::memcpy(words, params, size);
  if (size % sizeof(uint64_t) != 0 || !joins->put(words, static_cast<int>(size / sizeof(uint64_t))))
    return fail(Code::kUnsupported, "%s: too much joins it", k.entry);
  return launch_found(d, stream, k, *kernel, grid, words);
}

}  // namespace tessera::cuda
