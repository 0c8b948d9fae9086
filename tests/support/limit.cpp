// Ends the test program when a test takes too long, so that a hang fails instead of lasting.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>

namespace {

// Name of the running test, for the signal handler.
char g_name[256];

void stop(int) {
  static const char text[] = "\nthe time limit of a test is over (TESSERA_TEST_SECONDS): ";
  // A failed write is ignored: the process ends either way.
  if (write(STDERR_FILENO, text, sizeof text - 1) < 0 ||
      write(STDERR_FILENO, g_name, std::strlen(g_name)) < 0 || write(STDERR_FILENO, "\n", 1) < 0)
    _exit(125);
  std::abort();
}

unsigned seconds() {
  const char* text = std::getenv("TESSERA_TEST_SECONDS");
  return text ? static_cast<unsigned>(std::atoi(text)) : 300;
}

// An alarm rather than a thread: tests fork, and a forked child has no alarm.
class Limit : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo& test) override {
    std::snprintf(g_name, sizeof g_name, "%s.%s", test.test_suite_name(), test.name());
    std::signal(SIGALRM, stop);
    alarm(seconds());
  }
  void OnTestEnd(const testing::TestInfo&) override { alarm(0); }
};

const bool g_added = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new Limit);
  return true;
}();

}  // namespace
