#include "tessera/distributed/distributed.h"

#include <algorithm>

namespace tessera::distributed {

namespace {

Group group_of(const Group& group) { return group ? group : world(); }

int member(const Group& group, int world_rank) {
  const std::vector<int>& ranks = group->ranks();
  auto at = std::find(ranks.begin(), ranks.end(), world_rank);
  TS_CHECK_VALUE(at != ranks.end(), "Global rank ", world_rank, " is not part of group ",
                 group->name());
  return static_cast<int>(at - ranks.begin());
}

WorkPtr done(WorkPtr work, const CollectiveOptions& options) {
  if (!options.async_op) work->wait();
  return work;
}

std::vector<TensorBase> bases(const std::vector<Tensor>& tensors) {
  return {tensors.begin(), tensors.end()};
}

}  // namespace

int get_rank(const Group& group) { return group_of(group)->rank(); }
int get_world_size(const Group& group) { return group_of(group)->size(); }

WorkPtr all_reduce(const Tensor& tensor, CollectiveOptions o) {
  return done(group_of(o.group)->all_reduce(tensor, o.op), o);
}
WorkPtr reduce(const Tensor& tensor, int dst, CollectiveOptions o) {
  Group g = group_of(o.group);
  return done(g->reduce(tensor, member(g, dst), o.op), o);
}
WorkPtr broadcast(const Tensor& tensor, int src, CollectiveOptions o) {
  Group g = group_of(o.group);
  return done(g->broadcast(tensor, member(g, src)), o);
}
WorkPtr all_gather(const std::vector<Tensor>& tensors, const Tensor& tensor, CollectiveOptions o) {
  return done(group_of(o.group)->all_gather(bases(tensors), tensor), o);
}
WorkPtr all_gather_into_tensor(const Tensor& output, const Tensor& input, CollectiveOptions o) {
  return done(group_of(o.group)->all_gather({output}, input), o);
}
WorkPtr reduce_scatter_tensor(const Tensor& output, const Tensor& input, CollectiveOptions o) {
  return done(group_of(o.group)->reduce_scatter(output, {input}, o.op), o);
}
WorkPtr gather(const Tensor& tensor, const std::vector<Tensor>& tensors, int dst,
               CollectiveOptions o) {
  Group g = group_of(o.group);
  return done(g->gather(bases(tensors), tensor, member(g, dst)), o);
}
WorkPtr scatter(const Tensor& tensor, const std::vector<Tensor>& tensors, int src,
                CollectiveOptions o) {
  Group g = group_of(o.group);
  return done(g->scatter(tensor, bases(tensors), member(g, src)), o);
}
WorkPtr all_to_all_single(const Tensor& output, const Tensor& input, CollectiveOptions o) {
  return done(group_of(o.group)->all_to_all_single(output, input, {}, {}), o);
}
WorkPtr send(const Tensor& tensor, int dst, uint32_t tag, CollectiveOptions o) {
  Group g = group_of(o.group);
  return done(g->send(tensor, member(g, dst), tag), o);
}
WorkPtr recv(const Tensor& tensor, int src, uint32_t tag, CollectiveOptions o) {
  Group g = group_of(o.group);
  return done(g->receive(tensor, src < 0 ? -1 : member(g, src), tag), o);
}
WorkPtr barrier(CollectiveOptions o) { return done(group_of(o.group)->barrier(), o); }

}  // namespace tessera::distributed
