// An answer as a list of items, each a run of reasoning, of text, or one tool call: the blocks of
// Anthropic's messages and the output items of OpenAI's responses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/choice_text.h"

namespace pagoda::server {

struct AnswerItem {
  enum class Kind : std::uint8_t { kReasoning, kText, kCall };

  Kind kind = Kind::kText;
  std::string text;       // so far; of a call, its arguments as JSON
  std::string name = {};  // of a call's tool
  std::string id = {};    // of a call
};

// Told of the items of a stream, in order: each is opened, added to, and closed before the next.
class AnswerItemSink {
 public:
  virtual ~AnswerItemSink() = default;
  virtual void opened(const AnswerItem& item, std::size_t index) = 0;
  virtual void added(const AnswerItem& item, std::size_t index, std::string_view delta) = 0;
  virtual void closed(const AnswerItem& item, std::size_t index) = 0;
};

class AnswerItems {
 public:
  void add(const Piece& piece, AnswerItemSink& sink);
  // Closes the last item.
  void close(AnswerItemSink& sink);

 private:
  void open(AnswerItem item, AnswerItemSink& sink);
  void append(AnswerItem::Kind kind, std::string_view text, AnswerItemSink& sink);

  std::optional<AnswerItem> item_;  // the open one
  std::size_t items_ = 0;           // items that were opened
};

// Returns the items of a whole answer.
std::vector<AnswerItem> items_of(const Piece& all);

}  // namespace pagoda::server
