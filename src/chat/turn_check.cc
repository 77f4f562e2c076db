#include "chat/turn_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "chat/answer_text.h"
#include "chat/call_id.h"
#include "chat/history_calls.h"
#include "chat/literal.h"
#include "chat/tool_instructions.h"
#include "text/prompt_tokens.h"

namespace pagoda::chat {
namespace {

using text::ChatJson;

constexpr std::size_t kShownBytes = 24;
constexpr std::time_t kNoon = 1'750'000'000;  // a time of day; what day does not matter

struct Script {
  std::string name;
  bool reasons = false;     // the model writes reasoning
  bool sends_back = false;  // and the client sends it back
  bool calls = false;       // every other answer is a call
  bool speaks = false;      // with words before it
};

std::string reasoning_of(unsigned turn) { return fmt::format("I think about question {}.", turn); }

std::string words_before_call(unsigned turn) { return fmt::format("I look up answer {}.", turn); }

WrittenAnswer answer_of(const Script& script, unsigned turn) {
  WrittenAnswer answer;
  if (script.reasons) answer.reasoning = reasoning_of(turn);
  if (script.calls && turn % 2 == 1) {
    answer.calls = {{"get_weather", {{"city", "Rome"}, {"days", 2}}}};
    if (script.speaks) answer.content = words_before_call(turn);
  } else {
    answer.content = fmt::format("This is answer {}.", turn);
  }
  return answer;
}

ChatJson weather_tools() {
  return ChatJson::array({{{"type", "function"},
                           {"function",
                            {{"name", "get_weather"},
                             {"description", "The weather of a city."},
                             {"parameters",
                              {{"type", "object"},
                               {"properties",
                                {{"city", {{"type", "string"}, {"description", "Which city."}}},
                                 {"days", {{"type", "integer"}, {"description", "How many."}}}}},
                               {"required", ChatJson::array({"city"})}}}}}}});
}

std::size_t first_difference(std::string_view a, std::string_view b) {
  std::size_t at = 0;
  while (at < std::min(a.size(), b.size()) && a[at] == b[at]) ++at;
  return at;
}

std::string shown(std::string_view text, std::size_t at) {
  std::string_view part = text.substr(std::min(at, text.size()), kShownBytes);
  // Whole characters.
  while (!part.empty() && at + part.size() < text.size() &&
         (static_cast<unsigned char>(text[at + part.size()]) & 0xC0) == 0x80) {
    part.remove_suffix(1);
  }
  return std::string(part);
}

class TurnChecker {
 public:
  TurnChecker(const text::ChatTemplate& chat, const text::Tokenizer& tokenizer,
              const FoundForm& found, ChatJson kwargs)
      : chat_(chat),
        tokenizer_(tokenizer),
        found_(found),
        form_(found.form),
        kwargs_(std::move(kwargs)) {}

  TurnScenario run(const Script& script, unsigned turns) {
    TurnScenario scenario = {.name = script.name};
    messages_ = ChatJson::array({{{"role", "system"}, {"content", "You are a good assistant."}}});
    ask(1);
    for (unsigned turn = 1; turn <= turns; ++turn) {
      const auto before = render(script);
      if (!before.ok()) {
        scenario.refusal = before.error().message;
        return scenario;
      }
      const bool open = opens_reasoning(form_, before.value());
      WrittenAnswer answer = answer_of(script, turn);
      const std::string text = write_answer(form_, answer, open);
      reply(script, turn, answer);
      const auto after = render(script);
      if (!after.ok()) {
        scenario.refusal = after.error().message;
        return scenario;
      }
      scenario.turns.push_back(compare(before.value(), text, after.value(), turn));
    }
    return scenario;
  }

 private:
  void ask(unsigned turn) {
    messages_.push_back({{"role", "user"}, {"content", fmt::format("This is question {}.", turn)}});
  }

  void reply(const Script& script, unsigned turn, const WrittenAnswer& answer) {
    ChatJson message = {{"role", "assistant"}, {"content", answer.content}};
    if (script.sends_back) message["reasoning_content"] = answer.reasoning;
    const std::string id = make_call_id(form_.ids, 1, turn, "get_weather");
    for (const WrittenCall& call : answer.calls) {
      if (answer.content.empty()) message["content"] = nullptr;
      message["tool_calls"].push_back(
          {{"id", id},
           {"type", "function"},
           {"function", {{"name", call.name}, {"arguments", spaced_json(call.arguments)}}}});
    }
    messages_.push_back(message);
    if (answer.calls.empty()) return ask(turn + 1);
    messages_.push_back({{"role", "tool"},
                         {"tool_call_id", id},
                         {"name", "get_weather"},
                         {"content", "{\"degrees\": 21}"}});
  }

