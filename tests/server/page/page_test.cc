// Tests the page's files and data without a browser; wire/page_test.py uses one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "server/story_fixture.h"

namespace pagoda::server {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Page, ItIsThereBeforeTheModelIs) {
  const ServerState loading("1.2.3");
  for (const char* const path : {"/", "/page.css", "/page.js"}) {
    const Routed routed = route({.method = "GET", .path = path}, loading);
    EXPECT_EQ(std::get<HttpReply>(routed).status, 200) << path;
  }
}

// The page has nothing inline, so that its policy need not allow it, and loads nothing from other
// hosts.
TEST(Page, ItCarriesAllItNeedsInFilesOfItsOwn) {
  const ServerState state("1.2.3");
  const auto body = [&](const char* path) {
    return std::get<HttpReply>(route({.method = "GET", .path = path}, state)).body;
  };
  const std::string html = body("/");
  EXPECT_THAT(html, testing::StartsWith("<!doctype html>"));
  EXPECT_THAT(html, testing::EndsWith("</html>\n"));
  EXPECT_THAT(html, Not(HasSubstr("<style")));
  EXPECT_THAT(html, Not(HasSubstr("style=")));
  EXPECT_THAT(html, Not(HasSubstr("onclick")));
  for (const char* const path : {"/", "/page.css", "/page.js"}) {
    EXPECT_THAT(body(path), Not(HasSubstr("http:"))) << path;
    EXPECT_THAT(body(path), Not(HasSubstr("https:"))) << path;
  }
}

class CacheMapTest : public testing::Test {
 protected:
  Json look() {
    const HttpReply reply = fixture_.get("/cache/map");
    EXPECT_EQ(reply.status, 200);
    return Json::parse(reply.body);
  }
  // Returns a map that was taken after this call.
  Json fresh_look() {
    std::this_thread::sleep_for(std::chrono::nanoseconds(CacheMapReader::kRefreshNs));
    look();
    for (int i = 0; i < 1000; ++i) {
      Json map = look();
      if (!map["age_s"].is_null() && map["age_s"] < 0.2) return map;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    ADD_FAILURE() << "no map was drawn";
    return {};
  }

  StoryFixture fixture_;
};

TEST_F(CacheMapTest, TheFirstLookHasNoMapAndALaterOneHas) {
  EXPECT_TRUE(look()["age_s"].is_null());
  const Json map = fresh_look();
  std::uint64_t blocks = 0;
  for (const Json& cell : map["cells"]) {
    blocks +=
        cell[0].get<std::uint64_t>() + cell[1].get<std::uint64_t>() + cell[2].get<std::uint64_t>();
  }
  EXPECT_EQ(blocks, map["blocks"]["all"]);
  EXPECT_LE(map["cells"].size(), 1024u);
}

TEST_F(CacheMapTest, BranchesShowPublicTextAndNoOther) {
  fixture_.complete(
      {{"prompt", "The little bird sat on a tree and sang a song"}, {"max_tokens", 1}});
  fixture_.complete({{"prompt", "Nobody may read what this one says about it"},
                     {"max_tokens", 1},
                     {"cache_salt", "own"}});
  const Json map = fresh_look();
  const std::string text = map["branches"].dump();
  EXPECT_THAT(text, HasSubstr("little bird"));
  EXPECT_THAT(text, Not(HasSubstr("Nobody")));
  EXPECT_THAT(text, HasSubstr("\"public\":false"));
  EXPECT_EQ(map["regions"].size(), 2u);
}

TEST_F(CacheMapTest, ALookDoesNotWaitForTheEngine) {
  fresh_look();
  std::promise<void> go_on;
  fixture_.engine().post([gate = go_on.get_future().share()](auto&) { gate.wait(); });
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(look()["age_s"].is_null());
  go_on.set_value();
}

}  // namespace
}  // namespace pagoda::server
