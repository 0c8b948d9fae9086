// Fused attention as a graph of cuDNN's: the operations it knows as one kernel.
#pragma once
#include "cudnn_plan.h"

namespace tessera::cuda {

// Sizes and strides are of [batch, heads, length, width]; the last stride is one.
struct CudnnAttention {
  bool backward, causal;
  // Backward: gradients of queries are not summed up in whatever order blocks of keys end.
  bool deterministic;
  DType dtype;
  int64_t batch, heads, kv_heads, queries, keys, width, value_width;
  // `out` is also the layout of its gradient; gradients of the others have theirs.
  int64_t q[4], k[4], v[4], out[4], dq[4], dk[4], dv[4];
};

// Names of the tensors in plans. Stats is the logarithm of each row's sum of exponentials, float32
// of [batch, heads, queries] without gaps; so is the scratch of row sums. The scratch for gradients
// of queries is float32 of [batch, heads, queries, width], and not used where deterministic.
enum CudnnAttentionName : int64_t {
  kAttentionQ = 1,
  kAttentionK,
  kAttentionV,
  kAttentionOut,
  kAttentionStats,
  kAttentionScale,   // a float on the host
  kAttentionHidden,  // minus infinity, a float on the host; only where causal
  kAttentionGrad,
  kAttentionDq,
  kAttentionDk,
  kAttentionDv,
  kAttentionOne,  // 1, a float on the host
  kAttentionRowSums,
  kAttentionDqSums,
};

Status cudnn_attention_graph(const CudnnApi& api, cudnnHandle_t handle, const CudnnAttention& a,
                             CudnnParts* parts);

}  // namespace tessera::cuda
