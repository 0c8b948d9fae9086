// Stands in for libcudnn: the graph API of one convolution, computed one element after another, and
// of graphs of matrix products, reductions and pointwise operations (cudnn_steps.cpp).
// Engine 0 uses tensor cores and is not deterministic, engine 1 is neither, engine 2 cannot be
// built: so that choosing among them is seen.
#include "cudnn.h"

extern "C" int emulator_enqueue(void* stream, std::function<int()>* work);

namespace emulator {
namespace {

constexpr int64_t kEngines = 3, kWorkspace = 512;

size_t bytes_of(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_BOOLEAN:
    case CUDNN_TYPE_CHAR:
      return 1;
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return 8;
    default:
      return 4;  // floats and enumerations
  }
}

// Attributes of an operation by its kind: forward, filter, data (as their numbers follow).
struct Names {
  int x, w, y, convolution, alpha, beta;
};
const Names* names_of(cudnnBackendDescriptorType_t type) {
  static const Names forward{704, 703, 705, 702, 700, 701}, data{710, 709, 711, 708, 706, 707},
      filter{716, 715, 717, 714, 712, 713};
  switch (type) {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
      return &forward;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
      return &data;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      return &filter;
    default:
      return nullptr;
  }
}

// Sizes that go together, dtypes the same.
bool fits(const Descriptor& operation, const Names& n) {
  const Descriptor *x = operation.part(n.x), *w = operation.part(n.w), *y = operation.part(n.y),
                   *c = operation.part(n.convolution);
  auto sx = x->all<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS),
       sw = w->all<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS),
       sy = y->all<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS);
  const size_t spatial = static_cast<size_t>(c->one<int64_t>(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS));
  if (sx.size() != spatial + 2 || sw.size() != sx.size() || sy.size() != sx.size()) return false;
  if (sx[0] != sy[0] || sw[0] != sy[1] || sx[1] % sw[1] || sy[1] % (sx[1] / sw[1])) return false;
  auto stride = c->all<int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES),
       before = c->all<int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS),
       after = c->all<int64_t>(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS),
       dilation = c->all<int64_t>(CUDNN_ATTR_CONVOLUTION_DILATIONS);
  for (size_t d = 0; d < spatial; ++d)
    if (sy[d + 2] !=
        (sx[d + 2] + before[d] + after[d] - dilation[d] * (sw[d + 2] - 1) - 1) / stride[d] + 1)
      return false;
  auto type = x->one<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE);
  return type == w->one<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE) &&
         type == y->one<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE);
}

