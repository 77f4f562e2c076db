#include "net/url.h"

#include <gtest/gtest.h>

namespace pagoda::net {
namespace {

TEST(Url, HasSchemeHostPortAndPath) {
  const Url plain = parse_url("http://host", "URL").value();
  EXPECT_FALSE(plain.tls);
  EXPECT_EQ(plain.host, "host");
  EXPECT_EQ(plain.port, "80");
  EXPECT_EQ(plain.path, "");
  const Url whole = parse_url("https://[::1]:8443/base/v1/", "URL").value();
  EXPECT_TRUE(whole.tls);
  EXPECT_EQ(whole.host, "::1");
  EXPECT_EQ(whole.port, "8443");
  EXPECT_EQ(whole.path, "/base") << "/v1 is what requests add";
  EXPECT_EQ(parse_url("https://host/v1", "URL").value().port, "443");
}

TEST(Url, OfThisMachineNeedsNoScheme) {
  for (const char* const text : {"localhost:8000", "127.0.0.1:8000/v1", "[::1]:8000"}) {
    const Result<Url> url = parse_url(text, "URL");
    ASSERT_TRUE(url.ok()) << text;
    EXPECT_FALSE(url.value().tls);
    EXPECT_EQ(url.value().port, "8000");
  }
  EXPECT_EQ(parse_url("localhost", "URL").value().host, "localhost");
}

TEST(Url, ErrorsNameTheArgument) {
  for (const char* const wrong : {"", "host:80", "localhosts:80", "127.0.0.1.example.com",
                                  "ftp://host", "http://", "http://:80", "http://h:"}) {
    const Result<Url> url = parse_url(wrong, "`url`");
    ASSERT_FALSE(url.ok()) << wrong;
    EXPECT_TRUE(url.error().message.starts_with("`url`: ")) << url.error().message;
  }
}

}  // namespace
}  // namespace pagoda::net
