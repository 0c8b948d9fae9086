// Four processes train one model, each with its part of every batch: DistributedDataParallel.
// Started by a launcher (tessera run --nproc 4, torchrun, mpirun) it is one of them; started alone
// it is the whole job, and the numbers are the same.
//   tessera run --nproc 4 --no_python build/release/examples/ddp [gloo | mpi | nccl]
#include <tessera/tessera.h>

#include <cstdio>
#include <cstdlib>

using namespace tessera;

int main(int argc, char** argv) {
  distributed::InitOptions options{.backend = argc > 1 ? argv[1] : "gloo"};
  if (!std::getenv("WORLD_SIZE") && !std::getenv("OMPI_COMM_WORLD_SIZE")) {
    options.rank = 0;
    options.world_size = 1;
    options.store = std::make_shared<distributed::HashStore>();
  }
  auto world = distributed::init_process_group(options);
  const int rank = world->rank(), size = world->size();
  Device device = options.backend == "nccl" ? best_device() : Device{};

  manual_seed(rank);  // rank 0's first values count
  nn::Sequential net{nn::Linear(6, 32), nn::Tanh(), nn::Linear(32, 1)};
  net.to(device);
  nn::parallel::DistributedDataParallel model(net, {.bucket_cap_mb = 0.0005});
  nn::MSELoss criterion;
  optim::SGD optimizer(model.parameters(), {.lr = 0.05, .momentum = 0.9});

  manual_seed(0);
  const int64_t rows = 64 / size;
  double last = 0;
  for (int step = 1; step <= 50; ++step) {
    Tensor x = randn({64, 6});
    Tensor y = (x.select(1, 0) * Value(x.select(1, 1))).unsqueeze(1);
    Tensor own_x = x.narrow(0, rank * rows, rows).to(device);
    Tensor own_y = y.narrow(0, rank * rows, rows).to(device);
    optimizer.zero_grad();
    Tensor loss = criterion(model(own_x), own_y);
    loss.backward();
    optimizer.step();
    Tensor mean = loss.detach().clone();
    world->all_reduce(mean, distributed::ReduceOp::kAvg)->wait();
    last = mean.item();
    if (rank == 0 && step % 10 == 0) std::printf("step %d, loss %.4f\n", step, last);
  }
  double sum = 0;
  for (const Tensor& p : model.parameters()) sum += p.detach().abs().sum().item();
  if (rank == 0) std::printf("loss %.4f, sum of weights %.3f\n", last, sum);
  distributed::destroy_process_group();
}
