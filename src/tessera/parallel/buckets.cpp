#include "tessera/parallel/buckets.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "tessera/autograd/node.h"
#include "tessera/distributed/sha256.h"
#include "tessera/fuse/stream.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/view.h"

namespace tessera::parallel {

namespace {

using distributed::ProcessGroup;
using Kind = std::tuple<DType, DeviceType, int>;

Kind kind_of(const TensorBase& t) { return {t.dtype(), t.device().type, t.device().index}; }

// Bytes, as a tensor where the group's backend wants them.
TensorBase as_tensor(const std::string& bytes, Device device) {
  TensorBase host = new_empty({static_cast<int64_t>(bytes.size())}, DType::kUInt8, Device{});
  std::memcpy(host.raw(), bytes.data(), bytes.size());
  return device.is_cpu() ? host : op::_to_device(host, device);
}

std::string as_bytes(const TensorBase& t) {
  TensorBase host = t.device().is_cpu() ? t : op::_to_device(t, Device{});
  fuse::ensure_readable(host, fuse::Reason::kHostRead);
  return {host.raw(), host.nbytes()};
}

// What every rank has, all as long as this one's.
std::vector<std::string> gather_bytes(ProcessGroup& group, const std::string& own, Device device) {
  std::vector<TensorBase> all;
  for (int i = 0; i < group.size(); ++i)
    all.push_back(new_empty({static_cast<int64_t>(own.size())}, DType::kUInt8, device));
  group.all_gather(all, as_tensor(own, device))->wait();
  std::vector<std::string> out;
  for (const TensorBase& t : all) out.push_back(as_bytes(t));
  return out;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> lines;
  size_t from = 0;
  for (size_t at; (at = text.find('\n', from)) != std::string::npos; from = at + 1)
    lines.push_back(text.substr(from, at - from));
  return lines;
}

}  // namespace

std::vector<std::vector<int>> assign_buckets(const std::vector<TensorBase>& parameters,
                                             const std::vector<int>& order, size_t first_bytes,
                                             size_t bytes) {
  struct Open {
    std::vector<int> members;
    size_t size = 0;
    bool first = true;
    size_t since = 0;  // when it was opened
  };
  std::map<Kind, Open> open;
  std::vector<std::pair<size_t, std::vector<int>>> closed;
  size_t step = 0;
  for (int i : order) {
    const TensorBase& p = parameters[static_cast<size_t>(i)];
    Open& o = open[kind_of(p)];
    if (o.members.empty()) o.since = step;
    ++step;
    o.members.push_back(i);
    o.size += p.nbytes();
    if (o.size < (o.first ? first_bytes : bytes)) continue;
    closed.emplace_back(o.since, std::move(o.members));
    o = Open{.first = false};
  }
  for (auto& [kind, o] : open)
    if (!o.members.empty()) closed.emplace_back(o.since, std::move(o.members));
  std::sort(closed.begin(), closed.end());
  std::vector<std::vector<int>> out;
  for (auto& [since, members] : closed) out.push_back(std::move(members));
  return out;
}

Bucket make_bucket(const std::vector<TensorBase>& parameters, std::vector<int> members) {
  Bucket b;
  int64_t count = 0;
  for (int i : members) count += parameters[static_cast<size_t>(i)].numel();
  const TensorBase& first = parameters[static_cast<size_t>(members[0])];
  b.flat = new_empty({count}, first.dtype(), first.device());
  int64_t at = 0;
  for (int i : members) {
    const TensorBase& p = parameters[static_cast<size_t>(i)];
    Dims strides = is_dense(p) ? p.strides() : contiguous_strides(p.sizes());
    b.views.push_back(alias(b.flat, p.sizes(), strides, at));
    at += p.numel();
  }
  b.members = std::move(members);
  return b;
}

void broadcast_together(ProcessGroup& group, const std::vector<TensorBase>& tensors, int root) {
  autograd::GradMode off(false);
  std::vector<int> all(tensors.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int>(i);
  constexpr size_t kBytes = size_t{250} << 20;
  for (std::vector<int>& members : assign_buckets(tensors, all, kBytes, kBytes)) {
    Bucket b = make_bucket(tensors, std::move(members));
    for (size_t m = 0; m < b.members.size(); ++m)
      op::copy_(b.views[m], tensors[static_cast<size_t>(b.members[m])]);
    group.broadcast(b.flat, root)->wait();
    if (group.rank() == root) continue;
    for (size_t m = 0; m < b.members.size(); ++m)
      op::copy_(tensors[static_cast<size_t>(b.members[m])], b.views[m]);
  }
}

void check_same_everywhere(ProcessGroup& group, const std::vector<std::string>& lines,
                           const char* what, Device device) {
  const std::string text = joined(lines);
  const distributed::Digest digest = distributed::sha256(text);
  std::vector<std::string> digests = gather_bytes(group, {digest.begin(), digest.end()}, device);
  if (std::all_of(digests.begin(), digests.end(),
                  [&](const std::string& d) { return d == digests[0]; }))
    return;
  // Everybody learns what everybody has, to say where they differ.
  const uint64_t length = text.size();
  std::string own(sizeof length, '\0');
  std::memcpy(own.data(), &length, sizeof length);
  uint64_t longest = 0;
  std::vector<uint64_t> lengths;
  for (const std::string& l : gather_bytes(group, own, device)) {
    lengths.emplace_back();
    std::memcpy(&lengths.back(), l.data(), sizeof length);
    longest = std::max(longest, lengths.back());
  }
  std::string padded = text;
  padded.resize(longest, '\0');
  std::vector<std::string> texts = gather_bytes(group, padded, device);
  for (size_t r = 0; r < texts.size(); ++r) texts[r].resize(lengths[r]);
  size_t other = 1;
  while (digests[other] == digests[0]) ++other;
  const std::vector<std::string> a = split(texts[0]), b = split(texts[other]);
  size_t at = 0;
  while (at < a.size() && at < b.size() && a[at] == b[at]) ++at;
  const char* nothing = "no further one";
  TS_CHECK(false, "DDP expects same model across all ranks, but ", what, " ", at, " is ",
           at < a.size() ? a[at].c_str() : nothing, " on rank 0 and ",
           at < b.size() ? b[at].c_str() : nothing, " on rank ", other, " (rank 0 has ", a.size(),
           " ", what, "s, rank ", other, " has ", b.size(), "; this is rank ", group.rank(), ").");
}

}  // namespace tessera::parallel
