// One completion from its submission to its last byte: the connection's side of the engine's
// replies. It knows tokens, text and JSON, and no socket.
//
//   start(wake)   hands every prompt to the engine
//   take()        after each wake: what a stream sends next
//   reply()       once finished, without a stream: the whole reply
//
// One thread at a time. Destroying it cancels what still runs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "server/api/completion_format.h"
#include "server/api/completion_request.h"
#include "server/api/usage.h"
#include "server/api_error.h"
#include "server/http_reply.h"
#include "server/reply_queue.h"
#include "server/request_log.h"
#include "server/sse_template.h"

namespace pagoda::server {

class Completion {
 public:
  // The model must outlive it.
  Completion(const ServedModel& model, CompletionRequest request);
  ~Completion();
  Completion(const Completion&) = delete;
  Completion& operator=(const Completion&) = delete;

  // `wake` is called on the engine's thread whenever there is something to take. Throws ApiError
  // when the engine refuses; nothing runs then.
  void start(std::function<void()> wake);

  bool streams() const { return request_.output.stream; }
  // What came since the last call, as server-sent events. Empty without a stream.
  std::string take();
  // For a stream that would be silent for too long: a comment, which clients skip.
  std::string keep_alive();
  bool finished() const { return finished_; }
  // Why it ended early. A stream that began has been told already.
  const std::optional<ApiError>& error() const { return error_; }
  // What still runs computes for nobody from now on.
  void cancel() noexcept;
  // Ends it early; the last words of a stream that began.
  std::string abort(const ApiError& error);

  // Finished and without an error.
  HttpReply reply() const;

  // Memory that it takes, about.
  std::uint64_t memory_bytes() const { return request_.memory.bytes(); }

  // What it cost so far; cached tokens are known when it has finished.
  Usage usage() const;
  // What is known of it, for the log. Prompts only where asked for.
  LogEntry log_entry(bool with_prompts) const;

 private:
  struct Choice {
    ChoiceState state;
    ChoiceText text;
    Piece whole;  // without a stream
    std::string_view finish_reason = {};
    std::optional<SseTemplate> sse_template = {};  // for pieces of nothing but text
  };
  struct Submitted {
    engine::RequestId id;
    std::uint64_t seed = 0;
    std::uint64_t cached_tokens = 0;
    engine::LoadRecord load;
    std::optional<engine::RetainOutcome> retain;
    std::optional<kv::Explanation> explanation;
    std::uint32_t choices_open = 0;     // whose text goes on
    std::uint32_t choices_running = 0;  // in the engine
    std::vector<engine::TokenScore> scores;
  };

  void submit(std::uint32_t prompt);
  void handle(const ReplyEvent& event, std::string& out);
  Piece next_piece(Choice& choice, const ReplyEvent& event) const;
  void send(Choice& choice, Piece piece, std::string& out);
  void keep(Choice& choice, Piece piece, std::string& out);
  bool send_plain(Choice& choice, const Piece& piece, std::string& out) const;
  void finish(std::string& out);
  Json envelope(std::string_view object) const;
  std::string event_text(const Json& choice, Json more) const;
  Json retained() const;
  Json explained() const;
  Submitted& submitted_of(const Choice& choice) {
    return submitted_[choice.state.index / request_.choices_per_prompt()];
  }

  const ServedModel& model_;
  CompletionRequest request_;
  std::unique_ptr<CompletionFormat> format_;
  std::string id_;
  std::int64_t created_s_;
  std::shared_ptr<ReplyQueue> queue_;
  std::vector<Submitted> submitted_;  // [prompt]
  std::vector<Choice> choices_;       // [choice]
  std::optional<ApiError> error_;
  std::uint64_t choices_running_ = 0;  // in the engine
  std::int64_t begun_ns_;
  std::int64_t first_token_ns_ = 0;
  std::int64_t finished_ns_ = 0;
  bool began_ = false;  // a stream that has sent something
  bool finished_ = false;
};

}  // namespace pagoda::server
