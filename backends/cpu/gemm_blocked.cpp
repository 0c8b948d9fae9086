#include "gemm_blocked.h"

#include <algorithm>
#include <new>
#include <type_traits>

#include "convert.h"
#include "gemm_kernel.h"
#include "scratch.h"
#include "strided.h"
#include "thread_pool.h"
#include "transpose.h"

namespace tessera::cpu {

namespace {

// Products below this run on the calling thread: waking others costs as much.
constexpr int64_t kSerialProduct = 24 * 1024;
// Products below this are cut into as many pieces as there are threads.
constexpr int64_t kEvenProduct = 128 * 128 * 128;
// A panel of b that is used by fewer rows of a than this is not worth packing.
constexpr int64_t kRowsToPack = 24;
// Fewer rows than this do not pay for fetching all of b.
constexpr int64_t kRowsToShare = 48;
// What is used directly stays in the second-level cache.
constexpr int64_t kDirectBytes = 256 * 1024;
constexpr int64_t kStreams = 16;
// Rows of a that are multiplied by a panel at a time, about.
constexpr int64_t kBlockRows = 144;
// Of b, packed, that one thread works with.
constexpr int64_t kColumnsBytes = 512 * 1024;

class Buffer {
 public:
  explicit Buffer(size_t bytes) : p_(bytes ? cache_allocate(bytes) : nullptr) {
    if (bytes && !p_) throw std::bad_alloc();
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { cache_free(p_); }
  template <class T>
  T* as() const {
    return static_cast<T*>(p_);
  }

 private:
  void* p_;
};

template <class T>
struct Product {
  const GemmKernel<T>& kernel;
  int64_t m, n, k;
  GemmOperand a, b;
  T* c;
  const T* bias;
  bool add;
  ConvertFn widen_a = nullptr, widen_b = nullptr;

  static constexpr DType kOwn = sizeof(T) == 4 ? DType::kFloat32 : DType::kFloat64;

  const char* at(const GemmOperand& o, int64_t i, int64_t j) const {
    return static_cast<const char*>(o.data) +
           (i * o.row + j * o.col) * static_cast<int64_t>(itemsize(o.dtype));
  }

  // Rows [i, i + rows) by columns [j, j + cols), depth [p, p + depth); b's panel at `panel`.
  void piece(int64_t i, int64_t rows, int64_t j, int64_t cols, int64_t p, int64_t depth, const T* x,
             int64_t x_row, int64_t x_step, const T* panel, int64_t panel_step) const {
    kernel.run({.a = x,
                .a_row = x_row,
                .a_step = x_step,
                .b = panel,
                .b_step = panel_step,
                .c = c + i * n + j,
                .c_row = n,
                .k = depth,
                .rows = rows,
                .cols = cols,
                .add = add || p > 0,
                .bias = bias && p + depth == k ? bias + j : nullptr});
  }

  // b's columns [j, j + cols) of depth [p, p + depth) as rows of kernel.cols, filled up with zeros.
  void pack_panel(int64_t p, int64_t depth, int64_t j, int64_t cols, T* to, T* wide) const {
    const int64_t step = kernel.cols, item = static_cast<int64_t>(itemsize(b.dtype));
    const char* from = at(b, p, j);
    if (cols < step) std::fill_n(to, depth * step, T(0));
    if (b.col == 1 || cols == 1) {
      for (int64_t r = 0; r < depth; ++r) {
        const char* row = from + r * b.row * item;
        if (widen_b)
          widen_b(to + r * step, row, cols);
        else
          std::copy_n(reinterpret_cast<const T*>(row), cols, to + r * step);
      }
    } else if (b.row == 1 || depth == 1) {
      // A few columns at a time: as many streams as the hardware fetches ahead.
      for (int64_t q = 0; !widen_b && q < cols; q += kStreams)
        transpose(to + q, step, from + q * b.col * item, b.col, depth, std::min(kStreams, cols - q),
                  sizeof(T));
      if (!widen_b) return;
      for (int64_t q = 0; q < cols; ++q) widen_b(wide + q * depth, from + q * b.col * item, depth);
      transpose(to, step, wide, depth, depth, cols, sizeof(T));
    } else if (widen_b) {
      uint16_t* raw = reinterpret_cast<uint16_t*>(wide + depth * step);
      gather_block(raw, from, depth, cols, b.row, b.col, 2);
      for (int64_t r = 0; r < depth; ++r) widen_b(to + r * step, raw + r * cols, cols);
    } else {
      gather_block(wide, from, depth, cols, b.row, b.col, sizeof(T));
      for (int64_t r = 0; r < depth; ++r) std::copy_n(wide + r * cols, cols, to + r * step);
    }
  }
  int64_t wide_elements() const { return 2 * kGemmDepth * kernel.cols; }

