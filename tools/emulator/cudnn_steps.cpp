// Graphs of several operations, as cuDNN's fused attention is given: one operation after the other
// over tensors of four dimensions, all that lies between them in memory of its own.
#include <algorithm>
#include <cmath>
#include <limits>

#include "cudnn.h"

namespace emulator {

namespace {

struct Shape {
  int64_t id = 0;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  int64_t sizes[4] = {}, strides[4] = {}, alignment = 1;
  bool is_virtual = false, by_value = false;

  int64_t numel() const { return sizes[0] * sizes[1] * sizes[2] * sizes[3]; }
  // Elements from the first place to the last.
  int64_t span() const {
    int64_t n = 1;
    for (int d = 0; d < 4; ++d) n += (sizes[d] - 1) * strides[d];
    return n;
  }
  // Where element `i` of the row-major order lies; of a size of one, or of a group, the same for
  // several of `of`.
  int64_t place(const int64_t* index, const int64_t* of) const {
    int64_t at = 0;
    for (int d = 0; d < 4; ++d) at += index[d] * sizes[d] / of[d] * strides[d];
    return at;
  }
};

struct Step {
  cudnnBackendDescriptorType_t kind;
  int mode = 0;  // of a reduction, a pointwise operation
  int64_t axis = 0;
  int64_t x = 0, b = 0, t = 0, y = 0;  // tensors by their numbers; 0: none
};

int64_t read_tensor(std::map<int64_t, Shape>& all, const Descriptor* d) {
  if (!d || d->type != CUDNN_BACKEND_TENSOR_DESCRIPTOR) return 0;
  Shape s;
  auto sizes = d->all<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS),
       strides = d->all<int64_t>(CUDNN_ATTR_TENSOR_STRIDES);
  if (sizes.size() != 4 || strides.size() != 4) return 0;
  std::copy_n(sizes.data(), 4, s.sizes);
  std::copy_n(strides.data(), 4, s.strides);
  s.id = d->one<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID);
  s.type = d->one<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE);
  s.alignment = d->one<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
  s.is_virtual = d->one<uint8_t>(CUDNN_ATTR_TENSOR_IS_VIRTUAL);
  s.by_value = d->one<uint8_t>(CUDNN_ATTR_TENSOR_IS_BY_VALUE);
  all[s.id] = s;
  return s.id;
}

// Each size of `x` is that of `of`, or divides it: broadcast, or shared by a group.
bool spreads(const Shape& x, const Shape& of) {
  for (int d = 0; d < 4; ++d)
    if (x.sizes[d] <= 0 || of.sizes[d] % x.sizes[d]) return false;
  return true;
}

size_t bytes_of(cudnnDataType_t type) {
  return type == CUDNN_DATA_BOOLEAN                               ? 1
         : type == CUDNN_DATA_HALF || type == CUDNN_DATA_BFLOAT16 ? 2
                                                                  : 4;
}

}  // namespace

struct Steps {
  std::map<int64_t, Shape> tensors;
  std::vector<Step> steps;
};

