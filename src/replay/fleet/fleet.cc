#include "replay/fleet/fleet.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <queue>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/assert.h"
#include "base/byte_size.h"
#include "replay/fleet/arrival_times.h"
#include "replay/fleet/conversations.h"
#include "replay/fleet/fleet_router.h"
#include "replay/fleet/fleet_server.h"

namespace pagoda::replay {
namespace {

constexpr std::uint64_t kProgressRequests = 256;
// Writes that would wait longer for their link are left out.
constexpr std::int64_t kWriteBacklogMaxNs = 1'000'000'000;

enum class FleetEventKind : std::uint8_t { kLoaded, kComputed, kEnded, kWritten };

struct FleetEvent {
  std::int64_t time_ns;
  std::uint64_t order;  // of equal times the one that was foreseen first
  FleetEventKind kind;
  std::uint32_t server;
  std::uint32_t request;
  std::size_t tier;  // in FleetRun::tiers, of kWritten

  bool operator>(const FleetEvent& other) const {
    return std::tie(time_ns, order) > std::tie(other.time_ns, other.order);
  }
};

// A ServeEstimate says how a server would serve a request that came now.
struct ServeEstimate {
  std::uint64_t in_memory = 0;                        // of the request's first blocks
  std::array<std::uint64_t, kFleetTiers> reach = {};  // [tier]: up to where it and those before it
  std::int64_t ready_ns = 0;                          // when what is read is there
  std::int64_t compute_ns = 0;
  std::int64_t ttft_ns = 0;
};

struct FleetJob {
  std::uint32_t server = 0;
  std::int64_t arrived_ns = 0;
  ServeEstimate estimate;
  std::optional<TraceCache::Held> held;
};

class FleetSimulation final : public FleetState {
 public:
  FleetSimulation(const Trace& trace, const BlockNumbers& numbers, const FleetRun& run)
      : trace_(trace),
        numbers_(numbers),
        run_(run),
        conversations_(find_conversations(trace, numbers)),
        router_(make_fleet_router(run)),
        store_link_(run.costs.store_bytes),
        found_(run.servers) {
    const CacheRun cache = {run.policy, run.capacity_blocks, run.block_tokens, nullptr};
    servers_.reserve(run.servers);
    for (std::uint32_t i = 0; i < run.servers; ++i) {
      servers_.emplace_back(trace, cache, numbers.unique(), run.costs);
    }
    for (const FleetTier& tier : run.tiers) add_tier(tier);
    result_.ttft_ns.resize(trace.requests.size());
  }

  FleetResult run(const FleetSchedule& schedule,
                  const std::function<void(std::uint64_t requests)>& on_progress) {
    std::size_t next = 0;
    const std::vector<FleetArrival>& arrivals = schedule.arrivals;
    while (next < arrivals.size() || !events_.empty()) {
      // A request that comes at the moment of an event comes after it.
      if (events_.empty() ||
          (next < arrivals.size() && arrivals[next].time_ns < events_.top().time_ns)) {
        now_ns_ = arrivals[next].time_ns;
        arrive(arrivals[next].request);
        if (++next % kProgressRequests == 0 && on_progress) on_progress(next);
        continue;
      }
      const FleetEvent event = events_.top();
      events_.pop();
      now_ns_ = event.time_ns;
      handle(event);
    }
    result_.speed = schedule.speed;
    for (const FleetServer& server : servers_) {
      ASSERT(server.queue.empty() && server.in_flight == 0, "every request is served");
      result_.servers.push_back(server.load);
    }
    return std::move(result_);
  }

  std::uint32_t in_flight(std::uint32_t server) override { return servers_[server].in_flight; }
  std::int64_t expected_ttft_ns(std::uint32_t server) override { return estimate(server).ttft_ns; }
  std::uint64_t tokens_computed(std::uint32_t server) override {
    return servers_[server].load.tokens_computed;
  }

 private:
  void add_tier(const FleetTier& tier) {
    const std::uint64_t blocks = tier.capacity.blocks(numbers_.unique());
    if (tier.kind == FleetTierKind::kShared) store_.emplace(blocks);
    for (FleetServer& server : servers_) {
      if (tier.kind == FleetTierKind::kHost) server.host.emplace(blocks);
      if (tier.kind == FleetTierKind::kDisk) server.disk.emplace(blocks);
    }
  }

