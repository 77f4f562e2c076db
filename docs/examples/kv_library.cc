// The cache as a library: two requests that share a beginning. Links pagoda_kv and nothing else.
#include <cstdio>
#include <vector>

#include "kv/cache.h"

using pagoda::TokenId;
namespace kv = pagoda::kv;

// Stands for a model: whoever owns the memory writes rows through the block table.
void compute(kv::Cache& cache, kv::Sequence& sequence, const std::vector<TokenId>& tokens) {
  const auto room = cache.reserve(sequence, tokens.size());
  if (std::holds_alternative<kv::OutOfBlocks>(room)) {
    std::puts("out of blocks: try again when another request has ended");
    return;
  }
  for (const kv::Copy& copy : std::get<std::vector<kv::Copy>>(room)) cache.copied(copy);
  const std::vector<TokenId> fresh(tokens.begin() + static_cast<long>(sequence.tokens_computed()),
                                   tokens.end());
  // … here the rows of `fresh` are written to the pages that sequence.table(0) names …
  cache.commit(sequence, fresh);
}

// Answers a prompt and says how much of it was there already.
unsigned long serve(kv::Cache& cache, const kv::CacheScope& scope,
                    const std::vector<TokenId>& prompt) {
  const kv::Match match = cache.match(scope, prompt);
  auto outcome = cache.open(scope, match, prompt);
  if (std::holds_alternative<kv::OutOfBlocks>(outcome)) return 0;
  auto& [sequence, copies] = std::get<kv::Opened>(outcome);
  for (const kv::Copy& copy : copies) {
    // … here copy.tokens rows of page copy.from are copied to page copy.to …
    cache.copied(copy);
  }
  compute(cache, sequence, prompt);
  return match.tokens;  // the sequence closes here; its blocks stay until they are evicted
}

int main() {
  kv::Cache cache({.blocks = 64, .block_tokens = 4});
  const kv::CacheScope everyone = cache.scope("model, numerics, format", "").value();
  const kv::CacheScope tenant = cache.scope("model, numerics, format", "tenant-a").value();
  std::vector<TokenId> prompt;
  for (unsigned i = 0; i < 10; ++i) prompt.push_back(TokenId(100 + i));

  const auto first = serve(cache, everyone, prompt);
  const auto again = serve(cache, everyone, prompt);
  prompt.push_back(TokenId(7));
  const auto longer = serve(cache, everyone, prompt);
  const auto as_tenant = serve(cache, tenant, prompt);
  std::printf("matched %lu, %lu, %lu tokens; as a tenant %lu\n", first, again, longer, as_tenant);
  cache.check();
  // Nothing at first; all but the last token; the ten of before; a tenant sees what is public.
  return first == 0 && again == 9 && longer == 10 && as_tenant == 10 ? 0 : 1;
}
