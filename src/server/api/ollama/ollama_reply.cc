#include "server/api/ollama/ollama_reply.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "server/access/digest.h"
#include "server/api/answer_items.h"

namespace pagoda::server::ollama {
namespace {

using Kind = AnswerItem::Kind;

// Names without a tag have this one.
constexpr std::string_view kLatest = ":latest";

std::string time_text(std::int64_t seconds) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(static_cast<std::time_t>(seconds)));
}

std::int64_t nanoseconds(double seconds) { return static_cast<std::int64_t>(seconds * 1e9); }

// Clients want an object. Arguments that are none stand within one, so that no tool takes them for
// nothing.
Json call_json(const AnswerItem& item) {
  auto arguments = text::parse_strict_json(item.text);
  Json function = {{"name", item.name}};
  const bool is_object = arguments.ok() && arguments.value().is_object();
  function["arguments"] = is_object ? std::move(arguments).value() : Json::object();
  if (!is_object && !item.text.empty()) function["arguments"]["arguments"] = item.text;
  return {{"id", item.id}, {"function", std::move(function)}};
}

// The parts of the answer that one line carries.
struct Words {
  std::string content;
  std::string thinking;
  Json calls = Json::array();

  bool empty() const { return content.empty() && thinking.empty() && calls.empty(); }
  void add(const AnswerItem& item) {
    if (item.kind == Kind::kText) content += item.text;
    if (item.kind == Kind::kReasoning) thinking += item.text;
    if (item.kind == Kind::kCall) calls.push_back(call_json(item));
  }
};

class OllamaWriter : public ReplyWriter, private AnswerItemSink {
 public:
  explicit OllamaWriter(bool is_chat) : is_chat_(is_chat) {}

  std::string_view id_prefix() const override { return "ollama-"; }
  std::string_view stream_type() const override { return "application/x-ndjson"; }
  // A line that is no object would be an error to clients.
  std::string keep_alive() const override { return {}; }

  void begin(const ReplyFacts& facts, std::string& /*out*/) override {
    model_ = facts.model;
    created_s_ = facts.created_s;
  }

  void add(const Piece& piece, std::string& out) override {
    items_.add(piece, *this);
    if (!words_.empty()) send(line(std::exchange(words_, {})), out);
  }

  void end(const ReplyFacts& facts, const Piece& last, std::string& out) override {
    items_.close(*this);
    // The last line has no words, as Ollama's: who takes its counts need not look for calls.
    if (!words_.empty()) send(line(std::exchange(words_, {})), out);
    Json ending = line({});
    add_ending(ending, facts, last);
    send(ending, out);
  }

  void fail(const ReplyFacts& /*facts*/, const ApiError& error, std::string& out) override {
    send(error_json(error, ApiStyle::kOllama), out);
  }

  std::string whole(const ReplyFacts& facts, const Piece& all) const override {
    Words words;
    for (const AnswerItem& item : items_of(all)) words.add(item);
    OllamaWriter writer(is_chat_);
    std::string ignored;
    writer.begin(facts, ignored);
    Json reply = writer.line(std::move(words));
    add_ending(reply, facts, all);
    return dump_json(reply);
  }

 private:
  static void send(const Json& value, std::string& out) { out += dump_json(value) + "\n"; }

  static void add_ending(Json& reply, const ReplyFacts& facts, const Piece& last) {
    reply["done"] = true;
    reply["done_reason"] = last.finish_reason == "length" ? "length" : "stop";
    reply["total_duration"] = nanoseconds(facts.total_s);
    reply["load_duration"] = 0;
    reply["prompt_eval_count"] = facts.usage.prompt_tokens();
    reply["prompt_eval_duration"] = nanoseconds(facts.first_token_s);
    reply["eval_count"] = facts.usage.completion_tokens();
    reply["eval_duration"] = nanoseconds(facts.total_s - facts.first_token_s);
    reply.update(facts.usage.own_members());
    reply.update(facts.cache);
  }

  Json line(Words words) const {
    Json reply = {{"model", model_}, {"created_at", time_text(created_s_)}};
    Json message = Json::object();
    if (is_chat_) message["role"] = "assistant";
    message[is_chat_ ? "content" : "response"] = std::move(words.content);
    if (!words.thinking.empty()) message["thinking"] = std::move(words.thinking);
    if (!words.calls.empty()) message["tool_calls"] = std::move(words.calls);
    if (is_chat_) {
      reply["message"] = std::move(message);
    } else {
      reply.update(message);
    }
    reply["done"] = false;
    return reply;
  }