cudnnStatus_t finalized(Descriptor& d) {
  bool complete = true;
  switch (d.type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
      complete = d.has({CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_ATTR_TENSOR_DIMENSIONS,
                        CUDNN_ATTR_TENSOR_STRIDES, CUDNN_ATTR_TENSOR_UNIQUE_ID,
                        CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT});
      break;
    case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR:
      complete = d.has({100, 101, 102, 103, 104, 105, 106}) &&
                 d.one<int>(CUDNN_ATTR_CONVOLUTION_CONV_MODE) == CUDNN_CROSS_CORRELATION;
      break;
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
      complete = d.has({800, 801});
      if (complete && !names_of(d.part(801)->type)) complete = read_steps(d) != nullptr;
      break;
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
      complete = d.has({200, 201});
      break;
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
      complete = d.has({400, 401});
      if (complete && d.part(401)->engine == 2) return CUDNN_STATUS_NOT_SUPPORTED;
      break;
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
      complete = d.has({1000, 1001, 1003});
      break;
    default:
      if (const Names* n = names_of(d.type))
        complete = d.has({n->x, n->w, n->y, n->convolution, n->alpha, n->beta}) && fits(d, *n);
  }
  d.ready = complete;
  return complete ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

// ---- computing ---------------------------------------------------------------------------------

struct Problem {
  int kind;  // 0 forward, 1 data, 2 filter
  cudnnDataType_t type;
  // Three places each, leading ones of size one.
  int64_t x[5], w[5], y[5], xs[5], ws[5], ys[5], stride[3], padding[3], dilation[3];
  void *px, *pw, *py;
};

template <class T, class A>
void convolve(const Problem& p) {
  T *x = static_cast<T*>(p.px), *w = static_cast<T*>(p.pw), *y = static_cast<T*>(p.py);
  auto numel = [](const int64_t* s) { return s[0] * s[1] * s[2] * s[3] * s[4]; };
  auto at = [](const int64_t* i, const int64_t* s) {
    return i[0] * s[0] + i[1] * s[1] + i[2] * s[2] + i[3] * s[3] + i[4] * s[4];
  };
  auto digits = [](int64_t i, const int64_t* s, int64_t* d) {
    for (int k = 4; k >= 0; --k) d[k] = i % s[k], i /= s[k];
  };
  const int64_t* result = p.kind == 0 ? p.y : p.kind == 1 ? p.x : p.w;
  const int64_t* strides = p.kind == 0 ? p.ys : p.kind == 1 ? p.xs : p.ws;
  T* to = p.kind == 0 ? y : p.kind == 1 ? x : w;
  std::vector<A> sums(static_cast<size_t>(numel(result)), A(0));
  auto place = [&](const int64_t* d) {
    int64_t i = 0;
    for (int k = 0; k < 5; ++k) i = i * result[k] + d[k];
    return static_cast<size_t>(i);
  };
  const int64_t outs = p.y[1] / (p.x[1] / p.w[1]);  // in a group
  for (int64_t i = 0; i < numel(p.y); ++i) {
    int64_t dy[5], dw[5], dx[5];
    digits(i, p.y, dy);
    dw[0] = dy[1];
    dx[0] = dy[0];
    for (int64_t j = 0; j < p.w[1] * p.w[2] * p.w[3] * p.w[4]; ++j) {
      int64_t d[5], size[5] = {1, p.w[1], p.w[2], p.w[3], p.w[4]};
      digits(j, size, d);
      bool inside = true;
      for (int k = 0; k < 3; ++k) {
        dw[k + 2] = d[k + 2];
        dx[k + 2] = dy[k + 2] * p.stride[k] - p.padding[k] + d[k + 2] * p.dilation[k];
        inside &= dx[k + 2] >= 0 && dx[k + 2] < p.x[k + 2];
      }
      if (!inside) continue;
      dw[1] = d[1];
      dx[1] = dy[1] / outs * p.w[1] + d[1];
      A vx = p.kind == 1 ? A(0) : load<A>(x + at(dx, p.xs));
      A vw = p.kind == 2 ? A(0) : load<A>(w + at(dw, p.ws));
      A vy = p.kind == 0 ? A(0) : load<A>(y + at(dy, p.ys));
      if (p.kind == 0) sums[place(dy)] += vx * vw;
      if (p.kind == 1) sums[place(dx)] += vy * vw;
      if (p.kind == 2) sums[place(dw)] += vy * vx;
    }
  }
  for (int64_t i = 0; i < numel(result); ++i) {
    int64_t d[5];
    digits(i, result, d);
    store<A>(to + at(d, strides), sums[static_cast<size_t>(i)]);
  }
}

void read_tensor(const Descriptor& t, int64_t* sizes, int64_t* strides) {
  auto s = t.all<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS),
       st = t.all<int64_t>(CUDNN_ATTR_TENSOR_STRIDES);
  const size_t skip = 5 - s.size();
  for (size_t d = 0; d < s.size(); ++d) {
    const size_t to = d < 2 ? d : d + skip;
    sizes[to] = s[d];
    strides[to] = st[d];
  }
  if (skip) sizes[2] = strides[2] = 1;
}

}  // namespace
}  // namespace emulator

using namespace emulator;

size_t cudnnGetVersion() { return CUDNN_VERSION; }
const char* cudnnGetErrorString(cudnnStatus_t s) {
  return s == CUDNN_STATUS_SUCCESS         ? "CUDNN_STATUS_SUCCESS"
         : s == CUDNN_STATUS_NOT_SUPPORTED ? "CUDNN_STATUS_NOT_SUPPORTED"
                                           : "CUDNN_STATUS_BAD_PARAM";
}
void cudnnGetLastErrorString(char* message, size_t) { *message = 0; }
cudnnStatus_t cudnnCreate(cudnnHandle_t* out) {
  *out = new cudnnContext;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t h, cudaStream_t stream) {
  h->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t* out) {
  *out = new Descriptor{type};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t d) {
  delete of(d);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count,
                                       const void* values) {
  if (of(d)->ready || !values) return CUDNN_STATUS_BAD_PARAM;
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR && !(*static_cast<Descriptor* const*>(values))->ready)
    return CUDNN_STATUS_BAD_PARAM;
  const char* from = static_cast<const char*>(values);
  of(d)->attributes[name] = {from, from + static_cast<size_t>(count) * bytes_of(type)};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t d) { return finalized(*of(d)); }

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const d,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t, int64_t room, int64_t* count,
                                       void* values) {
  const Descriptor& from = *of(d);
  if (!from.ready) return CUDNN_STATUS_BAD_PARAM;
  switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS:
      *count = kEngines;
      for (int64_t i = 0; i < room && i < kEngines; ++i) {
        Descriptor* config = static_cast<Descriptor**>(values)[i];
        config->engine = (i + 2) % kEngines;  // the one that cannot be built comes first
        config->graph = from.part(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
        config->ready = true;
      }
      return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_ENGINECFG_ENGINE: {
      Descriptor* engine = *static_cast<Descriptor**>(values);
      engine->engine = from.engine;
      engine->ready = true;
      *count = 1;
      return CUDNN_STATUS_SUCCESS;
    }
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
      *count = from.engine == 0 ? 2 : 0;
      if (*count && values) {
        auto* notes = static_cast<cudnnBackendNumericalNote_t*>(values);
        notes[0] = CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
        notes[1] = CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
      }
      return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
      *count = 1;
      *static_cast<int64_t*>(values) = from.part(401)->engine == 0 ? kWorkspace : 0;
      return CUDNN_STATUS_SUCCESS;
    default:
      return CUDNN_STATUS_NOT_SUPPORTED;
  }
}

