// Tests bytes to replies and commands to bytes, without a socket.
#include "store/remote/protocol.h"

#include <gtest/gtest.h>

#include "store/page_samples.h"
#include "store/remote/page_keys.h"

namespace pagoda::store {
namespace {

std::unique_ptr<Protocol> protocol_of(const std::string& url, std::size_t value_bytes = 100) {
  auto protocol = make_protocol(parse_remote_url(url).value(), 0).value();
  protocol->expect_value(value_bytes);
  return protocol;
}

std::string list_of(const Reply& reply) {
  std::string seen;
  for (const Reply& part : reply.parts) {
    seen += " [" + part.text + list_of(part);
    if (part.kind == ReplyKind::kNumber) seen += std::to_string(part.number);
    seen += "]";
  }
  return seen;
}

// Returns replies as text, one a line; the last line is "!" where the bytes were not understood.
std::string replies_to(Protocol& protocol, std::string_view bytes, std::size_t piece) {
  std::string seen;
  while (!bytes.empty()) {
    if (!protocol.feed(bytes.substr(0, piece)).ok()) return seen + "!";
    bytes.remove_prefix(std::min(piece, bytes.size()));
    while (true) {
      const auto reply = protocol.next();
      if (!reply.ok()) return seen + "!";
      if (!reply.value()) break;
      const Reply& r = *reply.value();
      constexpr const char* kKinds[] = {"done", "value",   "absent",  "number",
                                        "list", "no room", "refused", "lost"};
      seen += kKinds[static_cast<std::size_t>(r.kind)];
      if (r.kind == ReplyKind::kNumber) seen += " " + std::to_string(r.number);
      if (!r.text.empty()) seen += " " + r.text;
      seen += list_of(r);
      seen += "\n";
    }
  }
  return seen;
}

struct Exchanged {
  const char* url;
  std::string bytes;
  std::string replies;
};

std::vector<Exchanged> all_kinds() {
  using namespace std::string_literals;
  return {
      {"redis://h",
       "+OK\r\n$5\r\na\r\nb\0\r\n$0\r\n\r\n$-1\r\n:1\r\n:0\r\n-OOM command not allowed\r\n"
       "-NOAUTH Authentication required.\r\n-WRONGPASS invalid\r\n-LOADING in memory\r\n"
       "-WRONGTYPE a list\r\n"
       "*2\r\n$2\r\n17\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n*2\r\n$1\r\n0\r\n*0\r\n"s,
       "done\nvalue a\r\nb\0\nvalue\nabsent\nnumber 1\nnumber 0\n"
       "no room OOM command not allowed\nrefused NOAUTH Authentication required.\n"
       "refused WRONGPASS invalid\n"
       "refused LOADING in memory\nabsent\nlist [17] [ [a] [b]]\nlist [0] []\n"s},
      {"memcached://h",
       "HD\r\nVA 5 f0\r\na\r\nb\0\r\nVA 0\r\n\r\nEN\r\nNF\r\nMN\r\nNS\r\n"
       "SERVER_ERROR out of memory storing object\r\nSERVER_ERROR object too large for cache\r\n"
       "SERVER_ERROR busy\r\nSTAT item_size_max 1048576\r\nSTAT x y\r\nEND\r\nEND\r\n"s,
       "done\nvalue a\r\nb\0\nvalue\nabsent\nabsent\ndone\nrefused NS\n"
       "no room SERVER_ERROR out of memory storing object\n"
       "no room SERVER_ERROR object too large for cache\nrefused SERVER_ERROR busy\n"
       "list [item_size_max 1048576] [x y]\nlist\n"s},
  };
}

TEST(Protocol, RepliesAreTheSameHoweverTheirBytesAreCut) {
  for (const Exchanged& each : all_kinds()) {
    for (std::size_t piece = 1; piece <= each.bytes.size(); ++piece) {
      const auto protocol = protocol_of(each.url);
      ASSERT_EQ(replies_to(*protocol, each.bytes, piece), each.replies) << "pieces of " << piece;
    }
    for (std::size_t first = 1; first < each.bytes.size(); ++first) {
      const auto protocol = protocol_of(each.url);
      const std::string_view bytes = each.bytes;
      std::string seen = replies_to(*protocol, bytes.substr(0, first), first);
      seen += replies_to(*protocol, bytes.substr(first), bytes.size());
      ASSERT_EQ(seen, each.replies) << "cut at " << first;
    }
  }
}

TEST(Protocol, LargeValuesAreTheSameHoweverTheirBytesAreCutAndWhereTheyArePut) {
  std::string value(40'000, '\0');
  for (std::size_t i = 0; i < value.size(); ++i) value[i] = static_cast<char>(i * i % 251);
  value.replace(20'000, 4, "\r\n$5");
  const std::string bytes =
      ":1\r\n$40000\r\n" + value + "\r\n+OK\r\n$40000\r\n" + value + "\r\n$3\r\nabc\r\n";
  for (const std::size_t piece :
       {std::size_t{1}, std::size_t{7}, std::size_t{1000}, std::size_t{16'384}, std::size_t{39'999},
        std::size_t{40'011}, bytes.size()}) {
    const auto protocol = protocol_of("redis://h", value.size());
    std::vector<Reply> replies;
    for (std::string_view rest = bytes; !rest.empty();) {
      const std::string_view next = rest.substr(0, piece);
      const std::span<char> room = protocol->room();
      const std::size_t direct = std::min(room.size(), next.size());
      std::copy_n(next.begin(), direct, room.begin());
      if (direct > 0) {
        protocol->filled(direct);
      } else {
        ASSERT_TRUE(protocol->feed(next).ok());
      }
      rest.remove_prefix(direct > 0 ? direct : next.size());
      while (true) {
        auto reply = protocol->next();
        ASSERT_TRUE(reply.ok());
        if (!reply.value()) break;
        replies.push_back(*reply.value());
        protocol->recycle(std::move(reply.value()->text));
      }
    }
    ASSERT_EQ(replies.size(), 5u) << piece;
    EXPECT_EQ(replies[0].number, 1u);
    EXPECT_TRUE(replies[1].text == value);
    EXPECT_EQ(replies[2].kind, ReplyKind::kDone);
    EXPECT_TRUE(replies[3].text == value);
    EXPECT_EQ(replies[4].text, "abc");
  }
  EXPECT_TRUE(replies_to(*protocol_of("redis://h", 40'000), "$40000\r\n" + value + "xy", 999)
                  .ends_with("!"));
}

TEST(Protocol, NoReplyWaitsForTheBytesOfTheNext) {
  const auto protocol = protocol_of("redis://h");
  EXPECT_EQ(replies_to(*protocol, "+OK\r", 5), "");
  EXPECT_EQ(replies_to(*protocol, "\n:1\r\n", 5), "done\nnumber 1\n");
}

TEST(Protocol, AListWithoutAnEndIsAnError) {
  std::string endless;
  for (int i = 0; i < 10'000; ++i) endless += "*1\r\n$1000\r\n" + std::string(1000, 'a') + "\r\n";
  const auto protocol = protocol_of("redis://h");
  std::string seen = replies_to(*protocol, "*99999\r\n*99999\r\n", 100);
  for (int i = 0; i < 9 && seen.empty(); ++i) seen = replies_to(*protocol, endless, 1 << 18);
  EXPECT_EQ(seen, "!");  // after 64 MB; the list is not whole before 200 MB
}

TEST(Protocol, WhatIsNoReplyIsAnError) {
  for (const char* bytes :
       {"HTTP/1.1 400 Bad Request\r\n", "VA 3\r\nabc\r\n", "$x\r\n", "*-5\r\n", "$-7\r\n",
        ":abc\r\n", ":-1\r\n", "*1\r\n:-1\r\n", "*3000000\r\n", "*2147483647\r\n"}) {
    EXPECT_TRUE(replies_to(*protocol_of("redis://h"), bytes, 1).ends_with("!")) << bytes;
  }
  for (const char* bytes : {"ERROR\r\n", "CLIENT_ERROR bad data chunk\r\n", "VA\r\n", "VA x\r\n",
                            "VA -1\r\n", "VA 3\r\nabcd\r\n", "+OK\r\n", "\r\n", "hello\r\n",
                            "VA 18446744073709551615\r\n", "VA 18446744073709551616\r\n"}) {
    EXPECT_TRUE(replies_to(*protocol_of("memcached://h"), bytes, 1).ends_with("!")) << bytes;
  }
}

TEST(Protocol, NoMoreIsKeptThanWasAskedFor) {
  // The bytes are far fewer than the server promises to send, and far more than were asked for.
  const std::string endless(3u << 20, 'x');
  for (const std::string& begin : {std::string("$500000000\r\n"), std::string("+")}) {
    EXPECT_EQ(replies_to(*protocol_of("redis://h"), begin + endless, 65536), "!");
  }
  for (const std::string& begin : {std::string("VA 50000000\r\n"), std::string()}) {
    EXPECT_EQ(replies_to(*protocol_of("memcached://h"), begin + endless, 65536), "!");
  }
}

TEST(Protocol, CommandsAreWhatTheProtocolsSay) {
  const auto said = [](const char* url, const Command& command) {
    std::string out;
    protocol_of(url)->encode(command, out);
    return out;
  };
  // A string that was sent before is written over.
  const auto set = [](const char* url, std::string out) {
    const std::size_t at = protocol_of(url)->encode_set("k", 4, 9, out);
    return out.replace(at, 4, "a\r\nb");
  };
  for (const std::string& before : {std::string(), std::string(500, 'x')}) {
    EXPECT_EQ(set("redis://h", before),
              "*5\r\n$3\r\nSET\r\n$1\r\nk\r\n$4\r\na\r\nb\r\n$2\r\nEX\r\n$1\r\n9\r\n");
    EXPECT_EQ(set("memcached://h", before), "ms k 4 T9\r\na\r\nb\r\n");
  }
  EXPECT_EQ(said("redis://h", {.verb = Verb::kGet, .key = "k"}), "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n");
  EXPECT_EQ(said("memcached://h", {.verb = Verb::kGet, .key = "k"}), "mg k v\r\n");
  EXPECT_EQ(said("redis://h", {.verb = Verb::kSlots}), "*2\r\n$7\r\nCLUSTER\r\n$5\r\nSLOTS\r\n");
  EXPECT_EQ(said("redis://h", {.verb = Verb::kAsking}), "*1\r\n$6\r\nASKING\r\n");
  EXPECT_EQ(said("memcached://h", {.verb = Verb::kHolds, .key = "k"}), "mg k\r\n");
}

TEST(Protocol, MemcachedSaysHowLargeItsItemsMayBe) {
  const auto limit = [](const std::string& setting, std::size_t asked) {
    const auto protocol = make_protocol(parse_remote_url("memcached://h").value(), asked).value();
    const Reply reply = {.kind = ReplyKind::kList,
                         .parts = {{.text = "maxbytes 1"}, {.text = setting}}};
    const Status status = protocol->take_handshake_reply(reply);
    return status.ok() ? protocol->item_bytes_max() : 0;
  };
  EXPECT_EQ(limit("item_size_max 1048576", 0), 1'048'576u - 1024u);
  EXPECT_EQ(limit("item_size_max 1048576", 5000), 5000u);
  EXPECT_EQ(limit("item_size_max 8192", 1'000'000), 8192u - 1024u);
  EXPECT_EQ(limit("item_size_max 1024", 0), 0u);
  EXPECT_EQ(limit("item_size_max x", 0), 0u);
  EXPECT_EQ(limit("nothing of it", 0), 0u);
}

TEST(PageKeys, AreShortEnoughForMemcachedAndDifferWherePagesDo) {
  kv::PageKey key = sample_label(1).key;
  key.group = 0xFFFFFFFF;
  const std::string longest = part_key(page_key(key), kPartsMax - 1, std::size_t{512} << 20);
  EXPECT_LE(longest.size(), 250u);
  EXPECT_EQ(longest.find_first_of(" \r\n"), std::string::npos);
  EXPECT_EQ(part_key("k", 0, 10), "k");
  EXPECT_EQ(part_key("k", 2, 10), "k.2x10");
  EXPECT_EQ(page_of_key("k.2x10"), "k");
  EXPECT_EQ(page_of_key(page_key(key)), page_key(key));
  EXPECT_TRUE(is_part_key(longest));
  EXPECT_FALSE(is_part_key(page_key(key)));
  kv::PageKey other = key;
  --other.group;
  EXPECT_NE(page_key(key), page_key(other));
  other = key;
  other.space.digest[0] ^= std::byte{1};
  EXPECT_NE(page_key(key), page_key(other));
}

}  // namespace
}  // namespace pagoda::store
