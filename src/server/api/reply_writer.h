// Writes a completion's reply in the words of an API other than OpenAI's completions: whole, or as
// a stream of events. The request behind it is a chat with one choice (translated_chat.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "server/api/choice_text.h"
#include "server/api/usage.h"
#include "server/api_error.h"
#include "server/json.h"

namespace pagoda::server {

// The facts of a reply beside the answer; counts are those so far.
struct ReplyFacts {
  std::string_view id;
  std::string_view model;
  std::int64_t created_s = 0;
  Usage usage = {};
  std::uint64_t reasoning_tokens = 0;
  double total_s = 0;           // since the request came
  double first_token_s = 0;     // 0 before it
  Json cache = Json::object();  // members that tell what happened in the cache, once it is known
};

// A stream is begin(), add() for each piece, and end() or fail(). All append to `out`.
class ReplyWriter {
 public:
  virtual ~ReplyWriter() = default;

  virtual std::string_view id_prefix() const = 0;
  virtual std::string_view stream_type() const { return "text/event-stream; charset=utf-8"; }

  virtual void begin(const ReplyFacts& facts, std::string& out) = 0;
  virtual void add(const Piece& piece, std::string& out) = 0;
  // `last` has the reasons for which the answer ended.
  virtual void end(const ReplyFacts& facts, const Piece& last, std::string& out) = 0;
  virtual void fail(const ReplyFacts& facts, const ApiError& error, std::string& out) = 0;
  // Returns what a stream that has begun sends when it would be silent for too long.
  virtual std::string keep_alive() const { return ": keep-alive\n\n"; }

  // Does whole() take so long that it must not run on a connection's thread?
  virtual bool takes_long() const { return false; }
  // Returns the body of a whole reply.
  virtual std::string whole(const ReplyFacts& facts, const Piece& all) const = 0;
};

}  // namespace pagoda::server
