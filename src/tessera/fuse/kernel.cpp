// Runs a kernel that was recorded, with the pointwise groups that joined it.
#include <algorithm>
#include <deque>

#include "tessera/driver/current.h"
#include "tessera/fuse/check.h"
#include "tessera/fuse/group.h"
#include "tessera/fuse/observed.h"
#include "tessera/fuse/rows.h"

namespace tessera::fuse {

namespace {

// What a backend is given for a recorded kernel; points into itself.
class Arguments {
 public:
  explicit Arguments(const PendingKernel& call) {
    const size_t n = call.outputs.size() + call.inputs.size();
    shapes_.reserve(n);
    strides_.reserve(n);
    tensors_.reserve(n);
    for (const auto* list : {&call.outputs, &call.inputs})
      for (const PendingKernel::Place& o : *list) {
        int64_t numel = 1;
        for (int64_t size : o.shape) numel *= size;
        shapes_.push_back(o.shape);
        strides_.push_back(o.dense ? contiguous_strides(o.shape) : o.strides);
        const size_t i = tensors_.size();
        const Rows& r = call.rows;
        const bool output = i < call.outputs.size();
        const bool in_rows = output ? !r.across || i == static_cast<size_t>(r.out)
                                    : (r.whole >> (i - call.outputs.size()) & 1) != 0;
        if (!call.body && r.rows > 0 && in_rows) {
          shapes_[i] = Dims{r.rows, numel / r.rows};
          strides_[i] = contiguous_strides(shapes_[i]);
        }
        tensors_.push_back({address_of(o), o.dtype, shapes_[i].ndim(), shapes_[i].data(),
                            strides_[i].data(), numel});
      }
    args = {static_cast<int>(call.outputs.size()), tensors_.data(),
            static_cast<int>(call.inputs.size()),  tensors_.data() + call.outputs.size(),
            static_cast<int>(call.ints.size()),    call.ints.data(),
            static_cast<int>(call.doubles.size()), call.doubles.data()};
    if (!call.body) return;
    const PendingKernel::Place& in = call.inputs[0];
    reduction_.emplace(*call.body, in.dtype, in.shape, strides_[1], call.ints,
                       call.outputs[0].dtype);
    reduction_->program.in = tensors_[1].data;
    reduction_->program.out = tensors_[0].data;
  }
  Arguments(const Arguments&) = delete;

  const ReduceProgram* reduce() const { return reduction_ ? &reduction_->program : nullptr; }
  void set_input(size_t i, void* data) {
    tensors_[static_cast<size_t>(args.num_outputs) + i].data = data;
    if (reduction_) reduction_->program.in = data;
  }
  void set_output(size_t i, void* data) {
    tensors_[i].data = data;
    if (reduction_) reduction_->program.out = data;
  }
  Status run(Exec exec, const Backend& b, const char* name) const {
    return reduction_ ? b.run_reduce(exec, &reduction_->program) : b.run_kernel(exec, name, &args);
  }

  KernelArgs args;

