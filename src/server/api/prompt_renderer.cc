#include "server/api/prompt_renderer.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "chat/turns.h"
#include "server/api/completion_fields.h"
#include "server/api_error.h"
#include "text/strict_json.h"

namespace pagoda::server {
namespace {

// The limit for a connection's thread: some milliseconds, which is enough for conversations of 64
// KiB in current templates.
constexpr text::jinja::RenderLimits kShort = {.steps = 50'000, .bytes = 16U << 20};

// A shortened prompt with more bytes than this for each token of the room counts as too long and is
// not rendered.
constexpr std::uint64_t kTokenBytesMax = 64;

// The smallest number of ranges without which the text is not beyond all measure.
std::size_t fewest_by_bytes(std::span<const std::uint64_t> range_bytes, std::uint64_t bytes,
                            std::uint64_t bytes_max) {
  std::size_t count = 0;
  while (count < range_bytes.size() && (count == 0 || bytes > bytes_max)) {
    bytes -= range_bytes[count++];
  }
  return count;
}

std::vector<std::uint64_t> bytes_of_messages(const Json& messages) {
  std::vector<std::uint64_t> bytes;
  for (const Json& message : messages) bytes.push_back(chat::text_bytes(message));
  return bytes;
}

std::vector<std::uint64_t> json_bytes_of_messages(const Json& messages) {
  std::vector<std::uint64_t> bytes;
  for (const Json& message : messages) bytes.push_back(sizeof(Json) + text::json_bytes(message));
  return bytes;
}

// Template text counts with the message behind it. Where there are too many tokens to be counted,
// four bytes are taken for one.
std::vector<std::uint64_t> tokens_of_messages(const std::optional<text::PromptTokens>& whole,
                                              std::vector<std::uint64_t> bytes) {
  if (!whole) {
    for (std::uint64_t& size : bytes) size /= 4;
    return bytes;
  }
  std::vector<std::uint64_t> tokens(bytes.size(), 0);
  std::uint64_t of_template = 0;
  for (const text::Origin& origin : whole->origins) {
    ++of_template;
    if (origin.message >= tokens.size()) continue;
    tokens[origin.message] += std::exchange(of_template, 0);
  }
  return tokens;
}

std::vector<std::uint64_t> sizes_of(std::span<const chat::MessageRange> ranges,
                                    std::span<const std::uint64_t> messages) {
  std::vector<std::uint64_t> sizes;
  for (const chat::MessageRange& range : ranges) {
    const auto of_range = messages.subspan(range.begin, range.end - range.begin);
    sizes.push_back(std::accumulate(of_range.begin(), of_range.end(), std::uint64_t{0}));
  }
  return sizes;
}

// The first token of a message that stood behind one that was left out.
std::uint64_t first_token_behind_gap(std::span<const text::Origin> origins,
                                     std::span<const std::uint32_t> kept) {
  std::uint32_t before = 0;  // messages that stand where they stood
  while (before < kept.size() && kept[before] == before) ++before;
  const auto first = std::find_if(origins.begin(), origins.end(), [&](const text::Origin& origin) {
    return origin.message != text::Origin::kNoMessage && origin.message >= before;
  });
  return static_cast<std::uint64_t>(first - origins.begin());
}

}  // namespace

DroppableMessages DroppableMessages::of(const Json& messages, TruncationType type) {
  if (type == TruncationType::kNone) return {};
  const bool is_middle = type == TruncationType::kMiddle;
  return {chat::droppable_ranges(messages,
                                 is_middle ? chat::DropOrder::kMiddle : chat::DropOrder::kOldest)};
}

void DroppableMessages::add_in_front(std::size_t messages) {
  added += messages;
  for (chat::MessageRange& range : ranges) {
    range.begin += messages;
    range.end += messages;
  }
}

std::optional<RenderedPrompt> PromptRenderer::render(const PromptLimits& limits,
                                                     const DroppableMessages& droppable) {
  const bool may_drop = limits.truncation != TruncationType::kNone;
  text::OriginText text = rendered();
  auto tokens = text::tokenise_prompt_within(text, model_.tokenizer,
                                             may_drop ? limits.room.wanted : limits.room.most);
  if (tokens) return RenderedPrompt{std::move(text), *std::move(tokens)};
  const bool is_counted =
      limits.room.most < model_.context_tokens() && text.bytes().size() <= kRefusedBytesMax;
  if (!may_drop && !is_counted) return std::nullopt;
  if (!terms_.may_take_long) throw TakesLong();
  const auto whole =
      text::tokenise_prompt_within(text, model_.tokenizer, counted_tokens_max(model_));
  if (!may_drop) {
    refuse_beyond(limits.room.most, "messages", model_, terms_.context_tokens,
                  whole ? std::optional<std::uint64_t>(whole->ids.size()) : std::nullopt);
  }
  std::optional<RenderedPrompt> prompt = without_turns(limits, droppable, whole);
  if (!prompt || !prompt->truncated || !whole) return prompt;
  const std::uint64_t left = std::min(prompt->tokens.ids.size(), whole->ids.size());
  prompt->truncated->dropped_tokens = whole->ids.size() - left;
  return prompt;
}

text::OriginText PromptRenderer::rendered() {
  text::jinja::RenderLimits limits = terms_.may_take_long ? text::jinja::RenderLimits{} : kShort;
  limits.account = &memory_;
  Result<text::OriginText> text = model_.chat_template->render(conversation_, limits);
  if (text.ok()) return std::move(text).value();
  const ErrorCode code = text.error().code;
  if (code == ErrorCode::kOutOfRange && !terms_.may_take_long) throw TakesLong();
  if (code == ErrorCode::kExhausted) throw terms_.memory.refusal();
  throw ApiError(400, fmt::format("messages: {}", text.error().message), "messages");
}

std::optional<RenderedPrompt> PromptRenderer::without_turns(
    const PromptLimits& limits, const DroppableMessages& droppable,
    const std::optional<text::PromptTokens>& whole) {
  const std::uint64_t wanted = limits.room.wanted;
  const Json all = std::exchange(conversation_.messages, Json::array());
  const std::vector<chat::MessageRange>& ranges = droppable.ranges;
  const std::vector<std::uint64_t> bytes = bytes_of_messages(all);
  const std::vector<std::uint64_t> copied = json_bytes_of_messages(all);
  std::vector<std::uint32_t> kept;
  std::optional<RenderedPrompt> prompt;
  const auto fits = [&](std::size_t count, std::uint64_t tokens_max) {
    prompt.reset();
    conversation_.messages = nullptr;
    memory_.begin_attempt();
    kept = chat::kept_messages(all, std::span(ranges).first(count));
    std::uint64_t bytes_kept = 0;
    for (const std::uint32_t index : kept) bytes_kept += copied[index];
    if (!memory_.take(bytes_kept)) throw terms_.memory.refusal();
    conversation_.messages = chat::pick_messages(all, kept);
    text::OriginText text = rendered();
    auto tokens = text::tokenise_prompt_within(text, model_.tokenizer, tokens_max);
    if (tokens) prompt = RenderedPrompt{std::move(text), *std::move(tokens)};
    return prompt.has_value();
  };
  const auto fewest = chat::fewest_dropped(
      ranges.size(),
      fewest_by_bytes(sizes_of(ranges, bytes), chat::text_bytes(all), wanted * kTokenBytesMax),
      [&](std::size_t count) { return fits(count, wanted); });
  if (fewest) {
    const auto tokens = sizes_of(ranges, tokens_of_messages(whole, bytes));
    const std::uint64_t quarter = std::max<std::uint64_t>(wanted / 4, 1);
    if (!fits(chat::steady_count(tokens, *fewest, quarter), wanted)) fits(*fewest, wanted);
  } else {
    fits(ranges.size(), limits.room.most);  // the output has less room then
  }
  if (!prompt || kept.size() == all.size()) return prompt;
  PromptTruncation& said = prompt->truncated.emplace();
  said.type = limits.truncation == TruncationType::kMiddle ? "middle" : "auto";
  said.limit_tokens = wanted;
  said.set_kept(std::move(kept), all.size(), droppable.added);
  said.gap = first_token_behind_gap(prompt->tokens.origins, said.kept);
  return prompt;
}

}  // namespace pagoda::server