  // Tokens of the request's first blocks.
  std::uint64_t tokens(std::uint32_t request, std::uint64_t blocks) const {
    return std::min(trace_.requests[request].input_tokens, blocks * run_.block_tokens);
  }
  std::uint64_t tokens(std::uint32_t request) const {
    return tokens(request, trace_.requests[request].blocks);
  }
  std::int64_t compute_ns(std::uint64_t tokens) const {
    return duration_ns(static_cast<double>(tokens), run_.costs.prefill_tokens);
  }
  double bytes(std::uint64_t blocks) const {
    return static_cast<double>(blocks) * static_cast<double>(run_.block_bytes());
  }

  // How many of the arriving request's first blocks the server has; it is asked once.
  std::uint64_t found(std::uint32_t server) {
    auto& [asked, found] = found_[server];
    if (asked != arrivals_seen_) {
      asked = arrivals_seen_;
      found = servers_[server].cache.found(trace_.requests[arriving_]);
    }
    return found;
  }

  // The other server that has most of the arriving request.
  std::uint32_t best_peer(std::uint32_t server) {
    if (peers_asked_ != arrivals_seen_) {
      peers_asked_ = arrivals_seen_;
      peers_ = {0, 0};
      for (std::uint32_t other = 1; other < run_.servers; ++other) {
        if (found(other) > found(peers_[0])) {
          peers_ = {other, peers_[0]};
        } else if (peers_[1] == peers_[0] || found(other) > found(peers_[1])) {
          peers_[1] = other;
        }
      }
    }
    return peers_[0] != server ? peers_[0] : peers_[1];
  }

  // The blocks that a tier keeps for the server; nullptr for peers.
  BlockLru* blocks_of(FleetTierKind kind, std::uint32_t server) {
    FleetServer& own = servers_[server];
    switch (kind) {
      case FleetTierKind::kHost:
        return &*own.host;
      case FleetTierKind::kDisk:
        return &*own.disk;
      case FleetTierKind::kShared:
        return &*store_;
      case FleetTierKind::kPeer:
        break;
    }
    return nullptr;
  }

  // From the tier into the server's cache; of peers for the arriving request.
  TransferPath read_path(FleetTierKind kind, std::uint32_t server) {
    const auto latency_ns = static_cast<std::int64_t>(run_.costs.network_latency_s * 1e9);
    FleetServer& own = servers_[server];
    switch (kind) {
      case FleetTierKind::kHost:
        return TransferPath(&own.host_link.in);
      case FleetTierKind::kDisk:
        return TransferPath(&own.disk_link.in);
      case FleetTierKind::kShared:
        return TransferPath(&own.network.in, &store_link_.out, latency_ns);
      case FleetTierKind::kPeer:
        break;
    }
    return TransferPath(&own.network.in, &servers_[best_peer(server)].network.out, latency_ns);
  }
  TransferPath write_path(FleetTierKind kind, std::uint32_t server) {
    FleetServer& own = servers_[server];
    if (kind == FleetTierKind::kHost) return TransferPath(&own.host_link.out);
    if (kind == FleetTierKind::kDisk) return TransferPath(&own.disk_link.out);
    return TransferPath(&own.network.out, &store_link_.in);
  }

  std::uint64_t found_in_tier(FleetTierKind kind, std::uint32_t server) {
    if (kind != FleetTierKind::kPeer) {
      return blocks_of(kind, server)->found(numbers_.of(trace_.requests[arriving_]));
    }
    return run_.servers > 1 ? found(best_peer(server)) : 0;
  }

  ServeEstimate estimate(std::uint32_t server) {
    ServeEstimate estimate;
    std::uint64_t reached = estimate.in_memory = found(server);
    const std::int64_t turn_ns = now_ns_ + servers_[server].backlog_ns(now_ns_);
    for (std::size_t i = 0; i < run_.tiers.size(); ++i) {
      const FleetTierKind kind = run_.tiers[i].kind;
      const std::uint64_t reach =
          std::min(found_in_tier(kind, server), servers_[server].cache.blocks());
      if (reach > reached) {
        const std::int64_t arrival_ns =
            read_path(kind, server).arrival_ns(now_ns_, bytes(reach - reached));
        const std::int64_t computed_ns =
            turn_ns + compute_ns(tokens(arriving_, reach) - tokens(arriving_, reached));
        if (arrival_ns < computed_ns) {
          reached = reach;
          estimate.ready_ns = std::max(estimate.ready_ns, arrival_ns);
        }
      }
      estimate.reach[i] = reached;
    }
    estimate.compute_ns =
        compute_ns(std::max<std::uint64_t>(tokens(arriving_) - tokens(arriving_, reached), 1));
    estimate.ttft_ns = std::max(estimate.ready_ns, turn_ns) + estimate.compute_ns - now_ns_;
    return estimate;
  }

