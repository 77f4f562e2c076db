#include "app/mask_tokens.h"

#include <string>
#include <utility>
#include <vector>

#include "structured/text_nodes.h"

namespace pagoda::app {

std::shared_ptr<const structured::MaskVocabulary> mask_vocabulary_of(
    const text::Tokenizer& tokenizer, std::size_t vocabulary) {
  std::vector<std::string> bytes(tokenizer.size());
  for (std::uint32_t id = 0; id < bytes.size(); ++id) {
    const text::TokenType type = tokenizer.type_of(TokenId(id));
    const bool is_text = type == text::TokenType::kNormal || type == text::TokenType::kByte ||
                         type == text::TokenType::kUserDefined;
    if (is_text) bytes[id] = tokenizer.bytes_of(TokenId(id));
    if (type == text::TokenType::kControl) bytes[id] = structured::control_bytes(TokenId(id));
  }
  return structured::MaskVocabulary::build(std::move(bytes), tokenizer.end_tokens(), vocabulary);
}

}  // namespace pagoda::app
