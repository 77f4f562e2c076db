// One completion from its submission to its last byte: the connection's side of the engine's
// replies. A completion knows tokens, text and JSON, and no socket.
//
//   start(wake)   submits every prompt to the engine
//   take()        after each wake: returns the bytes that a stream sends next
//   reply()       once finished, without a stream: returns the whole reply
//
// One thread at a time may use a completion. Its destructor cancels the sequences that still run.
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
#include "server/api/reply_writer.h"
#include "server/api/usage.h"
#include "server/api_error.h"
#include "server/http_reply.h"
#include "server/option_name.h"
#include "server/reply_queue.h"
#include "server/request_log.h"
#include "server/sse_template.h"

namespace pagoda::server {

class Completion {
 public:
  // The model and `option_name` must outlive the completion.
  Completion(const ServedModel& model, CompletionRequest request, const OptionName& option_name);
  ~Completion();
  Completion(const Completion&) = delete;
  Completion& operator=(const Completion&) = delete;

  // `wake` is called on the engine's thread whenever take() has something. Throws ApiError when the
  // engine refuses a prompt; no sequence runs then.
  void start(std::function<void()> wake);

  // The reply's id.
  const std::string& id() const { return id_; }
  bool streams() const { return request_.output.stream; }
  // The Content-Type of the stream.
  std::string_view stream_type() const;
  // Returns the tokens since the last call as server-sent events; empty without a stream.
  std::string take();
  // Returns bytes that clients skip, for a stream that would be silent for too long.
  std::string keep_alive();
  bool finished() const { return finished_; }
  // `note` is called once, when the answer begins, or ends without a token; before the bytes that
  // take() returns then. Never for one that is refused or fails before.
  void when_answered(std::function<void()> note) { when_answered_ = std::move(note); }
  // Holds the reason when the completion ended early. A stream that began has already sent it.
  const std::optional<ApiError>& error() const { return error_; }
  // Cancels the sequences that still run.
  void cancel() noexcept;
  // Ends the completion early and returns the last bytes of a stream that began.
  std::string abort(const ApiError& error);

  // Call this once the completion has finished without an error.
  HttpReply reply() const;
  // Is reply() work for a text worker, however short it is?
  bool reply_takes_long() const { return request_.writer && request_.writer->takes_long(); }

  // Returns the estimated bytes of prompts and replies; decides on which thread they are handled.
  std::uint64_t text_bytes() const { return request_.memory.bytes() - request_.matcher_bytes; }

  // Returns the token counts so far; cached tokens are known from the first token on.
  Usage usage() const;
  // The fields of the request that nothing here reads.
  const std::vector<std::string>& ignored_fields() const { return request_.ignored; }
  // Returns what became of a prompt that was computed elsewhere, or for others, once finished;
  // nothing for requests that are whole.
  std::optional<TransferOutcome> transfer_outcome() const;
  // Returns the completion's line for the log, with its prompts only when `with_prompts`.
  LogEntry log_entry(bool with_prompts) const;

 private:
  struct Choice {
    ChoiceState state;
    ChoiceText text;
    Piece whole;  // the whole output, without a stream
    std::string_view finish_reason = {};
    std::optional<SseTemplate> sse_template = {};  // for pieces that hold nothing but text
  };
  struct Submitted {
    engine::RequestId id;
    std::uint64_t seed = 0;
    bool shows_text = false;  // the prompt does, so that outputs continue a text
    std::uint64_t cached_tokens = 0;
    engine::LoadRecord load;
    std::uint64_t written_tokens = 0;
    std::optional<engine::RetainOutcome> retain;
    std::vector<engine::RetainOutcome> breakpoints;
    std::optional<kv::Explanation> explanation;
    std::optional<engine::TurnEstimate> estimate;
    std::vector<float> embedding;
    std::uint64_t blocks_demoted = 0;
    std::optional<engine::HandoverOutcome> handover;
    engine::DraftCounts drafts = {};    // of all its sequences that ended
    std::uint32_t choices_open = 0;     // choices whose text has not ended
    std::uint32_t choices_running = 0;  // sequences that run in the engine
    std::vector<engine::TokenScore> scores;
  };

  void submit(std::uint32_t prompt);
  void handle(const ReplyEvent& event, std::string& out);
  static void note_record(Submitted& submitted, const FinishInfo& ending);
  Piece next_piece(Choice& choice, const ReplyEvent& event) const;
  void send(Choice& choice, Piece piece, std::string& out);
  void keep(Choice& choice, Piece piece, std::string& out);
  void count_kept(const Piece& piece, std::string& out);
  void write(Choice& choice, const Piece& piece, std::string& out);
  ReplyFacts facts() const;
  bool send_plain(Choice& choice, const Piece& piece, std::string& out) const;
  void finish(std::string& out);
  bool waits_for_engine() const;
  void note_answer();
  Json envelope(std::string_view object) const;
  std::string event_text(const Json& choice, Json more) const;
  bool has_last_chunk() const;
  Json cache_members() const;
  bool tells_of_cache() const;
  std::string budget_option() const;
  Json retained() const;
  engine::HandoverOutcome handed_over() const;
  Json breakpoints_kept() const;
  bool has_broken_vector() const;
  HttpReply embeddings() const;
  HttpReply cache_action() const;
  Json normalised() const;
  bool is_truncated() const;
  bool policy_drops() const;
  Json truncated() const;
  Json explained() const;
  Submitted& submitted_of(const Choice& choice) {
    return submitted_[choice.state.index / request_.choices_per_prompt()];
  }

  const ServedModel& model_;
  const OptionName& option_name_;
  CompletionRequest request_;
  std::unique_ptr<CompletionFormat> format_;
  std::string id_;
  std::int64_t created_s_;
  std::shared_ptr<ReplyQueue> queue_;
  std::vector<Submitted> submitted_;  // [prompt]
  std::vector<Choice> choices_;       // [choice]
  struct LastPiece {
    std::uint32_t choice;
    Piece piece;
  };
  std::optional<LastPiece> last_piece_;  // waits_for_engine()
  std::optional<ApiError> error_;
  std::function<void()> when_answered_;
  std::uint64_t choices_running_ = 0;  // sequences that run in the engine
  std::uint64_t choices_open_ = 0;     // choices whose text has not ended
  std::uint64_t choices_failed_ = 0;   // that ended with no token allowed
  std::int64_t begun_ns_;
  std::int64_t first_token_ns_ = 0;
  std::int64_t finished_ns_ = 0;
  bool began_ = false;  // the stream has sent bytes
  bool finished_ = false;
};

}  // namespace pagoda::server
