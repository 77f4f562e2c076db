// The commands that look at stores and measure them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/captured_command.h"
#include "skip_reasons.h"
#include "store/disk/space_names.h"
#include "store/disk/store_fixture.h"

namespace pagoda::cli {
namespace {

using nlohmann::json;
using store::StoreFixture;

// Nine pages in three spaces: four of owner 1, five public.
store::DiskOptions fill_store(const std::string& path) {
  store::DiskOptions options = store::fixture_options(path, 32);
  StoreFixture fixture(options);
  fixture.wait_until_ready();
  for (std::uint64_t i = 0; i < 9; ++i) {
    EXPECT_EQ(fixture.write(i, i % 2), kv::StoreFault::kNone);
  }
  return options;
}

std::string slab_of(const std::string& path) { return path + "/pages-v1-6000x4.slab"; }

TEST(InspectStore, ListsPagesBySpaceAndOwner) {
  const TemporaryFolder folder;
  fill_store(folder.path());
  const Captured captured = run_captured({"inspect", "--store", folder.path(), "--json"});
  ASSERT_EQ(captured.exit_status, 0) << captured.err;
  const json found = json::parse(captured.out);
  EXPECT_FALSE(found.at("in_use"));
  const json& slab = found.at("slabs").at(0);
  EXPECT_EQ(slab.at("pages"), 9);
  EXPECT_EQ(slab.at("slots"), 32);
  EXPECT_EQ(slab.at("page_bytes"), 6000);
  EXPECT_EQ(slab.at("pages_by_space").size(), 3u);
  EXPECT_EQ(slab.at("pages_by_owner"), (json{{"public", 5}, {"0100000000000000", 4}}));
  EXPECT_TRUE(slab.at("closed_cleanly"));
  EXPECT_FALSE(slab.contains("verified"));
  EXPECT_LT(slab.at("oldest_use_seconds_ago").get<double>(), 60);
  EXPECT_GE(slab.at("bytes_on_disk").get<std::uint64_t>(), 9u * 8192);
}

// Ids of spaces are digests: what they stand for is in a file beside the slabs.
TEST(InspectStore, NamesTheFormatsOfSpacesThatAreKnown) {
  const TemporaryFolder folder;
  fill_store(folder.path());
  const kv::SpaceId known = store::sample_label(1, 4).key.space;
  const std::string format = "avx512.4 int8 of 4 layers";
  ASSERT_TRUE(store::note_space(folder.path(), known, format).ok());
  const json found = json::parse(run_captured({"inspect", "--store", folder.path(), "--json"}).out);
  const json& slab = found.at("slabs").at(0);
  ASSERT_EQ(slab.at("formats_by_space").size(), 1u) << slab;
  const std::string id = slab.at("formats_by_space").begin().key();
  EXPECT_TRUE(slab.at("pages_by_space").contains(id));
  EXPECT_EQ(slab.at("formats_by_space").at(id), format);
  EXPECT_THAT(run_captured({"inspect", "--store", folder.path()}).out,
              testing::HasSubstr(id + " (" + format + ")"));
}

TEST(InspectStore, VerifiesEveryPageAndFailsWhenOneIsDamaged) {
  const TemporaryFolder folder;
  fill_store(folder.path());
  const std::vector<std::string> words = {"inspect", "--store", folder.path(), "--verify"};
  const Captured whole = run_captured(words);
  EXPECT_EQ(whole.exit_status, 0);
  EXPECT_THAT(whole.out, testing::HasSubstr("9 whole, 0 damaged, 0 stale, 0 not readable"));
  {
    std::fstream slab(slab_of(folder.path()), std::ios::in | std::ios::out | std::ios::binary);
    slab.seekp(8192 * 3 + 5000);
    slab.put('!');
  }
  const Captured damaged = run_captured(words);
  EXPECT_EQ(damaged.exit_status, 1);
  EXPECT_THAT(damaged.out, testing::HasSubstr("8 whole, 1 damaged"));
}

TEST(InspectStore, AStoreInUseIsListedButNotVerified) {
  const TemporaryFolder folder;
  const store::DiskOptions options = fill_store(folder.path());
  StoreFixture fixture(options);
  fixture.wait_until_ready();
  const Captured listed = run_captured({"inspect", "--store", folder.path()});
  EXPECT_EQ(listed.exit_status, 0);
  EXPECT_THAT(listed.out, testing::HasSubstr("in use by another process"));
  const Captured verified = run_captured({"inspect", "--store", folder.path(), "--verify"});
  EXPECT_EQ(verified.exit_status, 1);
  EXPECT_THAT(verified.err, testing::HasSubstr("another process uses this store"));
}

TEST(InspectStore, WhatIsNoStoreIsSaidToBeNone) {
  const TemporaryFolder folder;
  EXPECT_THAT(run_captured({"inspect", "--store", folder.path()}).err,
              testing::HasSubstr("holds no slabs of pages"));
  EXPECT_THAT(run_captured({"inspect", "--store", folder.path() + "/none"}).err,
              testing::HasSubstr("no such folder"));
  EXPECT_THAT(run_captured({"inspect", "model.gguf", "--verify"}).err,
              testing::HasSubstr("--store"));
}

TEST(BenchTiers, MeasuresEveryTierBesideItsReferenceAndLeavesNothing) {
  const TemporaryFolder folder;
  const Captured captured = run_captured({"bench", "tiers", "--folder", folder.path(), "--size",
                                          "1MiB", "--page-bytes", "8192", "--json"});
  if (captured.err.find("Invalid argument") != std::string::npos) {
    GTEST_SKIP() << kNeedsDirectIo << ": dd finds none in " << folder.path();
  }
  ASSERT_EQ(captured.exit_status, 0) << captured.err;
  const json report = json::parse(captured.out);
  EXPECT_EQ(report.at("settings").at("pages"), 128);
  ASSERT_EQ(report.at("rows").size(), 6u) << "host memory and disk in two ways, up and down";
  for (const json& row : report.at("rows")) {
    EXPECT_NEAR(row.at("megabytes_per_second").get<double>() * row.at("seconds").get<double>(),
                1.048576, 1e-6);
    EXPECT_NEAR(row.at("share").get<double>(),
                row.at("megabytes_per_second").get<double>() /
                    row.at("reference_megabytes_per_second").get<double>(),
                1e-6);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace pagoda::cli