  Result<text::OriginText> render(const Script& script) const {
    text::Conversation conversation;
    conversation.messages = messages_;
    if (script.calls) conversation.tools = weather_tools();
    // The server does the same to what the template does not write.
    if (form_.calls && !found_.shows_calls) {
      RETURN_IF_ERROR(write_history_calls(*form_.calls, conversation.messages));
    }
    if (form_.calls && script.calls && !found_.shows_tools) {
      add_tool_instructions(*form_.calls, conversation.tools, conversation.messages);
    }
    conversation.kwargs = kwargs_;
    if (form_.reasoning && !script.reasons) {
      conversation.kwargs["enable_thinking"] = false;
      conversation.kwargs["thinking"] = false;
    }
    conversation.now = kNoon;
    return chat_.render(conversation);
  }

  TurnLoss compare(const text::OriginText& before, const std::string& answer,
                   const text::OriginText& after, unsigned turn) const {
    std::vector<TokenId> cached = text::tokenise_prompt(before, tokenizer_).ids;
    const std::vector<TokenId> written = tokenizer_.encode(answer, {.special = true});
    cached.insert(cached.end(), written.begin(), written.end());
    const text::PromptTokens next = text::tokenise_prompt(after, tokenizer_);
    TurnLoss loss = {.turn = turn + 1, .cached_tokens = cached.size()};
    while (loss.kept_tokens < std::min(cached.size(), next.ids.size()) &&
           cached[loss.kept_tokens] == next.ids[loss.kept_tokens]) {
      ++loss.kept_tokens;
    }
    if (loss.lost_tokens() == 0) return loss;
    const std::string old_text = std::string(before.bytes()) + answer;
    const std::size_t at = first_difference(old_text, after.bytes());
    loss.cause = cause_of(old_text, after.bytes(), at, before.size(), turn);
    const std::size_t from =
        loss.kept_tokens < next.begins.size() ? next.begins[loss.kept_tokens] : after.size();
    loss.was = shown(old_text, from);
    loss.became = shown(after.bytes(), from);
    return loss;
  }

  std::string cause_of(std::string_view was, std::string_view becomes, std::size_t at,
                       std::size_t prompt_bytes, unsigned turn) const {
    if (at == was.size() || at == becomes.size()) return "tokenised_again";
    for (unsigned earlier = 1; earlier <= turn; ++earlier) {
      const std::string reasoning = reasoning_of(earlier);
      if (was.find(reasoning) != std::string_view::npos &&
          becomes.find(reasoning) == std::string_view::npos) {
        return "reasoning_removed";
      }
    }
    for (unsigned earlier = 1; earlier <= turn; ++earlier) {
      const std::string words = words_before_call(earlier);
      if (was.find(words) != std::string_view::npos &&
          becomes.find(words) == std::string_view::npos) {
        return "words_removed";
      }
    }
    if (form_.reasoning && !core(form_.reasoning->begin).empty()) {
      const std::size_t tag = becomes.substr(0, at + 1).rfind('<');
      const std::string_view inserted = becomes.substr(tag == std::string_view::npos ? at : tag);
      const std::string_view begin = core(form_.reasoning->begin);
      const std::string_view end = core(form_.reasoning->end);
      if (core(inserted).starts_with(begin) || core(inserted).starts_with(end)) {
        return "reasoning_inserted";
      }
    }
    if (at < prompt_bytes) return "earlier_text_changes";
    return was.substr(prompt_bytes).find("get_weather") != std::string_view::npos
               ? "call_written_anew"
               : "answer_written_anew";
  }

  const text::ChatTemplate& chat_;
  const text::Tokenizer& tokenizer_;
  const FoundForm& found_;
  const AnswerForm& form_;
  ChatJson kwargs_;
  ChatJson messages_;
};

// Options of templates that keep the reasoning of earlier turns.
const std::vector<std::pair<const char*, bool>>& keeping_options() {
  static const std::vector<std::pair<const char*, bool>> kOptions = {
      {"preserve_thinking", true},          {"preserve_reasoning", true},
      {"keep_past_thinking", true},         {"clear_thinking", false},
      {"truncate_history_thinking", false}, {"drop_thinking", false}};
  return kOptions;
}

std::size_t lost_tokens(const TurnScenario& scenario) {
  std::size_t lost = 0;
  for (const TurnLoss& turn : scenario.turns) lost += turn.lost_tokens();
  return lost;
}

std::string general_fix(const TurnLoss& loss) {
  if (loss.cause == "reasoning_removed") {
    return "none in this template: edit a copy and give it by `chat_template`, or turn thinking "
           "off (\"enable_thinking\": false)";
  }
  if (loss.cause == "words_removed") {
    return "none in this template: edit a copy and give it by `chat_template`";
  }
  if (loss.cause == "reasoning_inserted") {
    return "send reasoning_content back, or turn thinking off in every request";
  }
  if (loss.cause == "earlier_text_changes") {
    return "edit a copy of the template so that what it writes does not depend on later messages "
           "(`chat_template`)";
  }
  return "none: the tokens at the seam differ";
}

class FixFinder {
 public:
  FixFinder(const text::ChatTemplate& chat, const text::Tokenizer& tokenizer,
            const FoundForm& found, unsigned turns)
      : chat_(chat), tokenizer_(tokenizer), found_(found), turns_(turns) {}

