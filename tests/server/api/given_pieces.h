// Answers in pieces, as a choice's text gives them, and the events that a writer makes of them.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "server/api/reply_writer.h"

namespace pagoda::server {

using EventKind = chat::AnswerEvent::Kind;

inline Piece piece_of(EventKind kind, const std::string& text, std::uint32_t call = 0) {
  Piece piece;
  piece.events.push_back({.kind = kind, .text = text, .call = call});
  if (kind == EventKind::kCallBegin) piece.events.back().id = "call_" + std::to_string(call);
  return piece;
}

// Reasoning, text and two calls, the second without arguments.
inline std::vector<Piece> answer_with_calls() {
  std::vector<Piece> pieces = {
      piece_of(EventKind::kReasoning, "Hm"),
      piece_of(EventKind::kReasoning, "m \"so\"."),
      piece_of(EventKind::kContent, "Let me"),
      piece_of(EventKind::kContent, " see."),
      Piece(),  // a marker is held back
      piece_of(EventKind::kCallBegin, "get_weather", 0),
      piece_of(EventKind::kArguments, "{\"city\":", 0),
      piece_of(EventKind::kArguments, " \"Rome\"}", 0),
      piece_of(EventKind::kCallBegin, "now", 1),
      piece_of(EventKind::kArguments, "{}", 1),
  };
  pieces.emplace_back().finish_reason = "tool_calls";
  return pieces;
}

inline Piece joined(const std::vector<Piece>& pieces) {
  Piece all;
  for (const Piece& piece : pieces) all.append(piece);
  return all;
}

// Of a prompt of 10 tokens, 4 of them cached.
inline ReplyFacts given_facts() {
  Prompt prompt;
  prompt.tokens.resize(10);
  prompt.sources.resize(10);
  ReplyFacts facts = {.id = "resp_7", .model = "stories", .created_s = 5, .reasoning_tokens = 2};
  facts.usage.add_prompt(prompt, 4);
  facts.usage.add_completion(3);
  return facts;
}

// A body that must be refused.
struct BadBody {
  const char* change;  // merged into a good body
  const char* param;
};

struct SentEvent {
  std::string name;
  Json data;
};

inline std::vector<SentEvent> read_events(std::string stream) {
  std::vector<SentEvent> events;
  for (std::size_t end; (end = stream.find("\n\n")) != std::string::npos;
       stream.erase(0, end + 2)) {
    const std::string event = stream.substr(0, end);
    const std::size_t line = event.find('\n');
    EXPECT_TRUE(event.starts_with("event: ")) << event;
    EXPECT_EQ(event.substr(line + 1, 6), "data: ") << event;
    events.push_back({event.substr(7, line - 7), Json::parse(event.substr(line + 7))});
    EXPECT_EQ(events.back().data["type"], events.back().name);
  }
  EXPECT_EQ(stream, "");
  return events;
}

inline std::vector<SentEvent> streamed(ReplyWriter& writer, const std::vector<Piece>& pieces) {
  std::string out;
  writer.begin(given_facts(), out);
  for (const Piece& piece : pieces) writer.add(piece, out);
  writer.end(given_facts(), pieces.back(), out);
  return read_events(out);
}

// "a b c": the names of the events, a run of one name once.
inline std::string names_of(const std::vector<SentEvent>& events) {
  std::string names;
  const std::string* last = nullptr;
  for (const SentEvent& event : events) {
    if (last == nullptr || *last != event.name) names += (names.empty() ? "" : " ") + event.name;
    last = &event.name;
  }
  return names;
}

}  // namespace pagoda::server
