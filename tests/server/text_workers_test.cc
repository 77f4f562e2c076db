#include "server/text_workers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "server/text_job.h"

namespace pagoda::server {
namespace {

TEST(TextWorkers, OneThatIsBusyDoesNotKeepTheOthersFromWork) {
  TextWorkers workers(2);
  std::promise<void> end;
  std::shared_future<void> ended = end.get_future().share();
  std::promise<void> other;
  workers.run("a", [ended] { ended.wait(); });
  workers.run("b", [&] { other.set_value(); });
  EXPECT_EQ(other.get_future().wait_for(std::chrono::minutes(1)), std::future_status::ready);
  end.set_value();
}

// One client's work runs on all threads but one; the last is for whoever comes.
TEST(TextWorkers, AClientLeavesOneThreadToOthers) {
  for (const std::uint32_t threads : {2u, 3u, 4u}) {
    std::promise<void> end;
    const std::shared_future<void> ended = end.get_future().share();
    std::atomic<std::uint32_t> begun = 0;
    std::vector<std::promise<void>> others(3);
    {
      TextWorkers workers(threads);
      for (int i = 0; i < 8; ++i) {
        workers.run("a", [&, ended] {
          ++begun;
          ended.wait();
        });
      }
      while (begun < threads - 1) std::this_thread::yield();
      // Work of others passes one by one over the thread that is left, before and behind that of a.
      for (std::promise<void>& other : others) {
        workers.run(std::string(1, static_cast<char>('b' + (&other - others.data()))),
                    [&] { other.set_value(); });
        ASSERT_EQ(other.get_future().wait_for(std::chrono::minutes(1)), std::future_status::ready)
            << threads << " threads";
      }
      EXPECT_EQ(begun, threads - 1);
      end.set_value();
    }
    EXPECT_EQ(begun, 8u) << "what was asked for is done before the end";
  }
}

TEST(TextWorkers, OneThreadWorksInTheOrderOfAsking) {
  std::vector<int> order;
  {
    TextWorkers workers(1);
    for (int i = 0; i < 100; ++i) workers.run("a", [&order, i] { order.push_back(i); });
    workers.trim_heap_later();
  }
  ASSERT_EQ(order.size(), 100u) << "what was asked for is done before the end";
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST(TextWorkers, TakeWorkFromManyThreadsAndEndTwice) {
  std::atomic<int> done = 0;
  TextWorkers workers(3);
  std::vector<std::thread> clients;
  for (int i = 0; i < 4; ++i) {
    clients.emplace_back([&] {
      for (int j = 0; j < 500; ++j) {
        workers.run("a", [&] { ++done; });
        workers.trim_heap_later();
      }
    });
  }
  for (std::thread& client : clients) client.join();
  workers.finish();
  workers.finish();
  EXPECT_EQ(done, 2000);
}

TEST(TextWorkers, ClientsTakeTurns) {
  std::string order;
  {
    std::promise<void> end;
    TextWorkers workers(1);
    workers.run("first", [ended = end.get_future().share()] { ended.wait(); });
    for (const char* const asked : {"a1", "a2", "a3", "b1", "a4", "c1", "b2", "c2"}) {
      workers.run(std::string(1, *asked), [&order, asked] { order += asked; });
    }
    end.set_value();
  }
  EXPECT_EQ(order, "a1b1c1a2b2c2a3a4");
}

TEST(TextWorkers, AreIdleOnceNoWorkWaitsOrRuns) {
  std::promise<void> end;
  std::atomic<int> done = 0;
  TextWorkers workers(2);
  EXPECT_TRUE(workers.wait_idle(std::chrono::seconds(0)));
  workers.run("a", [ended = end.get_future().share()] { ended.wait(); });
  for (int i = 0; i < 3; ++i) workers.run("a", [&] { ++done; });
  EXPECT_FALSE(workers.wait_idle(std::chrono::milliseconds(20)));
  end.set_value();
  EXPECT_TRUE(workers.wait_idle(std::chrono::minutes(1)));
  EXPECT_EQ(done, 3);
}

TEST(TextWorkers, WhatIsAskedForAfterTheEndIsNeverDone) {
  bool done = false;
  TextWorkers workers(1);
  workers.finish();
  workers.run("late", [&] { done = true; });
  EXPECT_FALSE(done);
}

TEST(TextJob, RunsOnceAndSaysWhenItHasEnded) {
  TextWorkers workers(2);
  std::promise<void> told;
  int runs = 0;
  TextJob job(
      workers, "a", [&] { ++runs; }, [&] { told.set_value(); });
  told.get_future().wait();
  EXPECT_TRUE(job.has_ended());
  EXPECT_FALSE(job.withdraw()) << "it is too late";
  EXPECT_EQ(runs, 1);
}

TEST(TextJob, NeverBeginsOnceItIsWithdrawnOrDropped) {
  std::atomic<int> runs = 0;
  {
    std::promise<void> end;
    TextWorkers workers(1);
    workers.run("first", [ended = end.get_future().share()] { ended.wait(); });
    TextJob withdrawn(
        workers, "a", [&] { ++runs; }, [&] { ++runs; });
    EXPECT_TRUE(withdrawn.withdraw());
    EXPECT_TRUE(withdrawn.withdraw());
    EXPECT_FALSE(withdrawn.has_ended());
    {
      const TextJob dropped(
          workers, "b", [&] { ++runs; }, [&] { ++runs; });
    }
    end.set_value();
  }
  EXPECT_EQ(runs, 0);
}

// The work may use objects of the job's owner.
TEST(TextJob, IsWaitedForWhereItRuns) {
  std::promise<void> begun;
  std::promise<void> end;
  std::atomic<bool> ended = false;
  TextWorkers workers(1);
  auto job = std::make_unique<TextJob>(
      workers, "a",
      [&] {
        begun.set_value();
        end.get_future().wait();
        ended = true;
      },
      [] {});
  begun.get_future().wait();
  auto dropped = std::async(std::launch::async, [&] {
    job.reset();
    return ended.load();
  });
  EXPECT_EQ(dropped.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  end.set_value();
  EXPECT_TRUE(dropped.get());
}

}  // namespace
}  // namespace pagoda::server
