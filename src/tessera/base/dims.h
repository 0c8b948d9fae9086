// A short list of 64-bit integers (sizes, strides, indices), inline up to six.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string>

namespace tessera {

class Dims {
 public:
  Dims() noexcept : data_(inline_) {}
  explicit Dims(size_t n, int64_t value = 0) : Dims() {
    resize(n);
    std::fill(begin(), end(), value);
  }
  Dims(std::initializer_list<int64_t> v) : Dims(std::span(v.begin(), v.size())) {}
  Dims(std::span<const int64_t> v) : Dims() { assign(v); }
  Dims(const Dims& o) : Dims() { assign(o.span()); }
  Dims(Dims&& o) noexcept : Dims() { swap_in(o); }
  Dims& operator=(const Dims& o) {
    if (this != &o) assign(o.span());
    return *this;
  }
  Dims& operator=(Dims&& o) noexcept {
    if (this != &o) {
      drop();
      swap_in(o);
    }
    return *this;
  }
  ~Dims() { drop(); }

  size_t size() const { return size_; }
  int ndim() const { return static_cast<int>(size_); }
  bool empty() const { return size_ == 0; }
  int64_t& operator[](size_t i) { return data_[i]; }
  int64_t operator[](size_t i) const { return data_[i]; }
  int64_t* begin() { return data_; }
  int64_t* end() { return data_ + size_; }
  const int64_t* begin() const { return data_; }
  const int64_t* end() const { return data_ + size_; }
  int64_t* data() { return data_; }
  const int64_t* data() const { return data_; }
  int64_t back() const { return data_[size_ - 1]; }
  std::span<const int64_t> span() const { return {data_, size_}; }
  operator std::span<const int64_t>() const { return span(); }

  void resize(size_t n) {
    if (n > capacity_) grow(n);
    if (n > size_) std::fill(data_ + size_, data_ + n, 0);
    size_ = static_cast<uint32_t>(n);
  }
  void push_back(int64_t v) {
    resize(size_ + 1);
    data_[size_ - 1] = v;
  }
  void insert(size_t at, int64_t v) {
    push_back(v);
    std::rotate(data_ + at, data_ + size_ - 1, data_ + size_);
  }
  void erase(size_t at) {
    std::copy(data_ + at + 1, data_ + size_, data_ + at);
    --size_;
  }
  bool operator==(const Dims& o) const {
    if (size_ != o.size_) return false;
    for (uint32_t i = 0; i < size_; ++i)  // a few elements: a call of memcmp costs more
      if (data_[i] != o.data_[i]) return false;
    return true;
  }

 private:
  static constexpr uint32_t kInline = 6;

  void assign(std::span<const int64_t> v) {
    if (v.size() > capacity_) {
      size_ = 0;
      resize(v.size());
    }
    size_ = static_cast<uint32_t>(v.size());
    for (uint32_t i = 0; i < size_; ++i) data_[i] = v[i];
  }
  // Rare, so it stands in one place. Inlined, GCC 13 also takes n for less than the size.
  [[gnu::noinline]] void grow(size_t n) {
    int64_t* grown = new int64_t[n];
    std::copy_n(data_, size_, grown);
    drop_buffer();
    data_ = grown;
    capacity_ = static_cast<uint32_t>(n);
  }
  void drop_buffer() {
    if (data_ != inline_) delete[] data_;
  }
  void drop() {
    drop_buffer();
    data_ = inline_;
    size_ = 0;
    capacity_ = kInline;
  }
  void swap_in(Dims& o) {
    if (o.data_ == o.inline_) {
      size_ = o.size_;
      for (uint32_t i = 0; i < size_; ++i) inline_[i] = o.inline_[i];
    } else {
      data_ = o.data_;
      size_ = o.size_;
      capacity_ = o.capacity_;
      o.data_ = o.inline_;
      o.capacity_ = kInline;
    }
    o.size_ = 0;
  }

  int64_t* data_;
  uint32_t size_ = 0;
  uint32_t capacity_ = kInline;
  int64_t inline_[kInline];
};

// "[2, 3]", as PyTorch prints a size in its errors.
void append(std::string& out, const Dims& d);

}  // namespace tessera