  // Columns of a, of the kernel's number of rows or fewer, one after the other.
  void pack_columns(const T* from, int64_t rows, int64_t depth, T* to) const {
    auto copy = [&]<int kRows>(std::integral_constant<int, kRows>) {
      for (int64_t q = 0; q < depth; ++q)
        __builtin_memcpy(to + q * kernel.rows, from + q * a.col, kRows * sizeof(T));
    };
    switch (rows) {
      case 1:
        return copy(std::integral_constant<int, 1>());
      case 2:
        return copy(std::integral_constant<int, 2>());
      case 3:
        return copy(std::integral_constant<int, 3>());
      case 4:
        return copy(std::integral_constant<int, 4>());
      case 5:
        return copy(std::integral_constant<int, 5>());
      case 6:
        return copy(std::integral_constant<int, 6>());
      default:
        for (int64_t q = 0; q < depth; ++q)
          std::copy_n(from + q * a.col, rows, to + q * kernel.rows);
    }
  }

  // Rows of a as the kernel reads them; groups of its number of rows are `group` apart.
  struct Block {
    const T* at;
    int64_t row, step, group;
  };
  // a's rows [i, i + rows) of depth [p, p + depth): where they lie, or copied.
  Block block(int64_t i, int64_t rows, int64_t p, int64_t depth, T* to) const {
    const char* from = at(a, i, p);
    const int64_t item = static_cast<int64_t>(itemsize(a.dtype));
    if (!widen_a && (a.col == 1 || depth == 1)) {
      return {reinterpret_cast<const T*>(from), a.row, 1, a.row * kernel.rows};
    }
    if (!widen_a && a.row == 1) {
      for (int64_t r = 0; r < rows; r += kernel.rows)
        pack_columns(reinterpret_cast<const T*>(from) + r, std::min(kernel.rows, rows - r), depth,
                     to + r * depth);
      return {to, 1, kernel.rows, depth * kernel.rows};
    }
    if (a.row == 1) {  // column by column
      for (int64_t q = 0; q < depth; ++q) widen_a(to + q * rows, from + q * a.col * item, rows);
      return {to, 1, rows, kernel.rows};
    }
    const Block by_rows{to, depth, 1, depth * kernel.rows};
    if (!widen_a) {
      gather_block(to, from, rows, depth, a.row, a.col, sizeof(T));
      return by_rows;
    }
    uint16_t* raw = reinterpret_cast<uint16_t*>(to + most_rows() * kGemmDepth);
    if (a.col != 1) gather_block(raw, from, rows, depth, a.row, a.col, 2);
    for (int64_t r = 0; r < rows; ++r)
      widen_a(to + r * depth,
              a.col == 1 ? from + r * a.row * item : reinterpret_cast<const char*>(raw + r * depth),
              depth);
    return by_rows;
  }
  // Of one group of rows.
  int64_t few_elements() const {
    return widen_a ? block_elements() : kernel.rows * std::min(k, kGemmDepth);
  }
  int64_t block_elements() const { return 2 * most_rows() * kGemmDepth; }
  int64_t most_rows() const { return kBlockRows + kernel.rows; }

  bool b_is_direct() const { return !widen_b && (b.col == 1 || n == 1); }