namespace {

bool fits(const Steps& g, const Step& s) {
  auto of = [&](int64_t id) -> const Shape& { return g.tensors.at(id); };
  if (!s.x || !s.y) return false;
  const Shape &x = of(s.x), &y = of(s.y);
  switch (s.kind) {
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR: {
      if (!s.b) return false;
      const Shape& b = of(s.b);
      // Factors of tensor cores are of one narrow type; of what lies between, any is rounded.
      const bool narrow = b.type == CUDNN_DATA_HALF || b.type == CUDNN_DATA_BFLOAT16;
      return narrow && (x.type == b.type || x.is_virtual) && x.sizes[3] == b.sizes[2] &&
             y.sizes[2] == x.sizes[2] && y.sizes[3] == b.sizes[3] && x.sizes[0] == y.sizes[0] &&
             x.sizes[1] == y.sizes[1] && y.sizes[0] % b.sizes[0] == 0 &&
             y.sizes[1] % b.sizes[1] == 0;
    }
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
      return spreads(y, x);
    case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
      return x.numel() == y.numel() && x.span() == y.span();
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
      return spreads(x, y) && (!s.b || spreads(of(s.b), y)) && (!s.t || spreads(of(s.t), y)) &&
             (s.mode != CUDNN_POINTWISE_BINARY_SELECT ||
              (s.t && of(s.t).type == CUDNN_DATA_BOOLEAN));
    default:
      return false;
  }
}

float read(const Shape& s, const void* data, int64_t at) {
  switch (s.type) {
    case CUDNN_DATA_HALF:
      return load<float>(static_cast<const _Float16*>(data) + at);
    case CUDNN_DATA_BFLOAT16:
      return load<float>(static_cast<const Bf16*>(data) + at);
    case CUDNN_DATA_INT32:
      return static_cast<float>(static_cast<const int32_t*>(data)[at]);
    case CUDNN_DATA_BOOLEAN:
      return static_cast<const uint8_t*>(data)[at];
    default:
      return static_cast<const float*>(data)[at];
  }
}
void write(const Shape& s, void* data, int64_t at, float v) {
  switch (s.type) {
    case CUDNN_DATA_HALF:
      return store<float>(static_cast<_Float16*>(data) + at, v);
    case CUDNN_DATA_BFLOAT16:
      return store<float>(static_cast<Bf16*>(data) + at, v);
    case CUDNN_DATA_INT32:
      static_cast<int32_t*>(data)[at] = static_cast<int32_t>(v);
      return;
    case CUDNN_DATA_BOOLEAN:
      static_cast<uint8_t*>(data)[at] = v != 0;
      return;
    default:
      static_cast<float*>(data)[at] = v;
  }
}

float compute(int mode, float x, float b, float t) {
  switch (mode) {
    case CUDNN_POINTWISE_ADD:
      return x + b;
    case CUDNN_POINTWISE_SUB:
      return x - b;
    case CUDNN_POINTWISE_MUL:
      return x * b;
    case CUDNN_POINTWISE_DIV:
      return x / b;
    case CUDNN_POINTWISE_EXP:
      return std::exp(x);
    case CUDNN_POINTWISE_LOG:
      return std::log(x);
    case CUDNN_POINTWISE_CMP_GE:
      return x >= b;
    case CUDNN_POINTWISE_BINARY_SELECT:
      return t != 0 ? x : b;
    case CUDNN_POINTWISE_IDENTITY:
      return x;
    default:
      return std::numeric_limits<float>::quiet_NaN();
  }
}

template <class F>
void each(const int64_t* sizes, F f) {
  int64_t i[4];
  for (i[0] = 0; i[0] < sizes[0]; ++i[0])
    for (i[1] = 0; i[1] < sizes[1]; ++i[1])
      for (i[2] = 0; i[2] < sizes[2]; ++i[2])
        for (i[3] = 0; i[3] < sizes[3]; ++i[3]) f(i);
}

using Data = std::map<int64_t, void*>;

void run(const Steps& g, const Step& s, const Data& data) {
  const Shape &x = g.tensors.at(s.x), &y = g.tensors.at(s.y);
  const void* px = data.at(s.x);
  void* py = data.at(s.y);
  const Shape none;
  const Shape &b = s.b ? g.tensors.at(s.b) : none, &t = s.t ? g.tensors.at(s.t) : none;
  const void *pb = s.b ? data.at(s.b) : nullptr, *pt = s.t ? data.at(s.t) : nullptr;
  if (s.kind == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR) {
    Shape rounded = x;  // a wide factor of what lies between is rounded to the other's type
    rounded.type = b.type;
    each(y.sizes, [&](const int64_t* i) {
      float sum = 0;
      const int64_t at_b = i[0] * b.sizes[0] / y.sizes[0] * b.strides[0] +
                           i[1] * b.sizes[1] / y.sizes[1] * b.strides[1];
      const int64_t at_x = i[0] * x.strides[0] + i[1] * x.strides[1] + i[2] * x.strides[2];
      for (int64_t k = 0; k < x.sizes[3]; ++k) {
        float v = read(x, px, at_x + k * x.strides[3]);
        uint32_t narrow = 0;  // room for any
        write(rounded, &narrow, 0, v);
        v = read(rounded, &narrow, 0);
        sum += v * read(b, pb, at_b + k * b.strides[2] + i[3] * b.strides[3]);
      }
      write(y, py, y.place(i, y.sizes), sum);
    });
  } else if (s.kind == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR) {
    const bool most = s.mode == CUDNN_REDUCE_TENSOR_MAX;
    std::map<int64_t, float> sums;
    each(x.sizes, [&](const int64_t* i) {
      const float v = read(x, px, x.place(i, x.sizes));
      auto [it, fresh] = sums.try_emplace(y.place(i, x.sizes), v);
      if (!fresh) it->second = most ? std::max(it->second, v) : it->second + v;
    });
    for (const auto& [at, v] : sums) write(y, py, at, v);
  } else if (s.kind == CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR) {
    // The same places under other names.
    each(y.sizes, [&](const int64_t* i) {
      const int64_t at = y.place(i, y.sizes);
      write(y, py, at, read(x, px, at));
    });
  } else {
    each(y.sizes, [&](const int64_t* i) {
      float v;
      if (s.mode == CUDNN_POINTWISE_GEN_INDEX)
        v = static_cast<float>(i[s.axis]);
      else
        v = compute(s.mode, read(x, px, x.place(i, y.sizes)),
                    pb ? read(b, pb, b.place(i, y.sizes)) : 0,
                    pt ? read(t, pt, t.place(i, y.sizes)) : 0);
      write(y, py, y.place(i, y.sizes), v);
    });
  }
}

}  // namespace

