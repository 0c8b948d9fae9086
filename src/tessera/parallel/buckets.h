// Gradients side by side in few pieces of memory, so that few collectives carry many parameters.
#pragma once
#include <string>
#include <vector>

#include "tessera/distributed/process_group.h"

namespace tessera::parallel {

// Which parameters share a bucket: in the order given, of one dtype and device each, `first_bytes`
// in the first one of a kind and `bytes` in the others (one parameter at least). Buckets are in the
// order of their first parameters.
std::vector<std::vector<int>> assign_buckets(const std::vector<TensorBase>& parameters,
                                             const std::vector<int>& order, size_t first_bytes,
                                             size_t bytes);

struct Bucket {
  std::vector<int> members;       // by their places among the parameters
  TensorBase flat;                // the memory of all
  std::vector<TensorBase> views;  // of each member, in its shape and laid out as it is
  int pending = 0;                // members whose gradient is still to come
  distributed::WorkPtr work;
};
Bucket make_bucket(const std::vector<TensorBase>& parameters, std::vector<int> members);

// Rank `root`'s values for everybody, those of one dtype and device together.
void broadcast_together(distributed::ProcessGroup& group, const std::vector<TensorBase>& tensors,
                        int root);

// Raises on all ranks unless they have the same list; `lines` says what each rank has, and `what`
// names it: "parameter". It goes by `device`: no other one is touched.
void check_same_everywhere(distributed::ProcessGroup& group, const std::vector<std::string>& lines,
                           const char* what, Device device);

}  // namespace tessera::parallel
