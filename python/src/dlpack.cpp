// Tensors over other libraries' memory and the other way round, by DLPack's capsules.
#include "dlpack.h"

#include <memory>
#include <vector>

#include "exported_view.h"
#include "methods.h"
#include "tessera/driver/current.h"
#include "tessera/fuse/stream.h"

namespace tessera::python {

namespace {

using dlpack::Managed;
using dlpack::ManagedVersioned;

constexpr const char* kName = "dltensor";
constexpr const char* kUsedName = "used_dltensor";
constexpr const char* kVersionedName = "dltensor_versioned";
constexpr const char* kUsedVersionedName = "used_dltensor_versioned";

dlpack::DataType type_of(DType t) {
  auto bits = static_cast<uint8_t>(8 * itemsize(t));
  if (t == DType::kBool) return {dlpack::kBool, bits, 1};
  if (t == DType::kBFloat16) return {dlpack::kBfloat, bits, 1};
  if (is_complex(t)) return {dlpack::kComplex, bits, 1};
  if (is_floating(t)) return {dlpack::kFloat, bits, 1};
  return {t == DType::kUInt8 ? dlpack::kUInt : dlpack::kInt, bits, 1};
}

DType dtype_of(const dlpack::DataType& type) {
  for (int i = 0; type.lanes == 1 && i < kNumDTypes; ++i) {
    auto dtype = static_cast<DType>(i);
    dlpack::DataType known = type_of(dtype);
    if (known.code == type.code && known.bits == type.bits) return dtype;
  }
  throw raise_python(PyExc_BufferError,
                     "Tessera has no dtype for DLPack's type code %d with %d bits and %d lanes",
                     int{type.code}, int{type.bits}, int{type.lanes});
}

bool is_virtual(Device d) {
  DeviceProps p{};
  return d.is_cuda() && accelerator()->device_props(d.index, &p).ok() && p.is_virtual;
}

// Memory of a virtual GPU is no CUDA memory: only Tessera itself takes it, under DLPack's type for
// extensions.
dlpack::Device device_of(Device d) {
  if (d.is_cpu()) return {dlpack::kCPU, 0};
  return {is_virtual(d) ? dlpack::kExtension : dlpack::kCUDA, d.index};
}

Device device_of(const dlpack::Device& d) {
  if (d.type == dlpack::kCPU || d.type == dlpack::kCUDAHost) return {};
  bool cuda = d.type == dlpack::kCUDA || d.type == dlpack::kExtension;
  Device found{DeviceType::kCUDA, static_cast<int16_t>(d.id)};
  if (!cuda || d.id < 0 || d.id >= device_count() ||
      is_virtual(found) != (d.type == dlpack::kExtension))
    throw raise_python(PyExc_BufferError, "Tessera has no device for DLPack's type %d, number %d",
                       int{d.type}, int{d.id});
  return found;
}

// ---- out
// -----------------------------------------------------------------------------------------

template <class M>
struct Exported {
  M managed{};
  ExportedView view;
  std::vector<int64_t> geometry;  // sizes, then strides
};

template <class M>
void delete_exported(M* managed) {
  delete static_cast<Exported<M>*>(managed->context);
}

template <class M>
void drop_capsule(PyObject* capsule, const char* name) {
  if (!PyCapsule_IsValid(capsule, name)) return;  // somebody took it over
  auto* managed = static_cast<M*>(PyCapsule_GetPointer(capsule, name));
  if (managed->deleter) managed->deleter(managed);
}
void drop_plain(PyObject* capsule) { drop_capsule<Managed>(capsule, kName); }
void drop_versioned(PyObject* capsule) { drop_capsule<ManagedVersioned>(capsule, kVersionedName); }

template <class M>
M* exported(const TensorBase& t) {
  std::unique_ptr<Exported<M>> out(new Exported<M>{{}, ExportedView(t), {}});
  void* address = fuse::expose(out->view.tensor());
  for (int64_t n : t.sizes()) out->geometry.push_back(n);
  // Steps along dimensions of one element say nothing; some readers take 1 as a sign of no gaps.
  for (size_t d = 0; d < t.sizes().size(); ++d)
    out->geometry.push_back(t.sizes()[d] < 2 ? 1 : t.strides()[d]);
  int64_t* sizes = out->geometry.data();
  out->managed.tensor = {address, device_of(t.device()), t.dim(),    type_of(t.dtype()),
                         sizes,   sizes + t.dim(),       uint64_t{0}};
  out->managed.context = out.get();
  out->managed.deleter = delete_exported<M>;
  return &out.release()->managed;
}

// Null with Python's error set where there is no memory for the capsule.
template <class M>
PyObject* capsule_of(M* managed, const char* name, PyCapsule_Destructor drop) {
  PyObject* capsule = PyCapsule_New(managed, name, drop);
  if (!capsule) managed->deleter(managed);
  return capsule;
}

PyObject* to_dlpack(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* o;
    int versioned, copied;
    if (!PyArg_ParseTuple(args, "Opp:_to_dlpack", &o, &versioned, &copied)) throw PythonError{};
    const TensorBase& t = unwrap_checked(o, "_to_dlpack(): argument");
    if (!versioned) return checked(capsule_of(exported<Managed>(t), kName, drop_plain));
    auto* managed = exported<ManagedVersioned>(t);
    managed->version = {1, 1};
    managed->flags = copied ? dlpack::kCopied : 0;
    return checked(capsule_of(managed, kVersionedName, drop_versioned));
  });
}

