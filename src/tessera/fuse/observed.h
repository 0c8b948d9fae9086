// A group that runs, told to whoever profiles: with the calls it is made of and their lines.
#pragma once
#include <optional>
#include <span>

#include "tessera/fuse/group.h"
#include "tessera/profile/record.h"

namespace tessera::fuse {

class ObservedGroups {
 public:
  explicit ObservedGroups(std::span<Group* const> groups) {
    if (profile::recording()) [[unlikely]]
      begin(groups);
  }

 private:
  void begin(std::span<Group* const> groups);
  std::optional<profile::Scope> scope_;
};

}  // namespace tessera::fuse
