// Stands in for libcuda.so.1: the functions the backend loads, over the host's memory.
#include <cuda.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "device.h"
#include "module.h"
#include "observe.h"
#include "options.h"

namespace emulator {

thread_local Device* t_current = nullptr;

Device* device(int ordinal) {
  static auto* all = [] {
    auto* devices = new std::array<Device, 16>;
    for (size_t i = 0; i < devices->size(); ++i) (*devices)[i].ordinal = static_cast<int>(i);
    return devices;
  }();
  return ordinal >= 0 && ordinal < options().devices ? &(*all)[static_cast<size_t>(ordinal)]
                                                     : nullptr;
}

namespace {

// Of the current context; every call asks.
CUresult state() {
  if (!t_current) return CUDA_ERROR_INVALID_CONTEXT;
  return t_current->fault;
}
#define NEED_CONTEXT \
  if (CUresult lost = emulator::state(); lost != CUDA_SUCCESS) return lost

void* pointer(CUdeviceptr p) { return reinterpret_cast<void*>(p); }

bool is_device_memory(CUdeviceptr p, size_t bytes) {
  Range r;
  return find_range(pointer(p), bytes, &r);  // page-locked memory has an address there, too
}

struct ErrorText {
  CUresult code;
  const char *name, *text;
};
constexpr ErrorText kErrors[] = {
    {CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
    {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {CUDA_ERROR_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS",
     "an illegal memory access was encountered"},
    {CUDA_ERROR_MISALIGNED_ADDRESS, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
    {CUDA_ERROR_ILLEGAL_STATE, "CUDA_ERROR_ILLEGAL_STATE",
     "the operation cannot be performed in the present state"},
    {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"},
    {CUDA_ERROR_STREAM_CAPTURE_MERGE, "CUDA_ERROR_STREAM_CAPTURE_MERGE",
     "operation would result in a merge of separate capture sequences"},
    {CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED",
     "capturing stream has unjoined work"},
    {CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION",
     "dependency created on uncaptured work in another stream"},
    {CUDA_ERROR_CAPTURED_EVENT, "CUDA_ERROR_CAPTURED_EVENT",
     "operation not permitted on an event last recorded in a capturing stream"},
    {CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
};

const ErrorText* find_error(CUresult code) {
  for (const ErrorText& e : kErrors)
    if (e.code == code) return &e;
  return nullptr;
}

// A copy that may touch pageable memory of the caller's does so before the call returns.
CUresult copy(void* to, const void* from, size_t bytes, CUstream stream) {
  Range r;
  Stream* s = stream_of(stream);
  if (auto capture = s->capture())
    if (!find_range(from, bytes, &r) || !find_range(to, bytes, &r)) {
      capture->invalid = true;
      return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
  if (!find_range(from, bytes, &r)) {
    auto kept = std::make_shared<std::vector<char>>(static_cast<const char*>(from),
                                                    static_cast<const char*>(from) + bytes);
    return s->add([=] {
      std::memcpy(to, kept->data(), bytes);
      return CUDA_SUCCESS;
    });
  }
  CUresult result = s->add([=] {
    std::memmove(to, from, bytes);
    return CUDA_SUCCESS;
  });
  if (result != CUDA_SUCCESS || find_range(to, bytes, &r)) return result;
  return s->wait();
}

}  // namespace
}  // namespace emulator

using namespace emulator;

// ---- devices -----------------------------------------------------------------------------------

CUresult cuInit(unsigned) {
  // The pack of kernels beside the backend is a GPU's.
  setenv("TESSERA_KERNEL_PACK", "0", 0);
  return options().devices > 0 ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

CUresult cuDriverGetVersion(int* version) {
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char** out) {
  const ErrorText* e = find_error(error);
  if (!e) return CUDA_ERROR_INVALID_VALUE;
  *out = e->name;
  return CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult error, const char** out) {
  const ErrorText* e = find_error(error);
  if (!e) return CUDA_ERROR_INVALID_VALUE;
  *out = e->text;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
  *count = options().devices;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice* out, int ordinal) {
  if (!device(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *out = ordinal;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetName(char* name, int length, CUdevice) {
  std::snprintf(name, static_cast<size_t>(length), "Emulated GPU");
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int* out, CUdevice_attribute attribute, CUdevice) {
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *out = 9;
      break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      *out = 0;
      break;
    // Few: a grid that fills the device is one that a CPU gets through.
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      *out = 2;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      *out = static_cast<int>(kMaxShared);
      break;
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
      *out = options().pages;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *out = 1024;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
      *out = 48 << 10;
      break;
    default:  // what it does not have
      *out = 0;
  }
  return CUDA_SUCCESS;
}
CUresult cuDeviceTotalMem(size_t* bytes, CUdevice) {
  *bytes = options().memory;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetUuid(CUuuid* out, CUdevice ordinal) {
  std::memset(out, 0, sizeof *out);
  std::memcpy(out->bytes, "emulated", 8);
  out->bytes[15] = static_cast<char>(ordinal);
  return CUDA_SUCCESS;
}
CUresult cuDeviceCanAccessPeer(int* out, CUdevice, CUdevice) {
  *out = 1;
  return CUDA_SUCCESS;
}
CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext* out, CUdevice ordinal) {
  *out = context_of(device(ordinal));
  return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
CUresult cuCtxSetCurrent(CUcontext c) {
  t_current = device_of(c);
  return CUDA_SUCCESS;
}
CUresult cuCtxGetCurrent(CUcontext* out) {
  *out = context_of(t_current);
  return CUDA_SUCCESS;
}
CUresult cuCtxSynchronize() {
  NEED_CONTEXT;
  if (captures(t_current)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return wait_for_all(t_current);
}

// ---- memory ------------------------------------------------------------------------------------

CUresult cuMemGetInfo(size_t* free, size_t* total) {
  NEED_CONTEXT;
  *total = options().memory;
  *free = *total - t_current->used;
  return CUDA_SUCCESS;
}
CUresult cuMemAlloc(CUdeviceptr* out, size_t bytes) {
  NEED_CONTEXT;
  void* p = nullptr;
  CUresult r = allocate(t_current, bytes, false, &p);
  *out = reinterpret_cast<CUdeviceptr>(p);
  return r;
}
CUresult cuMemFree(CUdeviceptr p) {
  NEED_CONTEXT;
  if (CUresult r = wait_for_all(t_current); r != CUDA_SUCCESS) return r;
  return release(pointer(p), false);
}
CUresult cuMemHostAlloc(void** out, size_t bytes, unsigned) {
  NEED_CONTEXT;
  return allocate(t_current, bytes, true, out);
}
CUresult cuMemFreeHost(void* p) {
  NEED_CONTEXT;
  if (CUresult r = wait_for_all(t_current); r != CUDA_SUCCESS) return r;
  return release(p, true);
}
CUresult cuMemHostGetDevicePointer(CUdeviceptr* out, void* p, unsigned) {
  *out = reinterpret_cast<CUdeviceptr>(p);
  return CUDA_SUCCESS;
}
CUresult cuPointerGetAttribute(void* out, CUpointer_attribute attribute, CUdeviceptr p) {
  Range r;
  if (attribute != CU_POINTER_ATTRIBUTE_MEMORY_TYPE || !find_range(pointer(p), 1, &r))
    return CUDA_ERROR_INVALID_VALUE;
  *static_cast<unsigned*>(out) = r.device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
  return CUDA_SUCCESS;
}
CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  NEED_CONTEXT;
  if (!is_device_memory(to, bytes)) return CUDA_ERROR_INVALID_VALUE;
  Labelled label({Piece::kCopy, "copy", bytes, 1});
  return copy(pointer(to), from, bytes, stream);
}
CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  NEED_CONTEXT;
  if (!is_device_memory(from, bytes)) return CUDA_ERROR_INVALID_VALUE;
  Labelled label({Piece::kCopy, "copy", bytes, 2});
  return copy(to, pointer(from), bytes, stream);
}
CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  NEED_CONTEXT;
  if (!is_device_memory(to, bytes) || !is_device_memory(from, bytes))
    return CUDA_ERROR_INVALID_VALUE;
  Labelled label({Piece::kCopy, "copy", bytes, 8});
  return copy(pointer(to), pointer(from), bytes, stream);
}
CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t bytes,
                           CUstream stream) {
  return cuMemcpyDtoDAsync(to, from, bytes, stream);
}
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream) {
  NEED_CONTEXT;
  if (!is_device_memory(to, bytes)) return CUDA_ERROR_INVALID_VALUE;
  Labelled label({Piece::kSet, "set", bytes, 0});
  return stream_of(stream)->add([=] {
    std::memset(pointer(to), value, bytes);
    return CUDA_SUCCESS;
  });
}

// ---- streams and events ------------------------------------------------------------------------

CUresult cuStreamCreateWithPriority(CUstream* out, unsigned, int) {
  NEED_CONTEXT;
  *out = reinterpret_cast<CUstream>(make_stream(t_current));
  return CUDA_SUCCESS;
}
CUresult cuStreamDestroy(CUstream s) {
  remove_stream(stream_of(s));
  return CUDA_SUCCESS;
}
CUresult cuStreamQuery(CUstream s) {
  NEED_CONTEXT;
  if (auto capture = stream_of(s)->capture()) {
    capture->invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return stream_of(s)->idle() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
CUresult cuStreamSynchronize(CUstream s) {
  NEED_CONTEXT;
  if (auto capture = stream_of(s)->capture()) {
    capture->invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return stream_of(s)->wait();
}
CUresult cuStreamWaitEvent(CUstream s, CUevent event, unsigned) {
  NEED_CONTEXT;
  auto* e = reinterpret_cast<Event*>(event);
  Stream* waiting = stream_of(s);
  std::shared_ptr<Capture> mine = waiting->capture();
  if (e->capture && !e->capture->ended) {
    if (mine && mine != e->capture) return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    if (!mine) {
      waiting->set_capture(e->capture);
      e->capture->joined.push_back(waiting);
    }
    e->capture->wait(waiting, e->reach);
    return CUDA_SUCCESS;
  }
  if (mine) {
    mine->invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  }
  uint64_t number;
  {
    std::lock_guard lock(e->mutex);
    number = e->recorded;
  }
  return stream_of(s)->add([=] {
    e->wait(number);
    return CUDA_SUCCESS;
  });
}

CUresult cuEventCreate(CUevent* out, unsigned) {
  NEED_CONTEXT;
  *out = reinterpret_cast<CUevent>(new Event);
  return CUDA_SUCCESS;
}
// Kept where something may still wait for it: a device would keep it, too.
CUresult cuEventDestroy(CUevent event) {
  auto* e = reinterpret_cast<Event*>(event);
  if (!options().async) delete e;
  return CUDA_SUCCESS;
}
CUresult cuEventRecord(CUevent event, CUstream s) {
  NEED_CONTEXT;
  if (!is_stream(s)) {
    t_current->fault = CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  }
  return reinterpret_cast<Event*>(event)->record(stream_of(s));
}
CUresult cuCtxRecordEvent(CUcontext, CUevent event) {
  NEED_CONTEXT;
  if (captures(t_current)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return reinterpret_cast<Event*>(event)->record_all(t_current);
}
CUresult cuEventQuery(CUevent event) {
  NEED_CONTEXT;
  if (reinterpret_cast<Event*>(event)->capture) return CUDA_ERROR_CAPTURED_EVENT;
  return reinterpret_cast<Event*>(event)->done() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
CUresult cuEventSynchronize(CUevent event) {
  NEED_CONTEXT;
  if (reinterpret_cast<Event*>(event)->capture) return CUDA_ERROR_CAPTURED_EVENT;
  reinterpret_cast<Event*>(event)->wait_for_last();
  return t_current->fault;
}
CUresult cuEventElapsedTime(float* ms, CUevent begin, CUevent end) {
  NEED_CONTEXT;
  auto *a = reinterpret_cast<Event*>(begin), *b = reinterpret_cast<Event*>(end);
  if (!a->recorded || !b->recorded) return CUDA_ERROR_INVALID_VALUE;
  if (!a->done() || !b->done()) return CUDA_ERROR_NOT_READY;
  *ms = static_cast<float>(b->time_ms - a->time_ms);
  return CUDA_SUCCESS;
}

// ---- kernels -----------------------------------------------------------------------------------

CUresult cuModuleLoadData(CUmodule* out, const void* image) {
  NEED_CONTEXT;
  return load_module(image, reinterpret_cast<Module**>(out));
}
CUresult cuModuleGetFunction(CUfunction* out, CUmodule module, const char* name) {
  NEED_CONTEXT;
  return find_function(reinterpret_cast<Module*>(module), name, reinterpret_cast<Function**>(out));
}
CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  auto* f = reinterpret_cast<Function*>(function);
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) return CUDA_SUCCESS;
  if (value < 0 || static_cast<unsigned>(value) > kMaxShared) return CUDA_ERROR_INVALID_VALUE;
  f->max_dynamic = static_cast<unsigned>(value);
  return CUDA_SUCCESS;
}
// CUPTI's way into a driver; the stand-in needs none.
CUresult cuGetExportTable(const void**, const CUuuid*) { return CUDA_ERROR_NOT_SUPPORTED; }

namespace emulator {

CUresult kernel_work(const CUDA_KERNEL_NODE_PARAMS& k, Work* out) {
  auto* f = reinterpret_cast<Function*>(k.func);
  size_t threads = size_t{k.blockDimX} * k.blockDimY * k.blockDimZ;
  if (!k.gridDimX || !k.gridDimY || !k.gridDimZ || k.gridDimX > 0x7fffffffu || k.gridDimY > 65535 ||
      k.gridDimZ > 65535 || threads == 0 || threads > f->max_threads ||
      k.sharedMemBytes > f->max_dynamic)
    return CUDA_ERROR_INVALID_VALUE;
  Launch launch{{k.gridDimX, k.gridDimY, k.gridDimZ},
                {k.blockDimX, k.blockDimY, k.blockDimZ},
                k.sharedMemBytes};
  // The arguments may be gone when the kernel runs.
  auto kept = std::make_shared<std::vector<std::vector<char>>>();
  for (size_t i = 0; i < f->parameters.size(); ++i) {
    const char* from = static_cast<const char*>(k.kernelParams[i]);
    kept->emplace_back(from, from + f->parameters[i]);
  }
  if (options().idle)
    *out = [] { return CUDA_SUCCESS; };
  else
    *out = [f, launch, kept] {
      std::vector<void*> addresses;
      for (std::vector<char>& argument : *kept) addresses.push_back(argument.data());
      return run_kernel(*f, launch, addresses.data());
    };
  return CUDA_SUCCESS;
}

}  // namespace emulator

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                        CUstream stream, void** arguments, void**) {
  NEED_CONTEXT;
  Work work;
  const CUDA_KERNEL_NODE_PARAMS kernel{function, grid_x, grid_y,    grid_z,  block_x, block_y,
                                       block_z,  shared, arguments, nullptr, nullptr, nullptr};
  if (CUresult r = kernel_work(kernel, &work); r != CUDA_SUCCESS) return r;
  Labelled label({Piece::kKernel, reinterpret_cast<Function*>(function)->name.c_str(), 0, 0});
  return stream_of(stream)->add(std::move(work));
}
