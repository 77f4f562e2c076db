#include "server/completion.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "base/assert.h"
#include "base/clock.h"
#include "base/random.h"
#include "server/api/embeddings.h"
#include "server/api/request_memory.h"
#include "server/api/retain.h"
#include "server/api/stop_string_watch.h"

namespace pagoda::server {
namespace {

std::string sse(const Json& value) { return fmt::format("data: {}\n\n", dump_json(value)); }

std::optional<ApiError> failure(const FinishInfo& ending) {
  switch (ending.reason) {
    case engine::FinishReason::kStop:
    case engine::FinishReason::kLength:
    case engine::FinishReason::kContext:
      return std::nullopt;
    case engine::FinishReason::kRefused:
      return ApiError(429, ending.message, {}, "too_many_requests");
    case engine::FinishReason::kDeadline:
      return ApiError(504, "the request timed out", {}, "timeout");
    case engine::FinishReason::kCancelled:
      return ApiError(503, "the request was cancelled", {}, "cancelled");
    case engine::FinishReason::kError:
      return ApiError(500, ending.message, {}, "internal_error");
    case engine::FinishReason::kNoToken:
      return ApiError(400, ending.message, {}, "no_token_allowed");
    case engine::FinishReason::kLost:
      return ApiError(503, ending.message, {}, "device_lost");
  }
  return std::nullopt;
}

}  // namespace

Completion::Completion(const ServedModel& model, CompletionRequest request,
                       const OptionName& option_name)
    : model_(model),
      option_name_(option_name),
      request_(std::move(request)),
      format_(request_.is_chat ? make_chat_format(request_, model.tokenizer)
                               : make_text_format(request_, model.tokenizer)),
      id_(fmt::format("{}{:016x}",
                      request_.writer ? request_.writer->id_prefix() : format_->id_prefix(),
                      fresh_seed())),
      created_s_(std::time(nullptr)),
      submitted_(request_.prompts.size()),
      begun_ns_(model.engine.now_ns()) {
  const std::uint32_t each = request_.choices_per_prompt();
  choices_.reserve(submitted_.size() * each);
  for (std::uint32_t i = 0; i < submitted_.size(); ++i) {
    const Prompt& prompt = request_.prompts[i];
    submitted_[i].seed = request_.seed ? *request_.seed : engine::reportable_seed(fresh_seed());
    submitted_[i].choices_open = each;
    const bool continues =
        has_visible_text(prompt, model.tokenizer, request_.output.show_special_tokens);
    submitted_[i].shows_text = continues;
    for (std::uint32_t choice = 0; choice < each; ++choice) {
      const ChoiceState state = {.index = i * each + choice,
                                 .prompt = &prompt,
                                 .seed = engine::seed_of_sequence(submitted_[i].seed, choice)};
      choices_.push_back({state, ChoiceText(model.tokenizer, request_, continues), {}, {}});
    }
  }
}

Completion::~Completion() { cancel(); }

void Completion::start(std::function<void()> wake) {
  queue_ = std::make_shared<ReplyQueue>(model_.step_notifier, std::move(wake));
  for (std::uint32_t i = 0; i < submitted_.size(); ++i) submit(i);
}

void Completion::submit(std::uint32_t prompt) {
  const std::uint32_t each = request_.choices_per_prompt();
  engine::Request asked = request_.engine;
  asked.prompt = request_.prompts[prompt].tokens;
  asked.sampling.seed = submitted_[prompt].seed;
  if (request_.public_upto) {
    asked.public_tokens = upto_tokens(*request_.public_upto, request_.prompts[prompt]);
  }
  if (request_.retain) asked.retain = retain_params(*request_.retain, request_.prompts[prompt]);
  if (!request_.output.stops.empty() && !request_.output.prompt_only) {
    asked.watch = std::make_shared<StopStringWatch>(model_.tokenizer, request_,
                                                    submitted_[prompt].shows_text);
  }
  const std::vector<kv::PageOrigin>& origins = request_.transfer.origins;
  if (!origins.empty()) asked.origin = origins[std::min<std::size_t>(prompt, origins.size() - 1)];
  asked.first_turn_tokens = request_.prompts[prompt].first_turn_tokens;
  asked.breakpoints = retain_params(breakpoints_of(request_.cache, asked.prompt.size()));
  const Result<engine::RequestId> id =
      model_.engine.submit(std::move(asked), queue_->sink(prompt, prompt * each));
  if (!id.ok()) throw renamed(api_error(id.error()), request_.names);
  submitted_[prompt].id = id.value();
  submitted_[prompt].choices_running = each;
  choices_running_ += each;
  choices_open_ += each;
}

std::string Completion::take() {
  std::string out;
  if (finished_) return out;
  ReplyQueue::Batch batch = queue_->take();
  if (batch.was_full) model_.engine.wake();
  for (PromptScores& part : batch.scores) {
    std::vector<engine::TokenScore>& scores = submitted_[part.prompt].scores;
    scores.insert(scores.end(), std::make_move_iterator(part.scores.begin()),
                  std::make_move_iterator(part.scores.end()));
  }
  for (const ReplyEvent& event : batch.events) {
    handle(event, out);
    if (finished_) break;
  }
  return out;
}

std::string_view Completion::stream_type() const {
  return request_.writer ? request_.writer->stream_type() : "text/event-stream; charset=utf-8";
}

std::string Completion::keep_alive() {
  if (request_.writer) {
    if (began_) return request_.writer->keep_alive();
    std::string out;
    request_.writer->begin(facts(), out);
    began_ = !out.empty();  // until something is sent, an error may still have its status
    return out;
  }
  began_ = true;
  return ": keep-alive\n\n";
}

void Completion::handle(const ReplyEvent& event, std::string& out) {
  Choice& choice = choices_[event.choice];
  Submitted& submitted = submitted_of(choice);
  choice.state.prompt_scores = submitted.scores;
  if (event.token && first_token_ns_ == 0) {
    first_token_ns_ = model_.engine.now_ns();
    note_answer();
  }
  if (event.token && event.choice % request_.choices_per_prompt() == 0) {
    submitted.cached_tokens = event.token->prompt_tokens_cached;
  }
  if (event.ending) {
    --submitted.choices_running;
    --choices_running_;
    submitted.drafts.add(event.ending->record.drafts);
    if (event.choice % request_.choices_per_prompt() == 0) note_record(submitted, *event.ending);
  }
  if (!choice.text.ended()) {
    const auto failed = event.ending ? failure(*event.ending) : std::nullopt;
    const bool is_alone = event.ending && event.ending->reason == engine::FinishReason::kNoToken &&
                          choices_.size() > 1;
    if (failed && !is_alone) {
      out += abort(*failed);
      return;
    }
    // The grammar of one choice is at a dead end: the others go on; if all are, that is the answer.
    if (failed && ++choices_failed_ == choices_.size()) {
      out += abort(*failed);
      return;
    }
    Piece piece = next_piece(choice, event);
    if (choice.text.ended()) {
      --choices_open_;
      // The answer was read to its end before the sequence's, so the rest of that is not needed.
      if (--submitted.choices_open == 0 && submitted.choices_running > 0) {
        model_.engine.cancel(submitted.id, engine::FinishReason::kStop);
      }
    }
    if (waits_for_engine()) {
      last_piece_ = {event.choice, std::move(piece)};
    } else {
      send(choice, std::move(piece), out);
    }
  }
  if (choices_running_ == 0 && !finished_) finish(out);
}

// True: the text has ended before the engine, which alone knows what became of the cache. The last
// piece of a stream of chunks waits for it, because the last chunk tells that.
bool Completion::waits_for_engine() const {
  return choices_open_ == 0 && choices_running_ > 0 && streams() && !request_.writer &&
         !has_last_chunk() && tells_of_cache();
}

void Completion::note_answer() {
  if (const auto note = std::exchange(when_answered_, nullptr)) note();
}

void Completion::note_record(Submitted& submitted, const FinishInfo& ending) {
  const engine::SequenceRecord& record = ending.record;
  submitted.cached_tokens = record.prompt_tokens_cached;
  submitted.written_tokens = record.prompt_tokens_written;
  submitted.load = record.load;
  submitted.retain = record.retain;
  submitted.breakpoints = record.breakpoints;
  submitted.explanation = record.explanation;
  submitted.estimate = record.estimate;
  submitted.embedding = record.embedding;
  submitted.blocks_demoted = record.blocks_demoted;
  submitted.handover = record.handover;
}

Piece Completion::next_piece(Choice& choice, const ReplyEvent& event) const {
  Piece piece;
  if (event.token && !request_.output.prompt_only) piece = choice.text.push(*event.token);
  if (event.ending && !choice.text.ended()) {
    piece.append(choice.text.finish(event.ending->reason));
  }
  return piece;
}

void Completion::send(Choice& choice, Piece piece, std::string& out) {
  if (!piece.finish_reason.empty()) choice.finish_reason = piece.finish_reason;
  if (!streams()) return keep(choice, std::move(piece), out);
  if (request_.writer) return write(choice, piece, out);
  if (send_plain(choice, piece, out)) return;
  Json more = choice.state.opened ? Json::object() : format_->extras(choice.state);
  if (!choice.state.opened) {
    const Json opening = format_->opening(choice.state);
    if (!opening.is_null()) out += event_text(opening, std::exchange(more, Json::object()));
  }
  // Facts about the cache come with the last chunk, or with the counts that are sent behind it.
  if (choices_running_ == 0 && !has_last_chunk()) more.update(cache_members());
  out += event_text(format_->chunk(choice.state, piece), std::move(more));
  choice.state.opened = true;
  began_ = true;
}

// Writers keep what they need of an answer for its last events.
void Completion::write(Choice& choice, const Piece& piece, std::string& out) {
  if (!std::exchange(began_, true)) request_.writer->begin(facts(), out);
  request_.writer->add(piece, out);
  choice.whole.finish_reason = choice.finish_reason;
  if (!piece.stop_reason.is_null()) choice.whole.stop_reason = piece.stop_reason;
  count_kept(piece, out);
}

ReplyFacts Completion::facts() const {
  const std::int64_t now_ns = finished_ ? finished_ns_ : model_.engine.now_ns();
  ReplyFacts facts = {.id = id_,
                      .model = model_.name(),
                      .created_s = created_s_,
                      .usage = usage(),
                      .reasoning_tokens = choices_.front().text.reasoning_tokens(),
                      .total_s = seconds_between(begun_ns_, now_ns)};
  facts.cache = finished_ ? cache_members() : request_.cache.diagnosis;
  if (first_token_ns_ != 0) facts.first_token_s = seconds_between(begun_ns_, first_token_ns_);
  return facts;
}

// Keeps a piece until the whole reply can be sent.
void Completion::keep(Choice& choice, Piece piece, std::string& out) {
  count_kept(piece, out);
  choice.whole.append(std::move(piece));
}

// The memory of a piece is counted as the JSON it becomes.
void Completion::count_kept(const Piece& piece, std::string& out) {
  std::uint64_t bytes = 2 * piece.text.size() + piece.tokens.size() * kTokenIdBytes;
  for (const chat::AnswerEvent& event : piece.events) bytes += 2 * event.text.size();
  for (const OptionalScore& score : piece.scores) {
    if (score) bytes += (score->top.size() + 2) * kLogprobBytes;
  }
  if (request_.memory.grow(bytes)) return;
  const ByteBudget::Hold& memory = request_.memory;
  out += abort(out_of_request_memory(memory.budget(), memory.bytes() + bytes));
}

// Takes the short way for the usual piece: nothing but text in the middle of a choice.
bool Completion::send_plain(Choice& choice, const Piece& piece, std::string& out) const {
  const OutputOptions& asked = request_.output;
  if (!choice.state.opened || !piece.finish_reason.empty() || asked.logprobs ||
      asked.return_token_ids) {
    return false;
  }
  std::string_view text = piece.text;
  if (request_.answer) {
    // Markers are held back: many tokens of a call say nothing yet.
    if (piece.events.empty()) return true;
    const chat::AnswerEvent& event = piece.events.front();
    if (piece.events.size() > 1 || event.kind != chat::AnswerEvent::Kind::kContent) return false;
    text = event.text;
  }
  if (!choice.sse_template) {
    Piece marked;
    marked.text = SseTemplate::kPlaceholder;
    choice.sse_template =
        SseTemplate::from_event(event_text(format_->chunk(choice.state, marked), Json::object()));
    if (!choice.sse_template) return false;
  }
  choice.sse_template->render(text, out);
  return true;
}

void Completion::finish(std::string& out) {
  if (has_broken_vector()) {
    out += abort(ApiError(500, "the model gave a vector that is not finite", {}, "internal_error"));
    return;
  }
  if (last_piece_) send(choices_[last_piece_->choice], std::move(last_piece_->piece), out);
  finished_ = true;
  finished_ns_ = model_.engine.now_ns();
  note_answer();
  if (!streams()) return;
  if (request_.writer) {
    if (!std::exchange(began_, true)) request_.writer->begin(facts(), out);
    return request_.writer->end(facts(), choices_.front().whole, out);
  }
  if (has_last_chunk()) {
    Json last = envelope(format_->chunk_object());
    last["choices"] = Json::array();
    if (request_.output.include_usage) last["usage"] = usage().to_json(model_.tiers);
    last.update(cache_members());
    out += sse(last);
  }
  out += "data: [DONE]\n\n";
}

std::string Completion::abort(const ApiError& error) {
  if (finished_) return {};
  cancel();
  error_ = error;
  finished_ = true;
  finished_ns_ = model_.engine.now_ns();
  if (!began_) return {};
  if (!request_.writer) return sse(error_json(error)) + "data: [DONE]\n\n";
  std::string out;
  request_.writer->fail(facts(), error, out);
  return out;
}

void Completion::cancel() noexcept {
  for (Submitted& submitted : submitted_) {
    if (submitted.choices_running > 0) model_.engine.cancel(submitted.id);
    submitted.choices_running = 0;
  }
  choices_running_ = 0;
}

Json Completion::envelope(std::string_view object) const {
  return {{"id", id_},
          {"object", object},
          {"created", created_s_},
          {"model", model_.name()},
          {"system_fingerprint", model_.fingerprint}};
}

std::string Completion::event_text(const Json& choice, Json more) const {
  Json chunk = envelope(format_->chunk_object());
  chunk["choices"] = Json::array({choice});
  if (request_.output.include_usage) chunk["usage"] = nullptr;
  chunk.update(more);
  return sse(chunk);
}

Usage Completion::usage() const {
  Usage usage;
  for (std::size_t i = 0; i < submitted_.size(); ++i) {
    usage.add_prompt(request_.prompts[i], submitted_[i].cached_tokens);
    usage.add_loaded(submitted_[i].load);
    const Submitted& submitted = submitted_[i];
    const std::vector<Breakpoint> asked =
        breakpoints_of(request_.cache, request_.prompts[i].tokens.size());
    usage.add_written(submitted.written_tokens,
                      written_shares(asked, submitted.breakpoints, submitted.cached_tokens));
    usage.add_drafts(submitted.drafts);
  }
  const kv::KvPolicy policy = engine::policy_of(request_.engine, model_.engine.limits());
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    const std::uint64_t output = choices_[i].text.tokens();
    usage.add_completion(output, choices_[i].text.reasoning_tokens());
    const Prompt& prompt = request_.prompts[i / request_.choices_per_prompt()];
    if (policy.is_full()) continue;
    usage.add_bounded(policy, {prompt.tokens.size(), prompt.tokens.size() + output},
                      model_.engine.limits().block_tokens, request_.policy_quality);
  }
  return usage;
}

