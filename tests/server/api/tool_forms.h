// Every known form of tool calls, and texts that a grammar lets through, drawn by chance.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "chat/answer_form.h"
#include "chat/known_forms.h"
#include "server/story_fixture.h"
#include "structured/matcher.h"

namespace pagoda::server {

struct NamedForm {
  std::string name;
  chat::AnswerForm form;
};

inline std::vector<NamedForm> all_forms() {
  std::vector<NamedForm> forms;
  for (const chat::KnownToolForm& known : chat::known_tool_forms()) {
    chat::AnswerForm form;
    form.calls = known.calls;
    form.channels = known.channels;
    forms.push_back({std::string(known.names.front()), form});
  }
  chat::AnswerForm generic;
  generic.generic = true;
  generic.calls = chat::generic_tool_form();
  forms.push_back({"generic", generic});
  return forms;
}

inline const text::Tokenizer& any_tokenizer() {
  static StoryFixture fixture;
  return fixture.tokenizer();
}

// A vocabulary of bytes; token 256 ends an answer.
inline std::shared_ptr<const structured::MaskVocabulary> byte_vocabulary() {
  std::vector<std::string> bytes;
  for (int byte = 0; byte < 256; ++byte) bytes.emplace_back(1, static_cast<char>(byte));
  const std::vector<TokenId> ends = {TokenId(256)};
  return structured::MaskVocabulary::build(std::move(bytes), ends, 257);
}

// Goes through the grammar by chance, and ends where it may. Now and then it writes one of the
// `lures` for as long as the grammar lets it: texts that a reader may take for something else.
class TextDrawer {
 public:
  TextDrawer(const std::shared_ptr<const structured::Grammar>& grammar,
             std::vector<std::string> lures, std::mt19937& random)
      : vocabulary_(byte_vocabulary()),
        matcher_(grammar, vocabulary_),
        mask_(vocabulary_->words()),
        lures_(std::move(lures)),
        random_(random) {}

  // Returns an empty text where it became too long.
  std::string draw() {
    while (text_.size() < 4000) {
      EXPECT_TRUE(matcher_.fill_mask(mask_).ok()) << text_;
      if (matcher_.may_end() && random_() % 2 == 0) return text_;
      if (!lures_.empty() && random_() % 6 == 0) {
        write_lure(lures_[random_() % lures_.size()]);
        continue;
      }
      write_any();
    }
    return {};
  }

 private:
  bool allows(char byte) const {
    return structured::has_mask_bit(mask_, static_cast<unsigned char>(byte));
  }

  void write(char byte) {
    EXPECT_TRUE(matcher_.accept(TokenId(static_cast<unsigned char>(byte))).ok()) << text_;
    text_ += byte;
  }

  void write_lure(const std::string& lure) {
    for (const char byte : lure) {
      if (!allows(byte)) return;
      write(byte);
      EXPECT_TRUE(matcher_.fill_mask(mask_).ok()) << text_;
    }
  }

  void write_any() {
    std::vector<char> allowed;
    for (int byte = 0; byte < 256; ++byte) {
      // Few long texts: a marker's first byte and ASCII are tried more often than others.
      const bool is_dull = byte < 0x20 || byte >= 0x80;
      const bool is_tried = !is_dull || random_() % 16 == 0;
      if (is_tried && allows(static_cast<char>(byte))) allowed.push_back(static_cast<char>(byte));
    }
    if (allowed.empty()) return;
    const bool closes = allows('<') && random_() % 4 == 0;
    write(closes ? '<' : allowed[random_() % allowed.size()]);
  }

  std::shared_ptr<const structured::MaskVocabulary> vocabulary_;
  structured::Matcher matcher_;
  std::vector<structured::MaskWord> mask_;
  std::vector<std::string> lures_;
  std::mt19937& random_;
  std::string text_;
};

}  // namespace pagoda::server
