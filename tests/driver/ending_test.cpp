#include "tessera/driver/ending.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <thread>

namespace tessera {
namespace {

void say_end() { std::fputs("end; ", stderr); }

// Handlers of exit() run in reverse, so one that is registered last would be the first of them.
TEST(EndingTest, ComesBeforeEveryHandlerOfExit) {
  auto body = [] {
    if (!at_end(say_end)) exit(1);
    std::atexit([] { std::fputs("handler", stderr); });
    exit(0);
  };
  EXPECT_EXIT(body(), ::testing::ExitedWithCode(0), "^end; handler$");
}

TEST(EndingTest, ReturningThreadsAreNotTheEnd) {
  auto body = [] {
    bool told = false;
    std::thread([&] { told = at_end(say_end); }).join();
    std::fputs("still there, ", stderr);
    exit(told ? 0 : 1);
  };
  EXPECT_EXIT(body(), ::testing::ExitedWithCode(0), "^still there, end; $");
}

TEST(EndingTest, OnceAndThenNoMore) {
  auto body = [] {
    at_end(say_end);
    end_everything();
    std::fputs(at_end(say_end) ? "again" : "over", stderr);
    exit(0);
  };
  EXPECT_EXIT(body(), ::testing::ExitedWithCode(0), "^end; over$");
}

}  // namespace
}  // namespace tessera