// A stream ends with a chunk without choices. Clients that ask for none get none: many of them read
// the first choice of every chunk.
bool Completion::has_last_chunk() const {
  const bool asks_why = request_.engine.explain && !request_.cache.explains_miss;
  return request_.output.include_usage || request_.retain || asks_why;
}

LogEntry Completion::log_entry(bool with_prompts) const {
  const Usage cost = usage();
  const std::int64_t end_ns = finished_ ? finished_ns_ : model_.engine.now_ns();
  LogEntry entry = {.id = id_,
                    .path = {},
                    .tenant = model_.engine.tenant_name(request_.engine.tenant),
                    .model = model_.name(),
                    .stream = streams(),
                    .prompt_tokens = cost.prompt_tokens(),
                    .cached_tokens = {},
                    .output_tokens = cost.completion_tokens(),
                    .draft_tokens = {},
                    .accepted_tokens = {},
                    .first_token_s = {},
                    .total_s = seconds_between(begun_ns_, end_ns),
                    .finish = std::string(choices_.front().finish_reason),
                    .status = 200,
                    .error = {},
                    .ignored = request_.ignored,
                    .prompts = {}};
  if (cost.drafts().drafts > 0) {
    entry.draft_tokens = cost.drafts().tokens;
    entry.accepted_tokens = cost.drafts().accepted;
  }
  if (first_token_ns_ != 0) entry.first_token_s = seconds_between(begun_ns_, first_token_ns_);
  if (error_) {
    entry.status = error_->status;
    entry.error = error_->code.empty() ? error_->param : error_->code;
    entry.finish = "error";
  } else if (finished_) {
    entry.cached_tokens = cost.cached_tokens();
  } else {
    entry.status = LogEntry::kClientGone;
    entry.finish = "cancelled";
  }
  if (!with_prompts) return entry;
  for (const Prompt& prompt : request_.prompts) {
    entry.prompts.push_back(model_.tokenizer.decode(prompt.tokens, true).value());
  }
  return entry;
}

