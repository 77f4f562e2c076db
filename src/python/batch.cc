#include "python/batch.h"

#include <poll.h>

#include <algorithm>
#include <utility>

#include "base/random.h"
#include "python/news_json.h"
#include "server/api/chat_prompt.h"
#include "server/api/stop_string_watch.h"
#include "server/api_error.h"
#include "server/reading_memory.h"

namespace pagoda::python {
namespace {

server::CompletionRequest read_request(BodyKind kind, const std::string& body,
                                       const server::ServedModel& model) {
  server::ReadingMemory memory(nullptr);
  const server::ReadingTerms terms = {.memory = memory};
  server::Json parsed = server::parse_json(body);
  switch (kind) {
    case BodyKind::kText:
      return server::read_text_request(parsed, model, terms);
    case BodyKind::kEmbedding:
      return server::read_embedding_request(parsed, model, terms);
    case BodyKind::kChat:
      break;
  }
  server::CompletionRequest request = server::read_chat_request(std::move(parsed), model, terms);
  // The text comes as the model wrote it, with reasoning and calls in it.
  request.answer = nullptr;
  return request;
}

}  // namespace

std::uint32_t RequestBatch::add(BodyKind kind, const std::string& body, bool fills_context) {
  const server::ServedModel& model = model_->served();
  auto item = std::make_unique<Item>();
  item->request = read_request(kind, body, model);
  if (item->request.prompts.size() != 1) {
    throw server::ApiError(400, "prompt: is a list of prompts, expected one", "prompt");
  }
  if (fills_context) item->request.engine.end.max_tokens.reset();
  const auto number = static_cast<std::uint32_t>(items_.size());
  item->queue = std::make_shared<server::ReplyQueue>(model.step_notifier, [ready = ready_, number] {
    {
      const std::lock_guard lock(ready->mutex);
      ready->requests.push_back(number);
    }
    ready->event.notify();
  });
  submit(*item);
  items_.push_back(std::move(item));
  ++unfinished_;
  return number;
}

void RequestBatch::submit(Item& item) {
  const server::ServedModel& model = model_->served();
  server::CompletionRequest& request = item.request;
  const server::Prompt& prompt = request.prompts.front();
  const bool continues =
      server::has_visible_text(prompt, model.tokenizer, request.output.show_special_tokens);
  engine::Request asked = request.engine;
  asked.prompt = prompt.tokens;
  asked.first_turn_tokens = prompt.first_turn_tokens;
  asked.sampling.seed = request.seed ? *request.seed : engine::reportable_seed(fresh_seed());
  if (!request.output.stops.empty() && !request.output.prompt_only) {
    asked.watch = std::make_shared<server::StopStringWatch>(model.tokenizer, request, continues);
  }
  for (std::uint32_t i = 0; i < request.choices_per_prompt(); ++i) {
    item.choices.emplace_back(model.tokenizer, request, continues);
  }
  const Result<engine::RequestId> id =
      model_->engine().submit(std::move(asked), item.queue->sink(0, 0));
  if (!id.ok()) throw server::api_error(id.error());
  item.id = id.value();
  item.open = item.running = request.choices_per_prompt();
}

server::Json RequestBatch::wait(std::int32_t milliseconds) {
  server::Json news = server::Json::array();
  if (unfinished_ == 0) return news;
  pollfd polled = {.fd = descriptor(), .events = POLLIN, .revents = 0};
  (void)poll(&polled, 1, milliseconds);  // a signal ends the wait: the caller looks at signals
  ready_->event.clear();
  std::vector<std::uint32_t> requests;
  {
    const std::lock_guard lock(ready_->mutex);
    requests.swap(ready_->requests);
  }
  std::sort(requests.begin(), requests.end());
  requests.erase(std::unique(requests.begin(), requests.end()), requests.end());
  for (const std::uint32_t request : requests) read_news(request, news);
  return news;
}

void RequestBatch::read_news(std::uint32_t request, server::Json& news) {
  if (request >= items_.size() || items_[request] == nullptr) return;
  server::ReplyQueue::Batch batch = items_[request]->queue->take();
  if (batch.was_full) model_->engine().wake();
  for (server::PromptScores& part : batch.scores) {
    std::vector<engine::TokenScore>& scores = items_[request]->prompt_scores;
    scores.insert(scores.end(), std::make_move_iterator(part.scores.begin()),
                  std::make_move_iterator(part.scores.end()));
  }
  for (const server::ReplyEvent& event : batch.events) {
    if (items_[request] == nullptr) return;
    handle(request, event, news);
  }
}

void RequestBatch::handle(std::uint32_t request, const server::ReplyEvent& event,
                          server::Json& news) {
  Item& item = *items_[request];
  server::ChoiceText& choice = item.choices[event.choice];
  if (event.token && event.choice == 0) item.cached_tokens = event.token->prompt_tokens_cached;
  if (event.ending) {
    --item.running;
    if (event.choice == 0) {
      item.cached_tokens = event.ending->record.prompt_tokens_cached;
      item.embedding = event.ending->record.embedding;
    }
    if (!choice.ended() && !engine::ended_well(event.ending->reason)) {
      return fail(request, *event.ending, news);
    }
  }
  server::Piece piece;
  if (!choice.ended()) {
    if (event.token && !item.request.output.prompt_only) piece = choice.push(*event.token);
    if (event.ending && !choice.ended()) piece.append(choice.finish(event.ending->reason));
    if (choice.ended() && --item.open == 0 && item.running > 0) {
      model_->engine().cancel(item.id, engine::FinishReason::kStop);
    }
  } else if (item.running > 0) {
    return;
  }
  server::Json entry = piece_json(piece, model_->served().tokenizer);
  entry["request"] = request;
  entry["index"] = event.choice;
  entry["cached"] = item.cached_tokens;
  if (!std::exchange(item.told_prompt, true)) {
    entry["prompt_token_ids"] = ids_json(item.request.prompts.front().tokens);
  }
  if (item.running == 0) finish(request, entry);
  news.push_back(std::move(entry));
}

void RequestBatch::finish(std::uint32_t request, server::Json& entry) {
  const Item& item = *items_[request];
  entry["finished"] = true;
  if (item.request.output.prompt_logprobs) {
    entry["prompt_scores"] = scores_json(item.prompt_scores, *item.request.output.prompt_logprobs,
                                         model_->served().tokenizer);
  }
  if (item.request.embedding) entry["embedding"] = embedding_json(item.embedding, item.request);
  items_[request].reset();
  --unfinished_;
}

void RequestBatch::fail(std::uint32_t request, const server::FinishInfo& ending,
                        server::Json& news) {
  const std::string name(engine::finish_name(ending.reason));
  news.push_back({{"request", request},
                  {"error", ending.message.empty() ? name : name + ": " + ending.message}});
  if (items_[request]->running > 0) model_->engine().cancel(items_[request]->id);
  items_[request].reset();
  --unfinished_;
}

void RequestBatch::cancel() noexcept {
  for (std::unique_ptr<Item>& item : items_) {
    if (item != nullptr && item->running > 0) model_->engine().cancel(item->id);
    item.reset();
  }
  unfinished_ = 0;
}

}  // namespace pagoda::python
