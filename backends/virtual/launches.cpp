// Launches: the program is copied, arrays and all, into one task, and the worker has the cpu
// backend run it.
#include "launches.h"

#include <cstring>

#include "state.h"
#include "tessera/driver/cpu.h"

namespace tessera::vgpu {

namespace {

template <class Program>
struct Launch : Task {
  Program program;
  const Backend* cpu;
  const char* name;  // of a kernel
};

const char* label_of(const GroupProgram&) { return "group"; }
const char* label_of(const ReduceProgram& p) { return p.body->name; }
const char* label_of(const KernelArgs&) { return nullptr; }     // its name, once that is kept
const char* label_of(const JoinedProgram&) { return nullptr; }  // ... that of its kernel

Status run_on(const Backend* cpu, const char*, const GroupProgram& p) {
  return cpu->run_group({0, nullptr}, &p);
}
Status run_on(const Backend* cpu, const char*, const ReduceProgram& p) {
  return cpu->run_reduce({0, nullptr}, &p);
}
Status run_on(const Backend* cpu, const char* name, const KernelArgs& p) {
  return cpu->run_kernel({0, nullptr}, name, &p);
}
Status run_on(const Backend* cpu, const char*, const JoinedProgram& p) {
  return cpu->run_joined({0, nullptr}, &p);
}

constexpr size_t padded(size_t bytes) { return (bytes + 7) & ~size_t{7}; }
template <class T>
constexpr size_t array_bytes(int n) {
  return padded(sizeof(T) * static_cast<size_t>(n));
}

// Copies arrays one after another into the room behind a task, and device addresses to where
// their bytes are.
class Packer {
 public:
  Packer(Device& device, void* room) : device_(device), at_(static_cast<char*>(room)) {}
  template <class T>
  T* put(const T* from, int n) {
    T* to = reinterpret_cast<T*>(at_);
    if (n > 0) std::memcpy(at_, from, sizeof(T) * static_cast<size_t>(n));
    at_ += array_bytes<T>(n);
    return to;
  }
  void address(void*& p, int64_t numel) {
    if (numel == 0 || !p) return;
    p = device_.bytes_at(p);
    if (!p) foreign_ = true;
  }
  bool foreign() const { return foreign_; }

