#include "tessera/profile/chrome.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <unordered_set>

#include "tessera/base/dtype.h"
#include "tessera/base/error.h"
#include "tessera/profile/sink.h"

namespace tessera::profile {

namespace {

// As C++ calls the elements, which is what PyTorch writes.
const char* element_name(int64_t dtype) {
  if (dtype < 0) return "";
  switch (static_cast<DType>(dtype)) {
    case DType::kFloat32:
      return "float";
    case DType::kFloat64:
      return "double";
    case DType::kInt64:
      return "long int";
    case DType::kInt32:
      return "int";
    case DType::kInt16:
      return "short int";
    case DType::kInt8:
      return "signed char";
    case DType::kUInt8:
      return "unsigned char";
    case DType::kFloat16:
      return "c10::Half";
    case DType::kBFloat16:
      return "c10::BFloat16";
    default:
      return dtype_name(static_cast<DType>(dtype));
  }
}

// One object or list of JSON, appended to a text.
class Json {
 public:
  explicit Json(std::string& out) : out_(out) {}
  Json& key(std::string_view name) {
    comma();
    append_json(out_, name);
    out_ += ": ";
    fresh_ = true;
    return *this;
  }
  void text(std::string_view v) {
    comma();
    append_json(out_, v);
  }
  void raw(std::string_view v) {
    comma();
    out_ += v;
  }
  template <class T>
  void number(T v) {
    comma();
    out_ += cat(v);
  }
  // Microseconds with three digits behind the point.
  void us(int64_t ns) {
    comma();
    char text[40];
    std::snprintf(text, sizeof text, "%lld.%03lld", static_cast<long long>(ns / 1000),
                  static_cast<long long>(ns % 1000));
    out_ += text;
  }
  void open(char c) {
    comma();
    out_ += c;
    fresh_ = true;
  }
  void close(char c) {
    out_ += c;
    fresh_ = false;
  }
  template <class List>
  void list(const List& values) {
    open('[');
    for (auto v : values) number(v);
    close(']');
  }

 private:
  void comma() {
    if (!fresh_) out_ += ", ";
    fresh_ = false;
  }
  std::string& out_;
  bool fresh_ = true;
};

void put_tensor_list(Json& j, const Argument& a, bool strides) {
  const auto of = [strides](const ArgTensor& t) { return strides ? t.strides : t.sizes; };
  if (a.kind == Arg::kTensors) {
    j.open('[');
    for (const ArgTensor& t : a.tensors) j.list(of(t));
    j.close(']');
  } else if (a.kind == Arg::kTensor) {
    j.list(of(a.tensors[0]));
  } else {
    j.raw("[]");
  }
}

std::string value_text(const Argument& a) {
  switch (a.kind) {
    case Arg::kInt:
      return cat(a.ints[0]);
    case Arg::kBool:
      return a.ints[0] ? "True" : "False";
    case Arg::kDouble:
      return cat(a.number);
    case Arg::kInts: {
      std::string out = "[";
      for (size_t i = 0; i < a.ints.size(); ++i) out += cat(i ? ", " : "", a.ints[i]);
      return out + "]";
    }
    default:
      return "";
  }
}

const char* type_text(const Argument& a) {
  switch (a.kind) {
    case Arg::kTensor:
      return element_name(a.tensors[0].dtype);
    case Arg::kTensors:
      return "TensorList";
    case Arg::kInt:
    case Arg::kBool:
    case Arg::kDouble:
      return "Scalar";
    case Arg::kInts:
      return "ScalarList";
    default:
      return "";
  }
}

void put_arguments(Json& j, const std::vector<Argument>& arguments) {
  j.key("Concrete Inputs").open('[');
  for (const Argument& a : arguments) j.text(value_text(a));
  j.close(']');
  j.key("Input type").open('[');
  for (const Argument& a : arguments) j.text(type_text(a));
  j.close(']');
  j.key("Input Strides").open('[');
  for (const Argument& a : arguments) put_tensor_list(j, a, true);
  j.close(']');
  j.key("Input Dims").open('[');
  for (const Argument& a : arguments) put_tensor_list(j, a, false);
  j.close(']');
}

class Writer {
 public:
  Writer(const Trace& trace, Sink& sink) : trace_(trace), sink_(sink), pid_(getpid()) {}

