// `pagoda bench tiers` with a store that others use.
#include <gtest/gtest.h>

#include <filesystem>

#include "cli/captured_command.h"
#include "store/remote/server_process.h"
#include "store/remote/store_driver.h"

namespace pagoda::bench {
namespace {

using store::ServerProcess;

class BenchTiers : public testing::TestWithParam<std::string> {};

TEST_P(BenchTiers, RemovesWhatItWroteAndNothingElse) {
  const bool is_redis = GetParam() == "redis";
  REQUIRE_SERVER(is_redis ? ServerProcess::has_redis() : ServerProcess::has_memcached(),
                 GetParam());
  const ServerProcess server = is_redis ? ServerProcess::redis() : ServerProcess::memcached();
  const std::string url = GetParam() + "://" + server.host_and_port();
  store::StoreDriver others(store::quick_options(url));
  ASSERT_TRUE(others.connect());
  for (std::uint64_t page = 0; page < 4; ++page) {
    // Private pages of a tenant, and public ones.
    const kv::OwnerTag owner = page % 2 == 0 ? kv::OwnerTag{} : store::sample_owner(1);
    ASSERT_EQ(others.write(page, owner), kv::StoreFault::kNone);
  }
  const cli::Captured bench =
      cli::run_captured({"bench", "tiers", "--remote", url, "--size", "64KiB", "--page-bytes",
                         "4096", "--folder", std::filesystem::temp_directory_path().string()});
  ASSERT_EQ(bench.exit_status, 0) << bench.err;
  for (std::uint64_t page = 0; page < 4; ++page) {
    const kv::OwnerTag owner = page % 2 == 0 ? kv::OwnerTag{} : store::sample_owner(1);
    EXPECT_EQ(others.read(page, owner), kv::StoreFault::kNone) << page;
  }
}

INSTANTIATE_TEST_SUITE_P(Stores, BenchTiers, testing::Values("redis", "memcached"),
                         [](const auto& tested) { return tested.param; });

}  // namespace
}  // namespace pagoda::bench
