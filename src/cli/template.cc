// pagoda template check: what was derived from a model's chat template, and what the next turn of a
// conversation loses of the cache.
#include <cstdio>
#include <memory>
#include <string>

#include "app/loaded_model.h"
#include "chat/known_forms.h"
#include "cli/commands.h"
#include "cli/model_flags.h"
#include "cli/options.h"
#include "gguf/file.h"
#include "inspect/template_report.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace pagoda::cli {
namespace {

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

Result<std::string> check(const TemplateOptions& options) {
  ASSIGN_OR_RETURN(const gguf::File file, app::open_model_file(options.model));
  ASSIGN_OR_RETURN(const std::unique_ptr<text::Tokenizer> tokenizer,
                   text::Tokenizer::load(file.metadata()));
  ASSIGN_OR_RETURN(const text::ChatTemplate chat,
                   options.chat_template.empty()
                       ? text::ChatTemplate::load(file.metadata(), *tokenizer)
                       : text::ChatTemplate::load_file(options.chat_template, *tokenizer));
  ASSIGN_OR_RETURN(const inspect::TemplateReport report,
                   inspect::check_template(chat, *tokenizer, options.forms, options.turns));
  return options.json ? inspect::template_report_json(report)
                      : inspect::template_report_text(report);
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
      print_error(shown.error().message);
      exit_status = shown.error().code == ErrorCode::kInvalidArgument ? 2 : 1;
      return;
    }
    std::fwrite(shown.value().data(), 1, shown.value().size(), stdout);
    exit_status = 0;
  });
}

}  // namespace pagoda::cli
