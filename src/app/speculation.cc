#include "app/speculation.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "text/strict_json.h"

namespace pagoda::app {
namespace {

using Json = nlohmann::ordered_json;
using speculate::DraftMethod;
using speculate::SpeculationOptions;

// Methods of vLLM and others that need heads trained for the model, or a GPU.
constexpr std::string_view kOfOthers[] = {"eagle",
                                          "eagle3",
                                          "extract_hidden_states",
                                          "medusa",
                                          "mtp",
                                          "dflash",
                                          "mlp_speculator",
                                          "deepseek_mtp",
                                          "dspark",
                                          "ngram_gpu",
                                          "mimo_mtp",
                                          "glm4_moe_mtp",
                                          "qwen3_next_mtp",
                                          "custom_class",
                                          "ernie_mtp",
                                          "pangu_ultra_moe_mtp",
                                          "longcat_flash_mtp",
                                          "nextn"};

Error refused(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message)}; }

std::string method_list() {
  std::string names;
  for (const std::string_view name : speculate::kMethodNames) names += std::string(name) + ", ";
  return names + "none";
}

Status add_method(std::string_view name, SpeculationOptions& options) {
  if (name == "none") return ok_status();
  if (const auto method = speculate::find_method(name)) {
    options.methods.insert(*method);
    return ok_status();
  }
  const bool is_known = std::ranges::find(kOfOthers, name) != std::end(kOfOthers);
  return refused(fmt::format("method {} {}, expected some of {}", name,
                             is_known ? "is not supported here" : "is unknown", method_list()));
}

Status check_draft_model(const SpeculationOptions& options) {
  const bool drafts = options.methods.contains(DraftMethod::kDraftModel);
  if (drafts == !options.draft_model.empty()) return ok_status();
  return refused(drafts ? "method draft_model needs a model: "
                          R"({"method": "draft_model", "model": "FILE"})"
                        : "model is there, but draft_model is not among the methods");
}

// Reads names with commas between them.
Status add_methods(std::string_view names, SpeculationOptions& options) {
  while (true) {
    const std::size_t comma = std::min(names.find(','), names.size());
    RETURN_IF_ERROR(add_method(names.substr(0, comma), options));
    if (comma == names.size()) return ok_status();
    names.remove_prefix(comma + 1);
  }
}

template <class Number>
Status read_number(const Json& json, const char* key, double least, double most, Number& value) {
  const auto found = json.find(key);
  if (found == json.end() || found->is_null()) return ok_status();
  const bool is_whole = !std::is_integral_v<Number> || found->is_number_integer();
  const double number = found->is_number() ? found->template get<double>() : least - 1;
  if (!is_whole || number < least || number > most) {
    return refused(fmt::format("{} is {}, expected {} to {}", key, found->dump(), least, most));
  }
  value = static_cast<Number>(number);
  return ok_status();
}

Status read_method(const Json& json, SpeculationOptions& options) {
  const auto method = json.find("method");
  if (method == json.end() || method->is_null()) {
    if (json.contains("model")) return add_method("draft_model", options);
    return refused("method is missing");
  }
  if (method->is_string()) return add_methods(method->get<std::string>(), options);
  if (!method->is_array()) return refused("method is no name and no list of names");
  for (const Json& name : *method) {
    if (!name.is_string()) return refused("method is no list of names");
    RETURN_IF_ERROR(add_method(name.get<std::string>(), options));
  }
  return ok_status();
}

Status check_keys(const Json& json) {
  constexpr std::string_view kKeys[] = {"method",
                                        "model",
                                        "num_speculative_tokens",
                                        "prompt_lookup_min",
                                        "prompt_lookup_max",
                                        "suffix_decoding_max_tree_depth",
                                        "suffix_decoding_max_cached_requests",
                                        "suffix_decoding_max_spec_factor",
                                        "suffix_decoding_min_token_prob"};
  for (const auto& [key, value] : json.items()) {
    if (std::ranges::find(kKeys, key) != std::end(kKeys)) continue;
    return refused(fmt::format("{} is not supported here", key));
  }
  return ok_status();
}