  void write(const std::string& path, const std::vector<char>& kept, int64_t left_out) {
    head();
    text_ += "  \"traceEvents\": [\n";
    names();
    for (size_t i = 0; i < trace_.events().size(); ++i) {
      if (!kept[i]) continue;
      begin();
      event(trace_.events()[i], i);
      flush(false);
    }
    for (const Arrow& a : trace_.arrows()) {
      if (!kept[static_cast<size_t>(a.from)] || !kept[static_cast<size_t>(a.to)]) continue;
      arrow(a);
      flush(false);
    }
    span();
    text_ += "\n  ],\n  \"traceName\": ";
    append_json(text_, path);
    if (left_out > 0) {
      text_ += ",\n  \"leftOut\": ";
      append_json(text_, cat(left_out, " of ", trace_.events().size(),
                             " events, the shortest, for the size of the file"));
    }
    text_ += "\n}\n";
    flush(true);
    sink_.finish();
  }

  // Bytes of one event.
  size_t size_of(size_t i) {
    text_.clear();
    event(trace_.events()[i], i);
    const size_t n = text_.size();
    text_.clear();
    return n;
  }

 private:
  void begin() {
    if (!first_) text_ += ",\n";
    first_ = false;
  }
  void flush(bool all) {
    if (text_.size() < (all ? 1 : size_t{1} << 18)) return;
    sink_.write(text_);
    text_.clear();
  }

  void head() {
    text_ += "{\n  \"schemaVersion\": 1,\n";
    bool devices = false;
    for (const auto& [key, value] : trace_.metadata) {
      text_ += "  ";
      append_json(text_, key);
      text_ += ": " + value + ",\n";
      devices |= key == "deviceProperties";
    }
    if (!devices) text_ += "  \"deviceProperties\": [],\n";
    const std::pair<uint32_t, const char*> options[] = {{kBytes, "profile_memory"},
                                                        {kShapes, "record_shapes"},
                                                        {kStacks, "with_stack"},
                                                        {kFlops, "with_flops"}};
    for (const auto& [bit, name] : options)
      if (trace_.what() & bit) text_ += cat("  \"", name, "\": 1,\n");
    if (!trace_.measured_by.empty()) {
      text_ += "  \"deviceTimes\": ";
      append_json(text_, trace_.measured_by);
      text_ += ",\n";
    }
    if (trace_.dropped > 0)
      text_ += cat("  \"notRecorded\": \"", trace_.dropped,
                   " events, for which the profile had no room\",\n");
    text_ += cat("  \"displayTimeUnit\": \"ms\",\n  \"baseTimeNanoseconds\": ", trace_.epoch_ns(),
                 ",\n");
  }

  template <class Tid>
  void about(const char* what, int pid, Tid tid, const char* key, const std::string& value,
             bool number = false) {
    begin();
    text_ += cat("  {\"ph\": \"M\", \"name\": \"", what, "\", \"ts\": 0.000, \"pid\": ", pid,
                 ", \"tid\": ", tid, ", \"args\": {\"", key, "\": ");
    if (number)
      text_ += value;
    else
      append_json(text_, value);
    text_ += "}}";
  }
  void names() {
    about("process_name", pid_, 0, "name", "python");
    about("process_labels", pid_, 0, "labels", "CPU");
    about("process_sort_index", pid_, 0, "sort_index", cat(pid_), true);
    for (const ThreadInfo& t : trace_.threads())
      about("thread_name", pid_, t.id, "name", cat("thread ", t.id, " (", t.name, ")"));
    std::unordered_set<int64_t> streams;
    for (int d : trace_.devices()) {
      about("process_name", d, 0, "name", "python");
      about("process_labels", d, 0, "labels", cat("GPU ", d));
      about("process_sort_index", d, 0, "sort_index", cat(5000000 + d), true);
      for (const TraceEvent& e : trace_.events())
        if (e.on_device() && e.device == d && streams.insert(e.stream * 64 + d).second)
          about("thread_name", d, e.stream, "name", cat("stream ", e.stream));
    }
  }

