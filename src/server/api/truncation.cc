#include "server/api/truncation.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "server/api_error.h"

namespace pagoda::server {
namespace {

constexpr const char* kField = "truncation";
constexpr const char* kTokensField = "truncate_prompt_tokens";

TruncationType type_of(std::string_view name, const std::string& path) {
  if (name == "auto") return TruncationType::kAuto;
  if (name == "middle") return TruncationType::kMiddle;
  if (name == "none" || name == "disabled") return TruncationType::kNone;
  throw ApiError(400,
                 fmt::format("{}: is \"{}\", expected auto, middle, none or disabled", path,
                             name.substr(0, 64)),
                 path);
}

TruncationType read_type(const Fields& fields) {
  const Json* const given = fields.find(kField);
  if (given == nullptr) return TruncationType::kNone;
  const std::string path = fields.path_of(kField);
  if (given->is_string()) return type_of(given->get_ref<const std::string&>(), path);
  if (!given->is_object()) refuse_type(path, *given, "a string or an object");
  const Fields members(*given, path);
  const std::string_view keep = members.text("keep").value_or("system");
  if (keep != "system") {
    const std::string keep_path = members.path_of("keep");
    throw ApiError(400,
                   fmt::format("{}: is \"{}\", expected \"system\"", keep_path, keep.substr(0, 64)),
                   keep_path);
  }
  return type_of(members.required_text("type"), members.path_of("type"));
}

}  // namespace

Truncation read_truncation(const Fields& fields) {
  const Truncation truncation = {read_type(fields), read_last_tokens(fields)};
  if (truncation.last_tokens && truncation.type != TruncationType::kNone) {
    const std::string path = fields.path_of(kTokensField);
    throw ApiError(400, fmt::format("{}: and truncation exclude each other", path), path);
  }
  return truncation;
}

std::optional<std::int64_t> read_last_tokens(const Fields& fields) {
  const auto tokens = fields.integer(kTokensField, Truncation::kAllThatFit, INT32_MAX);
  if (tokens != 0) return tokens;
  const std::string path = fields.path_of(kTokensField);
  throw ApiError(400, fmt::format("{}: is 0, expected -1 or at least 1", path), path);
}

PromptRoom prompt_room(std::uint64_t context, std::optional<std::uint32_t> output, bool gives_way) {
  const auto beside = [&](std::uint64_t tokens) {
    return context - std::min(std::max<std::uint64_t>(tokens, 1), context - 1);
  };
  if (output && !gives_way) return {beside(*output), beside(*output)};
  const std::uint64_t reserved =
      output ? std::min<std::uint64_t>(*output, context / 4) : context / 8;
  return {beside(reserved), context - 1};
}

std::uint64_t tokens_to_keep(std::int64_t last_tokens, std::uint64_t context,
                             const OutputLength& length) {
  if (last_tokens == Truncation::kAllThatFit) {
    return prompt_room(context, length.tokens, false).wanted;
  }
  const auto asked = static_cast<std::uint64_t>(last_tokens);
  const std::uint64_t output = std::max<std::uint64_t>(length.tokens.value_or(1), 1);
  if (asked + output <= context) return asked;
  throw ApiError(400,
                 fmt::format("{}: {} and {} of output make {}, the context holds {}", kTokensField,
                             asked, output, asked + output, context),
                 kTokensField, "context_length_exceeded");
}

void PromptTruncation::set_kept(std::vector<std::uint32_t> indexes, std::size_t messages,
                                std::size_t added) {
  dropped_messages = messages - indexes.size();
  const auto add_run = [&](std::size_t begin, std::size_t end) {
    if (begin == end) return;
    const std::size_t first = begin - added;
    const std::size_t last = end - 1 - added;
    dropped.push_back(
        {first, last, element_path("messages", first), element_path("messages", last)});
  };
  std::size_t begin = 0;
  for (const std::uint32_t index : indexes) {
    add_run(begin, index);
    begin = index + 1;
  }
  add_run(begin, messages);
  kept = std::move(indexes);
}

std::uint64_t PromptTruncation::tokens_kept_of(std::uint64_t tokens) const {
  if (tokens <= gap || !dropped.empty()) return std::min(tokens, gap);
  const std::uint64_t behind = tokens - gap;
  return gap + behind - std::min(behind, dropped_tokens.value_or(behind));
}

Json truncation_json(const PromptTruncation& truncation) {
  Json members = {{"type", truncation.type}, {"limit_tokens", truncation.limit_tokens}};
  members["dropped_tokens"] =
      truncation.dropped_tokens ? Json(*truncation.dropped_tokens) : Json(nullptr);
  if (truncation.dropped.empty()) return members;
  members["dropped_messages"] = truncation.dropped_messages;
  Json runs = Json::array();
  for (const PromptTruncation::Run& run : truncation.dropped) {
    runs.push_back({{"from", run.from}, {"to", run.to}});
  }
  members["dropped"] = std::move(runs);
  return members;
}

}  // namespace pagoda::server
