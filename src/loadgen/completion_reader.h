// The body of a completion to what is known of its output: text, when it came, what it cost. Reads
// streams (server-sent events) and whole replies, of completions and of chats.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "net/sse_parser.h"

namespace pagoda::loadgen {

class CompletionReader {
 public:
  explicit CompletionReader(bool streams) : streams_(streams) {}

  // How many of the events in these bytes brought text. A whole reply is kept until end().
  std::uint32_t put(std::string_view body);
  // The body is complete.
  void end();

  const std::string& text() const { return text_; }
  // A reason for its end was given, and a stream said that it is over.
  bool is_complete() const { return finished_ && (done_ || !streams_); }
  const std::string& finish_reason() const { return finish_reason_; }
  // The server said so inside of a reply of status 200.
  const std::string& error() const { return error_; }
  bool is_malformed() const { return malformed_; }

  // Where the server reports its usage.
  std::optional<std::uint64_t> prompt_tokens() const { return prompt_tokens_; }
  std::optional<std::uint64_t> completion_tokens() const { return completion_tokens_; }
  std::optional<std::uint64_t> cached_tokens() const { return cached_tokens_; }

 private:
  class Members;

  bool read_json(std::string_view json);  // true: it brought text

  bool streams_;
  net::SseParser events_;
  std::string whole_;
  std::string text_;
  std::string finish_reason_;
  std::string error_;
  bool finished_ = false;
  bool done_ = false;
  bool malformed_ = false;
  std::optional<std::uint64_t> prompt_tokens_;
  std::optional<std::uint64_t> completion_tokens_;
  std::optional<std::uint64_t> cached_tokens_;
};

}  // namespace pagoda::loadgen
