// Solutions of linear equations, from factors or by least squares.
#include <cstdlib>

#include "kernel_linalg.h"

namespace tessera::cpu {

namespace {

// outputs: solution; inputs: triangular matrix, right side; ints: upper, left, unit diagonal
template <class T>
Status triangular_as(const KernelArgs& args, const Lapack<T>& l) {
  const KernelTensor &a = args.inputs[0], &b = args.inputs[1];
  const bool upper = args.ints[0] != 0, left = args.ints[1] != 0;
  const int m = to_int(b.sizes[1]), n = to_int(b.sizes[2]), ldb = ld_of(m);
  const char side = left ? 'L' : 'R', diag = args.ints[2] ? 'U' : 'N';
  const T one = T(1);
  const char uplo = upper ? 'U' : 'L';
  const int64_t copied = room_for(a);
  const double work = 1.0 * m * n * static_cast<double>(a.sizes[1]);
  return each_matrix(
      "solve_triangular", b.sizes[0], work, room<T>(copied), [&](int64_t i, char* p) {
        T* x = matrix_of<T>(args.outputs[0], i);
        copy_columns(x, b, i, m);
        Columns<T> c = as_columns(a, i, take<T>(p, copied));
        l.trsm(&side, &uplo, "N", &diag, &m, &n, &one, c.data, &c.ld, x, &ldb, 1, 1, 1, 1);
      });
}

// outputs: solution; inputs: right side, factor; ints: upper
template <class T>
Status cholesky_solve_as(const KernelArgs& args, const Lapack<T>& l) {
  const KernelTensor &b = args.inputs[0], &a = args.inputs[1];
  const int n = to_int(a.sizes[1]), k = to_int(b.sizes[2]), ldb = ld_of(n);
  const char uplo = args.ints[0] ? 'U' : 'L';
  const int64_t copied = room_for(a);
  const double work = 2.0 * n * n * k;
  return each_matrix("cholesky_solve", b.sizes[0], work, room<T>(copied), [&](int64_t i, char* p) {
    T* x = matrix_of<T>(args.outputs[0], i);
    copy_columns(x, b, i, n);
    Columns<T> c = as_columns(a, i, take<T>(p, copied));
    int info = 0;
    l.potrs(&uplo, &n, &k, c.data, &c.ld, x, &ldb, &info, 1);
  });
}

// outputs: inverse; inputs: factor; ints: upper
template <class T>
Status cholesky_inverse_as(const KernelArgs& args, const Lapack<T>& l) {
  const KernelTensor& in = args.inputs[0];
  const int n = to_int(in.sizes[1]), ld = ld_of(n);
  const bool upper = args.ints[0] != 0;
  const double work = n * 1.0 * n * n;
  int* info = static_cast<int*>(args.outputs[1].data);
  return each_matrix("cholesky_inverse", in.sizes[0], work, 0, [&](int64_t i, char*) {
    T* a = matrix_of<T>(args.outputs[0], i);
    copy_columns(a, in, i, n);
    l.potri(upper ? "U" : "L", &n, a, &ld, info + i, 1);
    for (int64_t c = 0; c < n; ++c)
      for (int64_t r = c + 1; r < n; ++r) {
        if (upper)
          a[c * n + r] = conjugate(a[r * n + c]);
        else
          a[r * n + c] = conjugate(a[c * n + r]);
      }
  });
}

// LAPACK exchanges the rows that pivots name without a look at them.
Status check_pivots(const char* name, const KernelTensor& pivots, int n, bool may_be_negative) {
  for (int64_t i = 0; i < pivots.sizes[0]; ++i) {
    const int* row = matrix_of<int>(pivots, i);
    for (int64_t k = 0; k < pivots.sizes[1]; ++k) {
      const int64_t p = may_be_negative ? std::abs(int64_t{row[k]}) : row[k];
      if (p < 1 || p > n)
        return fail(Code::kRefused,
                    "%s: pivots must be between 1 and %d inclusive, got %d. Did you "
                    "properly pass the result of the factorization?",
                    name, n, row[k]);
    }
  }
  return {};
}

// outputs: solution; inputs: right side, factors, pivots; ints: 0 plain, 1 transposed, 2 adjoint
template <class T>
Status lu_solve_as(const KernelArgs& args, const Lapack<T>& l) {
  const KernelTensor &b = args.inputs[0], &a = args.inputs[1], &pivots = args.inputs[2];
  const int n = to_int(a.sizes[1]), k = to_int(b.sizes[2]), ldb = ld_of(n);
  const char trans = "NTC"[args.ints[0]];
  if (Status s = check_pivots("lu_solve", pivots, n, false); !s.ok()) return s;
  const int64_t copied = room_for(a);
  const double work = 2.0 * n * n * k;
  return each_matrix("lu_solve", b.sizes[0], work, room<T>(copied), [&](int64_t i, char* p) {
    T* x = matrix_of<T>(args.outputs[0], i);
    copy_columns(x, b, i, n);
    Columns<T> c = as_columns(a, i, take<T>(p, copied));
    int info = 0;
    l.getrs(&trans, &n, &k, c.data, &c.ld, matrix_of<int>(pivots, i), x, &ldb, &info, 1);
  });
}

// outputs: solution; inputs: right side, factors, pivots; ints: hermitian
template <class T>
Status ldl_solve_as(const KernelArgs& args, const Lapack<T>& l) {
  const KernelTensor &b = args.inputs[0], &a = args.inputs[1], &pivots = args.inputs[2];
  const int n = to_int(a.sizes[1]), k = to_int(b.sizes[2]), ldb = ld_of(n);
  auto solve = args.ints[0] ? l.hetrs : l.sytrs;
  if (Status s = check_pivots("ldl_solve", pivots, n, true); !s.ok()) return s;
  const int64_t copied = room_for(a);
  const double work = 2.0 * n * n * k;
  return each_matrix("ldl_solve", b.sizes[0], work, room<T>(copied), [&](int64_t i, char* p) {
    T* x = matrix_of<T>(args.outputs[0], i);
    copy_columns(x, b, i, n);
    Columns<T> c = as_columns(a, i, take<T>(p, copied));
    int info = 0;
    solve("L", &n, &k, c.data, &c.ld, matrix_of<int>(pivots, i), x, &ldb, &info, 1);
  });
}

enum Driver : int64_t { kGels, kGelsy, kGelsd, kGelss };

// outputs: solution in the first rows of max(m, n), rank, singular values, info; inputs: matrix,
// right side; ints: driver; doubles: relative cutoff
template <class T>
Status lstsq_as(const KernelArgs& args, const Lapack<T>& l) {
  using R = real_t<T>;
  const KernelTensor &in = args.inputs[0], &right = args.inputs[1];
  const int m = to_int(in.sizes[1]), n = to_int(in.sizes[2]), k = to_int(right.sizes[2]);
  const int lda = ld_of(m), ldb = ld_of(std::max(m, n)), least = std::min(m, n);
  const int64_t driver = args.ints[0];
  const R rcond = static_cast<R>(args.doubles[0]);
  int64_t* rank = static_cast<int64_t*>(args.outputs[1].data);
  R* values = static_cast<R*>(args.outputs[2].data);
  int* info = static_cast<int*>(args.outputs[3].data);
  void* routine = driver == kGelsd ? l.gelsd : driver == kGelss ? l.gelss : l.gelsy;
  const bool has_values = driver == kGelsd || driver == kGelss, has_iwork = driver == kGelsd;
  auto solve = [&](T* a, T* b, R* s, int* found, const Workspace<T>& w, int* status) {
    if (driver == kGels)
      l.gels("N", &m, &n, &k, a, &lda, b, &ldb, w.work, &w.lwork, status, 1);
    else
      gels_by<T>(routine, has_values, has_iwork, m, n, k, a, lda, b, ldb, s, rcond, found, w,
                 status);
  };
  T size{}, none{};
  R rsize{}, no_values{};
  int isize = 0, ignored = 0, found = 0;
  Workspace<T> ask{&size, -1, &rsize, -1, &isize, -1};
  solve(&none, &none, &no_values, &found, ask, &ignored);
  const int lwork = asked_size(size);
  // gelsd answers the sizes of its other two workspaces too; gelsy keeps the order of its columns.
  const int64_t lrwork =
      std::max<int64_t>(driver == kGelsd ? asked_size(rsize) : 0, std::max(2 * n, 5 * least));
  const int64_t liwork = std::max<int64_t>({int64_t{n}, int64_t{isize}, 1});
  const size_t bytes =
      room<T>(lwork) + room<R>(lrwork) + room<int>(liwork) + room<T>(int64_t{m} * n);
  const double work = 4.0 * m * n * least;
  return each_matrix("lstsq", in.sizes[0], work, bytes, [&](int64_t i, char* p) {
    T* a = take<T>(p, int64_t{m} * n);
    copy_columns(a, in, i, m);
    T* b = matrix_of<T>(args.outputs[0], i);
    std::fill_n(b, int64_t{ldb} * k, T(0));
    copy_columns(b, right, i, ldb);
    Workspace<T> w{take<T>(p, lwork),    lwork,         take<R>(p, lrwork), to_int(lrwork),
                   take<int>(p, liwork), to_int(liwork)};
    std::fill_n(w.iwork, liwork, 0);  // gelsy: every column is free to move
    int of_this = 0;
    solve(a, b, values + i * least, &of_this, w, info + i);
    rank[i] = of_this;
  });
}

TS_LAPACK_KERNEL("solve_triangular", triangular)
TS_LAPACK_KERNEL("cholesky_solve", cholesky_solve)
TS_LAPACK_KERNEL("cholesky_inverse", cholesky_inverse)
TS_LAPACK_KERNEL("lu_solve", lu_solve)
TS_LAPACK_KERNEL("ldl_solve", ldl_solve)
TS_LAPACK_KERNEL("lstsq", lstsq)

}  // namespace

}  // namespace tessera::cpu
