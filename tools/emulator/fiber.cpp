#include "fiber.h"

#include <sys/mman.h>

#include <cstdint>
#include <new>
#ifndef __x86_64__
#include <ucontext.h>
#endif

namespace emulator {
namespace {

constexpr size_t kStack = 256u << 10, kPage = 4096;

// The lowest page cannot be touched: an overflow is a fault, not a wrong number.
char* make_stack() {
  void* p = mmap(nullptr, kStack, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  mprotect(p, kPage, PROT_NONE);
  return static_cast<char*>(p);
}

}  // namespace

#ifdef __x86_64__

extern "C" void emulator_switch(void** save, void* to);
// What a call keeps is pushed, stacks are exchanged, and popped again.
asm(R"(
.text
.type emulator_switch, @function
emulator_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size emulator_switch, .-emulator_switch
.type emulator_begin, @function
emulator_begin:
  movq %r12, %rdi
  callq *%r13
  ud2
.size emulator_begin, .-emulator_begin
)");
extern "C" void emulator_begin();

struct Fiber::Impl {
  char* stack = make_stack();
  void* inside = nullptr;
  void* outside = nullptr;
};

void Fiber::start(void (*body)(void*), void* argument) {
  // r15 r14 r13 r12 rbx rbp and the address to return to. After that return the stack is aligned as
  // a call asks.
  void** sp = reinterpret_cast<void**>(impl_->stack + kStack) - 9;
  sp[0] = sp[1] = sp[4] = sp[5] = nullptr;
  sp[2] = reinterpret_cast<void*>(body);
  sp[3] = argument;
  sp[6] = reinterpret_cast<void*>(&emulator_begin);
  impl_->inside = sp;
}
void Fiber::resume() { emulator_switch(&impl_->outside, impl_->inside); }
void Fiber::pause() { emulator_switch(&impl_->inside, impl_->outside); }

#else

struct Fiber::Impl {
  char* stack = make_stack();
  ucontext_t inside{}, outside{};
  void (*body)(void*) = nullptr;
  void* argument = nullptr;
};

namespace {
void begin(unsigned high, unsigned low) {
  auto impl = reinterpret_cast<void**>(static_cast<uintptr_t>(high) << 32 | low);
  reinterpret_cast<void (*)(void*)>(impl[0])(impl[1]);
}
}  // namespace

void Fiber::start(void (*body)(void*), void* argument) {
  impl_->body = body;
  impl_->argument = argument;
  getcontext(&impl_->inside);
  impl_->inside.uc_stack = {impl_->stack + kPage, 0, kStack - kPage};
  uintptr_t at = reinterpret_cast<uintptr_t>(&impl_->body);
  makecontext(&impl_->inside, reinterpret_cast<void (*)()>(&begin), 2,
              static_cast<unsigned>(at >> 32), static_cast<unsigned>(at));
}
void Fiber::resume() { swapcontext(&impl_->outside, &impl_->inside); }
void Fiber::pause() { swapcontext(&impl_->inside, &impl_->outside); }

#endif

Fiber::Fiber() : impl_(new Impl) {}
Fiber::~Fiber() {
  munmap(impl_->stack, kStack);
  delete impl_;
}

}  // namespace emulator
