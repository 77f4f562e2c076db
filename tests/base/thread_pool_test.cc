#include "base/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <array>
#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>

namespace pagoda {
namespace {

TEST(ThreadPool, TheSplitCoversEverythingOnceAndEvenly) {
  for (std::size_t threads = 1; threads < 9; ++threads) {
    for (std::size_t items = 0; items < 40; ++items) {
      std::size_t next = 0;
      for (std::size_t thread = 0; thread < threads; ++thread) {
        const WorkRange range = split_work(items, thread, threads);
        ASSERT_EQ(range.begin, next);
        ASSERT_GE(range.end - range.begin, items / threads);
        ASSERT_LE(range.end - range.begin, items / threads + 1);
        next = range.end;
      }
      ASSERT_EQ(next, items);
    }
  }
}

TEST(ThreadPool, EveryItemIsDoneExactlyOnceOverManyJobs) {
  for (const std::size_t threads : {1, 2, 3, 5}) {
    ThreadPool pool(threads);
    std::vector<int> done(101, 0);
    for (int job = 0; job < 2000; ++job) {
      const std::size_t items = static_cast<std::size_t>(job) % done.size();
      pool.run(items, [&](WorkRange range) {
        for (std::size_t i = range.begin; i < range.end; ++i) ++done[i];
      });
    }
    int expected = 0;
    for (std::size_t i = done.size(); i-- > 0;) {
      ASSERT_EQ(done[i], expected) << threads << " threads, item " << i;
      expected += 2000 / 101 + (i < 2000 % 101 ? 1 : 0);
    }
  }
}

TEST(ThreadPool, PiecesAreAFunctionOfTheCountsWhoeverDoesThem) {
  ThreadPool pool(3);
  for (int job = 0; job < 500; ++job) {
    std::vector<std::size_t> end_of(16, 0);
    pool.run(16, [&](WorkRange range) { end_of[range.begin] = range.end; });
    // Ranges have 6, 5 and 5 items; of four pieces each, the first are the larger ones.
    ASSERT_EQ(end_of,
              (std::vector<std::size_t>{2, 0, 4, 0, 5, 6, 8, 0, 9, 10, 11, 13, 0, 14, 15, 16}));
  }
}

TEST(ThreadPool, NoTwoRangesRunAtOnceUnderOneNumber) {
  ThreadPool pool(4);
  std::array<std::atomic<int>, 4> busy = {};
  std::atomic<bool> clash = false;
  for (int job = 0; job < 2000; ++job) {
    pool.run(8, [&](WorkRange range) {
      if (busy[range.thread].fetch_add(1) != 0) clash = true;
      busy[range.thread].fetch_sub(1);
    });
  }
  EXPECT_FALSE(clash);
}

// Returns whether the condition came true before a time that no busy host needs.
template <class Condition>
bool eventually(Condition&& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return true;
}

// A slow thread holds up no more than the piece it is at: here a piece that it begins before any
// other is done, and does not end before all others are.
TEST(ThreadPool, WhoeverIsFreeDoesWhatOthersHaveNotBegun) {
  for (const std::size_t slow : {0, 1}) {
    ThreadPool pool(2);
    for (int job = 0; job < 10; ++job) {
      std::atomic<bool> held = false;
      std::atomic<int> done = 0;
      std::atomic<bool> in_vain = false;
      pool.run(8, [&](WorkRange range) {
        if (range.thread == slow) held = true;
        const bool came = range.thread == slow ? eventually([&] { return in_vain || done == 7; })
                                               : eventually([&] { return in_vain || held; });
        if (!came) in_vain = true;
        ++done;
      });
      ASSERT_FALSE(in_vain) << "pieces waited for thread " << slow << " to do them";
    }
  }
}

TEST(ThreadPool, AnIdlePoolCostsNoCpu) {
  ThreadPool pool(4);
  pool.run(100, [](WorkRange) {});
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const auto cpu_seconds = [] {
    rusage usage = {};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
  };
  const double before = cpu_seconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_LT(cpu_seconds() - before, 0.03);  // three spinning workers would take up to 0.9 s
}

TEST(ThreadPool, AtLeastOneCoreIsUsable) { EXPECT_GE(usable_cores(), 1u); }

}  // namespace
}  // namespace pagoda
