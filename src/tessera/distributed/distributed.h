// torch.distributed for C++: #include <tessera/distributed/distributed.h>, which tessera.h does.
//
//   distributed::init_process_group();            // RANK, WORLD_SIZE, ...: see docs/guide
//   distributed::all_reduce(gradient);
//   auto work = distributed::all_reduce(other, {.async_op = true});
//   work->wait();
#pragma once
#include "tessera/distributed/environment.h"
#include "tessera/distributed/error.h"
#include "tessera/distributed/world.h"
#include "tessera/face/tensor.h"

namespace tessera::distributed {

using Group = std::shared_ptr<ProcessGroup>;

struct CollectiveOptions {
  ReduceOp op = ReduceOp::kSum;
  Group group = nullptr;  // null: all processes
  bool async_op = false;  // the handle has to be waited for
};

int get_rank(const Group& group = nullptr);
int get_world_size(const Group& group = nullptr);

// Ranks in arguments are those of the world. Each gives its handle, which is done already unless
// async_op is set.
WorkPtr all_reduce(const Tensor& tensor, CollectiveOptions options = {});
WorkPtr reduce(const Tensor& tensor, int dst, CollectiveOptions options = {});
WorkPtr broadcast(const Tensor& tensor, int src, CollectiveOptions options = {});
WorkPtr all_gather(const std::vector<Tensor>& tensors, const Tensor& tensor,
                   CollectiveOptions options = {});
WorkPtr all_gather_into_tensor(const Tensor& output, const Tensor& input,
                               CollectiveOptions options = {});
WorkPtr reduce_scatter_tensor(const Tensor& output, const Tensor& input,
                              CollectiveOptions options = {});
WorkPtr gather(const Tensor& tensor, const std::vector<Tensor>& tensors, int dst,
               CollectiveOptions options = {});
WorkPtr scatter(const Tensor& tensor, const std::vector<Tensor>& tensors, int src,
                CollectiveOptions options = {});
WorkPtr all_to_all_single(const Tensor& output, const Tensor& input,
                          CollectiveOptions options = {});
WorkPtr send(const Tensor& tensor, int dst, uint32_t tag = 0, CollectiveOptions options = {});
// From -1: from anybody; the handle's source_rank() tells who it was.
WorkPtr recv(const Tensor& tensor, int src = -1, uint32_t tag = 0, CollectiveOptions options = {});
WorkPtr barrier(CollectiveOptions options = {});

}  // namespace tessera::distributed