  void foresee(std::int64_t time_ns, FleetEventKind kind, std::uint32_t request,
               std::size_t tier = 0) {
    events_.push({time_ns, events_seen_++, kind, jobs_.at(request).server, request, tier});
  }

  void arrive(std::uint32_t request) {
    arriving_ = request;
    ++arrivals_seen_;
    const std::uint32_t chosen = router_->choose({.blocks = numbers_.of(trace_.requests[request]),
                                                  .tokens = trace_.requests[request].input_tokens,
                                                  .conversation = conversations_[request]},
                                                 *this);
    FleetJob& job = jobs_[request];
    job = {.server = chosen, .arrived_ns = now_ns_, .estimate = estimate(chosen), .held = {}};
    FleetServer& server = servers_[chosen];
    ++server.in_flight;
    ++server.load.requests;
    server.waiting_ns += job.estimate.compute_ns;
    if (!read(job, request)) {
      server.queue.push_back(request);
      begin_next(server);
    }
  }

  // Sends what tiers have; false where nothing is to be read.
  bool read(const FleetJob& job, std::uint32_t request) {
    std::uint64_t reached = job.estimate.in_memory;
    for (std::size_t i = 0; i < run_.tiers.size(); ++i) {
      const std::uint64_t reach = job.estimate.reach[i];
      if (reach <= reached) continue;
      const FleetTierKind kind = run_.tiers[i].kind;
      read_path(kind, job.server).send(now_ns_, bytes(reach - reached));
      traffic(kind).blocks_read += reach - reached;
      if (BlockLru* const blocks = blocks_of(kind, job.server)) {
        blocks->use(numbers_.of(trace_.requests[request]).first(reach));
      }
      reached = reach;
    }
    if (reached == job.estimate.in_memory) return false;
    foresee(job.estimate.ready_ns, FleetEventKind::kLoaded, request);
    return true;
  }

  void handle(const FleetEvent& event) {
    switch (event.kind) {
      case FleetEventKind::kLoaded:
        loaded(event.request);
        return;
      case FleetEventKind::kComputed:
        computed(event.request);
        return;
      case FleetEventKind::kEnded:
        end(event.request);
        begin_next(servers_[event.server]);
        return;
      case FleetEventKind::kWritten:  // its request may have ended
        blocks_of(run_.tiers[event.tier].kind, event.server)
            ->use(kept(event.server, event.request));
        return;
    }
  }

  // The request's blocks that the server has room for, and so writes.
  std::span<const std::uint32_t> kept(std::uint32_t server, std::uint32_t request) const {
    const std::span<const std::uint32_t> blocks = numbers_.of(trace_.requests[request]);
    return blocks.first(std::min<std::uint64_t>(blocks.size(), servers_[server].cache.blocks()));
  }

  // Pages that came are in the cache like all that nobody holds; without room for them they are
  // computed.
  void loaded(std::uint32_t request) {
    const FleetJob& job = jobs_.at(request);
    FleetServer& server = servers_[job.server];
    std::uint64_t reach = job.estimate.in_memory;
    for (std::size_t i = 0; i < run_.tiers.size(); ++i)
      reach = std::max(reach, job.estimate.reach[i]);
    const TraceRequest& asked = trace_.requests[request];
    if (std::optional<TraceCache::Held> held = server.cache.open(asked, reach)) {
      server.cache.commit(asked, *held);
      server.cache.close(*held);
    }
    server.queue.push_back(request);
    begin_next(server);
  }

  void begin_next(FleetServer& server) {
    if (server.computing || server.queue.empty()) return;
    const std::uint32_t request = server.queue.front();
    FleetJob& job = jobs_.at(request);
    job.held = server.cache.open(trace_.requests[request], trace_.requests[request].blocks);
    if (!job.held) {
      ASSERT(server.in_flight > 1, "a request alone fits");
      return;
    }
    server.queue.pop_front();
    server.waiting_ns -= job.estimate.compute_ns;
    const std::uint64_t missing = tokens(request) - tokens(request, job.held->found);
    const std::int64_t takes_ns = compute_ns(std::max<std::uint64_t>(missing, 1));
    server.computing = request;
    server.computed_ns = now_ns_ + takes_ns;
    server.load.busy_ns += takes_ns;
    server.load.tokens_computed += missing;
    count(job, request);
    foresee(server.computed_ns, FleetEventKind::kComputed, request);
  }

