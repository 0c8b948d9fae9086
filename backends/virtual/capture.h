// Capturing: what is queued on a stream is kept in order, and a graph queues it again at once.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "stream.h"

namespace tessera::vgpu {

// Tasks that can run again and again; each owns what it needs but for device memory.
struct Graph {
  ~Graph();
  std::vector<Task*> tasks;
};

// Note [One order for all streams]
// A wait can only name what was queued before it. So the order in which the host queued tasks, over
// all streams of a capture, respects every wait, and a graph runs them in that order.
class Capture {
 public:
  // What of each stream an event stands for: how many of the capture's tasks.
  using Reach = std::map<const Stream*, size_t>;

  explicit Capture(Stream& origin);
  uint64_t id() const { return id_; }
  const Stream& origin() const { return origin_; }

  void add(const Stream& stream, Task* task);
  Reach reach(const Stream& stream);
  void wait(const Stream& stream, const Reach& reach);
  void join(std::shared_ptr<Stream> stream);
  bool ended();

  // Its first cause; the capture cannot end well after it.
  void invalidate(const std::string& why);
  std::string why_invalid();

  // Lets all its streams go. Null with the reason in *why where it is not whole.
  std::shared_ptr<Graph> end(std::string* why);

 private:
  std::mutex mutex_;
  const uint64_t id_;
  Stream& origin_;
  bool ended_ = false;
  std::string invalid_;
  std::shared_ptr<Graph> graph_ = std::make_shared<Graph>();
  std::vector<std::shared_ptr<Stream>> joined_;
  Reach last_;                           // the number of each stream's last task
  std::map<const Stream*, Reach> seen_;  // what each stream comes after
};

inline constexpr const char* kCapturing = "operation not permitted when stream is capturing";

Status capture_begin(int device, StreamHandle s, CaptureMode mode);
Status capture_end(int device, StreamHandle s, GraphHandle* out);
Status capture_state(int device, StreamHandle s, CaptureState* state, uint64_t* id);
Status graph_instantiate(int device, GraphHandle g);
Status graph_launch(int device, GraphHandle g, StreamHandle s);
Status graph_destroy(int device, GraphHandle g);
Status graph_raw(int device, GraphHandle g, void** graph, void** executable);

}  // namespace tessera::vgpu