  // Small, or few rows: b is used where it lies, all but a last part of a vector.
  void direct() const {
    const int64_t whole = n / kernel.vector * kernel.vector, rest = n - whole;
    Buffer packed(rest ? static_cast<size_t>(k * kernel.cols) * sizeof(T) : 0);
    T* edge = packed.as<T>();
    if (rest)
      for (int64_t p = 0; p < k; p += kGemmDepth)
        pack_panel(p, std::min(kGemmDepth, k - p), whole, rest, edge + p * kernel.cols, nullptr);
    // Evenly to threads where there are few groups of rows.
    int64_t groups = (m + kernel.rows - 1) / kernel.rows;
    if (groups >= num_threads() && groups < 16 * num_threads())
      groups = std::min(m, (groups + num_threads() - 1) / num_threads() * num_threads());
    const int64_t panels = (whole + kernel.cols - 1) / kernel.cols + (rest > 0);
    // By rows, and by columns as well where rows are few.
    const int64_t across =
        groups >= 2 * num_threads() ? 1 : std::min<int64_t>(panels, 4 * num_threads());
    const int64_t chunk = (panels + across - 1) / across;
    const int64_t tasks = groups * across;
    const int64_t work = std::max<int64_t>(1, m * n * k / tasks);
    OutOfScratch failure;
    // Small ones in one piece a thread: threads would spend their time on asking for more.
    const int64_t even = m * n * k < kEvenProduct ? (tasks + num_threads() - 1) / num_threads() : 1;
    parallel_for(0, tasks, std::max(even, kSerialProduct / work), [&](int64_t begin, int64_t end) {
      Scratch scratch(a.col == 1 && !widen_a ? 0 : static_cast<size_t>(few_elements()) * sizeof(T),
                      failure);
      T* to = static_cast<T*>(scratch.get());
      if (!to && !(a.col == 1 && !widen_a)) return;
      for (int64_t t = begin; t < end; ++t)
        direct_rows(m * (t / across) / groups, m * (t / across + 1) / groups, t % across * chunk,
                    chunk, whole, rest, edge, to);
    });
    if (!failure.status("matmul").ok()) throw std::bad_alloc();
  }
  void direct_rows(int64_t i, int64_t end, int64_t first, int64_t count, int64_t whole,
                   int64_t rest, const T* edge, T* to) const {
    const int64_t rows = end - i;
    for (int64_t p = 0; p < k; p += kGemmDepth) {
      const int64_t depth = std::min(kGemmDepth, k - p);
      const Block x = block(i, rows, p, depth, to);
      for (int64_t j = first * kernel.cols; j < std::min(whole, (first + count) * kernel.cols);
           j += kernel.cols)
        piece(i, rows, j, std::min(kernel.cols, whole - j), p, depth, x.at, x.row, x.step,
              reinterpret_cast<const T*>(at(b, p, j)), b.row);
      const int64_t edge_panel = (whole + kernel.cols - 1) / kernel.cols;
      if (rest && edge_panel >= first && edge_panel < first + count)
        piece(i, rows, whole, rest, p, depth, x.at, x.row, x.step, edge + p * kernel.cols,
              kernel.cols);
    }
  }

  int64_t panel_size() const { return kGemmDepth * kernel.cols; }
  // Rows [i, i + rows) by panels [first, last), of which `packed` has the first.
  void rows_by_panels(int64_t i, int64_t rows, int64_t p, int64_t depth, int64_t first,
                      int64_t last, const T* packed, T* to) const {
    const Block x = block(i, rows, p, depth, to);
    for (int64_t q = first; q < last; ++q, packed += panel_size()) {
      const int64_t j = q * kernel.cols, cols = std::min(kernel.cols, n - j);
      for (int64_t r = 0; r < rows; r += kernel.rows)
        piece(i + r, std::min(kernel.rows, rows - r), j, cols, p, depth,
              x.at + r / kernel.rows * x.group, x.row, x.step, packed, kernel.cols);
    }
  }

  // Panels of b are packed, by all threads, then used by all.
  void packed() const {
    const int64_t panels = (n + kernel.cols - 1) / kernel.cols;
    // As many columns at a time as give a few megabytes.
    const int64_t most =
        std::max<int64_t>(1, (int64_t{2} << 20) / (panel_size() * static_cast<int64_t>(sizeof(T))));
    const int64_t at_once = std::min(panels, most);
    Buffer buffer(static_cast<size_t>(at_once * panel_size()) * sizeof(T));
    T* packed = buffer.as<T>();
    OutOfScratch failure;
    for (int64_t first = 0; first < panels; first += at_once) {
      const int64_t count = std::min(at_once, panels - first);
      for (int64_t p = 0; p < k; p += kGemmDepth) {
        const int64_t depth = std::min(kGemmDepth, k - p);
        pack_panels(p, depth, first, count, packed, failure);
        multiply_panels(p, depth, first, count, packed, failure);
      }
    }
    if (!failure.status("matmul").ok()) throw std::bad_alloc();
  }
  void pack_panels(int64_t p, int64_t depth, int64_t first, int64_t count, T* packed,
                   OutOfScratch& failure) const {
    const bool plain = b_is_direct() || (b.row == 1 && !widen_b);
    parallel_for(0, count, std::max<int64_t>(1, 16 * 1024 / (depth * kernel.cols)),
                 [&](int64_t begin, int64_t end) {
                   Scratch wide(plain ? 0 : static_cast<size_t>(wide_elements()) * sizeof(T),
                                failure);
                   if (!plain && !wide.get()) return;
                   for (int64_t q = begin; q < end; ++q) {
                     const int64_t j = (first + q) * kernel.cols;
                     pack_panel(p, depth, j, std::min(kernel.cols, n - j),
                                packed + q * panel_size(), static_cast<T*>(wide.get()));
                   }
                 });
  }
  void multiply_panels(int64_t p, int64_t depth, int64_t first, int64_t count, const T* packed,
                       OutOfScratch& failure) const {
    // Blocks of rows, equally many for each thread and whole groups of the kernel's; panels in
    // groups where rows alone give too few.
    const int64_t wanted = 4 * num_threads();
    const int64_t groups = (m + kernel.rows - 1) / kernel.rows;
    int64_t down = (m + wanted * kBlockRows - 1) / (wanted * kBlockRows) * wanted;
    down = std::min(down, std::max<int64_t>(1, std::min(groups, m / kRowsToShare)));
    const int64_t across = std::clamp<int64_t>(wanted / down, 1, count);
    const int64_t chunk = (count + across - 1) / across;
    const bool in_place = a.col == 1 && !widen_a;
    parallel_for(0, down * across, 1, [&](int64_t begin, int64_t end) {
      Scratch scratch(in_place ? 0 : static_cast<size_t>(block_elements()) * sizeof(T), failure);
      T* to = static_cast<T*>(scratch.get());
      if (!in_place && !to) return;
      for (int64_t t = begin; t < end; ++t) {
        const int64_t i = groups * (t / across) / down * kernel.rows;
        const int64_t rows = std::min(m, groups * (t / across + 1) / down * kernel.rows) - i;
        const int64_t q = t % across * chunk;
        rows_by_panels(i, rows, p, depth, first + q, first + std::min(count, q + chunk),
                       packed + q * panel_size(), to);
      }
    });
  }

