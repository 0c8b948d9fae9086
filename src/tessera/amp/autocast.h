// Mixed precision: which dtype an operator's inputs are cast to, by the class on its record.
#pragma once
#include <vector>

#include "tessera/ops/record.h"

namespace tessera::amp {

bool autocast_enabled(DeviceType type);
DType autocast_dtype(DeviceType type);
void set_autocast(DeviceType type, bool enabled, DType dtype);

// True when autocast is on for some device in this thread: the only check on the way of a call.
bool any_autocast();

// The arguments of a call, cast as the operator's class asks. While it lives, what the operator is
// made of is not cast again.
class Casts {
 public:
  Casts(const Op& op, Args args);
  ~Casts();
  Casts(const Casts&) = delete;
  Casts& operator=(const Casts&) = delete;

  Args args() const { return changed_ ? Args(out_) : args_; }

 private:
  void cast_to(DType target, bool lower);
  TensorBase one(const TensorBase& t, DType target, bool lower);

  Args args_;
  std::vector<Value> out_;  // into the next two
  std::vector<TensorBase> keep_;
  std::vector<std::vector<TensorBase>> lists_;
  bool changed_ = false;
  bool off_ = false;  // this turned autocast off for type_
  DeviceType type_ = DeviceType::kCPU;
};

}  // namespace tessera::amp