  void place(Json& j, const TraceEvent& e) {
    const bool device = e.on_device();
    j.key("pid").number(device ? e.device : pid_);
    j.key("tid").number(device ? e.stream : static_cast<int64_t>(e.thread));
  }

  void event(const TraceEvent& e, size_t index) {
    static constexpr const char* categories[] = {
        "cpu_op",     "user_annotation", "cuda_runtime",     "kernel",
        "gpu_memcpy", "gpu_memset",      "cpu_instant_event"};
    text_ += "  ";
    Json j(text_);
    j.open('{');
    const bool memory = e.category == Category::kMemory;
    j.key("ph").text(memory ? "i" : "X");
    const bool driver =
        e.category == Category::kRuntime && e.name.starts_with("cu") && !e.name.starts_with("cuda");
    j.key("cat").text(driver ? "cuda_driver" : categories[static_cast<int>(e.category)]);
    if (memory) j.key("s").text("t");
    j.key("name").text(e.name);
    place(j, e);
    j.key("ts").us(e.start);
    if (!memory) j.key("dur").us(e.duration());
    j.key("args").open('{');
    if (memory)
      memory_args(j, e);
    else if (e.raw)
      scope_args(j, e, index);
    else if (e.activity)
      activity_args(j, e);
    if (e.raw) j.key("Ev Idx").number(index);
    j.close('}');
    j.close('}');
  }

  void memory_args(Json& j, const TraceEvent& e) {
    j.key("Total Allocated").number(e.allocated);
    j.key("Bytes").number(e.bytes);
    j.key("Device Id").number(e.device);
    j.key("Device Type").number(e.device < 0 ? 0 : 1);
    j.key("Addr").number(e.address);
  }

  void scope_args(Json& j, const TraceEvent& e, size_t index) {
    j.key("External id").number(index + 1);
    if (e.sequence >= 0) {
      j.key("Sequence number").number(e.sequence);
      j.key("Fwd thread id").number(e.forward_thread);
    }
    j.key("Record function id").number(0);
    const std::vector<Argument> arguments = trace_.arguments(e);
    if (!arguments.empty()) put_arguments(j, arguments);
    if (e.flops > 0) j.key("Flops").number(e.flops);
    const auto members = trace_.members(e);
    if (!members.empty()) {
      j.key("Operators").open('[');
      for (const auto& m : members) j.text(m.first);
      j.close(']');
      j.key("Source lines").open('[');
      for (const auto& m : members) j.text(m.second);
      j.close(']');
    }
    const std::vector<std::string> stack = trace_.stack(e);
    if (!stack.empty()) {
      j.key("Call stack").open('[');
      for (const std::string& s : stack) j.text(s);
      j.close(']');
    }
  }

  void activity_args(Json& j, const TraceEvent& e) {
    const Activity& a = *e.activity;
    if (e.on_device()) {
      j.key("device").number(a.device);
      j.key("context").number(1);
      j.key("stream").number(a.stream);
    }
    j.key("correlation").number(a.correlation);
    if (e.category == Category::kKernel && a.grid[0] > 0) {
      j.key("registers per thread").number(a.registers);
      j.key("shared memory").number(a.shared);
      j.key("grid").list(a.grid);
      j.key("block").list(a.block);
    }
    if (e.category == Category::kCopy || e.category == Category::kSet) {
      j.key("bytes").number(a.bytes);
      if (e.duration() > 0)
        j.key("memory bandwidth (GB/s)")
            .number(static_cast<double>(a.bytes) / static_cast<double>(e.duration()));
    }
  }

