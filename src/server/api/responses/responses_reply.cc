#include "server/api/responses/responses_reply.h"

#include <fmt/format.h>

#include <utility>

#include "server/api/answer_items.h"
#include "server/json_string.h"

namespace pagoda::server::responses {
namespace {

using Kind = AnswerItem::Kind;

constexpr std::string_view kIdPrefix = "resp_";

constexpr double kHalfHourSeconds = 30 * 60;

Json text_part(std::string_view text) {
  return {{"type", "output_text"},
          {"text", text},
          {"annotations", Json::array()},
          {"logprobs", Json::array()}};
}

// The items of one response have its id, a prefix of their kind, and a number.
std::string item_id(const AnswerItem& item, std::string_view response_id, std::size_t index) {
  const std::string_view prefix =
      item.kind == Kind::kReasoning ? "rs_" : (item.kind == Kind::kText ? "msg_" : "fc_");
  return fmt::format("{}{}_{}", prefix, response_id.substr(kIdPrefix.size()), index);
}

Json list_of_one(Json value) { return Json::array({std::move(value)}); }

Json reasoning_json(const AnswerItem& item, bool as_summary) {
  Json members = {{"type", "reasoning"}, {"summary", Json::array()}};
  if (as_summary) {
    members["summary"] = list_of_one({{"type", "summary_text"}, {"text", item.text}});
  } else {
    members["content"] = list_of_one({{"type", "reasoning_text"}, {"text", item.text}});
  }
  return members;
}

// Clients parse the arguments of every call that is not in progress, one that was cut off behind
// its name, too.
std::string arguments_of(const AnswerItem& item, std::string_view status) {
  return item.text.empty() && status != "in_progress" ? "{}" : item.text;
}

Json item_json(const AnswerItem& item, std::string id, std::string_view status, bool as_summary) {
  Json members = {{"id", std::move(id)}};
  switch (item.kind) {
    case Kind::kReasoning:
      members.update(reasoning_json(item, as_summary));
      break;
    case Kind::kText:
      members.update({{"type", "message"}, {"role", "assistant"}});
      members["content"] = list_of_one(text_part(item.text));
      break;
    case Kind::kCall:
      members.update({{"type", "function_call"},
                      {"call_id", item.id},
                      {"name", item.name},
                      {"arguments", arguments_of(item, status)}});
      break;
  }
  members["status"] = status;
  return members;
}

// An item that has just been opened has no parts.
Json opened_json(const AnswerItem& item, std::string id, bool as_summary) {
  Json members = item_json(item, std::move(id), "in_progress", as_summary);
  for (const char* const name : {"content", "summary"}) {
    if (members.contains(name)) members[name] = Json::array();
  }
  return members;
}

// A request that only fills the cache is complete without an answer.
std::string_view status_of(const ReplyFacts& facts, const Piece& last) {
  const bool is_cut = last.finish_reason == "length" && facts.usage.completion_tokens() > 0;
  return is_cut ? "incomplete" : "completed";
}

// Clients send a request again after "server_error".
std::string_view error_code_of(const ApiError& error) {
  if (error.status == 429) return "rate_limit_exceeded";
  return error.status < 500 ? "invalid_prompt" : "server_error";
}

class ResponsesWriter : public ReplyWriter, private AnswerItemSink {
 public:
  explicit ResponsesWriter(ResponseEcho echo) : echo_(std::move(echo)) {}

  std::string_view id_prefix() const override { return kIdPrefix; }

  void begin(const ReplyFacts& facts, std::string& out) override {
    id_ = facts.id;
    send_response("response.created", response(facts, "in_progress", Json::array()), out);
    send_response("response.in_progress", response(facts, "in_progress", Json::array()), out);
  }

  void add(const Piece& piece, std::string& out) override {
    out_ = &out;
    items_.add(piece, *this);
  }

  void end(const ReplyFacts& facts, const Piece& last, std::string& out) override {
    out_ = &out;
    status_ = status_of(facts, last);
    items_.close(*this);
    send_response(fmt::format("response.{}", status_), response(facts, status_, output_), out);
  }

  void fail(const ReplyFacts& facts, const ApiError& error, std::string& out) override {
    out_ = &out;
    status_ = "incomplete";
    items_.close(*this);
    Json failed = response(facts, "failed", output_);
    failed["error"] = {{"code", error_code_of(error)}, {"message", error.message}};
    send_response("response.failed", failed, out);
  }

  std::string whole(const ReplyFacts& facts, const Piece& all) const override {
    const std::string_view status = status_of(facts, all);
    const std::vector<AnswerItem> items = items_of(all);
    Json output = Json::array();
    for (std::size_t i = 0; i < items.size(); ++i) {
      output.push_back(item_json(items[i], item_id(items[i], facts.id, i),
                                 i + 1 == items.size() ? status : "completed",
                                 echo_.shows_summary));
    }
    return with_echo(response(facts, status, std::move(output)));
  }

 private:
  static Json response(const ReplyFacts& facts, std::string_view status, Json output) {
    const bool runs = status == "in_progress";
    const bool is_cut = status == "incomplete";
    Json members = {{"id", facts.id},   {"object", "response"}, {"created_at", facts.created_s},
                    {"status", status}, {"error", nullptr},     {"model", facts.model}};
    members["incomplete_details"] =
        is_cut ? Json({{"reason", "max_output_tokens"}}) : Json(nullptr);
    members["output"] = std::move(output);
    members["usage"] = runs ? Json(nullptr) : usage_json(facts);
    members.update(facts.cache);
    return members;
  }

