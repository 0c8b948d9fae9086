// Several processes that compute together. Each adds up its part of a row of numbers, and all of
// them get the whole sum. Alone it is a job of one process; as one of four:
//   tessera run --nproc 4 --no_python build/release/examples/all_reduce
#include <tessera/tessera.h>

#include <cstdio>

using namespace tessera;

int main() {
  try {
    if (distributed::launch_environment().count("RANK"))
      distributed::init_process_group({.backend = "gloo"});
    else
      distributed::init_process_group({.backend = "gloo",
                                       .rank = 0,
                                       .world_size = 1,
                                       .store = std::make_shared<distributed::HashStore>()});
    const int rank = distributed::get_rank(), size = distributed::get_world_size();

    // 0, 1, 2, ... in equal parts.
    const int64_t count = 1'200'000, part = count / size;
    Tensor mine = arange(rank * part, (rank + 1) * part, 1, DType::kFloat64);
    Tensor sum = mine.sum().reshape({1});
    distributed::all_reduce(sum);

    // The handle lets other work go on meanwhile.
    Tensor largest = mine.max().reshape({1});
    auto work =
        distributed::all_reduce(largest, {.op = distributed::ReduceOp::kMax, .async_op = true});
    const bool right = sum.item() == static_cast<double>(count) * (count - 1) / 2;
    work->wait();
    distributed::barrier();
    if (rank == 0)
      std::printf("%d process%s: the sum is %.0f, the largest %.0f\n", size, size == 1 ? "" : "es",
                  sum.item(), largest.item());
    distributed::destroy_process_group();
    return right && largest.item() == count - 1 ? 0 : 1;
  } catch (const Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
