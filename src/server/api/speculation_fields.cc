#include "server/api/speculation_fields.h"

#include <fmt/format.h>

#include <string>

#include "server/api_error.h"

namespace pagoda::server {
namespace {

constexpr const char* kSpeculative = "speculative";
constexpr const char* kDottedTokensMax = "speculative.n_max";
constexpr const char* kPrediction = "prediction";
constexpr std::int64_t kDraftFieldMax = INT32_MAX;

std::optional<std::uint32_t> read_tokens_max(const Fields& fields) {
  std::optional<std::int64_t> most = fields.integer(kDottedTokensMax, 0, kDraftFieldMax);
  const Json* const asked = fields.find(kSpeculative);
  if (asked != nullptr && asked->is_object()) {
    const Fields inner(*asked, fields.path_of(kSpeculative));
    if (const auto tokens = inner.integer("n_max", 0, kDraftFieldMax)) most = tokens;
  } else if (asked != nullptr && asked->is_boolean()) {
    if (!asked->get<bool>()) most = 0;
  } else if (asked != nullptr) {
    refuse_type(fields.path_of(kSpeculative), *asked, "a boolean or an object");
  }
  if (!most) return std::nullopt;
  return static_cast<std::uint32_t>(*most);
}

// A string, or an array of {"type": "text", "text": "…"}.
std::string read_content(const Fields& prediction) {
  const Json& content = prediction.require("content");
  const std::string path = prediction.path_of("content");
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) refuse_type(path, content, "a string or an array of parts");
  std::string text;
  for (std::size_t i = 0; i < content.size(); ++i) {
    if (!content[i].is_object()) refuse_type(element_path(path, i), content[i], "an object");
    const Fields part(content[i], element_path(path, i));
    const Json& words = part.require("text");
    if (!words.is_string()) refuse_type(part.path_of("text"), words, "a string");
    text += words.get_ref<const std::string&>();
  }
  return text;
}

std::shared_ptr<speculate::PredictedText> read_prediction(const Fields& fields,
                                                          const ServedModel& model,
                                                          const engine::Request& request) {
  const Json* const asked = fields.object(kPrediction);
  if (asked == nullptr) return nullptr;
  const Fields prediction(*asked, fields.path_of(kPrediction));
  const std::string_view type = prediction.text("type").value_or("content");
  if (type != "content") {
    const std::string path = prediction.path_of("type");
    throw ApiError(400, path + ": expected \"content\"", path);
  }
  const std::string content = read_content(prediction);
  const std::uint64_t tokens_max = model.context_tokens(request);
  // No answer is longer than the context, and no draft refuses a request.
  for (std::string_view said = content;; said = said.substr(0, said.size() / 2)) {
    auto tokens =
        model.tokenizer.encode_within(said, {.special = false, .add_bos_eos = false}, tokens_max);
    if (tokens) return std::make_shared<speculate::PredictedText>(*std::move(tokens));
  }
}

}  // namespace

void read_speculation(const Fields& fields, const ServedModel& model, CompletionRequest& request) {
  request.engine.draft_tokens_max = read_tokens_max(fields);
  request.engine.prediction = read_prediction(fields, model, request.engine);
}

Json speculation_json(const engine::DraftCounts& drafts) {
  return {{"drafts", drafts.drafts},
          {"draft_tokens", drafts.tokens},
          {"accepted_tokens", drafts.accepted}};
}

}  // namespace pagoda::server
