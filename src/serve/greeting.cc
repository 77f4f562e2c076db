#include "serve/greeting.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "app/kv_dtype.h"
#include "app/speculation.h"
#include "base/byte_size.h"
#include "engine/engine.h"
#include "terminal/messages.h"

namespace pagoda::serve {
namespace {

// The KV memory that a draft model takes beside the model's.
std::string draft_cache_of(const engine::Backend& backend) {
  const engine::Backend* const draft = backend.draft_backend();
  if (draft == nullptr) return {};
  return fmt::format(", whose KV cache is {} tokens in {} ({})", draft->kv_tokens(),
                     app::kv_dtype_name(draft->page_layout().elements),
                     format_byte_size(static_cast<double>(draft->kv_bytes())));
}

// Says what each rank holds, and what ranks send to each other for a token; empty with one.
std::string ranks_line(const engine::Backend& backend) {
  std::string text;
  for (const engine::RankMemory& rank : backend.ranks()) {
    text += fmt::format("{}{} of weights and {} of KV", text.empty() ? "ranks: " : "; ",
                        format_byte_size(static_cast<double>(rank.weight_bytes)),
                        format_byte_size(static_cast<double>(rank.kv_bytes)));
  }
  if (text.empty()) return {};
  return fmt::format("{}; {} exchanged for a token\n", text,
                     format_byte_size(static_cast<double>(backend.bytes_exchanged_per_token())));
}

// The memory plan: weights, workspace and KV, and what that is enough for. `pagoda plan` says it
// beforehand.
std::string memory_of(const app::ServedSource& source, const engine::Backend& backend,
                      std::uint64_t context_tokens) {
  const std::optional<std::int64_t> weights = source.weights_in_file();
  const std::uint64_t workspace = backend.workspace_bytes();
  const std::uint64_t requests = backend.sequences_at(std::max<std::uint64_t>(context_tokens, 1));
  return fmt::format(
      "memory: {}{}KV cache {}: {} request{} of {} tokens at once",
      weights
          ? fmt::format("weights {} in the file, ", format_byte_size(static_cast<double>(*weights)))
          : "",
      workspace > 0
          ? fmt::format("workspace {}, ", format_byte_size(static_cast<double>(workspace)))
          : "",
      format_byte_size(static_cast<double>(backend.kv_bytes())), format_grouped(requests),
      requests == 1 ? "" : "s", format_grouped(context_tokens));
}

std::string steps_line(const sched::SchedulerOptions& steps, std::uint32_t http_threads) {
  return fmt::format("steps: at most {} tokens of {} sequences, {}; {} connection threads\n",
                     format_grouped(steps.batched_tokens_max), format_grouped(steps.sequences_max),
                     steps.itl_target_s > 0
                         ? fmt::format("ITL target {:g} ms", steps.itl_target_s * 1e3)
                         : "no ITL target",
                     http_threads);
}

}  // namespace

std::string speculation_of(const engine::Backend& backend) {
  return app::speculation_name(backend.core_options().speculation);
}

void print_greeting(const GreetingFacts& facts) {
  const auto& [server, model, source, backend, sampling, http_threads, has_keys, tier_set] = facts;
  if (backend.context_asked()) {
    terminal::print_warning(
        fmt::format("the context is {} tokens, not {}: the cache holds no more; give it "
                    "more with `kv_cache_memory_bytes`",
                    model.context_tokens(), *backend.context_asked()));
  }
  const std::string address = server.local_address();
  fmt::print("pagoda serves {} on {}{}\n", model.name(), server.address(),
             address == server.address() ? "" : ", which is every address of this machine");
  const std::string choice = source.context_choice();
  const std::string kernel_set = backend.kernel_set();
  fmt::print("context {} tokens{}, KV cache {} tokens ({}), {}{}\n", model.context_tokens(),
             choice.empty() ? "" : fmt::format(" ({})", choice), backend.kv_tokens(),
             format_byte_size(static_cast<double>(backend.kv_bytes())), backend.device_name(),
             kernel_set.empty() ? "" : fmt::format(", kernels {}", kernel_set));
  fmt::print("{}\n", memory_of(source, backend, model.context_tokens()));
  fmt::print("{}", ranks_line(backend));
  fmt::print("{}", steps_line(backend.core_options().scheduler, http_threads));
  if (sampling.fields.any()) {
    fmt::print("sampling where a request does not say: {} ({})\n", sampling_text(sampling.fields),
               terminal::worded(sampling.source));
  }
  const std::uint64_t output = model.engine.limits().output_tokens_default;
  if (output > 0) {
    fmt::print("{}", terminal::worded(fmt::format("output of a request that names no limit: at "
                                                  "most {} tokens (`max_output_tokens`)\n",
                                                  output)));
  }
  const kv::KvPolicy policy = model.engine.limits().kv_policy;
  if (!policy.is_full()) {
    const engine::RequestLimits& limits = model.engine.limits();
    const bool passes = engine::context_under(policy, limits) > limits.context_tokens;
    fmt::print("KV policy {}: a sequence keeps {} tokens {}\n", policy.name(),
               policy.tokens_kept_max(),
               policy.selects_pages() ? "once its prompt is computed, in whole pages"
               : passes               ? "at most, and may pass the context"
                        : "at most, and ends with the context, as the cache is small");
  }
  fmt::print("speculation {}{}\n", speculation_of(backend), draft_cache_of(backend));
  std::fflush(stdout);  // a remote store may take a second to say whether it is there
  if (tier_set != nullptr) fmt::print("{}", terminal::worded(tier_set->greeting()));
  const bool chats = model.chat_template.has_value();
  fmt::print("try: curl {}{}{} -H 'Content-Type: application/json' -d '{}'\n", address,
             chats ? "/v1/chat/completions" : "/v1/completions",
             has_keys ? " -H \"Authorization: Bearer $KEY\"" : "",
             chats ? R"({"messages": [{"role": "user", "content": "What is a pagoda?"}]})"
                   : R"({"prompt": "Once upon a time", "max_tokens": 64})");
  std::fflush(stdout);
}

}  // namespace pagoda::serve
