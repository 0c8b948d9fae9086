#include "tessera/fuse/observed.h"

#include <cstring>
#include <new>

namespace tessera::fuse {

namespace {

// "mul_add_x3_relu": in program order, at most a few.
std::string joined_names(std::span<const profile::Member> members) {
  constexpr int kMost = 6;
  std::string out;
  int parts = 0;
  for (size_t i = 0; i < members.size();) {
    if (parts++ == kMost) return out + cat("_and_", members.size() - i, "_more");
    size_t same = i;
    while (same < members.size() && !std::strcmp(members[same].name, members[i].name)) ++same;
    if (!out.empty()) out += '_';
    out += members[i].name;
    if (same - i > 1) out += cat("_x", same - i);
    i = same;
  }
  return out;
}

}  // namespace

void ObservedGroups::begin(std::span<Group* const> groups) {
  size_t n = 0;
  auto each_op = [&groups](auto f) {
    for (Group* g : groups)
      for (Group* part : {g->before, g, g->after})
        if (part)
          for (PendingOp* op : part->ops)
            if (op->live || op->kernel) f(*op);
  };
  each_op([&n](const PendingOp&) { ++n; });
  if (n == 0) return;
  profile::Buffer& buffer = profile::own_buffer();
  auto* members = static_cast<profile::Member*>(buffer.room(n * sizeof(profile::Member)));
  size_t at = 0;
  each_op([&](const PendingOp& op) {
    const SourceRef* source = op.source ? buffer.keep(op.source.share()) : nullptr;
    new (&members[at++]) profile::Member{op.call, buffer.copy(op.name()), source};
  });
  scope_.emplace(profile::Kind::kGroup, buffer.copy(joined_names({members, n})));
  scope_->data = members;
  scope_->count = static_cast<uint32_t>(n);
}

}  // namespace tessera::fuse
