// A cache of identities alone: what a policy would find with so many blocks.
//
// It follows a sample of all blocks, the same ones every time, and has room for the same share of a
// cache's blocks: a scaled model of that cache (spatial sampling, as in Waldspurger et al., "Cache
// modeling and optimization using miniature simulations", ATC 2017). Policies are the cache's own
// (evict/), and so is the rule that the tail of a chain leaves before its head: the block above a
// sampled one is the nearest sampled one before it. With all blocks sampled it finds, request after
// request, exactly what the cache does.
//
//   open    a request asks for blocks: the first ones that are there are found, the others come
//   close   it ends: what it generated comes, and all of it was used now, from tail to head
//
// Memory is taken at the start: 40 bytes a block, 16 in the queue and what the policy takes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kv/evict/eviction_queue.h"
#include "kv/evict/order_queues.h"
#include "kv/evict/policy.h"
#include "kv/evict/request_stats.h"

namespace pagoda::kv {

struct SampledBlock {
  std::uint64_t identity = 0;
  std::uint64_t tokens_before = 0;
};

class ShadowCache {
 public:
  ShadowCache(const EvictionPolicy& policy, std::uint32_t blocks);

  // Blocks head first; no more than there is room for are looked at. Of `request` the priority
  // counts; what was found of it is this cache's own answer. `goes_on`: after the last of them the
  // request has blocks that are not sampled. Returns how many were found.
  std::uint64_t open(std::span<const SampledBlock> blocks, const RequestStats& request,
                     std::int64_t time_s, bool goes_on);
  // `ends_here`: the last of them is the last block of the request.
  void close(std::span<const SampledBlock> blocks, const RequestStats& request, std::int64_t time_s,
             bool ends_here);

  std::uint32_t blocks() const { return static_cast<std::uint32_t>(nodes_.size()); }
  // Stops the program when what is remembered contradicts itself (README: V3). Linear.
  void check() const;

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  struct Node {
    std::uint64_t identity = 0;
    Tick last_use = 0;
    std::uint32_t chain = kNone;   // the next of the same head; of an unused node: the next unused
    std::uint32_t parent = kNone;  // the nearest sampled block before it
    std::uint32_t visit = 0;       // the last one that it was part of
    std::uint16_t children = 0;
    bool is_here = false;
    bool is_queued = false;  // in queue_
  };
  static_assert(sizeof(Node) == 32);

  std::uint32_t find(std::uint64_t identity) const;
  void follow(std::span<const SampledBlock> blocks);
  void fill(std::span<const SampledBlock> blocks, const RequestStats& request, std::int64_t time_s);
  std::uint32_t insert(const SampledBlock& block, std::uint32_t parent);
  bool evict_one();
  void erase(std::uint32_t at);
  void end_visit();
  bool is_evictable(std::uint32_t at) const;
  EvictionQueue::Verdict judge(BlockId block) const;
  void queue_if_evictable(std::uint32_t at);
  BlockStats stats(BlockId block) const;
  Use use_of(const SampledBlock& block, const RequestStats& request, std::int64_t time_s) const;

  const EvictionPolicy& policy_;
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> heads_;  // of chains, by identity
  std::vector<Tick> created_;         // [node], or empty: the policy does not read it
  EvictionQueue queue_;               // when the policy is a score
  std::optional<OrderQueues> ordered_;
  std::vector<std::uint32_t> path_;  // the nodes of the request that is served, head first
  std::uint32_t unused_ = kNone;
  std::uint32_t unused_count_ = 0;
  std::uint32_t visit_ = 1;  // nodes of this visit stay
  Tick now_ = 0;
};

}  // namespace pagoda::kv
