// StopStringWatch tells the engine when a choice's text has come to a stop string, so that it
// computes nothing behind it. It reads tokens exactly as ChoiceText, which cuts the text.
#pragma once

#include <string>
#include <vector>

#include "engine/request.h"
#include "server/api/completion_request.h"
#include "text/detokenizer.h"
#include "text/stop_strings.h"

namespace pagoda::server {

class StopStringWatch final : public engine::OutputWatch {
 public:
  // Watches the choices of one prompt, whose has_visible_text() is `continues`. The tokenizer must
  // outlive the watch, and so must the model of the request; the request need not.
  StopStringWatch(const text::Tokenizer& tokenizer, const CompletionRequest& request,
                  bool continues);

  bool ends_with(std::uint32_t sequence, TokenId token) override;

 private:
  struct Choice {
    text::Detokenizer detokenizer;
    text::StopStrings stops;
    std::uint64_t tokens = 0;
  };

  std::vector<Choice> choices_;
  std::uint32_t tokens_min_;
  std::string text_;  // of the token that is looked at
};

}  // namespace pagoda::server
