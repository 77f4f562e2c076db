// Refuses known fields that would change the output and are not supported: ignoring them would give
// a wrong output.
#include <fmt/format.h>

#include <array>
#include <string_view>

#include "server/api/completion_fields.h"
#include "server/api_error.h"

namespace pagoda::server {
namespace {

// These are refused with any value except null, false and empty ones, which ask for nothing.
constexpr std::array<std::string_view, 26> kUnsupported = {
    "audio",
    "functions",
    "function_call",
    "web_search_options",
    "suffix",
    "guided_whitespace_pattern",
    "guided_decoding_backend",
    "bad_words",
    "allowed_token_ids",
    "logits_processors",
    "logit_processors",
    "prompt_embeds",
    "truncate_prompt_tokens",
    "use_beam_search",
    "chat_template",
    "kv_transfer_params",
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
    if (value != nullptr && *value != 1) refuse(fields.path_of(name));
  }
  refuse_modalities(fields);
  if (fields.integer("best_of", 1, INT32_MAX).value_or(choices) != choices) {
    refuse(fields.path_of("best_of"), ", except when it is n");
  }
}

}  // namespace pagoda::server