  // Text goes out as it comes, a call once it is whole.
  void opened(const AnswerItem& /*item*/, std::size_t /*index*/) override {}
  void added(const AnswerItem& item, std::size_t /*index*/, std::string_view delta) override {
    if (item.kind == Kind::kText) words_.content += delta;
    if (item.kind == Kind::kReasoning) words_.thinking += delta;
  }
  void closed(const AnswerItem& item, std::size_t /*index*/) override {
    if (item.kind == Kind::kCall) words_.add(item);
  }

  bool is_chat_;
  std::string model_;
  std::int64_t created_s_ = 0;
  AnswerItems items_;
  Words words_;  // that are still to be sent
};

// A member of /server_info's "weights"; nothing where the server did not say it.
Json weights_fact(const ServedModel& model, const char* name, Json otherwise) {
  const auto weights = model.facts.find("weights");
  if (weights == model.facts.end() || !weights->is_object()) return otherwise;
  return weights->value(name, std::move(otherwise));
}

// "135M", "7.2B": as Ollama shows it.
std::string parameters_text(std::uint64_t count) {
  const auto number = static_cast<double>(count);
  if (count >= 1'000'000'000) return fmt::format("{:.1f}B", number * 1e-9);
  if (count >= 1'000'000) return fmt::format("{:.0f}M", number * 1e-6);
  return count == 0 ? "" : fmt::format("{:.0f}K", number * 1e-3);
}

Json details_json(const ServedModel& model) {
  const Json family = weights_fact(model, "architecture", "");
  const auto parameters = weights_fact(model, "parameters", 0).get<std::uint64_t>();
  return {{"parent_model", ""},
          {"format", weights_fact(model, "format", "gguf")},
          {"family", family},
          {"families", family == "" ? Json::array() : Json::array({family})},
          {"parameter_size", parameters_text(parameters)},
          {"quantization_level", weights_fact(model, "type", "")}};
}

}  // namespace

std::shared_ptr<ReplyWriter> make_ollama_writer(bool is_chat) {
  return std::make_shared<OllamaWriter>(is_chat);
}

Json loaded_reply(const ServedModel& model, bool is_chat, bool is_unload) {
  ReplyFacts facts;
  facts.model = model.name();
  facts.created_s = std::time(nullptr);
  Json reply = Json::parse(OllamaWriter(is_chat).whole(facts, {}));
  for (const char* const name : {"total_duration", "load_duration", "prompt_eval_count",
                                 "prompt_eval_duration", "eval_count", "eval_duration"}) {
    reply.erase(name);
  }
  reply["done_reason"] = is_unload ? "unload" : "load";
  return reply;
}

std::string_view without_latest(std::string_view name, const ServedModel& model) {
  const bool is_served =
      std::find(model.names.begin(), model.names.end(), name) != model.names.end();
  return is_served || !name.ends_with(kLatest) ? name
                                               : name.substr(0, name.size() - kLatest.size());
}

Json list_tags(const ServedModel& model) {
  Json models = Json::array();
  for (const std::string& served : model.names) {
    const bool has_tag = served.find(':') != std::string::npos;
    const std::string name = has_tag ? served : served + std::string(kLatest);
    models.push_back({{"name", name},
                      {"model", name},
                      {"modified_at", time_text(model.created_s)},
                      {"size", weights_fact(model, "bytes", 0)},
                      {"digest", to_hex(sha256(model.fingerprint))},
                      {"details", details_json(model)}});
  }
  return {{"models", std::move(models)}};
}

Json show_model(const ServedModel& model) {
  Json capabilities = Json::array({"completion"});
  if (model.form && model.form->found.form.calls) capabilities.push_back("tools");
  if (model.form && model.form->found.form.reasoning) capabilities.push_back("thinking");
  Json info = Json::object();
  const std::string architecture = weights_fact(model, "architecture", "").get<std::string>();
  info["general.architecture"] = architecture;
  const Json parameters = weights_fact(model, "parameters", nullptr);
  if (!parameters.is_null()) info["general.parameter_count"] = parameters;
  // Clients look for it under the architecture's name.
  info[architecture + ".context_length"] = model.context_tokens();
  return {{"details", details_json(model)},
          {"model_info", std::move(info)},
          {"capabilities", std::move(capabilities)},
          {"modified_at", time_text(model.created_s)}};
}

}  // namespace pagoda::server::ollama