  // Where its tokens come from is known when it begins.
  void count(const FleetJob& job, std::uint32_t request) {
    const std::uint64_t found = job.held->found;
    result_.hits.add(trace_.requests[request], found, run_.block_tokens);
    const std::uint64_t found_tokens = tokens(request, found);
    result_.sources.computed += tokens(request) - found_tokens;
    std::uint64_t from_tiers = 0;
    std::uint64_t from = job.estimate.in_memory;
    for (std::size_t i = 0; i < run_.tiers.size(); ++i) {
      const std::uint64_t to = job.estimate.reach[i];
      const std::uint64_t read =
          tokens(request, std::min(to, found)) - tokens(request, std::min(from, found));
      result_.sources.tiers[static_cast<std::size_t>(run_.tiers[i].kind)] += read;
      from_tiers += read;
      from = to;
    }
    result_.sources.memory += found_tokens - from_tiers;
  }

  void computed(std::uint32_t request) {
    FleetJob& job = jobs_.at(request);
    FleetServer& server = servers_[job.server];
    server.cache.commit(trace_.requests[request], *job.held);
    server.computing.reset();
    result_.ttft_ns[request] = now_ns_ - job.arrived_ns;
    result_.span_ns = now_ns_;
    write(job, request);
    const std::uint64_t output = trace_.requests[request].output_tokens;
    const std::int64_t decoding_ns =
        output < 2 ? 0 : duration_ns(static_cast<double>(output - 1), run_.costs.decode_tokens);
    if (decoding_ns > 0) {
      foresee(now_ns_ + decoding_ns, FleetEventKind::kEnded, request);
    } else {
      end(request);
    }
    begin_next(server);
  }

  void end(std::uint32_t request) {
    const auto job = jobs_.find(request);
    FleetServer& server = servers_[job->second.server];
    server.cache.close(*job->second.held);
    --server.in_flight;
    jobs_.erase(job);
  }

  void write(const FleetJob& job, std::uint32_t request) {
    const std::span<const std::uint32_t> kept = this->kept(job.server, request);
    for (std::size_t i = 0; i < run_.tiers.size(); ++i) {
      const FleetTierKind kind = run_.tiers[i].kind;
      BlockLru* const blocks = blocks_of(kind, job.server);
      if (blocks == nullptr) continue;
      const auto fresh = static_cast<std::uint64_t>(std::count_if(
          kept.begin(), kept.end(), [&](std::uint32_t block) { return !blocks->contains(block); }));
      if (fresh == 0) {
        blocks->use(kept);
        continue;
      }
      TransferPath path = write_path(kind, job.server);
      if (path.backlog_ns(now_ns_) > kWriteBacklogMaxNs) {
        traffic(kind).blocks_left_out += fresh;
        continue;
      }
      traffic(kind).blocks_written += fresh;
      foresee(path.send(now_ns_, bytes(fresh)), FleetEventKind::kWritten, request, i);
    }
  }

  FleetTraffic& traffic(FleetTierKind kind) {
    return result_.traffic[static_cast<std::size_t>(kind)];
  }

  const Trace& trace_;
  const BlockNumbers& numbers_;
  FleetRun run_;
  std::vector<std::uint32_t> conversations_;  // [request]
  std::unique_ptr<FleetRouter> router_;
  std::vector<FleetServer> servers_;
  std::optional<BlockLru> store_;  // the shared one
  LinkPair store_link_;
  std::unordered_map<std::uint32_t, FleetJob> jobs_;  // [request]: those in flight
  std::priority_queue<FleetEvent, std::vector<FleetEvent>, std::greater<>> events_;
  std::uint64_t events_seen_ = 0;
  std::int64_t now_ns_ = 0;
  FleetResult result_;

  // The request that arrives, and what was asked about it so far.
  std::uint32_t arriving_ = 0;
  std::uint64_t arrivals_seen_ = 0;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> found_;  // [server]: asked at, found
  std::uint64_t peers_asked_ = 0;
  std::array<std::uint32_t, 2> peers_ = {};  // the best, and the best beside it
};

}  // namespace

Result<FleetResult> run_fleet(const Trace& trace, const BlockNumbers& numbers, const FleetRun& run,
                              const std::function<void(std::uint64_t requests)>& on_progress) {
  const std::uint64_t blocks = std::min(run.capacity_blocks, numbers.unique());
  if (blocks * run.servers > kFleetBlocksMax) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("`capacity`: {} blocks on each of {} servers are more than {} in all",
                             format_grouped(blocks), run.servers, format_grouped(kFleetBlocksMax))};
  }
  ASSIGN_OR_RETURN(const FleetSchedule schedule, schedule_arrivals(trace, run));
  return FleetSimulation(trace, numbers, run).run(schedule, on_progress);
}

}  // namespace pagoda::replay
