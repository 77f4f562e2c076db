// Reads whole answers for tests, cut into pieces in any way.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "chat/answer_parser.h"
#include "text/utf8.h"

namespace pagoda::chat {

struct ReadCall {
  std::string name;
  std::string arguments;

  bool operator==(const ReadCall&) const = default;
};

struct Reading {
  std::string reasoning;
  std::string content;
  std::vector<ReadCall> calls;

  bool operator==(const Reading&) const = default;

  void add(const std::vector<AnswerEvent>& events) {
    for (const AnswerEvent& event : events) {
      switch (event.kind) {
        case AnswerEvent::Kind::kReasoning:
          reasoning += event.text;
          break;
        case AnswerEvent::Kind::kContent:
          content += event.text;
          break;
        case AnswerEvent::Kind::kCallBegin:
          calls.push_back({event.text, ""});
          break;
        case AnswerEvent::Kind::kArguments:
          calls.at(event.call).arguments += event.text;
          break;
      }
    }
  }
};

inline Reading read_pieces(const AnswerForm& form, const ToolSchemas& schemas,
                           const AnswerOptions& options,
                           const std::vector<std::string_view>& pieces) {
  AnswerParser parser(form, schemas, options);
  Reading reading;
  for (const std::string_view piece : pieces) reading.add(parser.push(piece));
  reading.add(parser.finish());
  return reading;
}

// The bytes at which a character begins, and the end.
inline std::vector<std::size_t> character_edges(std::string_view text) {
  std::vector<std::size_t> edges;
  for (std::size_t at = 0; at < text.size();) {
    edges.push_back(at);
    at += std::max<std::size_t>(1, text::utf8_char_bytes(text.substr(at)));
  }
  edges.push_back(text.size());
  return edges;
}

inline std::vector<std::string_view> cut_at(std::string_view text,
                                            const std::vector<std::size_t>& edges) {
  std::vector<std::string_view> pieces;
  std::size_t from = 0;
  for (const std::size_t edge : edges) {
    pieces.push_back(text.substr(from, edge - from));
    from = edge;
  }
  pieces.push_back(text.substr(from));
  return pieces;
}

}  // namespace pagoda::chat
