#include "engine/request.h"

#include <fmt/format.h>

#include <algorithm>

#include "kv/hash/block_hash.h"
#include "kv/retention.h"
#include "kv/session_table.h"

namespace pagoda::engine {
namespace {

Error out_of_range(std::string message) { return {ErrorCode::kOutOfRange, std::move(message)}; }

// Returns how many tokens prompt and output may have together.
std::uint64_t context_limit(const Request& request, const RequestLimits& limits,
                            const TenantLimits& tenant) {
  const std::uint64_t context = context_under(policy_of(request, limits), limits);
  const std::uint64_t tokens = tenant_context(tenant);
  return tokens > 0 ? std::min(context, tokens) : context;
}

Status check_lengths(const Request& request, const RequestLimits& limits,
                     const TenantLimits& tenant) {
  if (request.prompt.empty()) {
    return Error{ErrorCode::kInvalidArgument, "prompt: has no tokens, expected at least 1"};
  }
  std::uint64_t context = context_limit(request, limits, tenant);
  // Pages are selected behind a prompt that was computed as a whole.
  const bool selects = policy_of(request, limits).selects_pages();
  const std::uint64_t whole = lengths_of(request, 0).prompt;
  if (selects && whole >= limits.context_tokens) context = std::min(context, limits.context_tokens);
  if (request.prompt.size() >= context) {
    return out_of_range(fmt::format(
        "prompt: has {} tokens, but the context holds {} including at least one generated token",
        request.prompt.size(), context));
  }
  // A prompt that is longer than the whole allowance is never admitted: retrying is of no use.
  const std::uint64_t per_minute = tenant.tokens_per_minute;
  if (per_minute > 0 && request.prompt.size() > per_minute && !request.explain_only) {
    return out_of_range(fmt::format(
        "prompt: has {} tokens, but this tenant may use {} tokens per minute (tokens_per_minute)",
        request.prompt.size(), per_minute));
  }
  if (!request.end.max_tokens) return ok_status();
  const std::uint64_t output = *request.end.max_tokens;
  if (output > context - request.prompt.size()) {
    return out_of_range(
        fmt::format("max_tokens: {} and the prompt's {} tokens make {}, but the context holds {}",
                    output, request.prompt.size(), output + request.prompt.size(), context));
  }
  if (tenant.output_tokens > 0 && output > tenant.output_tokens) {
    return out_of_range(
        fmt::format("max_tokens: is {}, the tenant's limit is {}", output, tenant.output_tokens));
  }
  return ok_status();
}

Status check_retain(const RetainParams& params, std::uint64_t prompt_tokens) {
  if (params.tokens == 0 || params.tokens > prompt_tokens) {
    return out_of_range(fmt::format("retain: {} tokens, expected 1 to the prompt's {}",
                                    params.tokens, prompt_tokens));
  }
  if (params.time_ns <= 0 || params.time_ns > kRetainNsMax) {
    return out_of_range(
        fmt::format("retain: {} ns, expected 1 to {}", params.time_ns, kRetainNsMax));
  }
  if (params.priority > kv::kRetainPriorityMax) {
    return out_of_range(fmt::format("retain: priority {}, expected 0 to {}", params.priority,
                                    kv::kRetainPriorityMax));
  }
  return ok_status();
}

}  // namespace

kv::KvPolicy policy_of(const Request& request, const RequestLimits& limits) {
  return request.kv_policy.value_or(limits.kv_policy);
}

kv::SequenceLengths lengths_of(const Request& request, std::uint64_t tokens) {
  const std::uint64_t prompt = request.kv_policy_prompt_tokens;
  return {.prompt = prompt > 0 ? prompt : request.prompt.size(), .tokens = tokens};
}

Status check_policy(const kv::KvPolicy& policy, const RequestLimits& limits) {
  if (policy.is_full()) return ok_status();
  if (!limits.policies_refused.empty()) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("kv_policy: {}: {}", policy.name(), limits.policies_refused)};
  }
  if (policy.selects_pages() && !limits.selections_refused.empty()) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("kv_policy: {}: {}", policy.name(), limits.selections_refused)};
  }
  if (policy.selects_pages()) RETURN_IF_ERROR(check_selection(policy));
  if (policy.tokens_kept_max() <= limits.context_tokens) return ok_status();
  return out_of_range(fmt::format("kv_policy: {} keeps {} tokens, but the context holds {}",
                                  policy.name(), policy.tokens_kept_max(), limits.context_tokens));
}

std::uint64_t context_under(const kv::KvPolicy& policy, const RequestLimits& limits) {
  if (policy.is_full() || !limits.policies_refused.empty()) return limits.context_tokens;
  if (!policy.selects_pages()) {
    const bool fits = policy.tokens_kept_max() <= limits.policy_tokens_max;
    return fits ? kBoundedTokensMax : limits.context_tokens;
  }
  // A mask bounds distances too. Pages that were selected stay at their positions, which must be
  // among those that the model was trained on; the KV cache need not hold them all.
  const std::uint64_t kept =
      std::max<std::uint64_t>(policy.budget, std::uint64_t{policy.observed} + limits.block_tokens);
  const bool is_bounded = policy.choice == kv::PageChoice::kH2o &&
                          kept + limits.block_tokens <= limits.policy_tokens_max;
  return is_bounded ? std::max(limits.context_tokens, limits.context_asked) : limits.context_tokens;
}

