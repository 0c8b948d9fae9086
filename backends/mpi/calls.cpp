#include "calls.h"

#include <sched.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <thread>

namespace tessera::distributed::mpi {

namespace {

// Made at the start; MPI hands `type` to the functions below, which find the dtype by it.
MPI_Datatype g_types[kNumDTypes];
MPI_Op g_ops[kNumReduceOps];

template <int Op>
void reduce_elements(void* in, void* inout, int* count, MPI_Datatype* type) {
  for (int t = 0; t < kNumDTypes; ++t)
    if (g_types[t] == *type) {
      auto function = reduce_function(static_cast<DType>(t), static_cast<ReduceOp>(Op));
      return function(inout, in, inout, static_cast<size_t>(*count));
    }
}

void make_types() {
  for (int t = 0; t < kNumDTypes; ++t) {
    check(MPI_Type_contiguous(static_cast<int>(itemsize(static_cast<DType>(t))), MPI_BYTE,
                              &g_types[t]),
          "MPI_Type_contiguous");
    check(MPI_Type_commit(&g_types[t]), "MPI_Type_commit");
  }
  MPI_User_function* functions[kNumReduceOps] = {
      reduce_elements<0>, reduce_elements<1>, reduce_elements<2>, reduce_elements<3>,
      reduce_elements<4>, reduce_elements<5>, reduce_elements<6>, reduce_elements<7>};
  for (int o = 0; o < kNumReduceOps; ++o)
    check(MPI_Op_create(functions[o], 1, &g_ops[o]), "MPI_Op_create");
}

bool g_ours = false;  // MPI was started here
// A call was given up. MPI may still write where it was told to, whenever it is called: it is not.
std::atomic<bool> g_over{false};

}  // namespace

std::mutex& calls() {
  static std::mutex* m = new std::mutex;
  return *m;
}

void check(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw std::runtime_error(std::string(what) + ": " + text);
}

void check_usable() {
  if (g_over) throw std::runtime_error("MPI is not used any more after a call that failed");
}

void start() {
  std::lock_guard lock(calls());
  static bool made = false;
  if (made) return;
  int flag = 0;
  MPI_Initialized(&flag);
  if (!flag) {
    int given = 0;
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &given), "MPI_Init_thread");
    if (given < MPI_THREAD_SERIALIZED)
      throw std::runtime_error("this MPI cannot be called from several threads in turn");
    g_ours = true;
  }
  // Errors are ours to report, with the collective's name.
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  make_types();
  made = true;
}

void shut_down() {
  std::lock_guard lock(calls());
  int done = 0;
  MPI_Finalized(&done);
  if (g_ours && !done && !g_over) MPI_Finalize();
}

void await(MPI_Request request, std::chrono::milliseconds timeout, const std::atomic<bool>& aborted,
           MPI_Status* status) {
  using Clock = std::chrono::steady_clock;
  const auto began = Clock::now();
  auto pause = std::chrono::microseconds(20);
  for (int64_t turn = 0;; ++turn) {
    int done = 0;
    {
      std::lock_guard lock(calls());
      check_usable();
      int code = MPI_Test(&request, &done, status ? status : MPI_STATUS_IGNORE);
      check(code, "MPI_Test");
    }
    if (done) return;
    const auto waited = Clock::now() - began;
    if (aborted.load(std::memory_order_relaxed) || waited > timeout) {
      g_over = true;
      throw std::runtime_error(waited > timeout ? "the time is up" : "aborted");
    }
    // At first others get the core; whoever waits long does not take it from those who compute.
    if (waited < std::chrono::milliseconds(2)) {
      sched_yield();
    } else {
      std::this_thread::sleep_for(pause);
      pause = std::min(pause * 2, std::chrono::microseconds(500));
    }
  }
}

int checked_tag(uint32_t tag) {
  static const int most = [] {
    int* value = nullptr;
    int found = 0;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &found);
    return found ? *value : 32767;
  }();
  if (tag > static_cast<uint32_t>(most))
    throw std::runtime_error("MPI's tags end at " + std::to_string(most / 2));
  return static_cast<int>(tag);
}

MPI_Datatype element(DType dtype) { return g_types[static_cast<int>(dtype)]; }
MPI_Op operation(ReduceOp op) { return g_ops[static_cast<int>(op)]; }

}  // namespace tessera::distributed::mpi
