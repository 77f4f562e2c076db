// Requests that are answered together, without a server: read from the JSON of the server's API, so
// that a field means what it means there, and answered by the same engine, so that answers are the
// same.
//
//   add()    submits a request; the error of a field is thrown as server::ApiError
//   wait()   what came since, of all requests
//
// Thread rule: one thread at a time. Dropping a batch cancels what still runs.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/event_fd.h"
#include "python/local_model.h"
#include "server/api/choice_text.h"
#include "server/api/completion_request.h"
#include "server/json.h"
#include "server/reply_queue.h"

namespace pagoda::python {

// The endpoint whose body a request has.
enum class BodyKind : std::uint8_t { kText, kChat, kEmbedding };

class RequestBatch {
 public:
  explicit RequestBatch(std::shared_ptr<LocalModel> model) : model_(std::move(model)) {}
  ~RequestBatch() { cancel(); }
  RequestBatch(const RequestBatch&) = delete;
  RequestBatch& operator=(const RequestBatch&) = delete;

  // Returns the request's number: 0, 1, … With `fills_context` a request ends with its context
  // where no length is in the body.
  std::uint32_t add(BodyKind kind, const std::string& body, bool fills_context);
  // Waits for news, at most so long; an array of them (news_json.h), perhaps empty.
  server::Json wait(std::int32_t milliseconds);
  // Readable when wait() would not wait.
  int descriptor() const { return ready_->event.descriptor(); }
  std::uint64_t unfinished() const { return unfinished_; }
  // Cancels what still runs; no more news come.
  void cancel() noexcept;

 private:
  // Told by the engine's thread which requests have news. Shared, because a sink may outlive the
  // batch.
  struct Ready {
    EventFd event;
    std::mutex mutex;
    std::vector<std::uint32_t> requests;  // under the mutex
  };
  struct Item {
    server::CompletionRequest request;
    std::shared_ptr<server::ReplyQueue> queue;
    engine::RequestId id;
    std::vector<server::ChoiceText> choices;
    std::vector<engine::TokenScore> prompt_scores;
    std::vector<float> embedding;
    std::uint64_t cached_tokens = 0;
    std::uint32_t open = 0;     // choices whose text has not ended
    std::uint32_t running = 0;  // sequences that run in the engine
    bool told_prompt = false;   // the news had the prompt's tokens
  };

  void submit(Item& item);
  void read_news(std::uint32_t request, server::Json& news);
  void handle(std::uint32_t request, const server::ReplyEvent& event, server::Json& news);
  void fail(std::uint32_t request, const server::FinishInfo& ending, server::Json& news);
  void finish(std::uint32_t request, server::Json& entry);

  std::shared_ptr<LocalModel> model_;
  std::shared_ptr<Ready> ready_ = std::make_shared<Ready>();
  std::vector<std::unique_ptr<Item>> items_;  // [request]; nullptr: finished
  std::uint64_t unfinished_ = 0;
};

}  // namespace pagoda::python
