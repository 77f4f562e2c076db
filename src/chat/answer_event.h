// An AnswerEvent is a piece of an answer; events come in the order in which the model wrote them.
#pragma once

#include <cstdint>
#include <string>

namespace pagoda::chat {

struct AnswerEvent {
  enum class Kind : std::uint8_t {
    kReasoning,  // `text` is a piece of it
    kContent,    // likewise
    kCallBegin,  // `text` is the tool's name, `id` the call's
    kArguments,  // `text` is a piece of the call's arguments as JSON
  };

  Kind kind = Kind::kContent;
  std::string text;
  std::uint32_t call = 0;  // the call's number in this answer, from 0
  std::string id = {};

  bool operator==(const AnswerEvent&) const = default;
};

}  // namespace pagoda::chat
