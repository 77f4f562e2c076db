#include "server/api/anthropic/messages_reply.h"

#include <fmt/format.h>

#include "server/api/answer_items.h"
#include "server/json_string.h"

namespace pagoda::server::anthropic {
namespace {

using Kind = AnswerItem::Kind;

// Clients drop thinking without a signature from their history; servers of Anthropic check it, and
// nobody here does.
constexpr std::string_view kSignature = "cGFnb2Rh";

constexpr double kFiveMinutesSeconds = 5 * 60;

// The three counts of input add up to the prompt: read from the cache, written to it for a lifetime
// that the client asked for, and the rest.
Json usage_json(const ReplyFacts& facts) {
  const Usage& usage = facts.usage;
  const std::uint64_t for_5m = usage.kept_tokens(0, kFiveMinutesSeconds);
  const std::uint64_t for_1h = usage.kept_tokens(kFiveMinutesSeconds, kLifetimeSecondsMax);
  const std::uint64_t written = for_5m + for_1h;
  Json counts = {{"input_tokens", usage.prompt_tokens() - usage.cached_tokens() - written},
                 {"cache_creation_input_tokens", written},
                 {"cache_read_input_tokens", usage.cached_tokens()},
                 {"cache_creation",
                  {{"ephemeral_5m_input_tokens", for_5m}, {"ephemeral_1h_input_tokens", for_1h}}},
                 {"output_tokens", usage.completion_tokens()},
                 {"output_tokens_details", {{"thinking_tokens", facts.reasoning_tokens}}}};
  if (usage.dropped_tokens() > 0) counts["dropped_input_tokens"] = usage.dropped_tokens();
  counts.update(usage.own_members());
  return counts;
}

Json message_json(const ReplyFacts& facts) {
  return {{"id", facts.id},           {"type", "message"},         {"role", "assistant"},
          {"model", facts.model},     {"content", Json::array()},  {"stop_reason", nullptr},
          {"stop_sequence", nullptr}, {"usage", usage_json(facts)}};
}

Json with_cache(Json members, const ReplyFacts& facts) {
  members.update(facts.cache);
  return members;
}

std::string_view stop_reason_of(const Piece& last) {
  if (last.finish_reason == "tool_calls") return "tool_use";
  if (last.finish_reason == "length") return "max_tokens";
  return last.stop_reason.is_string() ? "stop_sequence" : "end_turn";
}

// A stop token's id is no stop sequence, and one that ended a turn behind its calls is not the
// reason that is given.
Json stop_sequence_of(const Piece& last) {
  return stop_reason_of(last) == "stop_sequence" ? last.stop_reason : Json(nullptr);
}

// Arguments that were cut off are no object: their text stands beside an empty one. Those of a call
// to make stand within one, so that no tool takes them for nothing.
Json tool_use_json(const AnswerItem& item, bool is_made) {
  Json block = {{"type", "tool_use"}, {"id", item.id}, {"name", item.name}};
  auto input = text::parse_strict_json(item.text);
  const bool is_whole = input.ok() && input.value().is_object();
  block["input"] = is_whole ? std::move(input).value() : Json::object();
  if (is_whole || item.text.empty()) return block;
  if (is_made) {
    block["input"]["arguments"] = item.text;
  } else {
    block["partial_json"] = item.text;
  }
  return block;
}

Json block_json(const AnswerItem& item, bool is_made = false) {
  switch (item.kind) {
    case Kind::kReasoning:
      return {{"type", "thinking"}, {"thinking", item.text}, {"signature", kSignature}};
    case Kind::kText:
      return {{"type", "text"}, {"text", item.text}};
    case Kind::kCall:
      return tool_use_json(item, is_made);
  }
  return nullptr;
}

void append_event(std::string_view type, const Json& data, std::string& out) {
  out += fmt::format("event: {}\ndata: {}\n\n", type, dump_json(data));
}

class MessagesWriter : public ReplyWriter, private AnswerItemSink {
 public:
  std::string_view id_prefix() const override { return "msg_"; }

  void begin(const ReplyFacts& facts, std::string& out) override {
    append_event("message_start",
                 {{"type", "message_start"}, {"message", with_cache(message_json(facts), facts)}},
                 out);
    out += keep_alive();
  }

  void add(const Piece& piece, std::string& out) override {
    out_ = &out;
    items_.add(piece, *this);
  }

  void end(const ReplyFacts& facts, const Piece& last, std::string& out) override {
    out_ = &out;
    items_.close(*this);
    append_event(
        "message_delta",
        with_cache(
            {{"type", "message_delta"},
             {"delta",
              {{"stop_reason", stop_reason_of(last)}, {"stop_sequence", stop_sequence_of(last)}}},
             {"usage", usage_json(facts)}},
            facts),
        out);
    append_event("message_stop", {{"type", "message_stop"}}, out);
  }

  void fail(const ReplyFacts& /*facts*/, const ApiError& error, std::string& out) override {
    append_event("error", error_json(error, ApiStyle::kAnthropic), out);
  }

  std::string keep_alive() const override {
    std::string out;
    append_event("ping", {{"type", "ping"}}, out);
    return out;
  }

  std::string whole(const ReplyFacts& facts, const Piece& all) const override {
    Json message = with_cache(message_json(facts), facts);
    const bool is_made = all.finish_reason == "tool_calls";
    for (const AnswerItem& item : items_of(all)) {
      message["content"].push_back(block_json(item, is_made));
    }
    message["stop_reason"] = stop_reason_of(all);
    message["stop_sequence"] = stop_sequence_of(all);
    return dump_json(message);
  }

 private:
  void opened(const AnswerItem& item, std::size_t index) override {
    Json block = block_json(item);
    if (item.kind == Kind::kReasoning) block["signature"] = "";
    append_event("content_block_start",
                 {{"type", "content_block_start"}, {"index", index}, {"content_block", block}},
                 *out_);
  }

  // Written by hand: there is one for every token.
  void added(const AnswerItem& item, std::size_t index, std::string_view delta) override {
    const bool is_text = item.kind == Kind::kText;
    const bool is_call = item.kind == Kind::kCall;
    const std::string_view type =
        is_text ? "text_delta" : (is_call ? "input_json_delta" : "thinking_delta");
    const std::string_view member = is_text ? "text" : (is_call ? "partial_json" : "thinking");
    *out_ += fmt::format(
        "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":{},"
        "\"delta\":{{\"type\":\"{}\",\"{}\":",
        index, type, member);
    append_json_string(delta, *out_);
    *out_ += "}}\n\n";
  }

  void closed(const AnswerItem& item, std::size_t index) override {
    if (item.kind == Kind::kReasoning) {
      append_event("content_block_delta",
                   {{"type", "content_block_delta"},
                    {"index", index},
                    {"delta", {{"type", "signature_delta"}, {"signature", kSignature}}}},
                   *out_);
    }
    append_event("content_block_stop", {{"type", "content_block_stop"}, {"index", index}}, *out_);
  }

  AnswerItems items_;
  std::string* out_ = nullptr;  // valid during a call
};

}  // namespace

std::shared_ptr<ReplyWriter> make_messages_writer() { return std::make_shared<MessagesWriter>(); }

}  // namespace pagoda::server::anthropic
