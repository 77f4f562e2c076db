#include "loadgen/target.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace pagoda::loadgen {
namespace {

TEST(TargetTest, HttpsHasAPortOfItsOwn) {
  const auto port = [](const std::string& url) {
    return parse_target(url, "`url`").value().url.port;
  };
  EXPECT_EQ(port("http://a"), "80");
  EXPECT_EQ(port("https://a"), "443");
  EXPECT_EQ(port("https://a/v1"), "443");
  EXPECT_EQ(port("https://a:80"), "80");
  EXPECT_EQ(port("https://[::1]:8443/x"), "8443");
  EXPECT_TRUE(parse_target("https://a", "`url`").value().url.tls);
  EXPECT_FALSE(parse_target("http://a", "`url`").value().url.tls);
  EXPECT_FALSE(parse_target("ftp://a", "`url`").ok());
}

TEST(TargetTest, ARequestIsWholeAndItsLengthIsRight) {
  Target target = parse_target("http://host:81/base/v1", "`url`").value();
  target.api_key = "sesame";
  const CompletionForm form = {.chat = true, .prompts = PromptForm::kMessages, .model = "a \"b\""};
  const std::string text =
      completion_request(target, form, {.prompt = {{.symbols = {1}}}, .output_tokens = 9});
  EXPECT_TRUE(text.starts_with("POST /base/v1/chat/completions HTTP/1.1\r\nHost: host:81\r\n"));
  EXPECT_NE(text.find("\r\nAuthorization: Bearer sesame\r\n"), std::string::npos);
  const std::size_t body = text.find("\r\n\r\n") + 4;
  EXPECT_NE(text.find("\r\nContent-Length: " + std::to_string(text.size() - body) + "\r\n"),
            std::string::npos);
  const auto json = nlohmann::json::parse(text.substr(body));
  EXPECT_EQ(json["model"], "a \"b\"");
  EXPECT_EQ(json["max_tokens"], 9);
  EXPECT_EQ(json["stream"], true);
  EXPECT_EQ(json["stream_options"]["include_usage"], true);
  EXPECT_EQ(json["ignore_eos"], true);
  EXPECT_EQ(json["messages"].size(), 1U);
}

}  // namespace
}  // namespace pagoda::loadgen
