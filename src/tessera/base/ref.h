// Intrusive reference counting: the count is in the object, a handle is one pointer.
#pragma once
#include <atomic>
#include <cstdint>
#include <utility>

namespace tessera {

// T derives from RefCounted and provides `static void destroy(T*)` through `delete` by default.
class RefCounted {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;

  void ref() const noexcept { count_.fetch_add(1, std::memory_order_relaxed); }
  // True when this was the last reference: the caller destroys the object.
  bool unref() const noexcept {
    if (count_.load(std::memory_order_acquire) == 1) return true;
    return count_.fetch_sub(1, std::memory_order_acq_rel) == 1;
  }
  uint32_t use_count() const noexcept { return count_.load(std::memory_order_acquire); }

 protected:
  mutable std::atomic<uint32_t> count_{1};
};

template <class T>
class Ref {
 public:
  Ref() noexcept = default;
  Ref(std::nullptr_t) noexcept {}
  // Takes over the reference the caller holds.
  static Ref adopt(T* p) noexcept {
    Ref r;
    r.p_ = p;
    return r;
  }
  // Adds a reference.
  static Ref share(T* p) noexcept {
    if (p) p->ref();
    return adopt(p);
  }
  template <class... Args>
  static Ref make(Args&&... args) {
    return adopt(new T(std::forward<Args>(args)...));
  }
  Ref(const Ref& o) noexcept : p_(o.p_) {
    if (p_) p_->ref();
  }
  Ref(Ref&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  Ref& operator=(Ref o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~Ref() { reset(); }

  void reset() noexcept {
    if (T* p = std::exchange(p_, nullptr); p && p->unref()) delete p;
  }
  T* release() noexcept { return std::exchange(p_, nullptr); }
  T* get() const noexcept { return p_; }
  T* operator->() const noexcept { return p_; }
  T& operator*() const noexcept { return *p_; }
  explicit operator bool() const noexcept { return p_ != nullptr; }
  bool operator==(const Ref& o) const noexcept { return p_ == o.p_; }

 private:
  T* p_ = nullptr;
};

}  // namespace tessera