  // Instructions and tools may be large: they are written once and copied as text.
  std::string with_echo(const Json& members) const {
    std::string text = dump_json(members);
    text.pop_back();
    return fmt::format("{},{}}}", text, echo_.members);
  }

  void send_response(std::string_view type, const Json& members, std::string& out) {
    out += fmt::format(
        "event: {0}\ndata: {{\"type\":\"{0}\",\"sequence_number\":{1},\"response\":{2}}}\n\n", type,
        sequence_number_++, with_echo(members));
  }

  // Every other event tells of one item.
  void send(std::string_view type, std::size_t index, Json more) {
    Json event = {{"type", type}, {"sequence_number", sequence_number_++}, {"output_index", index}};
    event.update(more);
    *out_ += fmt::format("event: {}\ndata: {}\n\n", type, dump_json(event));
  }

  // The parts of items are numbered, and each item has one.
  Json part_place(const AnswerItem& item, std::size_t index) const {
    return {{"item_id", item_id(item, id_, index)}, {index_name(item), 0}};
  }
  const char* index_name(const AnswerItem& item) const {
    return item.kind == Kind::kReasoning && echo_.shows_summary ? "summary_index" : "content_index";
  }
  std::string_view part_events(const AnswerItem& item) const {
    return item.kind == Kind::kReasoning && echo_.shows_summary ? "response.reasoning_summary_part"
                                                                : "response.content_part";
  }
  std::string_view text_events(const AnswerItem& item) const {
    if (item.kind == Kind::kCall) return "response.function_call_arguments";
    if (item.kind == Kind::kText) return "response.output_text";
    return echo_.shows_summary ? "response.reasoning_summary_text" : "response.reasoning_text";
  }
  Json part_of(const AnswerItem& item) const {
    if (item.kind == Kind::kText) return text_part(item.text);
    return {{"type", echo_.shows_summary ? "summary_text" : "reasoning_text"}, {"text", item.text}};
  }

  void opened(const AnswerItem& item, std::size_t index) override {
    send("response.output_item.added", index,
         {{"item", opened_json(item, item_id(item, id_, index), echo_.shows_summary)}});
    if (item.kind == Kind::kCall) return;
    Json more = part_place(item, index);
    more["part"] = part_of(item);
    send(fmt::format("{}.added", part_events(item)), index, std::move(more));
  }

  // Written by hand: there is one for every token.
  void added(const AnswerItem& item, std::size_t index, std::string_view delta) override {
    const std::string_view events = text_events(item);
    *out_ += fmt::format(
        "event: {0}.delta\ndata: {{\"type\":\"{0}.delta\",\"sequence_number\":{1},"
        "\"output_index\":{2},\"item_id\":\"{3}\",",
        events, sequence_number_++, index, item_id(item, id_, index));
    if (item.kind != Kind::kCall) *out_ += fmt::format("\"{}\":0,", index_name(item));
    if (item.kind == Kind::kText) *out_ += "\"logprobs\":[],";
    *out_ += "\"delta\":";
    append_json_string(delta, *out_);
    *out_ += "}\n\n";
  }

  void closed(const AnswerItem& item, std::size_t index) override {
    const std::string id = item_id(item, id_, index);
    const std::string done = fmt::format("{}.done", text_events(item));
    if (item.kind == Kind::kCall) {
      send(done, index,
           {{"item_id", id}, {"name", item.name}, {"arguments", arguments_of(item, status_)}});
    } else {
      Json more = part_place(item, index);
      more["text"] = item.text;
      if (item.kind == Kind::kText) more["logprobs"] = Json::array();
      send(done, index, std::move(more));
      more = part_place(item, index);
      more["part"] = part_of(item);
      send(fmt::format("{}.done", part_events(item)), index, std::move(more));
    }
    output_.push_back(item_json(item, id, status_, echo_.shows_summary));
    send("response.output_item.done", index, {{"item", output_.back()}});
  }

  ResponseEcho echo_;
  AnswerItems items_;
  std::string id_;  // the response's
  Json output_ = Json::array();
  std::uint64_t sequence_number_ = 0;
  std::string_view status_ = "completed";  // of items that are closed
  std::string* out_ = nullptr;             // valid during a call
};

}  // namespace

Json usage_json(const ReplyFacts& facts) {
  const Usage& usage = facts.usage;
  const std::uint64_t accepted = usage.drafts().prediction_accepted;
  Json counts = {
      {"input_tokens", usage.prompt_tokens()},
      {"input_tokens_details",
       {{"cached_tokens", usage.cached_tokens()},
        {"cache_write_tokens", usage.written_tokens()},
        {"cache_write_tokens_details",
         {{"ttl_30m_tokens", usage.kept_tokens(0, kHalfHourSeconds)},
          {"ttl_12h_tokens", usage.kept_tokens(kHalfHourSeconds, kLifetimeSecondsMax)}}}}},
      {"output_tokens", usage.completion_tokens()},
      {"output_tokens_details",
       {{"reasoning_tokens", facts.reasoning_tokens},
        {"accepted_prediction_tokens", accepted},
        {"rejected_prediction_tokens", usage.drafts().prediction_tokens - accepted}}},
      {"total_tokens", usage.prompt_tokens() + usage.completion_tokens()}};
  if (usage.dropped_tokens() > 0) {
    counts["input_tokens_details"]["dropped_tokens"] = usage.dropped_tokens();
  }
  counts.update(usage.own_members());
  return counts;
}

std::shared_ptr<ReplyWriter> make_responses_writer(ResponseEcho echo) {
  return std::make_shared<ResponsesWriter>(std::move(echo));
}

}  // namespace pagoda::server::responses
