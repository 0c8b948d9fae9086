#include "tessera/parallel/distributed_data_parallel.h"

#include "tessera/autograd/node.h"

namespace tessera::nn::parallel {

namespace {

std::vector<TensorBase> tensors_of(const std::vector<Tensor>& list) {
  return {list.begin(), list.end()};
}

}  // namespace

DistributedState::DistributedState(const Module& module, DistributedOptions options)
    : module_(module), options_(std::move(options)) {
  if (!options_.process_group) options_.process_group = distributed::world();
  std::vector<TensorBase> wanted;
  std::vector<std::string> names, lines;
  for (const auto& [name, p] : module_.named_parameters()) {
    if (!p.requires_grad()) continue;
    wanted.push_back(p);
    names.push_back(name);
    lines.push_back(cat(name, " (", p.dtype(), ", shape ", p.sizes(), ")"));
  }
  TS_CHECK(!wanted.empty(),
           "DistributedDataParallel is not needed when a module doesn't have any parameter that "
           "requires a gradient.");
  distributed::ProcessGroup& group = *options_.process_group;
  tessera::parallel::check_same_everywhere(group, lines, "parameter", wanted[0].device());
  std::vector<TensorBase> all = tensors_of(module_.parameters());
  for (const Tensor& b : module_.buffers()) all.push_back(b);
  tessera::parallel::broadcast_together(group, all, 0);
  const auto cap = static_cast<size_t>(options_.bucket_cap_mb * 1048576);
  reducer_ =
      tessera::parallel::Reducer::make(std::move(wanted), std::move(names), options_.process_group,
                                       {.bucket_bytes = cap,
                                        .first_bucket_bytes = std::min(cap, size_t{1} << 20),
                                        .find_unused_parameters = options_.find_unused_parameters,
                                        .gradient_as_bucket_view = options_.gradient_as_bucket_view,
                                        .static_graph = options_.static_graph});
}

void DistributedState::before_forward() {
  if (synchronizes && autograd::grad_enabled()) reducer_->prepare_for_forward();
  if (!options_.broadcast_buffers || !buffers_changed_) return;
  const std::vector<TensorBase> buffers = tensors_of(module_.buffers());
  if (!buffers.empty()) tessera::parallel::broadcast_together(*options_.process_group, buffers, 0);
}

void DistributedState::after_forward(const std::vector<TensorBase>& outputs) {
  buffers_changed_ = synchronizes && autograd::grad_enabled();
  if (buffers_changed_)
    reducer_->prepare_for_backward(options_.find_unused_parameters ? outputs
                                                                   : std::vector<TensorBase>());
  else
    reducer_->expect_nothing();
}

}  // namespace tessera::nn::parallel
