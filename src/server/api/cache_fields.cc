#include "server/api/cache_fields.h"

#include <fmt/format.h>

#include <algorithm>

#include "server/api_error.h"

namespace pagoda::server {
namespace {

constexpr std::uint32_t kMarkPriority = 50;  // the default of "retain"
constexpr double kTtlSeconds = 30 * 60;

// {"mode": "implicit", "ttl": "30m", "prewarm": true}
void read_cache_options(const Fields& fields, CacheFields& cache) {
  const Json* const object = fields.object("prompt_cache_options");
  if (object == nullptr) return;
  const Fields options(*object, fields.path_of("prompt_cache_options"));
  const std::string_view mode = options.text("mode").value_or("implicit");
  if (mode != "implicit" && mode != "explicit") {
    const std::string path = options.path_of("mode");
    throw ApiError(
        400, fmt::format("{}: is \"{}\", expected \"implicit\" or \"explicit\"", path, mode), path);
  }
  const auto ttl = options.text("ttl");
  if (ttl && mode == "implicit") cache.whole_prompt = read_lifetime(*ttl, kTtlSeconds);
  cache.prewarm = options.boolean("prewarm").value_or(false);
}

std::string shown_seconds(double seconds) { return fmt::format("{:g} s", seconds); }

Json retention_entry(const Breakpoint& asked, const engine::RetainOutcome* outcome,
                     const std::string& budget_option) {
  if (outcome == nullptr) {
    return {{"outcome", "refused"}, {"reason", "the prompt was not computed"}};
  }
  if (!outcome->refused.empty()) {
    std::string reason = outcome->refused;
    if (!budget_option.empty()) reason += fmt::format("; {} gives one", budget_option);
    return {{"outcome", "refused"}, {"asked_tokens", asked.tokens}, {"reason", reason}};
  }
  std::string limit = outcome->limit;
  if (!asked.lifetime.clipped.empty()) {
    if (!limit.empty()) limit += "; ";
    limit += fmt::format("\"{}\" became {}", asked.lifetime.clipped,
                         shown_seconds(asked.lifetime.seconds));
  }
  Json entry = {{"outcome", limit.empty() ? "granted" : "clipped"},
                {"tokens", outcome->tokens},
                {"blocks", outcome->blocks},
                {"seconds", asked.lifetime.seconds},
                {"asked_tokens", asked.tokens}};
  if (!limit.empty()) entry["limit"] = std::move(limit);
  return entry;
}

}  // namespace

CacheFields read_cache_fields(const Fields& fields) {
  CacheFields cache;
  if (const auto retention = fields.text("prompt_cache_retention")) {
    const bool is_plain = *retention == "in_memory" || *retention == "in-memory";
    if (!is_plain) cache.whole_prompt = read_lifetime(*retention, kTtlSeconds);
  }
  read_cache_options(fields, cache);
  // A mark of the body stands behind its last block.
  if (auto mark = read_mark(fields)) cache.whole_prompt = std::move(mark);
  cache.diagnostics = read_diagnostics(fields);
  return cache;
}

std::vector<Breakpoint> breakpoints_of(const CacheFields& fields, std::uint64_t prompt_tokens) {
  std::vector<Breakpoint> breakpoints;
  for (const CacheMark& mark : fields.marks) {
    if (mark.tokens > 0) breakpoints.push_back({mark.tokens, mark.lifetime});
  }
  if (fields.whole_prompt) breakpoints.push_back({prompt_tokens, *fields.whole_prompt});
  return breakpoints;
}

std::vector<engine::RetainParams> retain_params(const std::vector<Breakpoint>& breakpoints) {
  std::vector<engine::RetainParams> params;
  for (const Breakpoint& breakpoint : breakpoints) {
    params.push_back({.tokens = breakpoint.tokens,
                      .time_ns = static_cast<std::int64_t>(breakpoint.lifetime.seconds * 1e9),
                      .priority = kMarkPriority});
  }
  return params;
}

Json cache_retention_json(const CacheFields& fields, std::uint64_t prompt_tokens,
                          const std::vector<engine::RetainOutcome>& outcomes,
                          const std::string& budget_option) {
  Json entries = Json::array();
  const std::vector<Breakpoint> breakpoints = breakpoints_of(fields, prompt_tokens);
  for (std::size_t i = 0; i < breakpoints.size(); ++i) {
    entries.push_back(retention_entry(breakpoints[i], i < outcomes.size() ? &outcomes[i] : nullptr,
                                      budget_option));
  }
  const auto empty = std::count_if(fields.marks.begin(), fields.marks.end(),
                                   [](const CacheMark& mark) { return mark.tokens == 0; });
  if (empty > 0) {
    entries.push_back({{"outcome", "refused"},
                       {"reason", fmt::format("{} marks stand on text that the prompt does not "
                                              "have",
                                              empty)}});
  }
  if (fields.marks_dropped > 0) {
    entries.push_back(
        {{"outcome", "refused"},
         {"reason", fmt::format("{} marks too many: a request has {}, and the last ones count",
                                fields.marks_dropped, kMarksMax)}});
  }
  return entries;
}

std::vector<WrittenShare> written_shares(const std::vector<Breakpoint>& breakpoints,
                                         const std::vector<engine::RetainOutcome>& outcomes,
                                         std::uint64_t cached) {
  struct Kept {
    std::uint64_t tokens;
    double seconds;
  };
  std::vector<Kept> kept;
  for (std::size_t i = 0; i < std::min(breakpoints.size(), outcomes.size()); ++i) {
    if (outcomes[i].refused.empty()) {
      kept.push_back({outcomes[i].tokens, breakpoints[i].lifetime.seconds});
    }
  }
  std::sort(kept.begin(), kept.end(),
            [](const Kept& a, const Kept& b) { return a.tokens < b.tokens; });
  // From the longest prefix on, so that a longer lifetime behind covers what lies before it.
  for (std::size_t i = kept.size(); i-- > 1;) {
    kept[i - 1].seconds = std::max(kept[i - 1].seconds, kept[i].seconds);
  }
  std::vector<WrittenShare> shares;
  std::uint64_t from = cached;
  for (const Kept& prefix : kept) {
    if (prefix.tokens <= from) continue;
    shares.push_back({prefix.seconds, prefix.tokens - from});
    from = prefix.tokens;
  }
  return shares;
}

}  // namespace pagoda::server
