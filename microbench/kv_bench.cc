// The KV cache's own work on one thread, memory of pages not included.
//   kv_bench
// Targets: match of a cached prompt of 100,000 tokens at most 1 ms; allocate and free at most 40 ns
// a block; seal at most 500 ns a block with its name; 256 bytes for a cached block of 16 tokens;
// from 10^3 to 10^6 blocks at most 4x an operation. The last is missed below a root of 10^6
// children (bench_crowd_*): each step there reads memory that is in no processor cache, and one
// such read (bench_one_random_read) takes more than 4 times what the whole search takes in one. The
// argument of a benchmark is the number of blocks in the pool or of children below the root.
#include <benchmark/benchmark.h>
#include <malloc.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/large_array.h"
#include "base/random.h"
#include "kv/cache.h"

namespace pagoda::kv {
namespace {

constexpr std::uint32_t kBlockTokens = 16;
constexpr std::uint64_t kChainBlocks = 50;  // of one cached request: 800 tokens

TokenId random_token(std::uint64_t stream, std::uint64_t index) {
  return TokenId(static_cast<std::uint32_t>(random_bits(1, stream, index) % 128'256));
}

std::vector<TokenId> random_tokens(std::uint64_t stream, std::uint64_t count) {
  std::vector<TokenId> tokens;
  for (std::uint64_t i = 0; i < count; ++i) tokens.push_back(random_token(stream, i));
  return tokens;
}

Sequence open(Cache& cache, const CacheScope& scope, std::span<const TokenId> prompt) {
  auto outcome = cache.open(scope, cache.match(scope, prompt), prompt);
  Opened& opened = std::get<Opened>(outcome);
  for (const Copy& copy : opened.copies) cache.copied(copy);
  return std::move(opened.sequence);
}

void reserve(Cache& cache, Sequence& sequence, std::uint64_t tokens) {
  const auto room = cache.reserve(sequence, tokens);
  ASSERT(std::holds_alternative<std::vector<Copy>>(room), "the benchmark's pool has room");
}

void serve(Cache& cache, const CacheScope& scope, std::span<const TokenId> prompt) {
  Sequence sequence = open(cache, scope, prompt);
  reserve(cache, sequence, prompt.size());
  cache.commit(sequence, prompt.subspan(sequence.tokens_computed()));
}

// A cache full of chains of 50 blocks of random tokens, all idle.
struct FullCache {
  explicit FullCache(std::uint32_t blocks, bool hash_blocks = false, bool remembers = false,
                     EventRing* events = nullptr)
      : cache({.blocks = blocks,
               .block_tokens = kBlockTokens,
               .eviction_records_max = remembers ? blocks : 0,
               .hash_blocks = hash_blocks,
               .events = events,
               .on_deduplicate = {}}),
        scope(cache.scope("model", "").value()) {
    for (std::uint64_t chain = 0; chain < blocks / kChainBlocks; ++chain) {
      serve(cache, scope, chain_tokens(chain));
    }
  }
  static std::vector<TokenId> chain_tokens(std::uint64_t chain) {
    return random_tokens(chain, kChainBlocks * kBlockTokens);
  }
  std::uint64_t chains() const { return cache.pool().blocks() / kChainBlocks; }

  Cache cache;
  CacheScope scope;
};

void set_per_item(benchmark::State& state, const char* name, std::uint64_t items) {
  state.counters[name] =
      benchmark::Counter(static_cast<double>(items), benchmark::Counter::kIsIterationInvariantRate |
                                                         benchmark::Counter::kInvert);
}

void bench_match_100000_tokens(benchmark::State& state) {
  Cache cache({.blocks = 10'000, .block_tokens = kBlockTokens, .on_deduplicate = {}});
  const CacheScope scope = cache.scope("model", "").value();
  const std::vector<TokenId> prompt = random_tokens(0, 100'000);
  serve(cache, scope, prompt);
  for (auto _ : state) {
    const Match match = cache.match(scope, prompt);
    ASSERT(match.tokens == 99'999, "all but the last token is cached");
    benchmark::DoNotOptimize(match.nodes.data());
  }
  state.SetLabel("target: at most 1 ms");
}

// A pool whose free list is in random order, as after a long run.
BlockPool shuffled_pool(std::uint32_t blocks) {
  BlockPool pool(blocks);
  std::vector<BlockId> order;
  while (const auto block = pool.allocate()) order.push_back(*block);
  for (std::size_t i = order.size(); i-- > 1;) {
    std::swap(order[i], order[random_bits(2, 0, i) % (i + 1)]);
  }
  for (const BlockId block : order) pool.drop(block);
  return pool;
}

// `taken` blocks are taken, then given back, again and again.
void bench_allocate_and_free(benchmark::State& state, std::uint64_t taken) {
  BlockPool pool = shuffled_pool(static_cast<std::uint32_t>(state.range(0)));
  std::vector<BlockId> blocks(taken == 0 ? pool.blocks() / 2 : taken);
  for (auto _ : state) {
    for (BlockId& block : blocks) block = pool.allocate().value();
    for (const BlockId block : blocks) pool.drop(block);
  }
  set_per_item(state, "s/block", blocks.size());
  state.SetLabel("target: at most 40 ns a block");
}

// The same through the cache: a request of 50 blocks reserves room and gives it up.
void bench_reserve_and_close(benchmark::State& state) {
  Cache cache({.blocks = static_cast<std::uint32_t>(state.range(0)),
               .block_tokens = kBlockTokens,
               .on_deduplicate = {}});
  const CacheScope scope = cache.scope("model", "").value();
  for (auto _ : state) {
    Sequence sequence = open(cache, scope, {});
    reserve(cache, sequence, kChainBlocks * kBlockTokens);
    cache.close(sequence);
  }
  set_per_item(state, "s/block", kChainBlocks);
  state.SetLabel("target: at most 40 ns a block");
}

// A new request of 50 blocks in a full cache, from match to close: 50 blocks are evicted, 50
// sealed.
void bench_evict_and_seal(benchmark::State& state, bool hash_blocks, bool remembers) {
  FullCache full(static_cast<std::uint32_t>(state.range(0)), hash_blocks, remembers);
  std::uint64_t chain = 1u << 20;
  for (auto _ : state) {
    state.PauseTiming();
    const std::vector<TokenId> prompt = FullCache::chain_tokens(chain++);
    state.ResumeTiming();
    serve(full.cache, full.scope, prompt);
  }
  set_per_item(state, "s/block", kChainBlocks);
}

void read_all(EventRing& ring) {
  ring.publish();
  ring.read(UINT64_MAX, [](const CacheEvent& event, std::span<const TokenId>) {
    std::uint64_t sequence = event.sequence;
    benchmark::DoNotOptimize(sequence);
  });
}

// What a block that is sealed is given besides its place.
enum class Sealed { kBare, kNamed, kTold };

// Sealing alone, in a full cache: the last token of a block is committed, as when generating. The
// reading of events is another thread's work.
void bench_seal(benchmark::State& state, Sealed sealed) {
  EventRing ring(1u << 16, kBlockTokens);
  FullCache full(static_cast<std::uint32_t>(state.range(0)), sealed != Sealed::kBare, false,
                 sealed == Sealed::kTold ? &ring : nullptr);
  std::uint64_t chain = 1u << 20;
  for (auto _ : state) {
    state.PauseTiming();
    const std::vector<TokenId> tokens = FullCache::chain_tokens(chain++);
    Sequence sequence = open(full.cache, full.scope, {});
    reserve(full.cache, sequence, tokens.size());
    read_all(ring);
    state.ResumeTiming();
    for (std::uint64_t done = 0; done < tokens.size(); done += kBlockTokens) {
      full.cache.commit(sequence, std::span(tokens).subspan(done, kBlockTokens));
    }
    ring.publish();
    state.PauseTiming();
    full.cache.close(sequence);
    state.ResumeTiming();
  }
  set_per_item(state, "s/block", kChainBlocks);
  if (sealed == Sealed::kNamed) state.SetLabel("target: at most 500 ns a block");
}

// One part of a snapshot, as a server tells it between two steps.
void bench_snapshot_part(benchmark::State& state) {
  constexpr std::uint32_t kNodes = 256;
  EventRing ring(1u << 16, kBlockTokens);
  FullCache full(static_cast<std::uint32_t>(state.range(0)), true, false, &ring);
  SnapshotCursor cursor;
  for (auto _ : state) {
    state.PauseTiming();
    read_all(ring);
    if (cursor.ended) cursor = {};
    state.ResumeTiming();
    full.cache.events().emit_snapshot(cursor, kNodes);
  }
  set_per_item(state, "s/block", kNodes);
}

void bench_match_and_open(benchmark::State& state) {
  FullCache full(static_cast<std::uint32_t>(state.range(0)));
  std::vector<std::vector<TokenId>> prompts;
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(full.chains(), 2000); ++i) {
    prompts.push_back(FullCache::chain_tokens(random_bits(3, 0, i) % full.chains()));
  }
  std::size_t at = 0;
  for (auto _ : state) {
    // One token more than is cached, so that whole blocks are shared and none is copied.
    std::vector<TokenId>& prompt = prompts[at++ % prompts.size()];
    prompt.resize(kChainBlocks * kBlockTokens + 1);
    const Sequence sequence = open(full.cache, full.scope, prompt);
    ASSERT(sequence.tokens_computed() == kChainBlocks * kBlockTokens, "it is cached");
  }
  set_per_item(state, "s/block", kChainBlocks);
}

// Why a prompt of 50 blocks missed, in a cache that remembers as many records as it has blocks:
// none of it was ever there, all of it left, or all of it is there.
enum class Asked : std::uint8_t { kNew, kGone, kThere };
void bench_explain(benchmark::State& state, Asked asked) {
  FullCache full(static_cast<std::uint32_t>(state.range(0)), false, true);
  const std::uint64_t chains = full.chains();
  for (std::uint64_t i = 0; i < chains; ++i) {
    serve(full.cache, full.scope, FullCache::chain_tokens((1u << 20) + i));
  }
  std::vector<std::vector<TokenId>> prompts;
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(chains, 2000); ++i) {
    const std::uint64_t which = random_bits(3, 0, i) % chains;
    const std::uint64_t first = asked == Asked::kNew    ? 1u << 21
                                : asked == Asked::kGone ? 0
                                                        : 1u << 20;
    prompts.push_back(FullCache::chain_tokens(first + which));
  }
  std::size_t at = 0;
  for (auto _ : state) {
    const std::vector<TokenId>& prompt = prompts[at++ % prompts.size()];
    benchmark::DoNotOptimize(
        full.cache.explain(full.scope, prompt, full.cache.match(full.scope, prompt)));
  }
}

// What an operation that misses every processor cache is made of: one read of 64 bytes whose
// address the read before it gave, among as many as there are children.
void bench_one_random_read(benchmark::State& state) {
  struct alignas(kCacheLineBytes) Line {
    std::uint32_t next;
  };
  const auto lines = static_cast<std::uint32_t>(state.range(0));
  std::vector<std::uint32_t> order(lines);
  std::iota(order.begin(), order.end(), 0u);
  for (std::size_t i = lines; i-- > 1;) std::swap(order[i], order[random_bits(5, 0, i) % (i + 1)]);
  LargeArray<Line> memory(lines);
  for (std::uint32_t i = 0; i < lines; ++i) memory[order[i]].next = order[(i + 1) % lines];
  std::uint32_t at = 0;
  for (auto _ : state) benchmark::DoNotOptimize(at = memory[at].next);
}

// A root with many children of 16 random tokens.
struct Crowd {
  explicit Crowd(std::uint32_t children) : tree({.hash_seed = 5}), root(tree.add_root()) {
    for (std::uint32_t i = 0; i < children; ++i) tree.insert(root, kPublic, child(i));
  }
  static std::vector<TokenId> child(std::uint64_t number) {
    return random_tokens(number, kBlockTokens);
  }
  PrefixTree tree;
  NodeId root;
};

// Random children, so many that those of a large crowd are in no processor cache when their turn
// comes; side by side in memory, so that reading them is not what is measured.
class Probes {
 public:
  Probes(std::uint64_t children, std::uint64_t first) {
    for (std::uint64_t i = 0; i < kCount; ++i) {
      const auto child = Crowd::child(first + random_bits(4, 0, i) % children);
      tokens_.insert(tokens_.end(), child.begin(), child.end());
    }
  }
  std::span<TokenId> operator[](std::uint64_t i) {
    return std::span(tokens_).subspan(i % kCount * kBlockTokens, kBlockTokens);
  }
  static constexpr std::uint64_t kCount = 1u << 18;

 private:
  std::vector<TokenId> tokens_;
};

void bench_crowd_find(benchmark::State& state) {
  const auto children = static_cast<std::uint32_t>(state.range(0));
  const Crowd crowd(children);
  Probes wanted(children, 0);
  SearchWork work;
  std::size_t at = 0;
  for (auto _ : state) {
    const auto found = crowd.tree.best_child(crowd.root, kPublic, wanted[at++], work);
    ASSERT(found->tokens_shared == kBlockTokens, "every probe is a child");
  }
  state.counters["nodes"] = benchmark::Counter(static_cast<double>(work.nodes_visited),
                                               benchmark::Counter::kAvgIterations);
}

void bench_crowd_best_partial(benchmark::State& state) {
  const auto children = static_cast<std::uint32_t>(state.range(0));
  const Crowd crowd(children);
  Probes wanted(children, 0);
  for (std::uint64_t i = 0; i < Probes::kCount; ++i) {
    wanted[i][1 + wanted[i][0].value() % 15] = TokenId(200'000);
  }
  SearchWork work;
  std::size_t at = 0;
  for (auto _ : state) {
    const auto found = crowd.tree.best_child(crowd.root, kPublic, wanted[at++], work);
    ASSERT(found->tokens_shared < kBlockTokens, "no probe is a child");
  }
  state.counters["nodes"] = benchmark::Counter(static_cast<double>(work.nodes_visited),
                                               benchmark::Counter::kAvgIterations);
}

void bench_crowd_insert_and_erase(benchmark::State& state) {
  const auto children = static_cast<std::uint32_t>(state.range(0));
  Crowd crowd(children);
  Probes fresh(1u << 20, 1u << 24);
  std::size_t at = 0;
  for (auto _ : state) {
    const NodeId node = crowd.tree.insert(crowd.root, kPublic, fresh[at++]);
    crowd.tree.erase(node);
  }
}

double heap_bytes() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<double>(info.uordblks + info.hblkhd);
}

// All memory of a full cache, divided by its blocks.
void bench_bytes_per_cached_block(benchmark::State& state) {
  const double before = heap_bytes();
  const FullCache full(static_cast<std::uint32_t>(state.range(0)), state.range(1) != 0);
  ASSERT(full.cache.pool().blocks_idle() == full.cache.pool().blocks(), "every block is cached");
  state.counters["bytes/block"] =
      (heap_bytes() - before) / static_cast<double>(full.cache.pool().blocks());
  for (auto _ : state) benchmark::DoNotOptimize(full.cache.pool().blocks_idle());
  state.SetLabel("target: at most 256 bytes");
}

// The same at its worst: every block of 16 tokens out of two, all below one root, part everywhere.
void bench_bytes_per_crowded_block(benchmark::State& state) {
  const auto blocks = static_cast<std::uint32_t>(state.range(0));
  const double before = heap_bytes();
  Cache cache({.blocks = blocks,
               .block_tokens = kBlockTokens,
               .hash_blocks = state.range(1) != 0,
               .on_deduplicate = {}});
  const CacheScope scope = cache.scope("model", "").value();
  for (std::uint32_t i = 0; i < blocks; ++i) {
    std::vector<TokenId> tokens;
    for (std::uint32_t t = 0; t < kBlockTokens; ++t) tokens.emplace_back(i >> t & 1);
    serve(cache, scope, tokens);
  }
  ASSERT(cache.pool().blocks_idle() == blocks, "every block is cached");
  state.counters["bytes/block"] = (heap_bytes() - before) / blocks;
  for (auto _ : state) benchmark::DoNotOptimize(cache.pool().blocks_idle());
  state.SetLabel("target: at most 256 bytes");
}

void sizes(benchmark::internal::Benchmark* bench) {
  bench->RangeMultiplier(10)->Range(1000, 1'000'000);
}

BENCHMARK(bench_match_100000_tokens)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(bench_allocate_and_free, a_request, kChainBlocks)->Apply(sizes);
// Nothing is in any processor cache.
BENCHMARK_CAPTURE(bench_allocate_and_free, half_the_pool, 0)->Apply(sizes);
BENCHMARK(bench_reserve_and_close)->Apply(sizes);
BENCHMARK_CAPTURE(bench_seal, bare, Sealed::kBare)->Apply(sizes);
BENCHMARK_CAPTURE(bench_seal, named, Sealed::kNamed)->Apply(sizes);
BENCHMARK_CAPTURE(bench_evict_and_seal, bare, false, false)->Apply(sizes);
BENCHMARK_CAPTURE(bench_evict_and_seal, named, true, false)->Apply(sizes);
BENCHMARK_CAPTURE(bench_evict_and_seal, remembered, false, true)->Apply(sizes);
BENCHMARK_CAPTURE(bench_explain, what_is_new, Asked::kNew)->Apply(sizes);
BENCHMARK_CAPTURE(bench_explain, what_left, Asked::kGone)->Apply(sizes);
BENCHMARK_CAPTURE(bench_explain, what_is_there, Asked::kThere)->Apply(sizes);
BENCHMARK_CAPTURE(bench_seal, told, Sealed::kTold)->Apply(sizes);
BENCHMARK(bench_snapshot_part)->Apply(sizes);
BENCHMARK(bench_match_and_open)->Apply(sizes);
BENCHMARK(bench_one_random_read)->Apply(sizes);
BENCHMARK(bench_crowd_find)->Apply(sizes);
BENCHMARK(bench_crowd_best_partial)->Apply(sizes);
BENCHMARK(bench_crowd_insert_and_erase)->Apply(sizes);
BENCHMARK(bench_bytes_per_cached_block)
    ->ArgsProduct({{1000, 10'000, 100'000, 1'000'000}, {0, 1}})
    ->Iterations(1);
BENCHMARK(bench_bytes_per_crowded_block)->ArgsProduct({{1u << 16}, {0, 1}})->Iterations(1);

}  // namespace
}  // namespace pagoda::kv
