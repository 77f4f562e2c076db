// The form that was derived from a model's chat template, and the tokens that the next turn of a
// conversation loses of the cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "chat/derive.h"
#include "chat/turn_check.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace pagoda::inspect {

struct TemplateReport {
  chat::FoundForm found;
  std::vector<chat::TurnScenario> scenarios;
  std::optional<std::size_t> date_token;  // the token of the prompt that holds a date
};

// Checks conversations of so many turns.
Result<TemplateReport> check_template(const text::ChatTemplate& chat_template,
                                      const text::Tokenizer& tokenizer,
                                      const chat::FormOverrides& forms, std::uint32_t turns);

// For people.
std::string template_report_text(const TemplateReport& report);
// One JSON value and a newline.
std::string template_report_json(const TemplateReport& report);

}  // namespace pagoda::inspect
