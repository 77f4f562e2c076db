// Programs that are started end with the process that started them, and have none of its files.
#include "process/spawned_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <sstream>
#include <thread>

#include "process/child_process.h"

namespace pagoda::process {
namespace {

using namespace std::chrono_literals;

int run_script(const std::string& script, const SpawnOptions& options = {}) {
  const Result<pid_t> child = spawn_program({"/bin/sh", "-c", script}, options);
  EXPECT_TRUE(child.ok());
  return child.ok() ? wait_for_program(child.value()).value_or(-1) : -1;
}

// A process that nobody has waited for yet is dead, too.
bool is_alive(pid_t process) {
  std::ostringstream stat;
  stat << std::ifstream("/proc/" + std::to_string(process) + "/stat").rdbuf();
  const std::size_t name_end = stat.str().rfind(')');
  return name_end != std::string::npos && stat.str().at(name_end + 2) != 'Z';
}

TEST(SpawnedProgram, ReturnsItsExitStatus) {
  EXPECT_EQ(run_script("exit 0"), 0);
  EXPECT_EQ(run_script("exit 3"), 3);
  EXPECT_EQ(run_script("kill -9 $$"), 128 + SIGKILL);
  const Result<pid_t> none = spawn_program({"/does/not/exist"}, {});
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(none.error().message, testing::HasSubstr("/does/not/exist: No such file"));
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "no child is left";
}

TEST(SpawnedProgram, HasNoSocketAndNoFileOfItsParent) {
  constexpr int kPlace = 77;
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  ASSERT_EQ(dup2(listener, kPlace), kPlace);  // as it is inherited: without FD_CLOEXEC
  ASSERT_EQ(run_script("[ -e /proc/$$/fd/1 ]"), 0) << "streams are there";
  for (const SpawnOptions& options : {SpawnOptions{}, SpawnOptions{true, true}}) {
    EXPECT_EQ(run_script("[ ! -e /proc/$$/fd/77 ]", options), 0);
  }
  close(kPlace);
  close(listener);
}

TEST(SpawnedProgram, ASilentOneHasNoStreams) {
  EXPECT_EQ(run_script("[ \"$(readlink /proc/$$/fd/0 /proc/$$/fd/2)\" = '/dev/null\n/dev/null' ]",
                       {.is_silent = true}),
            0);
}

TEST(SpawnedProgram, StartsWithSignalsAsTheyAreByDefault) {
  const auto before = std::signal(SIGINT, SIG_IGN);
  EXPECT_EQ(run_script("kill -INT $$; exit 0"), 128 + SIGINT);
  std::signal(SIGINT, before);
}

TEST(SpawnedProgram, IsKilledWithTheProcessThatStartedIt) {
  for (const bool is_halted : {false, true}) {
    int ends[2] = {};
    ASSERT_EQ(pipe(ends), 0);
    const pid_t parent = fork();
    ASSERT_GE(parent, 0);
    if (parent == 0) {
      const Result<pid_t> child =
          spawn_program({"/bin/sleep", "60"}, {.is_silent = true, .has_group = true});
      const pid_t started = child.ok() ? child.value() : 0;
      if (is_halted) kill(started, SIGSTOP);
      if (write(ends[1], &started, sizeof started) < 0) _exit(1);
      kill(getpid(), SIGKILL);
    }
    pid_t child = 0;
    ASSERT_EQ(read(ends[0], &child, sizeof child), static_cast<ssize_t>(sizeof child));
    waitpid(parent, nullptr, 0);
    ASSERT_GT(child, 0);
    for (int i = 0; i < 1000 && is_alive(child); ++i) std::this_thread::sleep_for(5ms);
    EXPECT_FALSE(is_alive(child));
    kill(child, SIGKILL);
    close(ends[0]);
    close(ends[1]);
  }
}

TEST(ChildProcess, WhereNobodyKnowsHowItEndedThatIsAnError) {
  EXPECT_EQ(run_child({"/bin/sh", "-c", "exit 3"}).value(), 3);
  const auto before = std::signal(SIGCHLD, SIG_IGN);
  const Result<int> unknown = run_child({"/bin/sh", "-c", "exit 3"});
  std::signal(SIGCHLD, before);
  ASSERT_FALSE(unknown.ok()) << "status " << unknown.value();
  EXPECT_THAT(unknown.error().message, testing::HasSubstr("/bin/sh"));
}

}  // namespace
}  // namespace pagoda::process