  // Threads take columns: each packs its own panels and multiplies all rows by them.
  void by_columns() const {
    const int64_t panels = (n + kernel.cols - 1) / kernel.cols;
    const int64_t chunk = panels_at_once(panels), tasks = (panels + chunk - 1) / chunk;
    OutOfScratch failure;
    parallel_for(0, tasks, 1, [&](int64_t begin, int64_t end) {
      Scratch scratch(
          static_cast<size_t>(chunk * panel_size() + wide_elements() + block_elements()) *
              sizeof(T),
          failure);
      T* packed = static_cast<T*>(scratch.get());
      if (!packed) return;
      T *wide = packed + chunk * panel_size(), *to = wide + wide_elements();
      for (int64_t t = begin; t < end; ++t)
        for (int64_t p = 0; p < k; p += kGemmDepth)
          columns(t * chunk, std::min(panels, (t + 1) * chunk), p, packed, wide, to);
    });
    if (!failure.status("matmul").ok()) throw std::bad_alloc();
  }
  void columns(int64_t first, int64_t last, int64_t p, T* packed, T* wide, T* to) const {
    const int64_t depth = std::min(kGemmDepth, k - p);
    for (int64_t q = first; q < last; ++q)
      pack_panel(p, depth, q * kernel.cols, std::min(kernel.cols, n - q * kernel.cols),
                 packed + (q - first) * panel_size(), wide);
    for (int64_t i = 0; i < m; i += kBlockRows) {
      const int64_t rows = std::min(kBlockRows, m - i);
      rows_by_panels(i, rows, p, depth, first, last, packed, to);
    }
  }
  // Panels that a thread holds in its second-level cache.
  int64_t panels_at_once(int64_t panels) const {
    const int64_t fit = kColumnsBytes / (panel_size() * static_cast<int64_t>(sizeof(T)));
    return std::clamp<int64_t>(panels / (4 * num_threads()), 1, std::max<int64_t>(1, fit));
  }

  void run() const {
    const bool small = k * n * static_cast<int64_t>(sizeof(T)) <= kDirectBytes;
    if (b_is_direct() && (small || m < kRowsToPack)) return direct();
    // By columns where that makes tasks enough, and large ones where each has to copy a.
    const int64_t tasks = (a.col == 1 && !widen_a ? 4 : 16) * num_threads();
    const bool wide = m >= kRowsToPack && n >= tasks * kernel.cols;
    wide ? by_columns() : packed();
  }
};

}  // namespace

template <class T>
bool gemm_blocked(int64_t m, int64_t n, int64_t k, const GemmOperand& a, const GemmOperand& b, T* c,
                  const T* bias, bool add) {
  const GemmKernel<T>* kernel = gemm_kernel<T>();
  if (!kernel) return false;
  Product<T> product{*kernel, m, n, k, a, b, c, bias, add};
  if (a.dtype != Product<T>::kOwn) product.widen_a = converts().load[static_cast<int>(a.dtype)];
  if (b.dtype != Product<T>::kOwn) product.widen_b = converts().load[static_cast<int>(b.dtype)];
  product.run();
  return true;
}

template bool gemm_blocked<float>(int64_t, int64_t, int64_t, const GemmOperand&, const GemmOperand&,
                                  float*, const float*, bool);
template bool gemm_blocked<double>(int64_t, int64_t, int64_t, const GemmOperand&,
                                   const GemmOperand&, double*, const double*, bool);

}  // namespace tessera::cpu
