// The simulation of cache_sim.h from the inside: its requests, what they ask of the cache
// (cache_sim.cc), pages that are copied out (cache_sim_pages.cc), and what is verified
// (cache_sim_verify.cc).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "kv/cache_oracle.h"
#include "kv/cache_sim.h"
#include "kv/events/event_mirror.h"
#include "kv/sim_memory.h"

namespace pagoda::kv {

inline std::string text(std::uint64_t number) { return std::to_string(number); }

struct Request {
  Sequence sequence;
  CacheOracle::LookupScope client;
  std::uint64_t public_tokens;         // whole blocks
  std::vector<TokenId> tokens;         // computed
  std::vector<TokenId> plan;           // what it will compute
  std::vector<std::uint64_t> digests;  // of plan
  std::uint64_t tokens_room = 0;       // reserved since the last commit, to be written
  std::vector<Copy> copies;            // not landed yet
};

// A page that is pinned, and what it holds meanwhile.
struct PageOut {
  BlockId block;
  std::vector<std::uint64_t> rows;
};

class Simulation {
 public:
  static constexpr std::uint64_t kBoundedSpace = 2;  // of requests with the policy

  explicit Simulation(const SimOptions& options);

  SimReport run();
  const std::string& history() const { return history_; }

 private:
  // What the cache says before it is asked for blocks.
  struct Asked {
    std::uint64_t needed;
    std::uint64_t available;
    std::uint64_t evicted;
  };

  // Deciding
  bool is_over() const {
    return options_.script ? draws_ >= options_.script->size() : step_ >= options_.operations;
  }
  std::uint64_t random(std::uint64_t bound);
  std::vector<TokenId> random_tokens(std::uint64_t length);
  void extend_plan(Request& request, const std::vector<TokenId>& more);
  CacheScope scope_of(std::uint64_t space, std::uint64_t tenant) {
    if (space == kBoundedSpace) {
      return cache_.scope("space0", salt_of(tenant), {}, kNoOwner, options_.kv_policy).value();
    }
    return cache_.scope("space" + text(space), salt_of(tenant), adapter_of(space)).value();
  }
  static std::string salt_of(std::uint64_t tenant) {
    return tenant == 0 ? "" : "tenant" + text(tenant);
  }
  // What enters block hashes.
  std::string adapter_of(std::uint64_t space) const {
    if (space == kBoundedSpace) return options_.kv_policy.hash_key({});
    return space == 0 ? "" : "adapter";
  }
  // What a group keeps of a request's tokens.
  memory::AttentionSpec spec_of(const Request& request, std::uint32_t group) const {
    const memory::AttentionSpec& own = options_.groups[group];
    return request.client.space == kBoundedSpace ? options_.kv_policy.of(own) : own;
  }

  // Doing (cache_sim.cc)
  void operate();
  void open();
  void admit(const CacheOracle::LookupScope& client, const CacheScope& scope, const Match& match,
             const std::vector<TokenId>& prompt);
  void grow(std::size_t index);
  void compute(Request& request);
  void fork(std::size_t index);
  void close(std::size_t index);
  void clear();
  void pass_time();
  void retain(std::size_t index);
  void squeeze();
  void finish();

  // Memory
  std::uint64_t& row(BlockId block, std::uint64_t token) { return memory_.row(block, token); }
  void write_row(const Request& request, std::uint64_t position);
  void land(Request& request);
  void report_copies();

  // Copying out (cache_sim_pages.cc)
  void pin_pages();
  void unpin_pages();

  // Verifying (cache_sim_verify.cc)
  Asked ask(std::uint64_t needed) const {
    return {needed, cache_.blocks_available(), cache_.stats().blocks_evicted};
  }
  void expect_refusal(const OutOfBlocks& shortage, const Asked& asked);
  void expect_granted(const Asked& asked);
  Match find(const CacheOracle::LookupScope& client, const CacheScope& scope,
             const std::vector<TokenId>& prompt);
  void verify_explanation(const CacheScope& scope, std::span<const TokenId> prompt,
                          const Match& match);
  void verify_hashes(const CacheOracle::LookupScope& client, std::span<const TokenId> prompt,
                     std::span<const NodeId> nodes);
  void compare(BlockId mine, BlockId existing);
  void verify();
  void verify_curve();
  void verify_rows(const Request& request, std::uint32_t group);

  // Events (cache_sim_events.cc)
  void emit_snapshot();
  void follow_events();
  void finish_events();
  void log(const std::string& line) { history_ += text(step_) + ": " + line + "\n"; }
  void fail(const std::string& what);

  SimOptions options_;
  std::optional<EventRing> ring_;
  EventMirror mirror_;
  SnapshotCursor snapshot_;
  Cache cache_;
  CacheOracle oracle_;
  SimMemory memory_;
  BlockHasher hasher_;
  std::vector<Request> requests_;
  std::vector<Copy> pinned_;  // landed or cancelled, not reported yet
  std::vector<PageOut> pages_out_;
  std::uint64_t draws_ = 0;
  std::uint64_t step_ = 0;
  std::string history_;
  SimReport report_;
};

}  // namespace pagoda::kv
