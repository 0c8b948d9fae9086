// A transposed copy of 16384 x 4096 floats, or of as many rows and columns as it is given
// (multiples of 128), by tiles of several forms: what should codegen's tiles be?
//   nvcc -O3 -std=c++17 -arch=native transpose_ways.cu -o transpose_ways && ./transpose_ways
// GB/s, each element read once and written once; "wrong" where the result is not the transpose.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

constexpr int kThreads = 256;

template <int V>
struct alignas(4 * V) Vec {
  float v[V];
};

enum Order { kAlongWrites, kAlongReads, kEight };  // what neighbouring blocks share

// out[r][c] = in[c][r], a tile of R rows and C columns of `out` for each block.
template <int R, int C, int V, Order order, bool past_caches>
__global__ void __launch_bounds__(kThreads) tiles(const float* in, float* out, int rows, int cols) {
  constexpr int kPitch = R + 1;
  __shared__ float t[C * kPitch];
  const int tr = rows / R, tc = cols / C;
  int r0, c0;
  if (order == kAlongWrites) {
    r0 = blockIdx.x / tc * R;
    c0 = blockIdx.x % tc * C;
  } else if (order == kAlongReads) {
    r0 = blockIdx.x % tr * R;
    c0 = blockIdx.x / tr * C;
  } else {  // bands of eight rows of tiles, read and written in both directions
    const int band = blockIdx.x / (8 * tc), in_band = blockIdx.x % (8 * tc);
    r0 = (band * 8 + in_band % 8) * R;
    c0 = in_band / 8 * C;
  }
  constexpr int kAcross = R / V;
  Vec<V> x[R * C / V / kThreads];
#pragma unroll
  for (int k = 0; k < R * C / V / kThreads; ++k) {
    const int i = k * kThreads + threadIdx.x, c = i / kAcross, r = i % kAcross * V;
    const float* from = in + size_t(c0 + c) * rows + r0 + r;
    if constexpr (past_caches && V == 4)
      *reinterpret_cast<float4*>(&x[k]) = __ldcs(reinterpret_cast<const float4*>(from));
    else
      x[k] = *reinterpret_cast<const Vec<V>*>(from);
  }
#pragma unroll
  for (int k = 0; k < R * C / V / kThreads; ++k) {
    const int i = k * kThreads + threadIdx.x, c = i / kAcross, r = i % kAcross * V;
#pragma unroll
    for (int j = 0; j < V; ++j) t[c * kPitch + r + j] = x[k].v[j];
  }
  __syncthreads();
  constexpr int kAlong = C / V;
#pragma unroll
  for (int k = 0; k < R * C / V / kThreads; ++k) {
    const int i = k * kThreads + threadIdx.x, r = i / kAlong, c = i % kAlong * V;
    Vec<V> y;
#pragma unroll
    for (int j = 0; j < V; ++j) y.v[j] = t[(c + j) * kPitch + r];
    float* to = out + size_t(r0 + r) * cols + c0 + c;
    if constexpr (past_caches && V == 4)
      __stcs(reinterpret_cast<float4*>(to), *reinterpret_cast<float4*>(&y));
    else
      *reinterpret_cast<Vec<V>*>(to) = y;
  }
}

static void check(cudaError_t e) {
  if (e == cudaSuccess) return;
  std::fprintf(stderr, "%s\n", cudaGetErrorString(e));
  std::exit(1);
}

int main(int argc, char** argv) {
  const int cols = argc > 2 ? std::atoi(argv[1]) : 16384,
            rows = argc > 2 ? std::atoi(argv[2]) : 4096;
  if (rows <= 0 || cols <= 0 || rows % 128 || cols % 128) {
    std::fprintf(stderr, "rows and columns have to be multiples of 128\n");
    return 2;
  }
  const size_t n = size_t(rows) * cols;
  float *in, *out;
  check(cudaMalloc(&in, n * 4));
  check(cudaMalloc(&out, n * 4));
  std::vector<float> host(n), back(n);
  for (size_t i = 0; i < n; ++i) host[i] = float(i * 2654435761u % 16777213u);
  check(cudaMemcpy(in, host.data(), n * 4, cudaMemcpyHostToDevice));
  cudaEvent_t a, b;
  check(cudaEventCreate(&a));
  check(cudaEventCreate(&b));
  auto run = [&](const char* name, int r, int c, auto kernel) {
    const int blocks = (rows / r) * (cols / c);
    check(cudaMemset(out, 0xff, n * 4));
    std::vector<float> ms;
    for (int round = 0; round < 12; ++round) {
      check(cudaEventRecord(a));
      for (int i = 0; i < 10; ++i) kernel<<<blocks, kThreads>>>(in, out, rows, cols);
      check(cudaEventRecord(b));
      check(cudaEventSynchronize(b));
      float t;
      check(cudaEventElapsedTime(&t, a, b));
      if (round > 1) ms.push_back(t / 10);
    }
    std::sort(ms.begin(), ms.end());
    check(cudaMemcpy(back.data(), out, n * 4, cudaMemcpyDeviceToHost));
    bool right = true;
    for (int i = 0; i < rows && right; i += 7)
      for (int j = 0; j < cols; ++j)
        right &= back[size_t(i) * cols + j] == host[size_t(j) * rows + i];
    std::printf("%-36s %3d x %3d  %5.0f GB/s%s\n", name, r, c, n * 8 / (ms[ms.size() / 2] * 1e6),
                right ? "" : "  wrong");
  };
  run("as now", 32, 32, tiles<32, 32, 1, kAlongWrites, false>);
  run("larger", 64, 64, tiles<64, 64, 1, kAlongWrites, false>);
  run("vectors", 32, 32, tiles<32, 32, 4, kAlongWrites, false>);
  run("vectors", 64, 64, tiles<64, 64, 4, kAlongWrites, false>);
  run("vectors", 32, 64, tiles<32, 64, 4, kAlongWrites, false>);
  run("vectors", 64, 32, tiles<64, 32, 4, kAlongWrites, false>);
  run("vectors", 32, 128, tiles<32, 128, 4, kAlongWrites, false>);
  run("vectors", 128, 32, tiles<128, 32, 4, kAlongWrites, false>);
  run("vectors of two", 64, 64, tiles<64, 64, 2, kAlongWrites, false>);
  run("vectors, past caches", 64, 64, tiles<64, 64, 4, kAlongWrites, true>);
  run("vectors, reads together", 64, 64, tiles<64, 64, 4, kAlongReads, false>);
  run("vectors, bands of eight", 64, 64, tiles<64, 64, 4, kEight, false>);
  run("as now, reads together", 32, 32, tiles<32, 32, 1, kAlongReads, false>);
  run("as now, bands of eight", 32, 32, tiles<32, 32, 1, kEight, false>);
  run("larger, bands of eight", 64, 64, tiles<64, 64, 1, kEight, false>);
  run("vectors, bands, past caches", 64, 64, tiles<64, 64, 4, kEight, true>);
}
