#include "cudnn_attention.h"

#include <utility>

#include "cudnn_builder.h"

namespace tessera::cuda {
namespace {

using Tensor = CudnnGraphBuilder::Tensor;

// Shapes that both directions use.
struct Shapes {
  CudnnShape scores, rows, flipped;
  explicit Shapes(const CudnnAttention& a) {
    const int64_t t = a.queries, s = a.keys, h = a.heads;
    scores = {{a.batch, h, t, s}, {h * t * s, t * s, s, 1}};
    rows = {{a.batch, h, t, 1}, {h * t, t, 1, 1}};
    flipped = {{a.batch, h, s, t}, {h * t * s, t * s, 1, s}};
  }
};

CudnnShape shape(int64_t batch, int64_t heads, int64_t length, int64_t width,
                 const int64_t (&strides)[4]) {
  return {{batch, heads, length, width}, {strides[0], strides[1], strides[2], strides[3]}};
}
CudnnShape transposed(CudnnShape s) {
  std::swap(s.sizes[2], s.sizes[3]);
  std::swap(s.strides[2], s.strides[3]);
  return s;
}
CudnnShape dense(int64_t batch, int64_t heads, int64_t length, int64_t width) {
  return {{batch, heads, length, width}, {heads * length * width, length * width, width, 1}};
}

// Minus infinity where a key comes after the query.
Tensor hide_future(CudnnGraphBuilder& g, const Shapes& s, Tensor scores) {
  Tensor row = g.pointwise("index of queries", CUDNN_POINTWISE_GEN_INDEX, scores,
                           g.between("query", s.scores, CUDNN_DATA_INT32), {.axis = 2});
  Tensor column = g.pointwise("index of keys", CUDNN_POINTWISE_GEN_INDEX, scores,
                              g.between("key", s.scores, CUDNN_DATA_INT32), {.axis = 3});
  Tensor seen = g.pointwise("comparison of indices", CUDNN_POINTWISE_CMP_GE, row,
                            g.between("seen", s.scores, CUDNN_DATA_BOOLEAN),
                            {.b = column, .compute = CUDNN_DATA_BOOLEAN});
  return g.pointwise("causal mask", CUDNN_POINTWISE_BINARY_SELECT, scores,
                     g.between("masked scores", s.scores),
                     {.b = g.number(kAttentionHidden, "minus infinity"), .t = seen});
}

void forward(CudnnGraphBuilder& g, const CudnnAttention& a) {
  const cudnnDataType_t type = cudnn_data_type(a.dtype);
  const Shapes s(a);
  Tensor q =
      g.given(kAttentionQ, "queries", shape(a.batch, a.heads, a.queries, a.width, a.q), type);
  Tensor k = g.given(kAttentionK, "keys",
                     transposed(shape(a.batch, a.kv_heads, a.keys, a.width, a.k)), type);
  Tensor v =
      g.given(kAttentionV, "values", shape(a.batch, a.kv_heads, a.keys, a.value_width, a.v), type);
  Tensor out = g.given(kAttentionOut, "output",
                       shape(a.batch, a.heads, a.queries, a.value_width, a.out), type);
  Tensor stats = g.given(kAttentionStats, "stats", s.rows, CUDNN_DATA_FLOAT);
  Tensor x = g.matmul("queries times keys", q, k, g.between("scores", s.scores));
  x = g.pointwise("scaling", CUDNN_POINTWISE_MUL, x, g.number(kAttentionScale, "scale"),
                  g.between("scaled scores", s.scores));
  if (a.causal) x = hide_future(g, s, x);
  Tensor most = g.reduce("maximum", CUDNN_REDUCE_TENSOR_MAX, x, g.between("maxima", s.rows));
  x = g.pointwise("centring", CUDNN_POINTWISE_SUB, x, most, g.between("centred", s.scores));
  x = g.pointwise("exponential", CUDNN_POINTWISE_EXP, x, g.between("exponentials", s.scores));
  Tensor sum = g.reduce("sum", CUDNN_REDUCE_TENSOR_ADD, x, g.between("sums", s.rows));
  Tensor log = g.pointwise("logarithm", CUDNN_POINTWISE_LOG, sum, g.between("logarithms", s.rows));
  g.pointwise("stats", CUDNN_POINTWISE_ADD, most, log, stats);
  x = g.pointwise("division", CUDNN_POINTWISE_DIV, x, sum, g.between("weights", s.scores, type));
  g.matmul("weights times values", x, v, out);
}

// The product by heads of queries; where several share a head of keys, their sum.
void by_heads(CudnnGraphBuilder& g, const char* what, const CudnnAttention& a, Tensor x, Tensor y,
              int64_t width, Tensor to) {
  if (a.heads == a.kv_heads) {
    g.matmul(what, x, y, to);
    return;
  }
  Tensor all = g.matmul(what, x, y,
                        g.between("gradients of all heads", dense(a.batch, a.heads, a.keys, width),
                                  cudnn_data_type(a.dtype)));
  g.reduce(what, CUDNN_REDUCE_TENSOR_ADD, all, to);
}

// With P the weights, D the gradient of the output and r the row sums of D * output:
//   dV = P^T D,  dS = P * (D V^T - r) * scale,  dK = dS^T Q,  dQ = dS K
void backward(CudnnGraphBuilder& g, const CudnnAttention& a) {
  const cudnnDataType_t type = cudnn_data_type(a.dtype);
  const Shapes s(a);
  const CudnnShape at_q = shape(a.batch, a.heads, a.queries, a.width, a.q),
                   at_k = shape(a.batch, a.kv_heads, a.keys, a.width, a.k),
                   at_v = shape(a.batch, a.kv_heads, a.keys, a.value_width, a.v),
                   at_out = shape(a.batch, a.heads, a.queries, a.value_width, a.out);
  Tensor q = g.given(kAttentionQ, "queries", at_q, type);
  Tensor k = g.given(kAttentionK, "keys", transposed(at_k), type);
  Tensor v = g.given(kAttentionV, "values", transposed(at_v), type);
  Tensor out = g.given(kAttentionOut, "output", at_out, type);
  Tensor grad = g.given(kAttentionGrad, "gradient", at_out, type);
  Tensor stats = g.given(kAttentionStats, "stats", s.rows, CUDNN_DATA_FLOAT);
  Tensor dq = g.given(kAttentionDq, "gradient of queries",
                      shape(a.batch, a.heads, a.queries, a.width, a.dq), type);
  Tensor dk = g.given(kAttentionDk, "gradient of keys",
                      shape(a.batch, a.kv_heads, a.keys, a.width, a.dk), type);
  Tensor dv = g.given(kAttentionDv, "gradient of values",
                      shape(a.batch, a.kv_heads, a.keys, a.value_width, a.dv), type);
  Tensor scale = g.number(kAttentionScale, "scale");

  // The engines know the pattern with a factor at its end, which dropout would need.
  Tensor x = g.pointwise("gradient times output", CUDNN_POINTWISE_MUL, grad, out,
                         g.between("products", dense(a.batch, a.heads, a.queries, a.value_width)));
  x = g.reduce("row sums", CUDNN_REDUCE_TENSOR_ADD, x, g.between("sums of products", s.rows));
  Tensor rows =
      g.pointwise("factor of row sums", CUDNN_POINTWISE_MUL, x, g.number(kAttentionOne, "one"),
                  g.given(kAttentionRowSums, "row sums", s.rows, CUDNN_DATA_FLOAT));

  x = g.matmul("queries times keys", q, k, g.between("scores", s.scores));
  x = g.pointwise("scaling", CUDNN_POINTWISE_MUL, x, scale, g.between("scaled scores", s.scores));
  x = g.pointwise("stats", CUDNN_POINTWISE_SUB, x, stats, g.between("centred", s.scores));
  if (a.causal) x = hide_future(g, s, x);
  Tensor weights =
      g.pointwise("exponential", CUDNN_POINTWISE_EXP, x, g.between("weights", s.scores));
  x = g.reshape("turned weights", weights, g.between("turned weights", s.flipped, type));
  by_heads(g, "weights times gradient", a, x, grad, a.value_width, dv);

  x = g.matmul("gradient times values", grad, v, g.between("gradient of weights", s.scores));
  x = g.pointwise("row sums", CUDNN_POINTWISE_SUB, x, rows,
                  g.between("centred gradient", s.scores));
  x = g.pointwise("weights", CUDNN_POINTWISE_MUL, x, weights,
                  g.between("gradient of scaled scores", s.scores));
  Tensor ds = g.pointwise("scaling of gradient", CUDNN_POINTWISE_MUL, x, scale,
                          g.between("gradient of scores", s.scores));
  x = g.reshape("turned gradient", ds, g.between("turned gradient", s.flipped, type));
  by_heads(g, "gradient times queries", a, x, q, a.width, dk);

  x = g.reshape("turned keys", k, g.between("turned keys", at_k, type));
  if (a.deterministic) {
    g.matmul("gradient times keys", ds, x, dq);
    return;
  }
  Tensor sums = g.given(kAttentionDqSums, "sums of gradients of queries",
                        dense(a.batch, a.heads, a.queries, a.width), CUDNN_DATA_FLOAT);
  g.matmul("gradient times keys", ds, x, sums);
  g.pointwise("rounding", CUDNN_POINTWISE_IDENTITY, sums, dq);
}

}  // namespace

Status cudnn_attention_graph(const CudnnApi& api, cudnnHandle_t handle, const CudnnAttention& a,
                             CudnnParts* parts) {
  CudnnGraphBuilder g(api, parts);
  if (a.backward)
    backward(g, a);
  else
    forward(g, a);
  return g.finish(handle);
}

}  // namespace tessera::cuda
