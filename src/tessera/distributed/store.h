// Keys and values that the processes of a job share: how they find each other.
#pragma once
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tessera/distributed/server.h"

namespace tessera::distributed {

class Store {
 public:
  explicit Store(Milliseconds timeout = std::chrono::minutes(5)) : timeout_(timeout) {}
  virtual ~Store() = default;
  Store(const Store&) = delete;

  virtual void set(const std::string& key, const std::string& value) = 0;
  // Waits until the key is there; raises DistError of the store kind when the time is up.
  virtual std::string get(const std::string& key, Milliseconds timeout) = 0;
  virtual void wait(const std::vector<std::string>& keys, Milliseconds timeout) = 0;
  // The sum after it; a key that is not there counts as 0.
  virtual int64_t add(const std::string& key, int64_t amount) = 0;
  virtual bool check(const std::vector<std::string>& keys) = 0;
  virtual bool delete_key(const std::string& key) = 0;
  // Sets `desired` where the value is `expected` (empty: or there is none); gives what is there.
  virtual std::string compare_set(const std::string& key, const std::string& expected,
                                  const std::string& desired) = 0;
  virtual void append(const std::string& key, const std::string& value) = 0;
  virtual int64_t num_keys() = 0;

  std::string get(const std::string& key) { return get(key, timeout()); }
  void wait(const std::vector<std::string>& keys) { wait(keys, timeout()); }
  virtual void set_timeout(Milliseconds timeout) { timeout_ = timeout; }
  virtual Milliseconds timeout() const { return timeout_; }

  // Where ranks of this job join (see Note [Who is there]); null where the store has no server.
  struct MeetingPoint {
    std::string host;
    uint16_t port = 0;
    std::string secret;
  };
  virtual const MeetingPoint* meeting_point() const { return nullptr; }
  // The address at which others reach this process; empty where the store does not know.
  virtual std::string own_address() const { return ""; }

 private:
  Milliseconds timeout_;
};

// Within one process.
class HashStore final : public Store {
 public:
  using Store::get;
  using Store::wait;
  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key, Milliseconds timeout) override;
  void wait(const std::vector<std::string>& keys, Milliseconds timeout) override;
  int64_t add(const std::string& key, int64_t amount) override;
  bool check(const std::vector<std::string>& keys) override;
  bool delete_key(const std::string& key) override;
  std::string compare_set(const std::string& key, const std::string& expected,
                          const std::string& desired) override;
  void append(const std::string& key, const std::string& value) override;
  int64_t num_keys() override;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
};

// Another store, with a text before every key.
class PrefixStore final : public Store {
 public:
  using Store::get;
  using Store::wait;
  PrefixStore(std::string prefix, std::shared_ptr<Store> store)
      : prefix_(std::move(prefix)), store_(std::move(store)) {}
  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key, Milliseconds timeout) override;
  void wait(const std::vector<std::string>& keys, Milliseconds timeout) override;
  int64_t add(const std::string& key, int64_t amount) override;
  bool check(const std::vector<std::string>& keys) override;
  bool delete_key(const std::string& key) override;
  std::string compare_set(const std::string& key, const std::string& expected,
                          const std::string& desired) override;
  void append(const std::string& key, const std::string& value) override;
  int64_t num_keys() override { return store_->num_keys(); }
  void set_timeout(Milliseconds timeout) override { store_->set_timeout(timeout); }
  Milliseconds timeout() const override { return store_->timeout(); }
  const MeetingPoint* meeting_point() const override { return store_->meeting_point(); }
  std::string own_address() const override { return store_->own_address(); }
  const std::shared_ptr<Store>& underlying() const { return store_; }

 private:
  std::string name(const std::string& key) const { return prefix_ + "/" + key; }
  std::vector<std::string> names(const std::vector<std::string>& keys) const;
  std::string prefix_;
  std::shared_ptr<Store> store_;
};

// In a file that all processes see; for one machine, or a shared file system with locks.
class FileStore final : public Store {
 public:
  using Store::get;
  using Store::wait;
  // The last of `world_size` users removes the file; -1: nobody does.
  FileStore(std::string path, int world_size);
  ~FileStore() override;
  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key, Milliseconds timeout) override;
  void wait(const std::vector<std::string>& keys, Milliseconds timeout) override;
  int64_t add(const std::string& key, int64_t amount) override;
  bool check(const std::vector<std::string>& keys) override;
  bool delete_key(const std::string& key) override;
  std::string compare_set(const std::string& key, const std::string& expected,
                          const std::string& desired) override;
  void append(const std::string& key, const std::string& value) override;
  int64_t num_keys() override;
  const std::string& path() const { return path_; }

 private:
  template <class F>
  auto locked(F&& work);
  std::string path_;
  int world_size_;
  std::mutex mutex_;
};

// At a server, which one of the processes is.
class TCPStore final : public Store {
 public:
  using Store::get;
  using Store::wait;
  struct Options {
    std::string host = "127.0.0.1";
    uint16_t port = 0;
    int world_size = -1;  // -1: not known
    bool is_master = false;
    Milliseconds timeout = std::chrono::minutes(5);
    bool wait_for_workers = true;
    std::string secret = job_secret();
    // The server stays until the process ends, and the next store of this address uses it.
    bool keep_server = false;
  };
  explicit TCPStore(Options options);
  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key, Milliseconds timeout) override;
  void wait(const std::vector<std::string>& keys, Milliseconds timeout) override;
  int64_t add(const std::string& key, int64_t amount) override;
  bool check(const std::vector<std::string>& keys) override;
  bool delete_key(const std::string& key) override;
  std::string compare_set(const std::string& key, const std::string& expected,
                          const std::string& desired) override;
  void append(const std::string& key, const std::string& value) override;
  int64_t num_keys() override;
  const MeetingPoint* meeting_point() const override { return &at_; }
  std::string own_address() const override { return socket_.local_address(); }
  const std::string& host() const { return at_.host; }
  uint16_t port() const { return at_.port; }

 private:
  std::string ask(const std::string& message, Milliseconds more = Milliseconds(0));
  int64_t ask_number(const std::string& message);
  MeetingPoint at_;
  std::shared_ptr<Server> server_;
  std::mutex mutex_;
  Socket socket_;
};

}  // namespace tessera::distributed
