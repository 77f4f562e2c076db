#include "store/peer/peer_address.h"

#include <gtest/gtest.h>

namespace pagoda::store {
namespace {

PeerAllowList list_of(std::string_view text) { return PeerAllowList::parse(text).value(); }

TEST(PeerAddress, IsAHostAndAPort) {
  EXPECT_EQ(parse_peer_address("worker-1:9000").value(), (PeerAddress{"worker-1", 9000}));
  EXPECT_EQ(parse_peer_address("[::1]:9000").value(), (PeerAddress{"::1", 9000}));
  EXPECT_EQ(parse_peer_address("[::1]:9000").value().shown(), "[::1]:9000");
  EXPECT_EQ(parse_peer_addresses("a:1,b:2").value().size(), 2u);
  EXPECT_TRUE(parse_peer_addresses("").value().empty());
  for (const char* const wrong : {"", "host", "host:", ":80", "host:0", "host:65536", "host:80x",
                                  "::1:80", "a b:80", "host:-1", "[]:1", "a\n:1"}) {
    EXPECT_FALSE(parse_peer_address(wrong).ok()) << wrong;
  }
  EXPECT_FALSE(parse_peer_addresses("a:1,,b:2").ok());
}

TEST(PeerAllowList, HasLoopbackWhereNothingIsSaid) {
  const PeerAllowList list = list_of(kLoopbackHosts);
  for (const char* const host : {"localhost", "LocalHost", "localhost.", "127.0.0.1", "127.9.8.7",
                                 "::1", "::ffff:127.0.0.1"}) {
    EXPECT_TRUE(list.allows(host)) << host;
  }
  for (const char* const host :
       {"", "10.0.0.1", "128.0.0.1", "126.255.255.255", "::2", "localhost.evil.example",
        "evil-localhost", "127.1", "0x7f000001", "2130706433", "169.254.169.254", "0.0.0.0"}) {
    EXPECT_FALSE(list.allows(host)) << host;
  }
}

TEST(PeerAllowList, AnAddressEndsWhereItsTextEnds) {
  EXPECT_FALSE(list_of("127.0.0.0/8").allows(std::string("127.0.0.1\0x", 11)));
}

TEST(PeerAllowList, HasItsNetworksToTheBit) {
  const PeerAllowList list = list_of("10.1.2.128/25,fd00::/9,worker-1");
  EXPECT_TRUE(list.allows("10.1.2.128"));
  EXPECT_TRUE(list.allows("10.1.2.255"));
  EXPECT_FALSE(list.allows("10.1.2.127"));
  EXPECT_FALSE(list.allows("10.1.3.128"));
  EXPECT_TRUE(list.allows("fd7f::1"));
  EXPECT_FALSE(list.allows("fd80::1"));
  EXPECT_TRUE(list.allows("Worker-1"));
  EXPECT_FALSE(list.allows("worker-10"));
  EXPECT_FALSE(list.allows("127.0.0.1"));
}

TEST(PeerAllowList, AZeroOfBitsIsEveryAddressOfItsKind) {
  EXPECT_TRUE(list_of("0.0.0.0/0").allows("8.8.8.8"));
  EXPECT_FALSE(list_of("0.0.0.0/0").allows("fd00::1"));
  EXPECT_FALSE(list_of("0.0.0.0/0").allows("some.name"));
}

TEST(PeerAllowList, RefusesWhatIsNoEntry) {
  for (const char* const wrong :
       {"10.0.0.0/33", "10.0.0.0/x", "10.0.0.0/", "fd00::/129", "name/8", "a,,b", "10.0.0.0/-1"}) {
    EXPECT_FALSE(PeerAllowList::parse(wrong).ok()) << wrong;
  }
}

TEST(PeerAllowList, TakesHostsOfItsOwnPeers) {
  PeerAllowList list = list_of("worker-1");
  list.add_host("10.2.3.4");
  list.add_host("Worker-2");
  EXPECT_TRUE(list.allows("10.2.3.4"));
  EXPECT_FALSE(list.allows("10.2.3.5"));
  EXPECT_TRUE(list.allows("worker-2"));
}

}  // namespace
}  // namespace pagoda::store
