#include "replay/fleet/fleet_router.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "base/random.h"
#include "replay/fleet/block_lru.h"

namespace pagoda::replay {
namespace {

class RoundRobin final : public FleetRouter {
 public:
  explicit RoundRobin(std::uint32_t servers) : servers_(servers) {}

  std::uint32_t choose(const RoutedRequest&, FleetState&) override { return next_++ % servers_; }

 private:
  std::uint32_t servers_;
  std::uint32_t next_ = 0;
};

// The server whose random number under the key is the highest: a server more or less moves its own
// share of the keys and no other.
class Sticky final : public FleetRouter {
 public:
  explicit Sticky(const FleetRun& run) : run_(run) {}

  std::uint32_t choose(const RoutedRequest& request, FleetState&) override {
    std::uint64_t key = request.conversation;
    if (run_.routing.sticky_by_first_block) {
      key = request.blocks.empty() ? UINT64_MAX : request.blocks.front();
    }
    std::uint32_t best = 0;
    std::uint64_t highest = 0;
    for (std::uint32_t server = 0; server < run_.servers; ++server) {
      const std::uint64_t rank = random_bits(run_.seed, key, server);
      if (server > 0 && rank <= highest) continue;
      best = server;
      highest = rank;
    }
    return best;
  }

 private:
  FleetRun run_;
};

// sglang-router's cache_aware: a tree of what was sent to each server, which is right as long as
// servers keep what their tree keeps. Where the servers' requests in flight are too uneven the
// least busy gets the request; else the one whose tree has most of the prompt, if that is enough of
// it; else the least busy. Trees are cut at once and not every minute.
class CacheAware final : public FleetRouter {
 public:
  explicit CacheAware(const FleetRun& run)
      : options_(run.routing), block_tokens_(run.block_tokens) {
    const std::uint64_t blocks =
        std::max<std::uint64_t>(options_.tree_tokens_max / block_tokens_, 1);
    trees_.assign(run.servers, BlockLru(blocks));
  }

  std::uint32_t choose(const RoutedRequest& request, FleetState& fleet) override {
    std::uint32_t server = least_busy(fleet);
    if (!is_uneven(fleet)) server = matched(request).value_or(server);
    trees_[server].use(request.blocks);
    for (const std::uint32_t block : request.blocks) last_server_[block] = server;
    return server;
  }

 private:
  std::uint32_t least_busy(FleetState& fleet) const {
    std::uint32_t least = 0;
    for (std::uint32_t server = 1; server < trees_.size(); ++server) {
      if (fleet.in_flight(server) < fleet.in_flight(least)) least = server;
    }
    return least;
  }

  bool is_uneven(FleetState& fleet) const {
    std::uint32_t least = UINT32_MAX;
    std::uint32_t most = 0;
    for (std::uint32_t server = 0; server < trees_.size(); ++server) {
      least = std::min(least, fleet.in_flight(server));
      most = std::max(most, fleet.in_flight(server));
    }
    return most - least > options_.balance_abs_threshold &&
           most > least * options_.balance_rel_threshold;
  }

  // The one that was sent it last is taken where servers have equally much.
  std::optional<std::uint32_t> matched(const RoutedRequest& request) const {
    std::uint32_t best = 0;
    std::uint64_t longest = 0;
    for (std::uint32_t server = 0; server < trees_.size(); ++server) {
      const std::uint64_t found = trees_[server].found(request.blocks);
      if (found == 0 || found < longest) continue;
      if (found == longest && last_server_.at(request.blocks[found - 1]) != server) continue;
      best = server;
      longest = found;
    }
    const auto tokens = static_cast<double>(std::min(longest * block_tokens_, request.tokens));
    if (tokens <= options_.cache_threshold * static_cast<double>(request.tokens)) return {};
    return best;
  }

  RouterOptions options_;
  std::uint64_t block_tokens_;
  std::vector<BlockLru> trees_;                                   // [server]
  std::unordered_map<std::uint32_t, std::uint32_t> last_server_;  // [block]
};

// The server that expects the earliest first token; of several the one that computed least so far,
// whose cache has the most room.
class Exact final : public FleetRouter {
 public:
  explicit Exact(std::uint32_t servers) : servers_(servers) {}

  std::uint32_t choose(const RoutedRequest&, FleetState& fleet) override {
    const auto rank = [&](std::uint32_t server) {
      return std::tuple(fleet.expected_ttft_ns(server), fleet.tokens_computed(server), server);
    };
    auto best = rank(0);
    for (std::uint32_t server = 1; server < servers_; ++server) best = std::min(best, rank(server));
    return std::get<2>(best);
  }

 private:
  std::uint32_t servers_;
};

}  // namespace

std::unique_ptr<FleetRouter> make_fleet_router(const FleetRun& run) {
  switch (run.router) {
    case RouterKind::kRoundRobin:
      return std::make_unique<RoundRobin>(run.servers);
    case RouterKind::kSticky:
      return std::make_unique<Sticky>(run);
    case RouterKind::kCacheAware:
      return std::make_unique<CacheAware>(run);
    case RouterKind::kExact:
      break;
  }
  return std::make_unique<Exact>(run.servers);
}

}  // namespace pagoda::replay
