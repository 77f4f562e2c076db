// Texts of a model's form of answers as grammars have them: control tokens that are markers become
// the bytes by which a grammar names them (structured/text_nodes.h).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chat/served_form.h"
#include "structured/text_nodes.h"
#include "text/tokenizer.h"

namespace pagoda::server {

class MarkedText {
 public:
  MarkedText(const chat::ServedForm& form, const text::Tokenizer& tokenizer);

  // Returns the text up to its first end token, which a grammar allows where it ends.
  std::string encode(std::string_view text) const;
  // The same, with the text that ordinary tokens may spell.
  structured::TextMarker marker(std::string_view text) const {
    return {encode(text), std::string(text)};
  }

 private:
  struct Mark {
    std::string text;
    std::string bytes;  // empty: an end token
  };

  std::vector<Mark> marks_;  // longest first
};

}  // namespace pagoda::server
