#include "tessera/distributed/store.h"

#include <algorithm>
#include <cstdlib>

#include "tessera/distributed/error.h"

namespace tessera::distributed {

void HashStore::set(const std::string& key, const std::string& value) {
  std::lock_guard lock(mutex_);
  values_[key] = value;
  changed_.notify_all();
}

std::string HashStore::get(const std::string& key, Milliseconds timeout) {
  wait({key}, timeout);
  std::lock_guard lock(mutex_);
  return values_[key];
}

void HashStore::wait(const std::vector<std::string>& keys, Milliseconds timeout) {
  std::unique_lock lock(mutex_);
  for (const std::string& key : keys)
    if (!changed_.wait_for(lock, timeout, [&] { return values_.count(key) > 0; }))
      fail(DistErrorKind::kStore, "wait timeout after ", timeout.count(), "ms, keys: ", key);
}

int64_t HashStore::add(const std::string& key, int64_t amount) {
  std::lock_guard lock(mutex_);
  std::string& value = values_[key];
  int64_t sum = std::strtoll(value.c_str(), nullptr, 10) + amount;
  value = std::to_string(sum);
  changed_.notify_all();
  return sum;
}

bool HashStore::check(const std::vector<std::string>& keys) {
  std::lock_guard lock(mutex_);
  return std::all_of(keys.begin(), keys.end(), [&](auto& key) { return values_.count(key) > 0; });
}

bool HashStore::delete_key(const std::string& key) {
  std::lock_guard lock(mutex_);
  return values_.erase(key) > 0;
}

std::string HashStore::compare_set(const std::string& key, const std::string& expected,
                                   const std::string& desired) {
  std::lock_guard lock(mutex_);
  auto at = values_.find(key);
  if (at == values_.end() ? !expected.empty() : at->second != expected)
    return at == values_.end() ? expected : at->second;
  values_[key] = desired;
  changed_.notify_all();
  return desired;
}

void HashStore::append(const std::string& key, const std::string& value) {
  std::lock_guard lock(mutex_);
  values_[key] += value;
  changed_.notify_all();
}

int64_t HashStore::num_keys() {
  std::lock_guard lock(mutex_);
  return static_cast<int64_t>(values_.size());
}

std::vector<std::string> PrefixStore::names(const std::vector<std::string>& keys) const {
  std::vector<std::string> out;
  for (const std::string& key : keys) out.push_back(name(key));
  return out;
}
void PrefixStore::set(const std::string& key, const std::string& value) {
  store_->set(name(key), value);
}
std::string PrefixStore::get(const std::string& key, Milliseconds timeout) {
  return store_->get(name(key), timeout);
}
void PrefixStore::wait(const std::vector<std::string>& keys, Milliseconds timeout) {
  store_->wait(names(keys), timeout);
}
int64_t PrefixStore::add(const std::string& key, int64_t amount) {
  return store_->add(name(key), amount);
}
bool PrefixStore::check(const std::vector<std::string>& keys) { return store_->check(names(keys)); }
bool PrefixStore::delete_key(const std::string& key) { return store_->delete_key(name(key)); }
std::string PrefixStore::compare_set(const std::string& key, const std::string& expected,
                                     const std::string& desired) {
  return store_->compare_set(name(key), expected, desired);
}
void PrefixStore::append(const std::string& key, const std::string& value) {
  store_->append(name(key), value);
}

}  // namespace tessera::distributed