std::uint64_t tenant_context(const TenantLimits& tenant) {
  const std::uint64_t context = tenant.context_tokens;
  if (tenant.kv_tokens == 0) return context;
  return context == 0 ? tenant.kv_tokens : std::min(context, tenant.kv_tokens);
}

bool computes_whole_prompt(const Request& request) {
  return request.sampling.prompt_logprobs.has_value() || request.pooling == Pooling::kMean;
}

std::uint32_t sequences_max(const RequestLimits& limits, const TenantLimits& tenant) {
  const std::uint32_t most = std::min(kSequencesPerRequestMax, limits.sequences_max);
  return tenant.sequences_running > 0 ? std::min(most, tenant.sequences_running) : most;
}

Status check_request(const Request& request, const RequestLimits& limits,
                     const TenantLimits& tenant) {
  const std::uint32_t most = sequences_max(limits, tenant);
  if (request.sampling.n < 1 || request.sampling.n > most) {
    return out_of_range(fmt::format("n: is {}, expected 1 to {}{}", request.sampling.n, most,
                                    most < sequences_max(limits) ? " of this tenant" : ""));
  }
  RETURN_IF_ERROR(check_sampling(request.sampling, limits.vocabulary));
  RETURN_IF_ERROR(check_stop(request.end, limits.vocabulary));
  RETURN_IF_ERROR(check_policy(policy_of(request, limits), limits));
  RETURN_IF_ERROR(check_lengths(request, limits, tenant));
  for (std::size_t i = 0; i < request.prompt.size(); ++i) {
    if (request.prompt[i].value() >= limits.vocabulary) {
      return out_of_range(fmt::format("prompt[{}]: token id {} is not in the vocabulary of {}", i,
                                      request.prompt[i].value(), limits.vocabulary));
    }
  }
  if (request.constraint && request.constraint->vocabulary().size() != limits.vocabulary) {
    return out_of_range(fmt::format("constraint: is for a vocabulary of {}, expected {}",
                                    request.constraint->vocabulary().size(), limits.vocabulary));
  }
  if (request.cache_salt.size() > kv::kSaltBytesMax) {
    return out_of_range(fmt::format("cache_salt: has {} bytes, expected at most {}",
                                    request.cache_salt.size(), kv::kSaltBytesMax));
  }
  if (request.prompt_logprobs_start >= request.prompt.size()) {
    return out_of_range(
        fmt::format("prompt_logprobs_start: is {}, expected less than the prompt's "
                    "{} tokens",
                    request.prompt_logprobs_start, request.prompt.size()));
  }
  if (request.kv_policy_prompt_tokens > request.prompt.size()) {
    return out_of_range(fmt::format("kv_policy_prompt_tokens: is {}, the prompt has {} tokens",
                                    request.kv_policy_prompt_tokens, request.prompt.size()));
  }
  if (request.retain) RETURN_IF_ERROR(check_retain(*request.retain, request.prompt.size()));
  if (request.pooling != Pooling::kNone && limits.hidden_width == 0) {
    return Error{ErrorCode::kUnsupported, "pooling: this device computes no embeddings"};
  }
  if (request.pooling != Pooling::kNone && request.sampling.n != 1) {
    return out_of_range(fmt::format("n: is {}, expected 1 with pooling", request.sampling.n));
  }
  if (request.session.size() > kv::SessionTable::kKeyBytesMax) {
    return out_of_range(fmt::format("session: has {} bytes, expected at most {}",
                                    request.session.size(), kv::SessionTable::kKeyBytesMax));
  }
  if (request.breakpoints.size() > kBreakpointsMax) {
    return out_of_range(fmt::format("breakpoints: are {}, expected at most {}",
                                    request.breakpoints.size(), kBreakpointsMax));
  }
  for (const RetainParams& breakpoint : request.breakpoints) {
    RETURN_IF_ERROR(check_retain(breakpoint, request.prompt.size()));
  }
  if (request.timeout_ns < 0) {
    return out_of_range(fmt::format("timeout: is {} ns, expected at least 0", request.timeout_ns));
  }
  return ok_status();
}

std::uint64_t context_of(const Request& request, const RequestLimits& limits,
                         const TenantLimits& tenant) {
  std::uint64_t output = limits.context_tokens;
  if (limits.output_tokens_default > 0) output = limits.output_tokens_default;
  if (tenant.output_tokens_default > 0) output = tenant.output_tokens_default;
  output = std::max<std::uint64_t>(output, request.end.min_tokens);
  if (tenant.output_tokens > 0) output = std::min(output, tenant.output_tokens);
  if (request.end.max_tokens) output = *request.end.max_tokens;
  return std::min(request.prompt.size() + output, context_limit(request, limits, tenant));
}

}  // namespace pagoda::engine
