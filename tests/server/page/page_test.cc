// Tests the page's files and data without a browser; wire/page_test.py uses one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <regex>
#include <thread>

#include "server/page/page.h"
#include "server/story_fixture.h"
#include "terminal/plot.h"

namespace pagoda::server {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string header(const HttpReply& reply, std::string_view name) {
  for (const auto& [key, value] : reply.headers) {
    if (key == name) return value;
  }
  return {};
}

TEST(Page, ItIsThereBeforeTheModelIs) {
  const ServerState loading("1.2.3");
  ASSERT_EQ(page_paths().front(), "/");
  EXPECT_GT(page_paths().size(), 10u);
  for (const std::string& path : page_paths()) {
    const Routed routed = route({.method = "GET", .path = path}, loading);
    EXPECT_EQ(std::get<HttpReply>(routed).status, 200) << path;
  }
}

TEST(Page, EveryFileForbidsWhatItDoesNotNeed) {
  const ServerState state("1.2.3");
  for (const std::string& path : page_paths()) {
    const HttpReply reply = std::get<HttpReply>(route({.method = "GET", .path = path}, state));
    const std::string policy = header(reply, "Content-Security-Policy");
    EXPECT_THAT(policy, testing::StartsWith("default-src 'none'; script-src 'self'; ")) << path;
    EXPECT_THAT(policy, HasSubstr("frame-ancestors 'none'")) << path;
    EXPECT_THAT(policy, Not(HasSubstr("unsafe"))) << path;
    EXPECT_EQ(header(reply, "X-Content-Type-Options"), "nosniff") << path;
    const std::string_view kind = path.ends_with(".css")  ? "text/css"
                                  : path.ends_with(".js") ? "text/javascript"
                                                          : "text/html";
    EXPECT_EQ(reply.content_type, std::string(kind) + "; charset=utf-8") << path;
  }
}

TEST(Page, NoOtherPathIsAFileOfIt) {
  const ServerState state("1.2.3");
  for (const char* const path : {"/page/", "/page/page.html", "/page/../page/main.js",
                                 "/page/main.js/", "/page/none.js", "/page"}) {
    const HttpReply reply = std::get<HttpReply>(route({.method = "GET", .path = path}, state));
    EXPECT_GE(reply.status, 400) << path;
  }
}

// The page has nothing inline, so that its policy need not allow it, and loads nothing from other
// hosts.
TEST(Page, ItCarriesAllItNeedsInFilesOfItsOwn) {
  const ServerState state("1.2.3");
  const auto body = [&](const std::string& path) {
    return std::get<HttpReply>(route({.method = "GET", .path = path}, state)).body;
  };
  const std::string html = body("/");
  EXPECT_THAT(html, testing::StartsWith("<!doctype html>"));
  EXPECT_THAT(html, testing::EndsWith("</html>\n"));
  EXPECT_THAT(html, Not(HasSubstr("<style")));
  EXPECT_THAT(html, Not(HasSubstr("style=")));
  EXPECT_THAT(html, Not(HasSubstr("onclick")));
  for (const std::string& path : page_paths()) {
    const std::string text = body(path);
    EXPECT_THAT(text, Not(HasSubstr("innerHTML"))) << path;
    EXPECT_THAT(text, Not(HasSubstr("https:"))) << path;
    const std::size_t link = text.find("http:");
    // The name of SVG's elements is no address that is asked.
    const bool is_svg =
        link != std::string::npos && text.compare(link, 26, "http://www.w3.org/2000/svg") == 0;
    EXPECT_TRUE(link == std::string::npos || is_svg) << path;
  }
}

// Black is the colour of text, which is light in the dark.
TEST(Page, PlotsHaveTheColoursAndDashesOfThoseThatCommandsWrite) {
  const ServerState state("1.2.3");
  const std::string plots =
      std::get<HttpReply>(route({.method = "GET", .path = "/page/plots.js"}, state)).body;
  terminal::PlotPanel panel = {
      .title = "t", .x_title = "x", .y_title = "y", .ticks = {}, .lines = {}};
  for (int i = 0; i < 7; ++i) panel.lines.push_back({std::to_string(i), {{1, 1}, {2, 2}}});
  const std::string svg = terminal::plot_svg({&panel, 1});
  const std::regex look("<polyline [^>]*stroke='([^']+)'[^>]*stroke-dasharray='([^']+)'");
  int lines = 0;
  for (std::sregex_iterator found(svg.begin(), svg.end(), look), end; found != end; ++found) {
    const std::string colour = (*found)[1] == "#000000" ? "currentColor" : (*found)[1].str();
    EXPECT_THAT(plots, HasSubstr("\"" + colour + "\""));
    EXPECT_THAT(plots, HasSubstr("\"" + (*found)[2].str() + "\""));
    ++lines;
  }
  EXPECT_EQ(lines, 7);
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

class CacheBranchTest : public testing::Test {
 protected:
  Json look(const std::string& query = "") {
    const HttpReply reply =
        fixture_.send({.method = "GET", .path = "/cache/branch", .query = query});
    EXPECT_EQ(reply.status, 200) << reply.body;
    return Json::parse(reply.body);
  }
  static std::string query_of(const Json& branch) {
    return "node=" + std::to_string(branch["node"].get<std::uint32_t>());
  }

  StoryFixture fixture_;
};

TEST_F(CacheBranchTest, ABranchIsShownWithWhatIsAboveAndBelow) {
  const std::string shared = "The little bird sat on a tree and sang a song of the sea";
  for (const char* const end : {" and slept", ". Then it flew away"}) {
    fixture_.complete({{"prompt", shared + end}, {"max_tokens", 1}});
  }
  const Json top = look();
  EXPECT_TRUE(top["branch"].is_null());
  ASSERT_EQ(top["below"].size(), 1u);
  const Json first = top["below"][0];
  EXPECT_THAT(first["text"].get<std::string>(), HasSubstr("little bird"));
  EXPECT_EQ(first["branches"], 2);
  EXPECT_EQ(first["sequences"], 0);
  EXPECT_GE(first["idle_s"], 0.0);
  EXPECT_TRUE(first["public"]);
  const Json there = look(query_of(first));
  EXPECT_EQ(there["branch"]["node"], first["node"]);
  ASSERT_EQ(there["below"].size(), 2u);
  const Json leaf = look(query_of(there["below"][0]));
  ASSERT_EQ(leaf["above"].size(), 1u);
  EXPECT_EQ(leaf["above"][0]["node"], first["node"]);
  EXPECT_TRUE(leaf["below"].empty());
}

TEST_F(CacheBranchTest, TextOfPrivateBranchesIsNotShown) {
  fixture_.complete({{"prompt", "Nobody may read what this one says about it"},
                     {"max_tokens", 1},
                     {"cache_salt", "own"}});
  const Json top = look();
  ASSERT_EQ(top["below"].size(), 1u);
  EXPECT_TRUE(top["below"][0]["text"].is_null());
  EXPECT_THAT(look(query_of(top["below"][0])).dump(), Not(HasSubstr("Nobody")));
}

// Without keys, as here, text is for the local user alone.
TEST_F(CacheBranchTest, TextIsNotShownToAClientBehindAProxy) {
  fixture_.complete({{"prompt", "The little bird sat on a tree"}, {"max_tokens", 1}});
  const auto ask = [&](const std::string& path, bool is_forwarded) {
    return Json::parse(
        fixture_.send({.method = "GET", .path = path, .is_forwarded = is_forwarded}).body);
  };
  while (ask("/cache/map", false)["age_s"].is_null()) std::this_thread::yield();
  for (const auto& [path, list] :
       {std::pair("/cache/branch", "below"), std::pair("/cache/map", "branches")}) {
    const Json shown = ask(path, false)[list];
    const Json hidden = ask(path, true)[list];
    ASSERT_EQ(shown.size(), 1u) << path;
    ASSERT_EQ(hidden.size(), 1u) << path;
    EXPECT_THAT(shown[0]["text"].get<std::string>(), HasSubstr("little bird")) << path;
    EXPECT_TRUE(hidden[0]["text"].is_null()) << path;
    EXPECT_EQ(hidden[0]["tokens"], shown[0]["tokens"]) << path;
  }
}

TEST_F(CacheBranchTest, ANodeThatIsNotThereIsAnError) {
  const auto status = [&](const std::string& query) {
    return fixture_.send({.method = "GET", .path = "/cache/branch", .query = query}).status;
  };
  EXPECT_EQ(status("node=99999"), 404);
  EXPECT_EQ(status("node=0"), 404) << "the root is no branch";
  for (const char* const query : {"node=", "node=-1", "node=1x", "node=99999999999"}) {
    EXPECT_EQ(status(query), 400) << query;
  }
}

}  // namespace
}  // namespace pagoda::server
