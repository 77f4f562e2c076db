// Any bytes of a Redis or a Memcached are replies or refused; how they are cut changes nothing. Any
// reply is a map of slots or none.
//
// Input: a byte that says whose bytes they are and how large the pieces, then what arrives.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.h"
#include "store/remote/cluster_map.h"
#include "store/remote/protocol.h"

namespace pagoda::store {
namespace {

constexpr std::size_t kValueBytes = 20'000;  // large values take a way of their own

struct Heard {
  std::vector<Reply> replies;
  bool failed = false;
};

Heard hear(const RemoteUrl& url, std::string_view bytes, std::size_t piece) {
  const auto protocol = make_protocol(url, 0).value();
  protocol->expect_value(kValueBytes);
  Heard heard;
  while (!bytes.empty() && !heard.failed) {
    const std::string_view next = bytes.substr(0, piece);
    bytes.remove_prefix(next.size());
    heard.failed = !protocol->feed(next).ok();
    while (!heard.failed) {
      auto reply = protocol->next();
      heard.failed = !reply.ok();
      if (heard.failed || !reply.value()) break;
      (void)protocol->take_handshake_reply(*reply.value());  // any may come first
      const NodeAddress asked = {"127.0.0.1", "6379"};
      const auto map = read_cluster_slots(*reply.value(), asked);
      ASSERT(!map.ok() || (map.value().owner.size() == kSlots && !map.value().nodes.empty()),
             "a map has slots and nodes");
      (void)read_sentinel_reply(*reply.value(), "kv");
      (void)read_redirection(reply.value()->text, asked);
      heard.replies.push_back(std::move(*reply.value()));
    }
  }
  return heard;
}

void check(const RemoteUrl& url, std::string_view bytes, std::size_t piece) {
  const Heard whole = hear(url, bytes, std::max<std::size_t>(bytes.size(), 1));
  const Heard cut = hear(url, bytes, piece);
  ASSERT(whole.failed == cut.failed, "how bytes are cut changes nothing");
  ASSERT(whole.replies.size() == cut.replies.size(), "as many replies");
  for (std::size_t i = 0; i < whole.replies.size(); ++i) {
    const Reply& a = whole.replies[i];
    const Reply& b = cut.replies[i];
    ASSERT(a == b, "the same replies");
  }
}

}  // namespace
}  // namespace pagoda::store

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using pagoda::store::RemoteKind;
  if (size == 0) return 0;
  pagoda::store::RemoteUrl url;
  url.kind = data[0] % 2 == 0 ? RemoteKind::kRedis : RemoteKind::kMemcached;
  pagoda::store::check(url, {reinterpret_cast<const char*>(data + 1), size - 1},
                       std::size_t{data[0]} / 2 % 64 + 1);
  return 0;
}
