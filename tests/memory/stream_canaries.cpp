// Many threads take and give back device memory on many streams, and every block is written, read
// by other streams and handed to other threads while it lives: memory given twice shows as a canary
// with another's value.
//   stream_canaries [--device cuda:0] [--threads 16] [--streams 8] [--ops 1000000] [--seed 1]
// An operation is an allocation or a release. Where there is no GPU: TESSERA_VIRTUAL_GPU=1x2GiB.
#include <tessera/tessera.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <random>
#include <thread>

using namespace tessera;

namespace {

struct Block {
  Tensor data;
  int32_t canary = 0;
  cuda::Event written;
};

// Blocks on their way from one thread to another.
class Post {
 public:
  void give(Block b) {
    std::lock_guard lock(mutex_);
    if (blocks_.size() < 256) blocks_.push_back(std::move(b));
  }
  bool take(Block* out) {
    std::lock_guard lock(mutex_);
    if (blocks_.empty()) return false;
    *out = std::move(blocks_.front());
    blocks_.erase(blocks_.begin());
    return true;
  }

 private:
  std::mutex mutex_;
  std::vector<Block> blocks_;
};

struct Options {
  Device device = Device{DeviceType::kCUDA, 0};
  int threads = 16;
  int streams = 8;
  int64_t operations = 1000000;
  unsigned seed = 1;
  int largest = 18;  // 2^ this many elements at most, 2^ 8 times as many rarely
};

class Worker {
 public:
  Worker(const Options& o, int number, Post& post)
      : options_(o), post_(post), random_(o.seed * 1000 + static_cast<unsigned>(number)) {
    for (int i = 0; i < o.streams; ++i) {
      streams_.emplace_back(o.device.index);
      cuda::StreamGuard guard(streams_.back());
      wrong_.push_back(zeros({1}, DType::kInt64, o.device));
    }
  }

  void run(int64_t operations, std::atomic<int64_t>& done) {
    for (int64_t i = 0; i < operations;) {
      const int64_t before = i;
      step(&i);
      done += i - before;
    }
    while (!live_.empty()) end(live_.size() - 1, false);
  }

  int64_t wrong() {
    int64_t n = 0;
    for (size_t i = 0; i < streams_.size(); ++i) {
      cuda::StreamGuard guard(streams_[i]);
      n += wrong_[i].item<int64_t>();
    }
    return n;
  }
  int64_t handed_over() const { return handed_over_; }

 private:
  uint32_t below(size_t n) { return random_() % static_cast<uint32_t>(n); }

  int64_t size() {
    const bool big = below(500) == 0;
    const double most = options_.largest + (big ? 3 : 0);
    return static_cast<int64_t>(std::exp2(most * (random_() * 0x1p-32)));
  }

  void step(int64_t* operations) {
    const uint32_t what = below(100);
    Block b;
    if (live_.size() < 8 || (what < 45 && live_.size() < 96)) {
      begin();
      *operations += 1;
    } else if (what < 80) {
      end(below(live_.size()), what < 60);
      *operations += 1;
    } else if (what < 90) {
      const size_t i = below(live_.size());
      b = take(i);
      post_.give(std::move(b));
      ++handed_over_;
    } else if (what < 99) {
      if (post_.take(&b)) live_.push_back(std::move(b));
    } else if (below(2000) == 0) {
      cuda::empty_cache();
    }
  }

  void begin() {
    cuda::StreamGuard guard(streams_[below(streams_.size())]);
    Block b;
    b.data = empty({size()}, DType::kInt32, options_.device);
    b.canary = static_cast<int32_t>(random_() | 1);
    b.data.fill_(b.canary);
    b.data.data_ptr<int32_t>();  // written, not only planned
    b.written.record();
    live_.push_back(std::move(b));
  }

  Block take(size_t i) {
    Block b = std::move(live_[i]);
    live_[i] = std::move(live_.back());
    live_.pop_back();
    return b;
  }

  // Reads it on some stream and lets it go while that read is still queued.
  void end(size_t i, bool in_place_too) {
    Block b = take(i);
    const size_t at = below(streams_.size());
    cuda::StreamGuard guard(streams_[at]);
    b.written.wait();
    wrong_[at] += ne(b.data, b.canary).sum();
    if (in_place_too) {  // the reader leaves other values behind
      b.data.add_(1);
      wrong_[at] += ne(b.data, wrapped(b.canary)).sum();
    }
    wrong_[at].data_ptr<int64_t>();
    b.data.record_stream(streams_[at]);
  }

  static int32_t wrapped(int32_t v) { return static_cast<int32_t>(static_cast<uint32_t>(v) + 1u); }

  const Options& options_;
  Post& post_;
  std::mt19937 random_;
  std::vector<cuda::Stream> streams_;
  std::vector<Tensor> wrong_;  // elements that were not the canary, by stream
  std::vector<Block> live_;
  int64_t handed_over_ = 0;
};

Options read(int argc, char** argv) {
  Options o;
  for (int i = 1; i + 1 < argc; i += 2) {
    const char* value = argv[i + 1];
    if (!std::strcmp(argv[i], "--device")) o.device = parse_device(value);
    if (!std::strcmp(argv[i], "--threads")) o.threads = std::atoi(value);
    if (!std::strcmp(argv[i], "--streams")) o.streams = std::atoi(value);
    if (!std::strcmp(argv[i], "--ops")) o.operations = static_cast<int64_t>(std::atof(value));
    if (!std::strcmp(argv[i], "--seed")) o.seed = static_cast<unsigned>(std::atoi(value));
    if (!std::strcmp(argv[i], "--largest")) o.largest = std::atoi(value);
  }
  return o;
}

}  // namespace

int main(int argc, char** argv) {
  const Options o = read(argc, argv);
  const auto began = std::chrono::steady_clock::now();
  Post post;
  std::atomic<int64_t> done{0}, wrong{0}, handed_over{0}, failed{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < o.threads; ++t)
    threads.emplace_back([&, t] {
      try {
        Worker w(o, t, post);
        w.run(o.operations / o.threads, done);
        wrong += w.wrong();
        handed_over += w.handed_over();
      } catch (const std::exception& e) {
        ++failed;
        std::printf("thread %d: %s\n", t, e.what());
      }
    });
  for (auto& t : threads) t.join();
  Block rest;  // nobody took them
  while (post.take(&rest)) rest.data = Tensor();
  cuda::synchronize();
  const int64_t left = cuda::memory_allocated();
  const double s = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  std::printf(
      "%lld operations by %d threads on %d streams, %lld blocks handed over, %.1f s: %lld wrong "
      "elements, %lld bytes left, %lld threads failed\n",
      static_cast<long long>(done), o.threads, o.threads * o.streams,
      static_cast<long long>(handed_over), s, static_cast<long long>(wrong),
      static_cast<long long>(left), static_cast<long long>(failed));
  return wrong == 0 && left == 0 && failed == 0 ? 0 : 1;
}
