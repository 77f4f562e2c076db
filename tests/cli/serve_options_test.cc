// Tests how the options of pagoda serve become the server's access rules.
#include "cli/serve_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pagoda::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

server::AccessRules rules_of(const std::string& host, std::vector<std::string> allowed) {
  serve::ServeOptions options;
  options.host = host;
  options.access.allowed_hosts = std::move(allowed);
  return server_options(options).value().access;
}

TEST(ServeAccess, NamesAreThoseItListensOnAndThoseThatAreGiven) {
  EXPECT_THAT(rules_of("GPU1.example", {}).own_names, ElementsAre("gpu1.example"));
  EXPECT_FALSE(rules_of("gpu1.example", {}).checks_host_with_keys);
  const server::AccessRules given = rules_of("gpu1", {"Chat.Example:8000", "b.", "*"});
  EXPECT_THAT(given.own_names, ElementsAre("chat.example", "b", "*", "gpu1"));
  EXPECT_TRUE(given.checks_host_with_keys);
  EXPECT_TRUE(rules_of("::1", {}).own_names.empty()) << "addresses pass as they are";
}

TEST(ServeAccess, WhatIsNoNameOrNoKeyIsRefusedWithItsFlag) {
  for (const char* const wrong : {"", "a b", "http://a", "[::1", "a:b", "."}) {
    serve::ServeOptions options;
    options.access.allowed_hosts = {wrong};
    const auto made = server_options(options);
    ASSERT_FALSE(made.ok()) << wrong;
    EXPECT_THAT(made.error().message, HasSubstr("`allowed_hosts`: ")) << wrong;
  }
  for (const char* const wrong : {"", "a b", "secret\n", "\xc3\xa9"}) {
    serve::ServeOptions options;
    options.access.api_keys = {"good", wrong};
    const auto made = server_options(options);
    ASSERT_FALSE(made.ok()) << wrong;
    EXPECT_EQ(made.error().message, "`api_key`: a key has 1 to 512 visible ASCII characters");
  }
}

}  // namespace
}  // namespace pagoda::cli
