#include "tessera/fuse/observed.h"

#include <new>

namespace tessera::fuse {

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
  std::vector<SourceRef>& sources = buffer.new_sources();
  sources.reserve(n);
  size_t at = 0;
  each_op([&](const PendingOp& op) {
    const SourceRef* source = nullptr;
    if (op.source) source = &sources.emplace_back(op.source.share());
    new (&members[at++]) profile::Member{op.call, op.name(), source};
  });
  scope_.emplace(profile::Kind::kGroup, "");  // its name is made of its members', later
  scope_->data = members;
  scope_->count = static_cast<uint32_t>(n);
}

}  // namespace tessera::fuse
