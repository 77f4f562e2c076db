// ClusterMap says which node of a Redis Cluster has which slots, as one of its nodes tells it.
// Pure functions: a map is checked completely, and still may lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/remote/protocol.h"
#include "store/remote/remote_url.h"

namespace pagoda::store {

inline constexpr std::size_t kSlots = 16384;
inline constexpr std::size_t kNodesMax = 1000;

// Returns the slot of a key: CRC16 (XMODEM) of its hash tag, which is what stands between its first
// '{' and the next '}', or of the whole key where there is none.
std::uint16_t slot_of(std::string_view key);

struct ClusterMap {
  static constexpr std::uint16_t kNobody = 0xFFFF;

  std::vector<NodeAddress> nodes = {};    // nodes that have slots, each once
  std::vector<std::uint16_t> owner = {};  // of each slot, an index of `nodes`

  bool operator==(const ClusterMap&) const = default;
};

// Reads the reply to CLUSTER SLOTS. `asked`: the node that replied, which may leave out its own
// host. Slots may have no owner, but at least one must have, and none may have two.
Result<ClusterMap> read_cluster_slots(const Reply& reply, const NodeAddress& asked);

// Reads a sentinel's reply to SENTINEL GET-MASTER-ADDR-BY-NAME: a map in which one node has all.
Result<ClusterMap> read_sentinel_reply(const Reply& reply, const std::string& service);

// Where a node of a cluster sends those whom it cannot serve.
struct Redirection {
  enum class Kind : std::uint8_t {
    kMoved,     // the slot is another node's
    kAsk,       // the slot is being moved, and this key may have been
    kTryAgain,  // likewise, and only some of the keys have
    kDown,      // the cluster or the node does not serve now
  };
  Kind kind = Kind::kDown;
  std::uint16_t slot = 0;  // of kMoved and kAsk, as is the address
  NodeAddress address = {};
};

// Nothing: the text is no redirection, or one that cannot be followed. `from`: the node that said
// it, which is meant where no host stands.
std::optional<Redirection> read_redirection(std::string_view text, const NodeAddress& from);

}  // namespace pagoda::store