 private:
  std::vector<Dims> shapes_, strides_;
  std::vector<KernelTensor> tensors_;
  std::optional<Reduction> reduction_;
};

}  // namespace

Status GroupRunner::run_alone(Group& g, Exec exec) {
  const PendingKernel& call = *g.kernel->kernel;
  return Arguments(call).run(exec, backend_of(stream_.device_), call.name);
}

// Programs of those that join it.
void GroupRunner::place_company(Group& g, bool with_memory) {
  const PendingKernel& call = *g.kernel->kernel;
  if (g.before) {
    lower(*g.before, false);
    place_rows(*g.before, call.rows);
    // Also where it was written in place, to memory that nobody will look at.
    g.before->lowered.out[0].to.data = nullptr;
  }
  if (g.after) {
    Rows after = call.rows;
    after.n = rows_after(call);
    lower(*g.after, with_memory);
    place_rows(*g.after, after);
  }
}

namespace {

JoinedProgram joined_program(const Group& g, const Arguments& a) {
  const PendingKernel& call = *g.kernel->kernel;
  return {call.name,
          call.body ? nullptr : &a.args,
          a.reduce(),
          call.rows,
          g.before ? &g.before->lowered.program : nullptr,
          g.after ? &g.after->lowered.program : nullptr};
}

}  // namespace

// Before anything has memory.
bool GroupRunner::can_join(Group& g) {
  place_company(g, false);
  const Arguments a(*g.kernel->kernel);
  const JoinedProgram joined = joined_program(g, a);
  return backend_of(stream_.device_).can_join(&joined);
}

bool GroupRunner::run_joined(Group& g, Exec exec) {
  const PendingKernel& call = *g.kernel->kernel;
  place_company(g, true);
  Arguments a(call);
  JoinedProgram joined = joined_program(g, a);
  const Backend& b = backend_of(stream_.device_);
  if (!b.can_join(&joined)) return false;
  const Status status = b.run_joined(exec, &joined);
  if (status.code == Code::kUnsupported) return false;  // not yet, say: it is being compiled
  check(status, call.name);
  return true;
}

// One after the other, through memory.
void GroupRunner::run_apart(Group& g, Exec exec) {
  const Backend& b = backend_of(stream_.device_);
  auto run = [&](Group* part) {
    if (!part) return;
    lower(*part, true);
    place(*part);
    Status status = b.run_group(exec, &part->lowered.program);
    if (status.code == Code::kUnsupported && part->ops.size() > 1)
      run_one_by_one(*part);
    else
      check(status, "a fused group");
  };
  run(g.before);
  const PendingKernel& call = *g.kernel->kernel;
  for (const PendingKernel::Place& o : call.outputs) allocate_result(o, *g.kernel);
  check(run_alone(g, exec), call.name);
  run(g.after);
}

// Memory for its results, and in check mode what they ought to be.
void GroupRunner::prepare_kernel(Group& g) {
  const PendingKernel& call = *g.kernel->kernel;
  if ((g.before || g.after) && checks()) check_kernel(g);
  for (size_t i = 0; i < call.outputs.size(); ++i)
    if (!g.after || !g.hands_on || i != static_cast<size_t>(call.rows.out))
      allocate_result(call.outputs[i], *g.kernel);
}

void GroupRunner::run_kernel(Group& g) {
  const Device device = stream_.device_;
  const Exec exec = device.is_cpu() ? Exec{0, nullptr} : Exec{device.index, stream_.stream_};
  Group* const one = &g;
  ObservedGroups scope({&one, 1});
  prepare_kernel(g);
  run_prepared(g, exec);
  finish_kernel(g, exec);
}

void GroupRunner::run_prepared(Group& g, Exec exec) {
  if (!g.before && !g.after)
    check(run_alone(g, exec), g.kernel->kernel->name);
  else if (!run_joined(g, exec))
    run_apart(g, exec);
}

// Kernels that may run in any order: reductions to one number, such as the norms of gradients, are
// handed to the backend together.
void GroupRunner::run_kernels(std::span<Group* const> groups) {
  const Device device = stream_.device_;
  const Backend& backend = backend_of(device);
  auto is_small = [](const Group& g) {
    if (!g.kernel || !g.kernel->kernel->body) return false;
    for (int64_t size : g.kernel->kernel->outputs[0].shape)
      if (size != 1) return false;
    return true;
  };
  const auto small =
      std::count_if(groups.begin(), groups.end(), [&](const Group* g) { return is_small(*g); });
  if (small < 2 || !backend.run_reduces) {
    for (Group* g : groups)
      if (g->kernel) run_kernel(*g);
    return;
  }
  const Exec exec{device.index, stream_.stream_};
  std::deque<Arguments> arguments;
  std::deque<JoinedProgram> programs;
  std::vector<const JoinedProgram*> together;
  std::vector<Group*> batch;
  auto run_batch = [&] {
    if (batch.empty()) return;
    ObservedGroups scope(batch);
    const Status status =
        backend.run_reduces(exec, together.data(), static_cast<int>(together.size()));
    if (status.code == Code::kUnsupported)
      for (Group* g : batch) run_prepared(*g, exec);
    else
      check(status, "reductions");
    for (Group* g : batch) finish_kernel(*g, exec);
  };
  try {
    for (Group* g : groups) {
      if (!g->kernel) continue;
      if (!is_small(*g)) {
        run_kernel(*g);
        continue;
      }
      prepare_kernel(*g);
      place_company(*g, true);
      programs.push_back(joined_program(*g, arguments.emplace_back(*g->kernel->kernel)));
      if ((g->before || g->after) && !backend.can_join(&programs.back())) {
        run_apart(*g, exec);
        finish_kernel(*g, exec);
        continue;
      }
      together.push_back(&programs.back());
      batch.push_back(g);
    }
  } catch (...) {
    run_batch();  // what has its memory runs also where another has not
    throw;
  }
  run_batch();
}

void GroupRunner::finish_kernel(Group& g, Exec exec) {
  Stats& stats = stream_.stats_;
  int64_t operators = 0;
  for (Group* part : {g.before, &g, g.after}) {
    if (!part) continue;
    operators += part->live;
    for (PendingOp* op : part->ops) op->done = true;
    explain(*part, operators == part->live);
  }
  ++stats.groups;
  stats.fused_groups += operators > 1;
  stats.largest_group = std::max(stats.largest_group, operators);
  if (!g.reference.empty()) compare_kernel(g, exec);
}

// The reference of a kernel with company: each part by itself, into memory of its own.
void GroupRunner::check_kernel(Group& g) {
  const PendingKernel& call = *g.kernel->kernel;
  const size_t in = static_cast<size_t>(call.rows.in), out = static_cast<size_t>(call.rows.out);
  TensorBase made;
  if (g.before) {
    check_group(*g.before, g.before->reference);
    for (size_t k = 0; k < g.before->ops.size(); ++k)
      if (g.before->ops[k]->store) made = g.before->reference[k];
  }
  g.reference.clear();
  Arguments a(call);
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    g.reference.push_back(new_empty(call.outputs[i].shape, call.outputs[i].dtype, stream_.device_));
    a.set_output(i, g.reference[i].raw());
  }
  if (made.defined()) a.set_input(in, made.raw());
  const Device device = stream_.device_;
  const Exec exec = device.is_cpu() ? Exec{0, nullptr} : Exec{device.index, stream_.stream_};
  check(a.run(exec, backend_of(device), call.name), call.name);
  if (g.after)
    check_group(*g.after, g.after->reference, &g.reference[out], call.outputs[out].storage);
}

void GroupRunner::compare_kernel(Group& g, Exec exec) {
  const PendingKernel& call = *g.kernel->kernel;
  auto text = [this] { return stream_.last_run_text(); };
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    const PendingKernel::Place& o = call.outputs[i];
    if (o.storage->data)
      compare_stored(stream_.device_, exec, {o, o.shape, call.name, g.kernel->id}, g.reference[i],
                     text);
  }
  if (g.after)
    for (size_t k = 0; k < g.after->ops.size(); ++k) {
      const PendingOp& op = *g.after->ops[k];
      if (op.store)
        compare_stored(stream_.device_, exec, {op.out, *g.after->shape, op.name(), op.id},
                       g.after->reference[k], text);
    }
  g.reference.clear();
  if (g.before) g.before->reference.clear();
  if (g.after) g.after->reference.clear();
}

}  // namespace tessera::fuse
