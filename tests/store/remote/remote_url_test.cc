#include "store/remote/remote_url.h"

#include <gtest/gtest.h>

namespace pagoda::store {
namespace {

std::string error_of(const std::string& text) {
  const auto url = parse_remote_url(text);
  return url.ok() ? "no error" : url.error().message;
}

TEST(RemoteUrl, HasASchemeAHostAndWhatElseIsSaid) {
  const RemoteUrl plain = parse_remote_url("redis://cache").value();
  EXPECT_EQ(plain.addresses[0].host, "cache");
  EXPECT_EQ(plain.addresses[0].port, "6379");
  EXPECT_FALSE(plain.tls);
  EXPECT_EQ(plain.kind, RemoteKind::kRedis);

  const RemoteUrl full = parse_remote_url("rediss://me:s%40cr%3Aet@10.0.0.1:7000/3").value();
  EXPECT_TRUE(full.tls);
  EXPECT_EQ(full.user, "me");
  EXPECT_EQ(full.password, "s@cr:et");
  EXPECT_EQ(full.addresses[0].host, "10.0.0.1");
  EXPECT_EQ(full.addresses[0].port, "7000");
  EXPECT_EQ(full.database, 3u);

  const RemoteUrl nameless = parse_remote_url("redis://:pw@h/").value();
  EXPECT_EQ(nameless.user, "");
  EXPECT_EQ(nameless.password, "pw");

  const RemoteUrl memcached = parse_remote_url("memcached://[::1]:9").value();
  EXPECT_EQ(memcached.kind, RemoteKind::kMemcached);
  EXPECT_EQ(memcached.addresses[0].host, "::1");
  EXPECT_EQ(memcached.addresses[0].port, "9");
  EXPECT_EQ(parse_remote_url("memcached://m").value().addresses[0].port, "11211");
}

TEST(RemoteUrl, OfAClusterOrOfSentinelsHasSeveralAddresses) {
  const RemoteUrl cluster =
      parse_remote_url("rediss-cluster://u:p%2Cw@10.0.0.1:7000,cache-2,[::1]:7002").value();
  EXPECT_EQ(cluster.layout, RemoteLayout::kCluster);
  EXPECT_TRUE(cluster.tls);
  EXPECT_EQ(cluster.password, "p,w");
  EXPECT_EQ(cluster.addresses,
            (std::vector<NodeAddress>{{"10.0.0.1", "7000"}, {"cache-2", "6379"}, {"::1", "7002"}}));
  EXPECT_EQ(cluster.shown(), "rediss-cluster://10.0.0.1:7000,cache-2:6379,[::1]:7002");

  const RemoteUrl sentinel = parse_remote_url("redis-sentinel://a,b:1/kv-pages/2").value();
  EXPECT_EQ(sentinel.layout, RemoteLayout::kSentinel);
  EXPECT_EQ(sentinel.addresses, (std::vector<NodeAddress>{{"a", "26379"}, {"b", "1"}}));
  EXPECT_EQ(sentinel.service, "kv-pages");
  EXPECT_EQ(sentinel.database, 2u);
  EXPECT_EQ(sentinel.shown(), "redis-sentinel://a:26379,b:1/kv-pages/2");
}

TEST(RemoteUrl, IsShownWithoutItsPassword) {
  EXPECT_EQ(parse_remote_url("rediss://u:secret@h:1/2").value().shown(), "rediss://h:1/2");
  EXPECT_EQ(parse_remote_url("memcached://[::1]").value().shown(), "memcached://[::1]:11211");
}

TEST(RemoteUrl, ThatIsWrongIsNamedWithWhatIsWrong) {
  EXPECT_NE(error_of("http://h").find("\"http://h\""), std::string::npos);
  EXPECT_NE(error_of("http://h").find("redis://"), std::string::npos);
  for (const char* hostless : {"redis://", "redis://:6379", "redis://h:0", "redis://h:65536",
                               "redis://h:", "redis://h:6x", "redis://[::1", "redis://[::1]x"}) {
    EXPECT_NE(error_of(hostless).find("names no host"), std::string::npos) << hostless;
  }
  EXPECT_NE(error_of("redis://h/x").find("\"x\" is no database"), std::string::npos);
  EXPECT_NE(error_of("redis://h/1000001").find("1000000"), std::string::npos);
  EXPECT_NE(error_of("redis://a,b").find("redis-cluster://"), std::string::npos);
  EXPECT_NE(error_of("redis-cluster://a,").find("names no host"), std::string::npos);
  EXPECT_NE(error_of("redis-cluster://a,b:0").find("names no host"), std::string::npos);
  EXPECT_NE(error_of("redis-cluster://a/1").find("no databases"), std::string::npos);
  EXPECT_NE(error_of("redis-sentinel://a").find("names no service"), std::string::npos);
  EXPECT_NE(error_of("redis-sentinel://a//1").find("names no service"), std::string::npos);
  EXPECT_NE(error_of("redis-sentinel://a/s/x").find("\"x\" is no database"), std::string::npos);
  std::string many = "redis-cluster://a";
  for (std::size_t i = 0; i < kAddressesMax; ++i) many += ",a";
  EXPECT_NE(error_of(many).find("more than 64"), std::string::npos);
  EXPECT_NE(error_of("memcached://h/1").find("no databases"), std::string::npos);
  EXPECT_NE(error_of("memcached://a:b@h").find("no user"), std::string::npos);
  EXPECT_NE(error_of("redis://user@h").find("user:password"), std::string::npos);
  EXPECT_NE(error_of("redis://user:@h").find("empty"), std::string::npos);
  EXPECT_NE(error_of("redis://:%4@h").find("two hexadecimal"), std::string::npos);
  EXPECT_NE(error_of("redis://:%zz@h").find("two hexadecimal"), std::string::npos);
}

TEST(RemoteUrl, ErrorsNeverShowAPassword) {
  for (const char* text : {"redis://u:secret@", "redis://u:secret@h:0", "redis://u:sec@ret@h/x",
                           "http://u:secret@h", "memcached://u:secret@h", "redis://secret@h"}) {
    EXPECT_EQ(error_of(text).find("sec"), std::string::npos) << error_of(text);
  }
}

}  // namespace
}  // namespace pagoda::store