PyObject* dlpack_device(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    dlpack::Device d = device_of(unwrap_checked(o, "_dlpack_device(): argument").device());
    return Py_BuildValue("ii", int{d.type}, int{d.id});
  });
}

// ---- in
// ------------------------------------------------------------------------------------------

// The owner's function may need Python; storage may die in any thread.
template <class M>
void give_back(void* p) {
  auto* managed = static_cast<M*>(p);
  // Its owner orders work by its own streams: ours is to be done.
  const dlpack::Device& device = managed->tensor.device;
  if (device.type == dlpack::kCUDA) accelerator()->device_synchronize(device.id);
  if (managed->deleter && may_enter_python()) managed->deleter(managed);
}

template <class M>
TensorBase imported(M* managed) {
  const dlpack::Tensor& t = managed->tensor;
  Device device = device_of(t.device);
  DType dtype = dtype_of(t.dtype);
  Dims sizes, strides;
  for (int d = 0; d < t.ndim; ++d) sizes.push_back(t.shape[d]);
  checked_numel(sizes, dtype);
  if (t.strides)
    for (int d = 0; d < t.ndim; ++d) {
      TS_CHECK(t.strides[d] >= 0 || sizes[d] < 2,
               "from_dlpack(): tensors with negative strides are not supported");
      strides.push_back(t.strides[d]);
    }
  else
    strides = contiguous_strides(sizes);
  void* data = static_cast<char*>(t.data) + t.byte_offset;
  return from_blob(data, sizes, strides, dtype, device, managed, give_back<M>);
}

PyObject* from_dlpack(PyObject*, PyObject* capsule) {
  return guarded([&]() -> PyObject* {
    TensorBase t;
    if (PyCapsule_IsValid(capsule, kVersionedName)) {
      auto* m = static_cast<ManagedVersioned*>(PyCapsule_GetPointer(capsule, kVersionedName));
      if (m->version.major > 1)
        throw raise_python(PyExc_BufferError, "DLPack's version %u.%u is not known to Tessera",
                           unsigned{m->version.major}, unsigned{m->version.minor});
      if ((m->flags & dlpack::kReadOnly) &&
          PyErr_WarnEx(PyExc_UserWarning,
                       "The memory is not writable, and PyTorch does not support non-writable "
                       "tensors: writing to this tensor would write to it all the same.",
                       1) < 0)
        throw PythonError{};
      t = imported(m);
      PyCapsule_SetName(capsule, kUsedVersionedName);
    } else if (PyCapsule_IsValid(capsule, kName)) {
      t = imported(static_cast<Managed*>(PyCapsule_GetPointer(capsule, kName)));
      PyCapsule_SetName(capsule, kUsedName);
    } else {
      throw raise_python(PyExc_RuntimeError,
                         "from_dlpack received an invalid capsule. Note that DLTensor capsules can "
                         "be consumed only once, so you might have already constructed a tensor "
                         "from it once.");
    }
    // Our own deleter frees what we took over; the capsule's would do so again.
    PyCapsule_SetDestructor(capsule, nullptr);
    return wrap(std::move(t));
  });
}

PyMethodDef functions[] = {
    {"_to_dlpack", to_dlpack, METH_VARARGS, "A capsule of a tensor: versioned?, a copy?"},
    {"_from_dlpack", from_dlpack, METH_O, "A tensor over the memory of a capsule."},
    {"_dlpack_device", dlpack_device, METH_O, "DLPack's device type and number of a tensor."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_dlpack(PyObject* module) {
  if (PyModule_AddFunctions(module, functions) < 0) throw PythonError{};
}

}  // namespace tessera::python