bool Completion::has_broken_vector() const {
  return std::any_of(submitted_.begin(), submitted_.end(),
                     [](const Submitted& submitted) { return !is_finite(submitted.embedding); });
}

HttpReply Completion::embeddings() const {
  std::vector<std::span<const float>> vectors;
  for (const Submitted& submitted : submitted_) vectors.emplace_back(submitted.embedding);
  return {.body = embeddings_json(vectors, request_, model_.name(), usage())};
}

HttpReply Completion::reply() const {
  ASSERT(finished_ && !error_, "only a finished completion has a reply");
  if (request_.engine.explain_only) return json_reply(explained());
  if (request_.engine.action != engine::CacheAction::kNone) return cache_action();
  if (request_.embedding) return embeddings();
  if (request_.writer) return {.body = request_.writer->whole(facts(), choices_.front().whole)};
  Json whole = envelope(format_->object());
  Json choices = Json::array();
  for (const Choice& choice : choices_) {
    ChoiceState state = choice.state;
    choices.push_back(format_->whole(state, choice.whole));
  }
  whole["choices"] = std::move(choices);
  whole["usage"] = usage().to_json(model_.tiers);
  whole.update(cache_members());
  whole.update(format_->extras(choices_.front().state));
  return json_reply(whole);
}

}  // namespace pagoda::server
