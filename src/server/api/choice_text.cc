#include "server/api/choice_text.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include "base/random.h"

namespace pagoda::server {
namespace {

std::string_view wire_name(engine::FinishReason reason) {
  if (reason == engine::FinishReason::kNoToken) return "error";
  return reason == engine::FinishReason::kStop ? "stop" : "length";
}

std::unique_ptr<chat::AnswerParser> make_parser(const CompletionRequest& request) {
  if (!request.answer) return nullptr;
  const AnswerTerms& terms = *request.answer;
  chat::AnswerOptions options = terms.options;
  // Ids differ between requests with one seed: a conversation may hold the answers of both.
  options.id_seed = fresh_seed();
  return std::make_unique<chat::AnswerParser>(terms.form->found.form, terms.schemas, options);
}

std::span<const TokenId> marker_tokens(const CompletionRequest& request) {
  if (!request.answer) return {};
  const chat::ServedForm& form = *request.answer->form;
  return request.answer->options.reads_calls ? form.call_tokens : form.text_tokens;
}

}  // namespace

bool has_visible_text(const Prompt& prompt, const text::Tokenizer& tokenizer, bool special) {
  bool at_start = true;
  for (const TokenId id : prompt.tokens) {
    tokenizer.visible_bytes(id, special, at_start);
    if (!at_start) return true;
  }
  return false;
}

text::DetokenizerOptions detokenizer_options(const CompletionRequest& request, bool continues) {
  return {.special = request.output.show_special_tokens,
          .continues = continues,
          .shown = marker_tokens(request)};
}

void Piece::append(Piece next) {
  text += next.text;
  for (chat::AnswerEvent& event : next.events) {
    const bool joins = !events.empty() && events.back().kind == event.kind &&
                       events.back().call == event.call &&
                       event.kind != chat::AnswerEvent::Kind::kCallBegin;
    if (joins) {
      events.back().text += event.text;
    } else {
      events.push_back(std::move(event));
    }
  }
  tokens.insert(tokens.end(), next.tokens.begin(), next.tokens.end());
  std::move(next.scores.begin(), next.scores.end(), std::back_inserter(scores));
  if (!next.finish_reason.empty()) finish_reason = next.finish_reason;
  if (!next.stop_reason.is_null()) stop_reason = std::move(next.stop_reason);
}

ChoiceText::ChoiceText(const text::Tokenizer& tokenizer, const CompletionRequest& request,
                       bool continues)
    : answer_(make_parser(request)),
      detokenizer_(tokenizer, detokenizer_options(request, continues)),
      stops_(request.output.stops),
      stop_tokens_(request.engine.end.stop_token_ids),
      tokens_min_(request.engine.end.min_tokens),
      scored_(request.output.logprobs.has_value()) {}

Piece ChoiceText::push(const SentToken& sent) {
  Piece piece;
  piece.tokens.push_back(sent.token);
  if (scored_) piece.scores.push_back(sent.score);
  ++tokens_;
  if (sent.ends) {
    end_token_ = sent.token;
    return piece;
  }
  std::string text = detokenizer_.push(sent.token);
  // As in vLLM, the text of the first min_tokens tokens cannot be part of a stop string.
  piece.text = tokens_ <= tokens_min_ ? std::move(text) : stops_.push(text);
  if (stops_.match()) {
    ended_ = true;
    piece.finish_reason = "stop";
    piece.stop_reason = stops_.string(stops_.match()->string);
  }
  read_answer(piece, ended_);
  count_reasoning(piece);
  return piece;
}

// Tokens that say nothing yet, such as markers, count with the reasoning that follows them.
void ChoiceText::count_reasoning(const Piece& piece) {
  for (const chat::AnswerEvent& event : piece.events) {
    if (past_reasoning_) return;
    past_reasoning_ = event.kind != chat::AnswerEvent::Kind::kReasoning;
    if (!past_reasoning_) reasoning_tokens_ = tokens_;
  }
}

void ChoiceText::read_answer(Piece& piece, bool last) {
  if (!answer_) return;
  piece.events = answer_->push(std::exchange(piece.text, {}));
  if (answer_->ended()) {
    ended_ = true;
    piece.finish_reason = "stop";
  } else if (last) {
    Piece rest;
    rest.events = answer_->finish();
    piece.append(std::move(rest));
  }
  // A stop string within a call's arguments leaves no call that could be made.
  const bool has_calls = answer_->calls() > 0 && !answer_->cut_within_call();
  if (piece.finish_reason == "stop" && has_calls) piece.finish_reason = "tool_calls";
}

Piece ChoiceText::finish(engine::FinishReason reason) {
  Piece piece;
  ended_ = true;
  piece.text = stops_.push(detokenizer_.finish());
  piece.text += stops_.finish();
  piece.finish_reason = wire_name(reason);
  const bool by_request = end_token_ && std::find(stop_tokens_.begin(), stop_tokens_.end(),
                                                  *end_token_) != stop_tokens_.end();
  if (by_request) piece.stop_reason = end_token_->value();
  read_answer(piece, true);
  count_reasoning(piece);
  return piece;
}

}  // namespace pagoda::server
