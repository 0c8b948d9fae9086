// Where in the host language's program an operator was called: taken down in a few nanoseconds,
// turned into file and line only when somebody looks.
#pragma once
#include <cstdint>
#include <string>
#include <utility>

namespace tessera {

// Set by the binder; all null without one. `retain`, `release` and `text` may be called by any
// thread, under any lock of ours: they neither wait nor run the host language's code.
struct SourceHooks {
  // A reference to the calling piece of code, null where there is none, and the place in it. With
  // `want_line`, *line is found now, for readers that cannot ask the host language later; else -1.
  void* (*capture)(bool want_line, int32_t* at, int32_t* line) = nullptr;
  void (*retain)(void* code) = nullptr;
  void (*release)(void* code) = nullptr;
  std::string (*text)(void* code, int32_t at, int32_t line) = nullptr;
  // The calls that led here, innermost first, at most `most`; how many. None without the host
  // language's lock.
  int (*capture_stack)(void** codes, int32_t* at, int most) = nullptr;
  std::string (*name)(void* code) = nullptr;  // of the function
};
extern SourceHooks source_hooks;

// Owns the reference.
class SourceRef {
 public:
  SourceRef() = default;
  static SourceRef capture(bool want_line) {
    SourceRef r;
    if (source_hooks.capture) r.code_ = source_hooks.capture(want_line, &r.at_, &r.line_);
    return r;
  }
  // The line that memory is for: that of the deferred operator it is allocated for, else the one
  // that is running.
  static SourceRef of_allocation() { return deferred ? deferred->share() : capture(false); }
  // While it lives, this thread allocates for an operator that was called at `source`.
  class Deferred {
   public:
    explicit Deferred(const SourceRef& source) { deferred = &source; }
    ~Deferred() { deferred = nullptr; }
    Deferred(const Deferred&) = delete;
  };
  SourceRef share() const {
    SourceRef r;
    if (code_) source_hooks.retain(code_);
    r.code_ = code_;
    r.at_ = at_;
    r.line_ = line_;
    return r;
  }
  SourceRef(SourceRef&& o) noexcept
      : code_(std::exchange(o.code_, nullptr)), at_(o.at_), line_(o.line_) {}
  SourceRef& operator=(SourceRef&& o) noexcept {
    std::swap(code_, o.code_);
    std::swap(at_, o.at_);
    std::swap(line_, o.line_);
    return *this;
  }
  ~SourceRef() {
    if (code_) source_hooks.release(code_);
  }

  // Appends the calls that led here, innermost first.
  template <class Stack>
  static void capture_stack(Stack* out) {
    constexpr int kMost = 64;
    void* codes[kMost];
    int32_t at[kMost];
    const int n = source_hooks.capture_stack ? source_hooks.capture_stack(codes, at, kMost) : 0;
    for (int i = 0; i < n; ++i) {
      SourceRef r;
      r.code_ = codes[i];
      r.at_ = at[i];
      out->push_back(std::move(r));
    }
  }

  explicit operator bool() const { return code_ != nullptr; }
  bool same_place(const SourceRef& o) const { return code_ == o.code_ && at_ == o.at_; }
  uint64_t place() const {
    return reinterpret_cast<uintptr_t>(code_) * 0x9e3779b97f4a7c15u + static_cast<uint32_t>(at_);
  }
  std::string name() const {
    return code_ && source_hooks.name ? source_hooks.name(code_) : std::string();
  }
  // "train.py:12"; empty where nothing was captured.
  std::string text() const { return code_ ? source_hooks.text(code_, at_, line_) : std::string(); }

 private:
  static thread_local const SourceRef* deferred;

  void* code_ = nullptr;
  int32_t at_ = -1;
  int32_t line_ = -1;
};

}  // namespace tessera
