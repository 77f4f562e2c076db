#include "text/end_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace pagoda::text {
namespace {

// The keys besides EOS, which the vocabulary has read.
constexpr std::array<std::string_view, 5> kKeys = {
    "tokenizer.ggml.eot_token_id",     "tokenizer.ggml.eom_token_id",
    "tokenizer.ggml.fim_pad_token_id", "tokenizer.ggml.fim_rep_token_id",
    "tokenizer.ggml.fim_sep_token_id",
};

constexpr std::array<std::string_view, 29> kTexts = {
    "<|eot_id|>",
    "<|eom_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|calls|>",
    "<|flush|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "</s>",
    "<eos>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<turn|>",
    "<|tool_response>",
    "<\xEF\xBD\x9C"
    "end\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>",
    "[e~[",
    "<|fim_pad|>",
    "<fim-pad>",
    "<fim_pad>",
    "<|fim_repo|>",
    "<fim-repo>",
    "<|repo_name|>",
    "<|file_sep|>",
};

class Found {
 public:
  explicit Found(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {}

  void add(TokenId id) { ids_.push_back(id); }
  void remove(std::string_view text) {
    std::erase_if(ids_, [&](TokenId id) { return vocabulary_.texts[id.value()] == text; });
  }
  bool has(std::string_view text) const {
    return std::any_of(ids_.begin(), ids_.end(),
                       [&](TokenId id) { return vocabulary_.texts[id.value()] == text; });
  }
  std::vector<TokenId> take() && { return std::move(ids_); }

 private:
  const Vocabulary& vocabulary_;
  std::vector<TokenId> ids_;
};

std::vector<TokenId> find_by_text(const Vocabulary& vocabulary) {
  Found found(vocabulary);
  for (std::uint32_t i = 0; i < vocabulary.size(); ++i) {
    const std::string_view text = vocabulary.texts[i];
    if (std::find(kTexts.begin(), kTexts.end(), text) != kTexts.end()) found.add(TokenId(i));
  }
  // In these vocabularies the token closes a part of an output, not the output.
  const bool harmony = found.has("<|return|>") && found.has("<|call|>");
  const bool solar = found.has("<|calls|>") && found.has("<|flush|>");
  if (harmony || solar) found.remove("<|end|>");
  if (found.has("<|tool_response>")) found.remove("</s>");
  return std::move(found).take();
}

}  // namespace

Result<std::vector<TokenId>> find_end_tokens(const gguf::Metadata& metadata,
                                             Vocabulary& vocabulary) {
  std::vector<TokenId> ids = find_by_text(vocabulary);
  for (const TokenId id : ids) {
    if (vocabulary.type(id) == TokenType::kControl) continue;
    vocabulary.types[id.value()] = TokenType::kControl;
    vocabulary.warnings.push_back(
        fmt::format("{}: token {} '{}' ends a generation but is not marked as a control token: "
                    "treated as one",
                    metadata.source(), id.value(), vocabulary.texts[id.value()]));
  }
  for (const std::string_view key : kKeys) {
    ASSIGN_OR_RETURN(const std::optional<TokenId> id, special_id(metadata, key, vocabulary));
    if (id.has_value()) ids.push_back(*id);
  }
  if (vocabulary.eos.has_value()) ids.push_back(*vocabulary.eos);
  constexpr std::string_view kMore = "pagoda.tokenizer.end_token_ids";
  if (metadata.contains(kMore)) {
    ASSIGN_OR_RETURN(const std::vector<std::int64_t> more, metadata.integers(kMore));
    for (const std::int64_t id : more) {
      if (id >= 0 && static_cast<std::size_t>(id) < vocabulary.size()) {
        ids.push_back(TokenId(static_cast<std::uint32_t>(id)));
      }
    }
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

}  // namespace pagoda::text
