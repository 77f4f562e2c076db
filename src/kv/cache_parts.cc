#include "kv/cache_parts.h"

#include <algorithm>

namespace pagoda::kv {

CacheParts::CacheParts(const CacheOptions& options)
    : options_(options),
      pool_(options.blocks),
      tree_({.block_tokens = options.block_tokens,
             .groups = static_cast<std::uint32_t>(options.groups.size()),
             .hash_seed = options.hash_seed}),
      salts_(options.hash_seed),
      identities_({.enabled = options.reads_identities(),
                   .hash_seed = options.hash_seed,
                   .nodes = nodes_expected()},
                  tree_, salts_),
      hashes_({.enabled = options.hashes_blocks(),
               .indexed = options.find_by_hash,
               .nodes = nodes_expected()},
              tree_, salts_),
      events_(options.events, tree_, hashes_),
      history_({.records_max = options.eviction_records_max, .blocks = options.blocks}, tree_,
               identities_, clock_),
      retention_({.blocks_account_max = options.retain_blocks_max,
                  .blocks_max = options.blocks / 2,
                  .node_blocks = tree_.groups(),
                  .nodes = nodes_expected()},
                 salts_),
      sessions_({.enabled = options.sessions && options.share,
                 .timeout_ns = options.session_timeout_ns,
                 .nodes = nodes_expected()},
                salts_),
      evictor_(options_, nodes_expected(),
               {.pool = pool_,
                .tree = tree_,
                .salts = salts_,
                .retention = retention_,
                .sessions = sessions_,
                .events = events_,
                .history = history_,
                .identities = identities_,
                .clock = clock_}),
      lookup_(tree_),
      explainer_({.tree = tree_,
                  .salts = salts_,
                  .namespaces = namespaces_,
                  .lookup = lookup_,
                  .identities = identities_,
                  .history = history_,
                  .share = options.share}),
      curve_(options_,
             {.tree = tree_, .salts = salts_, .identities = identities_, .clock = clock_}) {
  tree_.reserve(nodes_expected());
}

// A resident node has a page of every full group.
std::size_t CacheParts::nodes_expected() const {
  const auto full = std::count(options_.groups.begin(), options_.groups.end(),
                               memory::AttentionSpec{.window = 0});
  return options_.blocks / std::max<std::size_t>(1, static_cast<std::size_t>(full)) + 1;
}

CacheStats CacheParts::stats() const {
  return {.blocks_deduplicated = blocks_deduplicated_,
          .blocks_evicted = evictor_.blocks_evicted(),
          .blocks_evicted_by_cause = evictor_.blocks_evicted_by_cause(),
          .pages_dropped = pages_dropped_};
}

void CacheParts::check() const {
  pool_.check();
  tree_.check();
  curve_.check();
  retention_.check();
  sessions_.check();
  history_.check();
  evictor_.check();
}

}  // namespace pagoda::kv
