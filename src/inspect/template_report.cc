#include "inspect/template_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "chat/describe.h"
#include "terminal/json_text.h"
#include "terminal/messages.h"

namespace pagoda::inspect {
namespace {

using Json = nlohmann::ordered_json;

// No answer of a model is at hand: those of the check are in the tokenizer's own tokens.
constexpr const char* kUnderAGrammar =
    "required and strict calls, the generic form and structured answers may come in other tokens "
    "than those of their text ({ for {\"), and are then computed again from there on: not counted "
    "here, cache_explain names it";

Json loss_json(const chat::TurnLoss& loss) {
  Json json = {{"turn", loss.turn},
               {"cached_tokens", loss.cached_tokens},
               {"kept_tokens", loss.kept_tokens},
               {"lost_tokens", loss.lost_tokens()}};
  if (loss.cause.empty()) return json;
  json["cause"] = loss.cause;
  json["was"] = loss.was;
  json["became"] = loss.became;
  json["fix"] = terminal::worded(loss.fix);
  return json;
}

std::string quoted(const std::string& text) { return terminal::json_text(Json(text), -1); }

}  // namespace

Result<TemplateReport> check_template(const text::ChatTemplate& chat_template,
                                      const text::Tokenizer& tokenizer,
                                      const chat::FormOverrides& forms, std::uint32_t turns) {
  TemplateReport report;
  ASSIGN_OR_RETURN(report.found, chat::find_form(chat_template, forms));
  report.scenarios = chat::check_turns(chat_template, tokenizer, report.found, turns);
  report.date_token = chat::find_date(chat_template, tokenizer);
  return report;
}

std::string template_report_json(const TemplateReport& report) {
  Json json = chat::describe_form(report.found);
  json["date_at_token"] = report.date_token ? Json(*report.date_token) : Json(nullptr);
  Json turns = Json::array();
  for (const chat::TurnScenario& scenario : report.scenarios) {
    Json entry = {{"conversation", scenario.name}};
    if (!scenario.refusal.empty()) entry["refused"] = scenario.refusal;
    entry["turns"] = Json::array();
    for (const chat::TurnLoss& loss : scenario.turns) entry["turns"].push_back(loss_json(loss));
    turns.push_back(std::move(entry));
  }
  json["next_turns"] = std::move(turns);
  json["under_a_grammar"] = kUnderAGrammar;
  return terminal::json_text(json) + "\n";
}

std::string template_report_text(const TemplateReport& report) {
  std::string text;
  const Json described = chat::describe_form(report.found);
  for (const auto& [part, members] : described.items()) {
    text += part + "\n";
    for (const auto& [name, value] : members.items()) {
      text += fmt::format("  {:<22}{}\n", name, terminal::json_text(value, -1));
    }
  }
  if (report.date_token) {
    text += fmt::format(
        "date\n  token {} of the prompt changes every day, and all behind it is computed again\n",
        *report.date_token);
  }
  text += "what the next turn computes again of the prompt and the answer before it\n";
  for (const chat::TurnScenario& scenario : report.scenarios) {
    text += fmt::format("  {}\n", scenario.name);
    if (!scenario.refusal.empty()) {
      text += fmt::format("    refused: {}\n", scenario.refusal);
    }
    for (const chat::TurnLoss& loss : scenario.turns) {
      text += fmt::format("    turn {}: {} of {} tokens lost", loss.turn, loss.lost_tokens(),
                          loss.cached_tokens);
      if (loss.cause.empty()) {
        text += "\n";
        continue;
      }
      text += fmt::format(": {}\n      token {}: {} became {}\n      fix: {}\n",
                          chat::describe_cause(loss.cause), loss.kept_tokens, quoted(loss.was),
                          quoted(loss.became), terminal::worded(loss.fix));
    }
  }
  return text + fmt::format("under a grammar\n  {}\n", kUnderAGrammar);
}

}  // namespace pagoda::inspect
