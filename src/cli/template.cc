// pagoda template check: what was derived from a model's chat template, and what the next turn of a
// conversation loses of the cache.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "app/loaded_model.h"
#include "chat/describe.h"
#include "chat/known_forms.h"
#include "chat/turn_check.h"
#include "cli/commands.h"
#include "cli/field_flags.h"
#include "cli/model_flags.h"
#include "cli/options.h"
#include "gguf/file.h"
#include "terminal/json_text.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace pagoda::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kTemplateExamples =
    "Examples:\n"
    "  pagoda template check model.gguf\n"
    "  pagoda template check model.gguf --chat-template edited.jinja --turns 6\n"
    "  pagoda template check model.gguf --json";

struct TemplateOptions {
  std::string model = app::default_model_path();
  std::string chat_template;
  chat::FormOverrides forms;
  std::uint32_t turns = 3;
  bool json = false;
};

struct TemplateReport {
  chat::FoundForm found;
  std::vector<chat::TurnScenario> scenarios;
  std::optional<std::size_t> date_token;
};

Json loss_json(const chat::TurnLoss& loss) {
  Json json = {{"turn", loss.turn},
               {"cached_tokens", loss.cached_tokens},
               {"kept_tokens", loss.kept_tokens},
               {"lost_tokens", loss.lost_tokens()}};
  if (loss.cause.empty()) return json;
  json["cause"] = loss.cause;
  json["was"] = loss.was;
  json["became"] = loss.became;
  json["fix"] = with_flags(loss.fix);
  return json;
}

Json report_json(const TemplateReport& report) {
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
  return json;
}

std::string quoted(const std::string& text) { return terminal::json_text(Json(text), -1); }

std::string report_text(const TemplateReport& report) {
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
                          quoted(loss.became), with_flags(loss.fix));
    }
  }
  return text;
}

Result<std::string> check(const TemplateOptions& options) {
  ASSIGN_OR_RETURN(const gguf::File file, app::open_model_file(options.model));
  ASSIGN_OR_RETURN(const std::unique_ptr<text::Tokenizer> tokenizer,
                   text::Tokenizer::load(file.metadata()));
  ASSIGN_OR_RETURN(const text::ChatTemplate chat,
                   options.chat_template.empty()
                       ? text::ChatTemplate::load(file.metadata(), *tokenizer)
                       : text::ChatTemplate::load_file(options.chat_template, *tokenizer));
  TemplateReport report;
  ASSIGN_OR_RETURN(report.found, chat::find_form(chat, options.forms));
  report.scenarios = chat::check_turns(chat, *tokenizer, report.found, options.turns);
  report.date_token = chat::find_date(chat, *tokenizer);
  if (options.json) return terminal::json_text(report_json(report)) + "\n";
  return report_text(report);
}

}  // namespace

void add_template_command(const CommandSpec& app, int& exit_status) {
  const CommandSpec command =
      app.add_subcommand("template", "What a model's chat template does to calls and to the cache");
  command.require_subcommand();
  const CommandSpec checks = command.add_subcommand(
      "check", "print the form of tool calls and reasoning, and what the next turn loses");
  checks.footer(kTemplateExamples);
  const auto options = std::make_shared<TemplateOptions>();
  add_model_option(checks, options->model);
  checks
      .add_option("--chat-template", options->chat_template,
                  "check this template instead of the model's own")
      .type_name("FILE");
  checks.add_option("--tool-call-parser", options->forms.tool_parser,
                    "form of tool calls by vLLM's name, in the place of the derived one");
  checks.add_option("--reasoning-parser", options->forms.reasoning_parser,
                    "form of reasoning by vLLM's name, in the place of the derived one");
  checks.add_option("--turns", options->turns, "answers of each conversation (default 3)")
      .range(1u, 100u);
  checks.add_flag("--json", options->json, "one JSON value on stdout");
  checks.callback([options, &exit_status] {
    const Result<std::string> shown = check(*options);
    if (!shown.ok()) {
      print_error(with_flags(shown.error().message));
      exit_status = shown.error().code == ErrorCode::kInvalidArgument ? 2 : 1;
      return;
    }
    std::fwrite(shown.value().data(), 1, shown.value().size(), stdout);
    exit_status = 0;
  });
}

}  // namespace pagoda::cli