  void add_fixes(const Script& script, TurnScenario& scenario) const {
    if (lost_tokens(scenario) == 0) return;
    std::string option = find_option(script, scenario);
    if (option.empty() && script.reasons && !script.sends_back) {
      Script sent = script;
      sent.sends_back = true;
      const TurnScenario tried =
          TurnChecker(chat_, tokenizer_, found_, ChatJson::object()).run(sent, turns_);
      if (tried.refusal.empty() && lost_tokens(tried) < lost_tokens(scenario)) {
        option = fmt::format(
            "send reasoning_content back with the assistant's messages: {} of {} tokens are lost "
            "then",
            lost_tokens(tried), lost_tokens(scenario));
      }
    }
    for (TurnLoss& loss : scenario.turns) {
      if (loss.cause.empty()) continue;
      loss.fix = option.empty() ? general_fix(loss) : option;
    }
  }

 private:
  // An option of the template with which less is lost.
  std::string find_option(const Script& script, const TurnScenario& scenario) const {
    for (const auto& [name, value] : keeping_options()) {
      if (chat_.source().find(name) == std::string_view::npos) continue;
      TurnChecker checker(chat_, tokenizer_, found_, {{name, value}});
      const TurnScenario tried = checker.run(script, turns_);
      if (!tried.refusal.empty() || lost_tokens(tried) >= lost_tokens(scenario)) continue;
      return fmt::format("\"chat_template_kwargs\": {{\"{}\": {}}}: {} of {} tokens are lost then",
                         name, value, lost_tokens(tried), lost_tokens(scenario));
    }
    return {};
  }

  const text::ChatTemplate& chat_;
  const text::Tokenizer& tokenizer_;
  const FoundForm& found_;
  unsigned turns_;
};

}  // namespace

std::string describe_cause(const std::string& cause) {
  static const std::vector<std::pair<std::string, std::string>> kCauses = {
      {"reasoning_removed", "the template leaves out the reasoning of earlier turns"},
      {"words_removed", "the template leaves out the words before a call"},
      {"reasoning_inserted", "the template writes an empty reasoning into earlier turns"},
      {"earlier_text_changes", "the template writes text before the answer anew"},
      {"call_written_anew", "the template writes the call in another way than the model"},
      {"answer_written_anew", "the template writes the answer in another way than the model"},
      {"tokenised_again", "the text is the same and its tokens differ"}};
  for (const auto& [name, words] : kCauses) {
    if (name == cause) return words;
  }
  return cause;
}

std::vector<TurnScenario> check_turns(const text::ChatTemplate& chat,
                                      const text::Tokenizer& tokenizer, const FoundForm& found,
                                      unsigned turns) {
  const AnswerForm& form = found.form;
  const bool thinks = form.channels || form.reasoning;
  const std::string off = form.reasoning ? ", thinking off" : "";
  std::vector<Script> scripts = {
      {.name = "chat" + off},
      {.name = "tools" + off, .calls = true},
      {.name = "words before calls" + off, .calls = true, .speaks = true}};
  if (thinks) {
    scripts.push_back({.name = "reasoning sent back", .reasons = true, .sends_back = true});
    scripts.push_back({.name = "reasoning left out", .reasons = true});
    scripts.push_back(
        {.name = "tools, reasoning sent back", .reasons = true, .sends_back = true, .calls = true});
  }
  std::vector<TurnScenario> scenarios;
  const FixFinder fixes(chat, tokenizer, found, turns);
  for (const Script& script : scripts) {
    TurnScenario scenario =
        TurnChecker(chat, tokenizer, found, ChatJson::object()).run(script, turns);
    fixes.add_fixes(script, scenario);
    scenarios.push_back(std::move(scenario));
  }
  return scenarios;
}

std::optional<std::size_t> find_date(const text::ChatTemplate& chat,
                                     const text::Tokenizer& tokenizer) {
  text::Conversation conversation;
  conversation.messages = {{{"role", "user"}, {"content", "This is question 1."}}};
  conversation.now = kNoon;
  const auto today = chat.render(conversation);
  constexpr std::time_t kDay = 24 * 60 * 60;
  conversation.now = kNoon + kDay;
  const auto tomorrow = chat.render(conversation);
  if (!today.ok() || !tomorrow.ok()) return std::nullopt;
  if (today.value().bytes() == tomorrow.value().bytes()) return std::nullopt;
  const auto a = text::tokenise_prompt(today.value(), tokenizer).ids;
  const auto b = text::tokenise_prompt(tomorrow.value(), tokenizer).ids;
  std::size_t at = 0;
  while (at < std::min(a.size(), b.size()) && a[at] == b[at]) ++at;
  return at;
}

}  // namespace pagoda::chat