// Exactly the method draft_model needs a model.
Status read_draft_model(const Json& json, SpeculationOptions& options) {
  const auto model = json.find("model");
  if (model != json.end() && !model->is_null()) {
    if (!model->is_string() || model->get<std::string>().empty()) {
      return refused("model is no file, folder or name");
    }
    options.draft_model = model->get<std::string>();
  }
  return check_draft_model(options);
}

Status read_lengths(const Json& json, SpeculationOptions& options) {
  RETURN_IF_ERROR(read_number(json, "num_speculative_tokens", 1, speculate::kDraftTokensMax,
                              options.tokens_max));
  constexpr double kLookupMax = 1024;
  std::uint32_t least = 0;
  std::uint32_t most = 0;
  RETURN_IF_ERROR(read_number(json, "prompt_lookup_min", 1, kLookupMax, least));
  RETURN_IF_ERROR(read_number(json, "prompt_lookup_max", 1, kLookupMax, most));
  if (least > 0 || most > 0) {  // one alone stands for both, as in vLLM
    options.lookup_min = least > 0 ? least : most;
    options.lookup_max = most > 0 ? most : least;
  }
  if (options.lookup_min > options.lookup_max) {
    return refused(fmt::format("prompt_lookup_min is {}, expected at most prompt_lookup_max, {}",
                               options.lookup_min, options.lookup_max));
  }
  RETURN_IF_ERROR(
      read_number(json, "suffix_decoding_max_tree_depth", 3, kLookupMax, options.suffix_depth));
  RETURN_IF_ERROR(
      read_number(json, "suffix_decoding_max_cached_requests", 0, 1e9, options.suffix_requests));
  RETURN_IF_ERROR(
      read_number(json, "suffix_decoding_max_spec_factor", 0, 1e3, options.suffix_factor));
  return read_number(json, "suffix_decoding_min_token_prob", 0, 1, options.suffix_probability_min);
}

}  // namespace

SpeculationOptions default_speculation() {
  SpeculationOptions options;
  options.methods =
      speculate::MethodSet(DraftMethod::kTree, DraftMethod::kSuffix, DraftMethod::kPrediction);
  return options;
}

Result<SpeculationOptions> parse_speculation(std::string_view text) {
  SpeculationOptions options;
  if (!text.starts_with('{')) {
    RETURN_IF_ERROR(add_methods(text, options));
    RETURN_IF_ERROR(check_draft_model(options));
    return options;
  }
  ASSIGN_OR_RETURN(const Json json, text::parse_strict_json(text));
  RETURN_IF_ERROR(read_method(json, options));
  RETURN_IF_ERROR(check_keys(json));
  RETURN_IF_ERROR(read_draft_model(json, options));
  RETURN_IF_ERROR(read_lengths(json, options));
  return options;
}

Result<SpeculationOptions> parse_llama_speculation(std::string_view text) {
  SpeculationOptions options;
  while (true) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view name = text.substr(0, comma);
    if (name == "ngram-simple" || name == "ngram-map-k" || name == "ngram-map-k4v" ||
        name == "ngram-mod") {
      options.methods.insert(DraftMethod::kSuffix);
    } else if (name == "draft-simple") {
      options.methods.insert(DraftMethod::kDraftModel);  // whose model another flag names
    } else if (name != "none") {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("{} is not supported here, expected none, "
                               "ngram-simple, ngram-map-k, ngram-map-k4v, ngram-mod or "
                               "draft-simple",
                               name)};
    }
    if (comma == text.size()) return options;
    text.remove_prefix(comma + 1);
  }
}

std::string speculation_name(const SpeculationOptions& options) {
  std::string names;
  for (std::size_t i = 0; i < speculate::kMethodCount; ++i) {
    if (!options.methods.contains(static_cast<DraftMethod>(i))) continue;
    names += (names.empty() ? "" : ", ") + std::string(speculate::kMethodNames[i]);
    if (static_cast<DraftMethod>(i) == DraftMethod::kDraftModel) {
      names += fmt::format(" {}", options.draft_model);
    }
  }
  return names.empty() ? "off" : names;
}

}  // namespace pagoda::app
