// Errors: one exception type, one family of checks. A kind maps to Python's exception class.
#pragma once
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>

namespace tessera {

enum class ErrorKind : uint8_t {
  kRuntime,         // RuntimeError
  kValue,           // ValueError
  kType,            // TypeError
  kIndex,           // IndexError
  kNotImplemented,  // NotImplementedError
  kOutOfMemory,     // OutOfMemoryError
  kLinAlg,          // torch.linalg.LinAlgError: a matrix that cannot be factored
  kInternal,        // our bug: says so
};

class Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string message) : kind_(kind), message_(std::move(message)) {}
  const char* what() const noexcept override { return message_.c_str(); }
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
  std::string message_;
};

[[noreturn]] void raise(ErrorKind kind, std::string message);
[[noreturn]] void raise_internal(const char* expression, const char* file, int line,
                                 const std::string& message);

namespace detail {
inline void append(std::string& out, std::string_view s) { out += s; }
inline void append(std::string& out, const char* s) { out += s; }
inline void append(std::string& out, const std::string& s) { out += s; }
inline void append(std::string& out, char c) { out += c; }
void append(std::string& out, int64_t v);
void append(std::string& out, uint64_t v);
void append(std::string& out, double v);
inline void append(std::string& out, int v) { append(out, int64_t{v}); }
inline void append(std::string& out, unsigned v) { append(out, uint64_t{v}); }
inline void append(std::string& out, long long v) { append(out, static_cast<int64_t>(v)); }
inline void append(std::string& out, unsigned long long v) {
  append(out, static_cast<uint64_t>(v));
}
inline void append(std::string& out, float v) { append(out, double{v}); }
inline void append(std::string& out, bool v) { out += v ? "True" : "False"; }
}  // namespace detail

// Joins its arguments as text. Types of ours join in by declaring `append(std::string&, const X&)`
// in namespace tessera.
template <class... Args>
std::string cat(const Args&... args) {
  using detail::append;
  std::string out;
  (append(out, args), ...);
  return out;
}

}  // namespace tessera

#define TS_CHECK_KIND(kind, cond, ...)                                           \
  do {                                                                           \
    if (!(cond)) [[unlikely]]                                                    \
      ::tessera::raise(::tessera::ErrorKind::kind, ::tessera::cat(__VA_ARGS__)); \
  } while (0)
#define TS_CHECK(cond, ...) TS_CHECK_KIND(kRuntime, cond, __VA_ARGS__)
#define TS_CHECK_VALUE(cond, ...) TS_CHECK_KIND(kValue, cond, __VA_ARGS__)
#define TS_CHECK_TYPE(cond, ...) TS_CHECK_KIND(kType, cond, __VA_ARGS__)
#define TS_CHECK_INDEX(cond, ...) TS_CHECK_KIND(kIndex, cond, __VA_ARGS__)
#define TS_CHECK_IMPLEMENTED(cond, ...) TS_CHECK_KIND(kNotImplemented, cond, __VA_ARGS__)
#define TS_ASSERT(cond, ...)                                                                \
  do {                                                                                      \
    if (!(cond)) [[unlikely]]                                                               \
      ::tessera::raise_internal(#cond, __FILE__, __LINE__, ::tessera::cat("" __VA_ARGS__)); \
  } while (0)