std::shared_ptr<const Steps> read_steps(const Descriptor& graph) {
  auto g = std::make_shared<Steps>();
  for (const Descriptor* o : graph.all<const Descriptor*>(CUDNN_ATTR_OPERATIONGRAPH_OPS)) {
    Step s{o->type};
    auto tensor = [&](int name) { return read_tensor(g->tensors, o->part(name)); };
    switch (o->type) {
      case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
        if (!o->part(CUDNN_ATTR_OPERATION_MATMUL_DESC)) return nullptr;
        s.x = tensor(CUDNN_ATTR_OPERATION_MATMUL_ADESC);
        s.b = tensor(CUDNN_ATTR_OPERATION_MATMUL_BDESC);
        s.y = tensor(CUDNN_ATTR_OPERATION_MATMUL_CDESC);
        break;
      case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
        if (!o->part(CUDNN_ATTR_OPERATION_REDUCTION_DESC)) return nullptr;
        s.mode =
            o->part(CUDNN_ATTR_OPERATION_REDUCTION_DESC)->one<int>(CUDNN_ATTR_REDUCTION_OPERATOR);
        s.x = tensor(CUDNN_ATTR_OPERATION_REDUCTION_XDESC);
        s.y = tensor(CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
        break;
      case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
        s.x = tensor(CUDNN_ATTR_OPERATION_RESHAPE_XDESC);
        s.y = tensor(CUDNN_ATTR_OPERATION_RESHAPE_YDESC);
        break;
      case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR: {
        const Descriptor* how = o->part(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
        if (!how) return nullptr;
        s.mode = how->one<int>(CUDNN_ATTR_POINTWISE_MODE);
        s.axis = how->one<int64_t>(CUDNN_ATTR_POINTWISE_AXIS);
        s.x = tensor(CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
        s.b = tensor(CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
        s.t = tensor(CUDNN_ATTR_OPERATION_POINTWISE_TDESC);
        s.y = tensor(CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
        break;
      }
      default:
        return nullptr;
    }
    if (!fits(*g, s)) return nullptr;
    g->steps.push_back(s);
  }
  return g;
}

bool has_all(const Steps& g, const Data& data) {
  for (const auto& [id, s] : g.tensors) {
    if (s.is_virtual) continue;
    auto it = data.find(id);
    if (it == data.end() || !it->second ||
        reinterpret_cast<uintptr_t>(it->second) % static_cast<uintptr_t>(s.alignment))
      return false;
  }
  return true;
}

std::function<void()> prepare(std::shared_ptr<const Steps> g, Data data) {
  std::map<int64_t, std::vector<char>> values;
  for (const auto& [id, s] : g->tensors)
    if (s.by_value) {
      const char* from = static_cast<const char*>(data.at(id));
      values[id] = {from, from + bytes_of(s.type)};
    }
  return [g, data, values]() mutable {
    std::map<int64_t, std::vector<char>> between;
    for (const auto& [id, s] : g->tensors) {
      if (s.by_value) data[id] = values[id].data();
      if (!s.is_virtual) continue;
      // What is read before it is written shows.
      between[id].assign(static_cast<size_t>(s.span()) * bytes_of(s.type), '\xff');
      data[id] = between[id].data();
    }
    for (const Step& s : g->steps) run(*g, s, data);
  };
}

}  // namespace emulator