  void arrow(const Arrow& a) {
    static constexpr const char* kinds[] = {"fwdbwd", "ac2g", "deferred"};
    const TraceEvent& from = trace_.events()[static_cast<size_t>(a.from)];
    const TraceEvent& to = trace_.events()[static_cast<size_t>(a.to)];
    const char* kind = kinds[static_cast<int>(a.kind)];
    const int64_t id = ++arrows_;
    for (bool start : {true, false}) {
      const TraceEvent& e = start ? from : to;
      begin();
      text_ += "  ";
      Json j(text_);
      j.open('{');
      j.key("ph").text(start ? "s" : "f");
      j.key("id").number(id);
      place(j, e);
      // Two clocks may disagree a little: nothing is before what it follows from.
      j.key("ts").us(start ? e.start : std::min(std::max(e.start, from.start), e.end));
      j.key("cat").text(kind);
      j.key("name").text(kind);
      if (!start) j.key("bp").text("e");
      j.close('}');
    }
  }

  void span() {
    begin();
    text_ +=
        "  {\"ph\": \"X\", \"cat\": \"Trace\", \"name\": \"Profiler (0)\", \"pid\": \"Spans\", "
        "\"tid\": \"Profiler\", \"ts\": 0.000, \"dur\": ";
    Json(text_).us(trace_.length_ns());
    text_ += ", \"args\": {\"Op count\": 0}}";
  }

  const Trace& trace_;
  Sink& sink_;
  const int pid_;
  std::string text_;
  bool first_ = true;
  int64_t arrows_ = 0;
};

class Nowhere : public Sink {
  void write(std::string_view) override {}
  void finish() override {}
};

// Which events fit: all, or the longest of those that may be left out.
std::vector<char> choose(const Trace& trace, int64_t most_bytes, int64_t* left_out) {
  const std::vector<TraceEvent>& events = trace.events();
  std::vector<char> kept(events.size());
  for (size_t i = 0; i < events.size(); ++i) kept[i] = !events[i].hidden;
  Nowhere nowhere;
  Writer writer(trace, nowhere);
  size_t bytes = 0, seen = 0;
  const size_t step = std::max<size_t>(1, events.size() / 1000);
  for (size_t i = 0; i < events.size(); i += step, ++seen) bytes += writer.size_of(i);
  constexpr size_t kArrow = 220;  // both of its ends
  const double arrows = events.empty() ? 0.0
                                       : static_cast<double>(kArrow * trace.arrows().size()) /
                                             static_cast<double>(events.size());
  const double each = seen ? static_cast<double>(bytes) / static_cast<double>(seen) + arrows : 1.0;
  const auto room = static_cast<size_t>(std::max(0.0, static_cast<double>(most_bytes) / each));
  if (events.size() <= room) return kept;
  std::vector<size_t> order;
  for (size_t i = 0; i < events.size(); ++i)
    if (kept[i]) order.push_back(i);
  const auto weight = [&](size_t i) {
    return events[i].category == Category::kUser ? INT64_MAX : events[i].duration();
  };
  if (order.size() <= room) return kept;
  std::nth_element(order.begin(), order.begin() + static_cast<int64_t>(room), order.end(),
                   [&](size_t a, size_t b) { return weight(a) > weight(b); });
  for (size_t k = room; k < order.size(); ++k) kept[order[k]] = 0;
  *left_out = static_cast<int64_t>(order.size() - room);
  return kept;
}

}  // namespace

int64_t most_trace_bytes() {
  const char* v = std::getenv("TESSERA_PROFILE_MAX_BYTES");
  const int64_t n = v && *v ? std::atoll(v) : 0;
  return n > 0 ? n : int64_t{512} << 20;
}

Written write_chrome_trace(const Trace& trace, const std::string& path, int64_t most_bytes) {
  Written w{static_cast<int64_t>(trace.events().size()), 0};
  const std::vector<char> kept = choose(trace, most_bytes, &w.left_out);
  std::unique_ptr<Sink> sink = Sink::open(path);
  Writer(trace, *sink).write(path, kept, w.left_out);
  return w;
}

}  // namespace tessera::profile
