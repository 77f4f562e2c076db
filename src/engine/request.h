// Request is what a client asks of the engine: prompt tokens, and how output tokens are sampled and
// bounded.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/token_id.h"
#include "engine/logits_reader.h"
#include "engine/output_watch.h"
#include "engine/sampling_params.h"
#include "engine/stop_criteria.h"
#include "engine/tenant.h"
#include "kv/hash/block_hash.h"
#include "kv/kv_policy.h"
#include "kv/tiers/page_store.h"
#include "speculate/drafter.h"
#include "structured/matcher.h"

namespace pagoda::engine {

using RequestId = StrongId<struct RequestTag, std::uint64_t>;

inline constexpr std::int64_t kRetainNsMax = std::int64_t{7} * 24 * 3600 * 1'000'000'000;

inline constexpr std::size_t kBreakpointsMax = 5;

// RetainParams says how much of a prompt stays in the cache, and for how long.
struct RetainParams {
  std::uint64_t tokens = 0;    // tokens of the prompt, from its first
  std::int64_t time_ns = 0;    // counted from when the prompt is computed
  std::uint32_t priority = 0;  // up to kv::kRetainPriorityMax; lower priorities are evicted sooner
};

// Pooling makes one vector, an embedding, of the hidden states that a prompt has after the model's
// last norm.
enum class Pooling : std::uint8_t {
  kNone,
  kLast,  // that of the last token
  kMean,  // the mean over all tokens, which needs the whole prompt computed
};

// A request may act on the cache instead of computing tokens.
enum class CacheAction : std::uint8_t {
  kNone,
  kPrefetch,  // pages of the prompt come from tiers into the pool
  kDemote,    // pages that only this prompt has are copied to tiers, and evicted first
};

struct Request {
  std::vector<TokenId> prompt;
  SamplingParams sampling;  // prompt_logprobs computes the whole prompt
  // With sampling.prompt_logprobs: tokens of the prompt before this position are not scored.
  std::uint64_t prompt_logprobs_start = 0;
  // With sampling.prompt_logprobs: reads the logits of every scored token; nullptr: nobody does.
  std::shared_ptr<LogitsReader> prompt_logits;
  // Without max_tokens a sequence gets the tenant's default, else that of RequestLimits, at least
  // its min_tokens, and no more tokens than fit.
  StopParams end;
  // The grammar that the output must match, at its start; each sequence goes on with a copy.
  // nullptr: any text.
  std::shared_ptr<const structured::Matcher> constraint;
  // Says where the text of a sequence ends; nullptr: tokens alone end it.
  std::shared_ptr<OutputWatch> watch = {};

  TenantId tenant;
  std::int32_t priority = 0;        // lower runs first
  std::string cache_salt;           // empty: public
  std::uint64_t public_tokens = 0;  // tokens of a salted prompt that are shared with everyone
  // Which tokens' KV the sequence keeps; nothing: as RequestLimits::kv_policy says.
  std::optional<kv::KvPolicy> kv_policy = {};
  // A KV policy that selects pages takes tokens of the prompt behind so many for output, which is
  // known already. 0: the whole prompt is prompt.
  std::uint64_t kv_policy_prompt_tokens = 0;
  // Hashes of the prompt's whole blocks, where blocks have hashes outside: Engine::submit()
  // computes them.
  std::vector<kv::BlockHash> block_hashes;
  // The session that the request is of (kv/session_table.h), within its salt; empty: of none.
  std::string session = {};
  std::uint64_t first_turn_tokens = 0;  // of the prompt, up to the end of the first user message
  std::int64_t timeout_ns = 0;          // from submission; 0: none
  std::optional<RetainParams> retain;
  // Prefixes that the client marked as worth keeping: each is retained as far as budgets allow.
  std::vector<RetainParams> breakpoints = {};  // at most kBreakpointsMax
  // Speculation changes no answer. At most so many draft tokens in a step, 0 for none; nothing: as
  // the engine's options say.
  std::optional<std::uint32_t> draft_tokens_max = {};
  // The output that the client expects, for drafts; requests may share it. nullptr: none.
  std::shared_ptr<speculate::PredictedText> prediction = {};
  Pooling pooling = Pooling::kNone;  // the record has an embedding; of one sequence
  bool explain = false;              // the record says why not more of the prompt was cached
  CacheAction action = CacheAction::kNone;
  // Another server goes on with the prompt: the record comes once its whole blocks are where other
  // servers find them, or cannot be brought there in time.
  bool hands_over = false;
  // Says where pages of the prompt are: they are fetched from there, where that is allowed.
  std::optional<kv::PageOrigin> origin = {};
  bool explain_only = false;  // true: explain, and compute nothing
};

// RequestLimits bound the requests of every tenant.
struct RequestLimits {
  std::uint32_t vocabulary = 0;
  std::uint64_t context_tokens = 0;  // --max-model-len, as far as the KV cache holds it
  std::uint32_t sequences_max = 1;   // --max-num-seqs
  std::uint32_t hidden_width = 0;    // of embeddings; 0: the runner gives none
  // The output of requests that set none, where their tenant has no default; 0: what fits.
  std::uint64_t output_tokens_default = 0;  // --max-output-tokens
  kv::KvPolicy kv_policy = {};              // of requests that name none: --kv-policy
  std::uint64_t policy_tokens_max = 0;      // kept of sequences without an end
  std::string_view policies_refused = {};   // why there are no KV policies here; empty: there are
  // Why policies that select pages are refused; empty: they are not.
  std::string_view selections_refused = {};
  std::uint32_t block_tokens = 16;  // of the cache: pages are dropped by blocks
  std::uint64_t context_asked = 0;  // --max-model-len where the KV cache holds less; 0: it holds it
};

// Under a KV policy a sequence may pass the context up to here: tokens and the tree keep some 30
// bytes of each, whatever KV is kept.
inline constexpr std::uint64_t kBoundedTokensMax = std::uint64_t{1} << 20;

// Returns how many tokens prompt and output of a tenant's sequence may have; 0: as the model's.
std::uint64_t tenant_context(const TenantLimits& tenant);

// Returns the policy that the request runs under.
kv::KvPolicy policy_of(const Request& request, const RequestLimits& limits);
// Returns the lengths of a sequence of the request that has so many tokens, as a KV policy counts
// them.
kv::SequenceLengths lengths_of(const Request& request, std::uint64_t tokens);
// The error names the policy and why requests cannot run under it.
Status check_policy(const kv::KvPolicy& policy, const RequestLimits& limits);
// Returns how many tokens prompt and output of a request may have together, whoever asks.
std::uint64_t context_under(const kv::KvPolicy& policy, const RequestLimits& limits);

// Does the request compute its whole prompt, whatever is cached?
bool computes_whole_prompt(const Request& request);

// Returns how many sequences one prompt may be given: the limit of `n`.
std::uint32_t sequences_max(const RequestLimits& limits, const TenantLimits& tenant = {});

// The error names the first field that is out of its range.
Status check_request(const Request& request, const RequestLimits& limits,
                     const TenantLimits& tenant);

// Returns the most tokens that prompt and output get together.
std::uint64_t context_of(const Request& request, const RequestLimits& limits,
                         const TenantLimits& tenant);

}  // namespace pagoda::engine
