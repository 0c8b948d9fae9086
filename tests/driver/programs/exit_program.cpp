// Ends with work queued on the device: exit_program WORK ENDING [small]. tests/python/test_exit.py
// runs it and checks the exit status and that nothing is written to stderr.
#include <pthread.h>
#include <signal.h>
#include <tessera/tessera.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

using namespace tessera;

namespace {

std::string g_work;
bool g_small = false;  // for the emulated GPU, whose kernels are slow
Tensor g_late;         // destroyed by an exit handler, after main
Tensor g_read_late;    // read by an exit handler

struct Work {
  Device device = best_device();
  nn::Conv2d conv{3, 16, 3, {.padding = 1}};
  Tensor images = (g_small ? randn({1, 3, 8, 8}) : randn({16, 3, 32, 32})).to(device);
  Tensor square = (g_small ? randn({24, 24}) : randn({192, 192})).to(device);
  Work() { conv.to(device); }

  Tensor queue_one(const std::string& name) {
    NoGrad no_grad;
    if (name == "conv") return conv(images);
    if (name == "product") {
      Tensor complex = square.to(DType::kComplex64);
      return matmul(complex, complex);
    }
    if (name == "linalg") return linalg_inv(square);
    if (name == "fft") return fft_fft(square);
    if (name == "random") return randn({100000}, {}, device);
    return softmax(cumsum(square, 0), 1);
  }
  Tensor queue(int times) {
    Tensor last;
    for (int i = 0; i < (g_small ? 3 : times); ++i)
      for (const char* one : {"conv", "product", "linalg", "fft", "kernel", "random"})
        if (g_work == "all" || g_work == one) last = queue_one(one);
    return last;
  }
};

[[noreturn]] void wait_for_end() {
  for (;;) pause();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  g_work = argv[1];
  const std::string ending = argv[2];
  g_small = argc > 3;
  if (ending == "handler")  // registered before any library is opened: runs after their handlers
    std::atexit([] {
      g_late = Tensor();
      std::printf("handler\n");
    });
  manual_seed(0);
  static Work work;  // destroyed late
  if (ending == "queue_late")
    std::atexit([] {
      work.queue(3);
      const double sum = (g_read_late + g_read_late).sum().item();
      std::printf("%s\n", sum == 2000.0 ? "right" : "wrong");
    });
  g_read_late = ones({1000}, {}, work.device);
  g_late = work.queue(20);
  if (ending == "exit") std::exit(3);
  if (ending == "quick_exit") std::quick_exit(4);
  if (ending == "_exit") _exit(5);
  if (ending == "kill") raise(SIGTERM);
  if (ending == "thread_exit") {
    std::thread([] { std::exit(6); }).detach();
    wait_for_end();
  }
  if (ending == "thread_work_exit") {  // the libraries are opened by the thread that ends
    std::thread([] {
      work.queue(5);
      std::exit(7);
    }).detach();
    wait_for_end();
  }
  if (ending == "threads") {
    for (int i = 0; i < 3; ++i)
      std::thread([] {
        for (;;) work.queue(1);
      }).detach();
    usleep(50'000);
    return 8;
  }
  if (ending == "main_thread_exit") {
    std::thread([] {
      usleep(20'000);
      work.queue(5);
      const double sum = g_read_late.sum().item();
      std::exit(sum == 1000.0 ? 9 : 1);
    }).detach();
    pthread_exit(nullptr);
  }
  return 0;
}
