#include "server/api/marked_text.h"

#include <algorithm>

#include "structured/text_nodes.h"

namespace pagoda::server {

MarkedText::MarkedText(const chat::ServedForm& form, const text::Tokenizer& tokenizer) {
  const auto ends = tokenizer.end_tokens();
  for (const TokenId token : form.call_tokens) {
    const bool is_end = std::find(ends.begin(), ends.end(), token) != ends.end();
    marks_.push_back({std::string(tokenizer.text_of(token)),
                      is_end ? std::string() : structured::control_bytes(token)});
  }
  std::stable_sort(marks_.begin(), marks_.end(),
                   [](const Mark& a, const Mark& b) { return a.text.size() > b.text.size(); });
}

std::string MarkedText::encode(std::string_view text) const {
  std::string encoded;
  while (!text.empty()) {
    const auto mark = std::find_if(marks_.begin(), marks_.end(),
                                   [text](const Mark& one) { return text.starts_with(one.text); });
    if (mark == marks_.end()) {
      encoded += text.front();
      text.remove_prefix(1);
      continue;
    }
    if (mark->bytes.empty()) return encoded;
    encoded += mark->bytes;
    text.remove_prefix(mark->text.size());
  }
  return encoded;
}

}  // namespace pagoda::server
