// A malloc that fails where a test wants it to: a shared library that a program links, or that
// LD_PRELOAD puts into one.
//
// By the environment it tests whole programs (LD_PRELOAD=libfailing_malloc.so):
//   FAILING_MALLOC_SWEEP=FIRST:LAST:STEP  at every STEP-th allocation from FIRST to LAST the
//   process
//     forks; in the child that allocation fails, and the program goes on to its end. An exception
//     that leaves main() is exit status 77. The parent prints one line for each child that did not
//     end by itself (a signal, or more than FAILING_MALLOC_SECONDS), and exits with 78 then.
//   FAILING_MALLOC_AT=N  the N-th allocation fails, and its stack is printed: to look at one.
// Programs need TESSERA_NUM_THREADS=1: a child has none of the parent's threads.
#pragma once
#include <cstdint>

extern "C" {
// Which functions count: those of the C++ runtime (operator new), aligned_alloc and posix_memalign,
// and malloc, calloc and realloc called directly. Python itself does not survive the last.
enum : int { kFailNew = 1, kFailAligned = 2, kFailMalloc = 4, kFailAll = 7 };

// The nth allocation from now on fails, once; 0: none does. Allocations of all threads count.
void failing_malloc_arm(int64_t nth, int which);
// How many have been counted since.
int64_t failing_malloc_count();
// Whether the armed allocation has failed.
int failing_malloc_failed();
// Prints the stack of the allocation that fails.
void failing_malloc_trace(int on);
// Blocks that are allocated now.
int64_t failing_malloc_live();
}
