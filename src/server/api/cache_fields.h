// Reads the fields of a body about the cache beside its marks, as OpenAI and Anthropic name them:
// how long its prompt stays, whether it only fills the cache, and which session it is of.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/reply.h"
#include "engine/request.h"
#include "server/api/cache_diagnostics.h"
#include "server/api/cache_marks.h"
#include "server/fields.h"
#include "server/json.h"

namespace pagoda::server {

struct CacheFields {
  std::vector<CacheMark> marks = {};  // in the order of the prompt, at most kMarksMax
  std::uint64_t marks_dropped = 0;    // because there were more
  // How long the whole prompt stays: Anthropic's "cache_control" of the body, OpenAI's
  // "prompt_cache_retention", and the "ttl" of its implicit mode.
  std::optional<CacheLifetime> whole_prompt = {};
  bool prewarm = false;  // the prompt is computed, and nothing is answered
  DiagnosticsField diagnostics = {};
  Json diagnosis = Json::object();  // members of the reply
  bool explains_miss = false;  // the engine explains for the diagnosis, not because it was asked

  bool asks_to_keep() const { return whole_prompt || !marks.empty() || marks_dropped > 0; }
};

// Throws ApiError.
CacheFields read_cache_fields(const Fields& fields);

// A prefix that is asked to be kept.
struct Breakpoint {
  std::uint64_t tokens = 0;
  CacheLifetime lifetime;
};
// Returns those of one prompt, shorter ones first; marks at which nothing stands are left out.
std::vector<Breakpoint> breakpoints_of(const CacheFields& fields, std::uint64_t prompt_tokens);
std::vector<engine::RetainParams> retain_params(const std::vector<Breakpoint>& breakpoints);

// One entry for each breakpoint, with its outcome: "granted", "clipped" with the limit, or
// "refused" with the reason.
//
//   [{"outcome": "clipped", "tokens": 1024, "blocks": 64, "seconds": 300.0, "asked_tokens": 2000,
//     "limit": "..."}]
Json cache_retention_json(const CacheFields& fields, std::uint64_t prompt_tokens,
                          const std::vector<engine::RetainOutcome>& outcomes,
                          const std::string& budget_option);

// How many of the prompt's tokens that the request wrote are kept for how long: what lies behind
// the first `cached` tokens, by the longest lifetime that covers it.
struct WrittenShare {
  double seconds = 0;
  std::uint64_t tokens = 0;
};
std::vector<WrittenShare> written_shares(const std::vector<Breakpoint>& breakpoints,
                                         const std::vector<engine::RetainOutcome>& outcomes,
                                         std::uint64_t cached);

}  // namespace pagoda::server
