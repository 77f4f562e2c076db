// A fixture: the API over stories260K, without sockets. Requests go through the router, and
// completions run to their end on the test's thread.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "app/loaded_model.h"
#include "app/mask_tokens.h"
#include "app/speculation.h"
#include "base/clock.h"
#include "engine/backends/cpu_backend.h"
#include "engine/engine.h"
#include "kernels/select.h"
#include "server/router.h"
#include "test_data.h"
#include "text/chat_template.h"

namespace pagoda::server {

inline constexpr const char* kCompletionsPath = "/v1/completions";

inline std::string repeated(std::string_view text, std::size_t count) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i) all += text;
  return all;
}

inline constexpr const char* kStoryTemplate =
    "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
    "{% if tools %}tools: {{ tools | length }}\n{% endif %}"
    "{% if add_generation_prompt %}assistant:{% endif %}";

class StoryFixture {
 public:
  using Wrap = std::function<engine::Runner&(engine::Runner&)>;

  // `wrap` may put a runner of its own before the model's. `output_tokens_default` is of requests
  // that name no limit; 0: what fits.
  explicit StoryFixture(std::uint32_t requests_queued_max = 100, bool live_curve = true,
                        const Wrap& wrap = {}, std::uint64_t output_tokens_default = 0)
      : state_("1.2.3") {
    const kernels::KernelSet* const kernels = kernels::select_set().value();
    model_ = app::LoadedModel::load(test_data() + "/models/stories260K.gguf", *kernels).value();
    engine::BackendOptions sizes;
    sizes.threads = 1;
    sizes.kv_bytes = 8 << 20;
    sizes.retain_share = 0.25;
    sizes.sessions = true;
    sizes.live_curve = live_curve;
    sizes.speculation = app::default_speculation();  // drafts change no reply
    sizes.scheduler.sequences_max = 8;
    sizes.scheduler.batched_tokens_max = 64;
    const auto ends = model_->tokenizer().end_tokens();
    sizes.end_tokens.assign(ends.begin(), ends.end());
    backend_ =
        engine::CpuBackend::create(model_->config(), model_->weights(), *kernels, sizes).value();
    engine::EngineOptions options = {.core = backend_->core_options(),
                                     .tenants = {},
                                     .after_step = [this] { step_notifier_.notify(); }};
    options.core.requests_queued_max = requests_queued_max;
    options.core.limits.output_tokens_default = output_tokens_default;
    engine::Runner& runner = wrap ? wrap(backend_->runner()) : backend_->runner();
    engine_ = std::make_unique<engine::Engine>(options, backend_->cache(), runner, clock_);
    served_.reset(new ServedModel{
        .names = {"stories", "alias", "org/st\xc3\xb6ry"},
        .tokenizer = model_->tokenizer(),
        .chat_template = text::ChatTemplate::parse("story", kStoryTemplate,
                                                   text::special_texts(model_->tokenizer()))
                             .value(),
        .engine = *engine_,
        .step_notifier = step_notifier_,
        .fingerprint = "test",
        .created_s = 1,
        .facts = Json::object(),
        .block_bytes = backend_->page_layout().page_bytes(),
        .mask_vocabulary =
            app::mask_vocabulary_of(model_->tokenizer(), engine_->limits().vocabulary)});
    served_->form = chat::find_served_form(*served_->chat_template, model_->tokenizer()).value();
    state_.open(*served_);
  }

  // Call these before the first request.
  void set_normalise(const NormaliseRules& rules) { served_->normalise = rules; }
  void set_policy_quality(PolicyQuality* quality) { served_->policy_quality = quality; }
  ServerState& state() { return state_; }
  const ServedModel& served() const { return *served_; }
  const text::Tokenizer& tokenizer() const { return model_->tokenizer(); }
  engine::Engine& engine() { return *engine_; }

  HttpReply send(HttpRequest request) {
    request.caller = identify(request.authorization, state_.keys());
    request.caller.is_local = !request.is_forwarded;
    Routed routed = route(request, state_);
    if (auto* const reply = std::get_if<HttpReply>(&routed)) return *reply;
    if (auto* const deferred = std::get_if<std::unique_ptr<DeferredReply>>(&routed)) {
      std::promise<void> given;
      (*deferred)->start([&given] { given.set_value(); });
      given.get_future().wait();
      return (*deferred)->take()();
    }
    Completion& completion = *std::get<std::unique_ptr<Completion>>(routed);
    const std::string stream = drive(completion);
    if (completion.error() && stream.empty()) {
      return error_reply(*completion.error(), style_of(request.path));
    }
    if (completion.streams()) return {.content_type = "text/event-stream", .body = stream};
    return completion.reply();
  }
  HttpReply get(const std::string& path) { return send({.method = "GET", .path = path}); }
  HttpReply post_text(const std::string& path, const std::string& body) {
    return send({.method = "POST", .path = path, .content_type = "application/json", .body = body});
  }
  HttpReply post(const std::string& path, const Json& body) { return post_text(path, body.dump()); }
  // Returns the JSON of a reply that must be a success.
  Json ask(const std::string& path, const Json& body) {
    const HttpReply reply = post(path, body);
    EXPECT_EQ(reply.status, 200) << reply.body;
    return Json::parse(reply.body);
  }
  Json complete(const Json& body) { return ask("/v1/completions", body); }

  // Returns the data of each event; "[DONE]" must be the last and is left out.
  std::vector<Json> stream(const std::string& path, Json body) {
    body["stream"] = true;
    const HttpReply reply = post(path, body);
    std::vector<Json> events;
    std::string text = reply.body;
    bool done = false;
    for (std::size_t end; (end = text.find("\n\n")) != std::string::npos; text.erase(0, end + 2)) {
      EXPECT_FALSE(done) << "something after [DONE]";
      EXPECT_TRUE(text.starts_with("data: ")) << text;
      const std::string data = text.substr(6, end - 6);
      done = data == "[DONE]";
      if (!done) events.push_back(Json::parse(data));
    }
    EXPECT_TRUE(done) << reply.body;
    return events;
  }

 private:
  static std::string drive(Completion& completion) {
    struct Wakeup {
      std::mutex mutex;
      std::condition_variable changed;
      bool pending = false;
    };
    const auto wakeup = std::make_shared<Wakeup>();
    try {
      completion.start([wakeup] {
        const std::lock_guard lock(wakeup->mutex);
        wakeup->pending = true;
        wakeup->changed.notify_all();
      });
    } catch (const ApiError& error) {
      completion.abort(error);
    }
    std::string stream;
    while (!completion.finished()) {
      {
        std::unique_lock lock(wakeup->mutex);
        const bool woken = wakeup->changed.wait_for(lock, std::chrono::seconds(60),
                                                    [&] { return wakeup->pending; });
        EXPECT_TRUE(woken) << "the engine is silent";
        if (!woken) return stream;
        wakeup->pending = false;
      }
      stream += completion.take();
    }
    return stream;
  }

  ServerState state_;
  SteadyClock clock_;
  std::unique_ptr<app::LoadedModel> model_;
  std::unique_ptr<engine::CpuBackend> backend_;
  StepNotifier step_notifier_;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<ServedModel> served_;
};

}  // namespace pagoda::server
