// The call of an operator, told to whoever profiles.
#pragma once
#include "tessera/ops/record.h"
#include "tessera/profile/record.h"

namespace tessera {

class ObservedCall {
 public:
  ObservedCall(profile::Kind kind, const Op& op, Args args);

 private:
  profile::Scope scope_;
};

}  // namespace tessera
