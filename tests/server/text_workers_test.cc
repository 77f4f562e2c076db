#include "server/text_workers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <vector>

namespace pagoda::server {
namespace {

TEST(TextWorkers, OneThatIsBusyDoesNotKeepTheOthersFromWork) {
  TextWorkers workers(2);
  std::promise<void> end;
  std::shared_future<void> ended = end.get_future().share();
  std::promise<void> other;
  workers.run([ended] { ended.wait(); });
  workers.run([&] { other.set_value(); });
  EXPECT_EQ(other.get_future().wait_for(std::chrono::minutes(1)), std::future_status::ready);
  end.set_value();
}

TEST(TextWorkers, OneThreadWorksInTheOrderOfAsking) {
  std::vector<int> order;
  {
    TextWorkers workers(1);
    for (int i = 0; i < 100; ++i) workers.run([&order, i] { order.push_back(i); });
    workers.tidy_later();
  }
  ASSERT_EQ(order.size(), 100u) << "what was asked for is done before the end";
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST(TextWorkers, TakeWorkFromManyThreadsAndEndTwice) {
  std::atomic<int> done = 0;
  TextWorkers workers(3);
  std::vector<std::thread> askers;
  for (int i = 0; i < 4; ++i) {
    askers.emplace_back([&] {
      for (int j = 0; j < 500; ++j) {
        workers.run([&] { ++done; });
        workers.tidy_later();
      }
    });
  }
  for (std::thread& asker : askers) asker.join();
  workers.finish();
  workers.finish();
  EXPECT_EQ(done, 2000);
}

}  // namespace
}  // namespace pagoda::server