 private:
  Device& device_;
  char* at_;
  bool foreign_ = false;
};

template <class Program>
Launch<Program>* make_launch(const Program& program, size_t room) {
  auto* t = new (::operator new(sizeof(Launch<Program>) + room)) Launch<Program>;
  t->program = program;
  // The backend's own table: what a device does is not the host's work.
  static const Backend* own = find_backend("cpu");
  t->cpu = own;
  t->name = nullptr;
  t->label = label_of(program);
  t->run = [](Task* task, Stream& stream) -> Status {
    auto* self = static_cast<Launch<Program>*>(task);
    Status status = run_on(self->cpu, self->name, self->program);
    stream.model_transfer(self->bytes, stream.device().config().mem);
    return status;
  };
  t->destroy = [](Task* task) { ::operator delete(static_cast<Launch<Program>*>(task)); };
  return t;
}

Status submit(Stream& stream, Task* task, const Packer& packer) {
  if (packer.foreign()) [[unlikely]] {
    task->destroy(task);
    return fail(Code::kFailed,
                "an illegal memory access was encountered: an operand is not in device memory");
  }
  stream.submit(task);
  return {};
}

int64_t bytes_of(DType dtype, int64_t numel) {
  return static_cast<int64_t>(itemsize(dtype)) * numel;
}

}  // namespace

namespace {

size_t room_for(const GroupProgram& p) {
  return array_bytes<int64_t>(p.ndim) * static_cast<size_t>(1 + p.num_inputs + p.num_outputs) +
         array_bytes<Operand>(p.num_inputs) + array_bytes<Instr>(p.num_instrs) +
         array_bytes<GroupOutput>(p.num_outputs) + array_bytes<Imm>(p.num_immediates) +
         array_bytes<RegClass>(p.num_immediates);
}
// Takes the program's arrays along; adds what it reads and writes.
void pack(Packer& packer, GroupProgram& q, int64_t* bytes) {
  const GroupProgram p = q;
  auto operand = [&](Operand& o) {
    packer.address(o.data, p.numel);
    o.strides = packer.put(o.strides, p.ndim);
    if (o.data) *bytes += bytes_of(o.dtype, p.numel);
  };
  q.sizes = packer.put(p.sizes, p.ndim);
  Operand* inputs = packer.put(p.inputs, p.num_inputs);
  for (int i = 0; i < p.num_inputs; ++i) operand(inputs[i]);
  GroupOutput* outputs = packer.put(p.outputs, p.num_outputs);
  for (int i = 0; i < p.num_outputs; ++i) operand(outputs[i].to);
  q.inputs = inputs;
  q.outputs = outputs;
  q.instrs = packer.put(p.instrs, p.num_instrs);
  q.immediates = packer.put(p.immediates, p.num_immediates);
  q.immediate_cls = packer.put(p.immediate_cls, p.num_immediates);
}

size_t room_for(const ReduceProgram& p) {
  return 2 * (array_bytes<int64_t>(p.kept_ndim) + array_bytes<int64_t>(p.reduced_ndim));
}
void pack(Packer& packer, ReduceProgram& q, int64_t* bytes) {
  const ReduceProgram p = q;
  q.kept_sizes = packer.put(p.kept_sizes, p.kept_ndim);
  q.in_kept_strides = packer.put(p.in_kept_strides, p.kept_ndim);
  q.reduced_sizes = packer.put(p.reduced_sizes, p.reduced_ndim);
  q.in_reduced_strides = packer.put(p.in_reduced_strides, p.reduced_ndim);
  packer.address(q.in, p.kept_numel * p.reduced_numel);
  packer.address(q.out, p.kept_numel);
  if (q.in) *bytes += bytes_of(p.in_dtype, p.kept_numel * p.reduced_numel);
  if (q.out) *bytes += bytes_of(p.out_dtype, p.kept_numel);
}

size_t room_for(const KernelArgs& p) {
  size_t room = array_bytes<KernelTensor>(p.num_outputs) + array_bytes<KernelTensor>(p.num_inputs) +
                array_bytes<int64_t>(p.num_ints) + array_bytes<double>(p.num_doubles);
  for (int i = 0; i < p.num_outputs; ++i) room += 2 * array_bytes<int64_t>(p.outputs[i].ndim);
  for (int i = 0; i < p.num_inputs; ++i) room += 2 * array_bytes<int64_t>(p.inputs[i].ndim);
  return room;
}
void pack(Packer& packer, KernelArgs& q, int64_t* bytes) {
  const KernelArgs p = q;
  auto tensors = [&](const KernelTensor* from, int n) {
    KernelTensor* to = packer.put(from, n);
    for (int i = 0; i < n; ++i) {
      to[i].sizes = packer.put(from[i].sizes, from[i].ndim);
      to[i].strides = packer.put(from[i].strides, from[i].ndim);
      packer.address(to[i].data, from[i].numel);
      if (to[i].data) *bytes += bytes_of(from[i].dtype, from[i].numel);
    }
    return to;
  };
  q.outputs = tensors(p.outputs, p.num_outputs);
  q.inputs = tensors(p.inputs, p.num_inputs);
  q.ints = packer.put(p.ints, p.num_ints);
  q.doubles = packer.put(p.doubles, p.num_doubles);
}

// A part of a joined program.
template <class Part>
void pack_part(Packer& packer, const Part*& part, int64_t* bytes) {
  if (!part) return;
  Part* copy = packer.put(part, 1);
  pack(packer, *copy, bytes);
  part = copy;
}
template <class Part>
size_t room_for_part(const Part* part) {
  return part ? array_bytes<Part>(1) + room_for(*part) : 0;
}

int name_bytes(const char* name) { return static_cast<int>(std::strlen(name)) + 1; }

template <class Program>
Status launch(Exec exec, const Program& program) {
  return on_stream(exec.device, exec.stream, [&](Stream& stream) -> Status {
    auto* task = make_launch(program, room_for(program));
    Packer packer(stream.device(), task + 1);
    pack(packer, task->program, &task->bytes);
    return submit(stream, task, packer);
  });
}

}  // namespace

Status run_group(Exec exec, const GroupProgram* program) { return launch(exec, *program); }
Status run_reduce(Exec exec, const ReduceProgram* program) { return launch(exec, *program); }

bool has_kernel(const char* name) {
  const Backend* table = find_backend("cpu");
  return table && table->has_kernel(name);
}

Status run_kernel(Exec exec, const char* name, const KernelArgs* args) {
  return on_stream(exec.device, exec.stream, [&](Stream& stream) -> Status {
    if (!cpu().has_kernel(name))
      return fail(Code::kUnsupported, std::string("the virtual GPU has no kernel ") + name);
    const int size = name_bytes(name);
    auto* task = make_launch(*args, room_for(*args) + array_bytes<char>(size));
    Packer packer(stream.device(), task + 1);
    pack(packer, task->program, &task->bytes);
    task->label = task->name = packer.put(name, size);
    return submit(stream, task, packer);
  });
}

bool can_join(const JoinedProgram* program) {
  const Backend* table = find_backend("cpu");
  return table && table->can_join && table->can_join(program);
}

Status run_joined(Exec exec, const JoinedProgram* program) {
  return on_stream(exec.device, exec.stream, [&](Stream& stream) -> Status {
    const JoinedProgram& p = *program;
    const int size = name_bytes(p.kernel);
    auto* task =
        make_launch(p, array_bytes<char>(size) + room_for_part(p.args) + room_for_part(p.reduce) +
                           room_for_part(p.before) + room_for_part(p.after));
    JoinedProgram& q = task->program;
    Packer packer(stream.device(), task + 1);
    task->label = q.kernel = packer.put(p.kernel, size);
    pack_part(packer, q.args, &task->bytes);
    pack_part(packer, q.reduce, &task->bytes);
    pack_part(packer, q.before, &task->bytes);
    pack_part(packer, q.after, &task->bytes);
    return submit(stream, task, packer);
  });
}

}  // namespace tessera::vgpu
