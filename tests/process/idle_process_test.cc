// A program in idle time: it runs, halts, goes on and ends when it is told to.
#include "process/idle_process.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <sstream>
#include <thread>

namespace pagoda::process {
namespace {

using namespace std::chrono_literals;

// State letters of /proc of this process's children: 'R' or 'S' running, 'T' halted.
std::string child_states() {
  std::string states;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream children(task.path() / "children");
    for (std::string pid; children >> pid;) {
      std::ostringstream stat;
      stat << std::ifstream("/proc/" + pid + "/stat").rdbuf();
      const std::size_t name_end = stat.str().rfind(')');
      if (name_end != std::string::npos) states += stat.str().at(name_end + 2);
    }
  }
  return states;
}

bool wait_until(const std::function<bool()>& holds) {
  for (int i = 0; i < 2000; ++i) {
    if (holds()) return true;
    std::this_thread::sleep_for(5ms);
  }
  return false;
}

struct Told {
  std::atomic<bool> is_idle{true};
  std::atomic<bool> stopped{false};

  IdleWork work(const std::string& script, std::chrono::milliseconds most = 60s) {
    return {.words = {"/bin/sh", "-c", script},
            .work_max = most,
            .is_idle = [this] { return is_idle.load(); },
            .stopped = [this] { return stopped.load(); }};
  }
};

// A test that fails half-way does not wait for its program.
class StopsAtEnd {
 public:
  explicit StopsAtEnd(Told& told) : told_(told) {}
  ~StopsAtEnd() { told_.stopped = true; }
  StopsAtEnd(const StopsAtEnd&) = delete;
  StopsAtEnd& operator=(const StopsAtEnd&) = delete;

 private:
  Told& told_;
};

TEST(IdleProcess, EndsAsItsProgramDoes) {
  Told told;
  EXPECT_EQ(run_while_idle(told.work("exit 0")).value(), IdleEnd::kDone);
  EXPECT_EQ(run_while_idle(told.work("exit 3")).value(), IdleEnd::kFailed);
  EXPECT_EQ(run_while_idle(told.work("kill -9 $$")).value(), IdleEnd::kFailed);
  IdleWork none = told.work("");
  none.words = {"/does/not/exist"};
  EXPECT_FALSE(run_while_idle(none).ok());
  EXPECT_EQ(child_states(), "");
}

TEST(IdleProcess, IsHaltedWhileThereIsWorkAndGoesOn) {
  Told told;
  auto end = std::async(std::launch::async,
                        [&] { return run_while_idle(told.work("while :; do :; done")); });
  const StopsAtEnd stops_at_end(told);
  ASSERT_TRUE(wait_until([] { return child_states() == "R"; }));
  told.is_idle = false;
  const auto asked = std::chrono::steady_clock::now();
  ASSERT_TRUE(wait_until([] { return child_states() == "T"; }));
  EXPECT_LT(std::chrono::steady_clock::now() - asked, 500ms) << "it is looked at every 2 ms";
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(child_states(), "T") << "it stays halted";
  told.is_idle = true;
  ASSERT_TRUE(wait_until([] { return child_states() == "R"; }));
  told.stopped = true;
  EXPECT_EQ(end.get().value(), IdleEnd::kStopped);
  EXPECT_EQ(child_states(), "") << "nothing is left behind";
}

TEST(IdleProcess, IsNotStartedBeforeThereIsIdleTime) {
  Told told;
  told.is_idle = false;
  auto end = std::async(std::launch::async, [&] { return run_while_idle(told.work("sleep 60")); });
  const StopsAtEnd stops_at_end(told);
  std::this_thread::sleep_for(1500ms);
  EXPECT_EQ(child_states(), "");
  told.stopped = true;
  EXPECT_EQ(end.get().value(), IdleEnd::kStopped);
}

TEST(IdleProcess, MoreWorkThanAllowedIsTooLong) {
  Told told;
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(run_while_idle(told.work("sleep 60", 300ms)).value(), IdleEnd::kTooLong);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 20s);
  EXPECT_EQ(child_states(), "");
}

TEST(IdleProcess, HaltedTimeIsNoWork) {
  Told told;
  auto end = std::async(std::launch::async,
                        [&] { return run_while_idle(told.work("sleep 0.6; exit 0", 5s)); });
  const StopsAtEnd stops_at_end(told);
  ASSERT_TRUE(wait_until([] { return child_states() != ""; }));
  told.is_idle = false;
  std::this_thread::sleep_for(6s);
  told.is_idle = true;
  EXPECT_EQ(end.get().value(), IdleEnd::kDone) << "6 s halted are not 5 s of work";
}

// A program that is halted keeps its memory.
TEST(IdleProcess, HaltedTimeHasALimit) {
  Told told;
  IdleWork work = told.work("sleep 60");
  work.wall_max = 3s;
  auto end = std::async(std::launch::async, [&] { return run_while_idle(work); });
  const StopsAtEnd stops_at_end(told);
  ASSERT_TRUE(wait_until([] { return child_states() != ""; }));
  told.is_idle = false;
  ASSERT_EQ(end.wait_for(20s), std::future_status::ready);
  EXPECT_EQ(end.get().value(), IdleEnd::kTooBusy);
  EXPECT_EQ(child_states(), "");
}

TEST(IdleProcess, IsAskedWhetherItMayStartWhenItIsAboutTo) {
  Told told;
  told.is_idle = false;
  std::atomic<int> asked{0};
  IdleWork work = told.work("exit 0");
  work.may_start = [&]() -> Status {
    ++asked;
    return Error{ErrorCode::kExhausted, "no memory"};
  };
  auto end = std::async(std::launch::async, [&] { return run_while_idle(work); });
  const StopsAtEnd stops_at_end(told);
  std::this_thread::sleep_for(1500ms);
  EXPECT_EQ(asked, 0) << "nothing is idle";
  told.is_idle = true;
  const Result<IdleEnd> ended = end.get();
  ASSERT_FALSE(ended.ok());
  EXPECT_EQ(ended.error().message, "no memory");
  EXPECT_EQ(asked, 1);
}

TEST(IdleProcess, WhereNobodyKnowsHowItEndedItFailed) {
  const auto before = std::signal(SIGCHLD, SIG_IGN);
  Told told;
  EXPECT_EQ(run_while_idle(told.work("exit 0", 5s)).value(), IdleEnd::kFailed);
  std::signal(SIGCHLD, before);
}

}  // namespace
}  // namespace pagoda::process
