// Refuses known fields that would change the output and are not supported: ignoring them would give
// a wrong output. Names those that nobody knows, which are ignored.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/ascii.h"
#include "server/api/completion_fields.h"
#include "server/api/structured_fields.h"
#include "server/api_error.h"

namespace pagoda::server {
namespace {

// These are refused with any value except null, false and empty ones, which ask for nothing.
constexpr std::array<std::string_view, 25> kUnsupported = {
    "audio",
    "functions",
    "function_call",
    "web_search_options",
    "suffix",
    "guided_whitespace_pattern",
    "guided_decoding_backend",
    "grammar_lazy",
    "bad_words",
    "allowed_token_ids",
    "logits_processors",
    "logit_processors",
    "prompt_embeds",
    "use_beam_search",
    "chat_template",
    "mm_processor_kwargs",
    "thinking_token_budget",
    "mirostat",
    "dynatemp_range",
    "dry_multiplier",
    "xtc_probability",
    "samplers",
    "repetition_detection",
    "image_data",
    "multi_modal_data",
};

// These are refused likewise, except for 1, which asks for nothing.
constexpr std::array<std::string_view, 4> kUnsupportedFactors = {"repeat_penalty", "typical_p",
                                                                 "tfs_z", "length_penalty"};

// Fields of a body that a completion reads.
constexpr auto kRead = std::to_array<std::string_view>({
    "add_generation_prompt",
    "add_special_tokens",
    "best_of",
    "bootstrap_host",
    "bootstrap_port",
    "bootstrap_room",
    "cache_control",
    "cache_explain",
    "cache_public_upto",
    "cache_salt",
    "chat_template_kwargs",
    "continue_final_message",
    "diagnostics",
    "documents",
    "echo",
    "enable_thinking",
    "frequency_penalty",
    "grammar",
    "guided_choice",
    "guided_grammar",
    "guided_json",
    "guided_regex",
    "ignore_eos",
    "include_stop_str_in_output",
    "json_schema",
    "kv_policy",
    "kv_transfer_params",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "min_p",
    "min_tokens",
    "modalities",
    "model",
    "n",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "priority",
    "prompt",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "prompt_logprobs",
    "reasoning",
    "reasoning_effort",
    "repetition_penalty",
    "response_format",
    "retain",
    "return_token_ids",
    "seed",
    "skip_special_tokens",
    "speculative",
    "stop",
    "stop_token_ids",
    "stream",
    "stream_options",
    "structured_outputs",
    "temperature",
    "thinking",
    "tool_choice",
    "tools",
    "top_k",
    "top_logprobs",
    "top_p",
    "truncate_prompt_tokens",
    "truncation",
    "user",
});

template <std::size_t kCount>
bool has(const std::array<std::string_view, kCount>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool asks_for_nothing(const Json& value) {
  if (value.is_boolean()) return !value.get<bool>();
  if (value.is_number()) return value.get<double>() == 0;
  return value.is_string() ? value.get_ref<const std::string&>().empty() : value.empty();
}

[[noreturn]] void refuse(const std::string& path, std::string_view more = "") {
  throw ApiError(400, fmt::format("{}: is not supported{}", path, more), path,
                 "unsupported_parameter");
}

void refuse_modalities(const Fields& fields) {
  const Json* const modalities = fields.array("modalities");
  if (modalities == nullptr) return;
  for (std::size_t i = 0; i < modalities->size(); ++i) {
    if ((*modalities)[i] != "text") {
      refuse(element_path(fields.path_of("modalities"), i), ", except \"text\"");
    }
  }
}

}  // namespace

void refuse_unsupported(const Fields& fields, std::uint32_t choices) {
  for (const std::string_view name : kUnsupported) {
    const Json* const value = fields.find(name);
    if (value != nullptr && !asks_for_nothing(*value)) refuse(fields.path_of(name));
  }
  for (const std::string_view name : kUnsupportedFactors) {
    const Json* const value = fields.find(name);
    const std::string path = fields.path_of(name);
    const bool has_ours = path == "repeat_penalty";
    if (value != nullptr && *value != 1) {
      refuse(path, has_ours ? "; its name here is repetition_penalty" : "");
    }
  }
  refuse_modalities(fields);
  if (fields.integer("best_of", 1, INT32_MAX).value_or(choices) != choices) {
    refuse(fields.path_of("best_of"), ", except when it is n");
  }
}

bool is_plain_name(std::string_view name) {
  constexpr std::size_t kNameBytesMax = 40;
  const auto is_plain = [](char c) { return is_ascii_letter(c) || is_ascii_digit(c) || c == '_'; };
  return !name.empty() && name.size() <= kNameBytesMax &&
         std::all_of(name.begin(), name.end(), is_plain);
}

std::vector<std::string> ignored_fields(const Json& body, std::span<const std::string_view> own) {
  std::vector<std::string> ignored;
  for (const auto& [name, value] : body.items()) {
    const bool is_own = std::find(own.begin(), own.end(), name) != own.end();
    const bool is_known =
        is_own || has(kRead, name) || has(kUnsupported, name) || has(kUnsupportedFactors, name);
    const bool is_empty = value == "" || (value.is_array() && value.empty());
    const bool asks_in_vain = is_empty && has(kStructuredFields, name);
    if ((is_known && !asks_in_vain) || value.is_null() || !is_plain_name(name)) continue;
    if (ignored.size() == kIgnoredNamesMax) break;
    ignored.push_back(name);
  }
  return ignored;
}

}  // namespace pagoda::server