namespace {

cudnnStatus_t run_steps(cudnnHandle_t h, const Descriptor& config, const Descriptor& pack) {
  auto names = pack.all<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  auto pointers = pack.all<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  void* workspace = pack.one<void*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  const bool uses = config.engine == 0;
  if (names.size() != pointers.size() || (uses && !workspace)) return CUDNN_STATUS_BAD_PARAM;
  std::map<int64_t, void*> data;
  for (size_t i = 0; i < names.size(); ++i) data[names[i]] = pointers[i];
  std::shared_ptr<const Steps> steps = read_steps(*config.graph);
  if (!steps || !has_all(*steps, data)) return CUDNN_STATUS_BAD_PARAM;
  std::function<int()> work = [run = prepare(steps, data), workspace, uses] {
    if (uses) std::memset(workspace, 0xff, kWorkspace);
    run();
    return 0;
  };
  return emulator_enqueue(h->stream, &work) == 0 ? CUDNN_STATUS_SUCCESS
                                                 : CUDNN_STATUS_EXECUTION_FAILED;
}

}  // namespace

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t h, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t pack) {
  if (!of(plan)->ready || !of(pack)->ready) return CUDNN_STATUS_BAD_PARAM;
  const Descriptor& config = *of(plan)->part(401);
  const Descriptor& operation = *config.graph->part(CUDNN_ATTR_OPERATIONGRAPH_OPS);
  if (!names_of(operation.type)) return run_steps(h, config, *of(pack));
  const Names& n = *names_of(operation.type);
  Problem p{};
  p.kind = operation.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR         ? 0
           : operation.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR ? 1
                                                                                            : 2;
  const Descriptor *x = operation.part(n.x), *w = operation.part(n.w), *y = operation.part(n.y),
                   *c = operation.part(n.convolution);
  p.type = x->one<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE);
  read_tensor(*x, p.x, p.xs);
  read_tensor(*w, p.w, p.ws);
  read_tensor(*y, p.y, p.ys);
  auto stride = c->all<int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES),
       padding = c->all<int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS),
       dilation = c->all<int64_t>(CUDNN_ATTR_CONVOLUTION_DILATIONS);
  for (size_t d = 0; d < 3; ++d) p.stride[d] = p.dilation[d] = 1;
  for (size_t d = 0; d < stride.size(); ++d) {
    const size_t to = d + 3 - stride.size();
    p.stride[to] = stride[d];
    p.padding[to] = padding[d];
    p.dilation[to] = dilation[d];
  }
  auto names = of(pack)->all<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  auto data = of(pack)->all<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  const Descriptor* tensors[] = {x, w, y};
  void** pointers[] = {&p.px, &p.pw, &p.py};
  for (int t = 0; t < 3; ++t)
    for (size_t i = 0; i < names.size(); ++i)
      if (names[i] == tensors[t]->one<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID)) {
        *pointers[t] = data[i];
        if (reinterpret_cast<uintptr_t>(data[i]) %
            static_cast<uintptr_t>(tensors[t]->one<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT)))
          return CUDNN_STATUS_BAD_PARAM;
      }
  void* workspace = of(pack)->one<void*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  const bool uses = config.engine == 0;
  if (!p.px || !p.pw || !p.py || (uses && !workspace)) return CUDNN_STATUS_BAD_PARAM;
  std::function<int()> work = [p, workspace, uses] {
    if (uses) std::memset(workspace, 0xff, kWorkspace);
    switch (p.type) {
      case CUDNN_DATA_DOUBLE:
        convolve<double, double>(p);
        break;
      case CUDNN_DATA_HALF:
        convolve<_Float16, float>(p);
        break;
      case CUDNN_DATA_BFLOAT16:
        convolve<Bf16, float>(p);
        break;
      default:
        convolve<float, float>(p);
    }
    return 0;
  };
  return emulator_enqueue(h->stream, &work) == 0 ? CUDNN_STATUS_SUCCESS
                                                 : CUDNN_STATUS_EXECUTION_FAILED;
}
