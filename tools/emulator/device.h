// The emulated devices: memory, streams and events, and the error that ends a context.
#pragma once
#include <cuda.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace emulator {

struct Device {
  int ordinal = 0;
  size_t used = 0;
  std::atomic<CUresult> fault{CUDA_SUCCESS};  // the first error that ends the context
};

// A context is its device. Null if there is no such device.
Device* device(int ordinal);
inline CUcontext context_of(Device* d) { return reinterpret_cast<CUcontext>(d); }
inline Device* device_of(CUcontext c) { return reinterpret_cast<Device*>(c); }
// Of this thread; null before cuCtxSetCurrent.
extern thread_local Device* t_current;

// ---- memory: the host's, in whole pages with one after it that cannot be touched ---------------

struct Range {
  size_t bytes, mapped;
  char* base;      // of the mapping
  Device* device;  // null: page-locked host memory
};

CUresult allocate(Device* d, size_t bytes, bool host, void** out);
CUresult release(void* p, bool host);
// Memory that was mapped otherwise.
void note_range(void* p, size_t bytes, Device* d);
void forget_range(void* p);
// The range that holds [p, p + bytes), or its first; false if none does. `out` may be null.
bool find_range(const void* p, size_t bytes, Range* out);

// ---- streams: work in order, at the call or on a thread of its own ------------------------------

using Work = std::function<CUresult()>;

// ---- captured work (graph.cpp)
// -------------------------------------------------------------------

class Stream;

struct Graph {
  std::vector<Work> work;
};

// A launch of a kernel, its arguments copied.
CUresult kernel_work(const CUDA_KERNEL_NODE_PARAMS& kernel, Work* out);

class Capture {
 public:
  explicit Capture(Stream* from);
  void add(Stream* s, Work work);
  // How much of each stream an event stands for.
  std::map<Stream*, size_t> reach(Stream* s);
  void wait(Stream* s, const std::map<Stream*, size_t>& reach);
  CUresult end(Graph** out);

  Stream* const origin;
  const uint64_t id;
  std::atomic<bool> invalid{false}, ended{false};
  std::vector<Stream*> joined;
  std::mutex mutex;

 private:
  std::vector<Work> work_;
  std::map<Stream*, size_t> last_;
  std::map<Stream*, std::map<Stream*, size_t>> seen_;
};

class Stream {
 public:
  explicit Stream(Device* d);
  // Where its work goes instead; null unless it is being captured.
  std::shared_ptr<Capture> capture();
  void set_capture(std::shared_ptr<Capture> capture);
  // Errors of what runs later end the context. Work of a lost context is not run.
  CUresult add(Work work);
  CUresult add_unobserved(Work work);
  bool idle();
  CUresult wait();
  void stop();  // after wait()
  Device* device() const { return device_; }

 private:
  void serve();
  CUresult run(const Work& work);
  Device* device_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> queue_;
  bool busy_ = false, stopped_ = false;
  std::mutex capture_mutex_;
  std::shared_ptr<Capture> capture_;
};

Stream* make_stream(Device* d);
void remove_stream(Stream* s);
// False for one that was destroyed.
bool is_stream(CUstream s);
// The stream behind a handle; the current device's default stream for null.
Stream* stream_of(CUstream s);
CUresult wait_for_all(Device* d);
// Is some stream of it captured?
bool captures(Device* d);

struct Event {
  std::mutex mutex;
  std::condition_variable changed;
  uint64_t recorded = 0, reached = 0;
  double time_ms = 0;
  std::shared_ptr<Capture> capture;  // that it was recorded in
  std::map<Stream*, size_t> reach;

  CUresult record(Stream* s);
  CUresult record_all(Device* d);
  bool done();
  void wait(uint64_t number);
  void wait_for_last();
};

}  // namespace emulator

// For the library that stands in for cuBLASLt.
extern "C" int emulator_enqueue(void* stream, std::function<int()>* work);
