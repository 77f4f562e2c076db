// A chat with a model in this process, through the same engine that serves.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <mutex>

#include "app/chat_model.h"
#include "app/draft_model.h"
#include "app/loaded_model.h"
#include "app/model_finder.h"
#include "base/random.h"
#include "engine/engine.h"
#include "kernels/select.h"
#include "terminal/messages.h"
#include "text/detokenizer.h"
#include "text/prompt_tokens.h"

namespace pagoda::app {
namespace {

// The engine's replies, taken by the terminal's thread.
class Replies final : public engine::ReplySink {
 public:
  struct Reply {
    std::optional<TokenId> token;  // none: the end
    engine::FinishReason reason = engine::FinishReason::kStop;
    engine::SequenceRecord record;
    std::string message;
  };

  void on_token(std::uint32_t, const engine::OutputToken& chosen) override {
    if (!chosen.ends) put({.token = chosen.token, .record = {}, .message = {}});
  }
  void on_finish(std::uint32_t, engine::FinishReason reason, const engine::SequenceRecord& record,
                 const std::string& message) override {
    put({.token = std::nullopt, .reason = reason, .record = record, .message = message});
  }

  // The next reply, or none after a moment: the caller looks at Ctrl-C meanwhile.
  std::optional<Reply> take() {
    std::unique_lock lock(mutex_);
    arrived_.wait_for(lock, std::chrono::milliseconds(50), [&] { return !replies_.empty(); });
    if (replies_.empty()) return std::nullopt;
    Reply reply = std::move(replies_.front());
    replies_.pop_front();
    return reply;
  }

 private:
  void put(Reply reply) {
    const std::lock_guard lock(mutex_);
    replies_.push_back(std::move(reply));
    arrived_.notify_one();
  }

  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Reply> replies_;
};

std::string_view api_name(engine::FinishReason reason) {
  return reason == engine::FinishReason::kContext ? "length" : engine::finish_name(reason);
}

class LocalChat final : public ChatModel {
 public:
  LocalChat(std::unique_ptr<LoadedModel> model, std::string name, text::ChatTemplate chat_template,
            SamplingDefaults defaults, std::unique_ptr<engine::Backend> backend)
      : model_(std::move(model)),
        name_(std::move(name)),
        template_(std::move(chat_template)),
        defaults_(std::move(defaults)),
        backend_(std::move(backend)),
        engine_({.core = backend_->core_options(), .tenants = {}}, backend_->cache(),
                backend_->runner(), clock_) {}

  std::string name() const override { return name_; }

  std::string sampling() const override {
    if (!defaults_.fields.any()) return "";
    return fmt::format("{} ({})", sampling_text(defaults_.fields), defaults_.source);
  }

  Result<std::uint64_t> context_tokens() override {
    return engine::context_under(engine_.limits().kv_policy, engine_.limits());
  }

  // A prompt that cannot be filled is computed when it is asked for.
  void fill(const text::ChatJson& messages) override {
    engine::Request request;
    Result<std::vector<TokenId>> prompt = prompt_of(messages, false);
    if (!prompt.ok()) return;
    request.prompt = std::move(prompt).value();
    request.end.max_tokens = 1;  // the engine's least, which nobody takes
    (void)engine_.submit(std::move(request), std::make_shared<Replies>());
  }

  Result<ChatReply> complete(const text::ChatJson& messages, const ChatSampling& sampling,
                             const std::function<void(std::string_view)>& on_text,
                             const std::function<bool()>& stopped) override {
    engine::Request request;
    ASSIGN_OR_RETURN(request.prompt, prompt_of(messages, true));
    const std::uint64_t context =
        engine::context_under(engine_.limits().kv_policy, engine_.limits());
    const std::uint64_t room = std::min<std::uint64_t>(sampling.tokens_max, context / 8);
    if (request.prompt.size() + std::max<std::uint64_t>(room, 1) > context) {
      return Error{ErrorCode::kOutOfRange,
                   fmt::format("the conversation has {} tokens, the context holds {} with the "
                               "reply; /reset begins a new one",
                               request.prompt.size(), context)};
    }
    request.sampling = defaults_.params({.temperature = static_cast<float>(kChatTemperature),
                                         .top_p = static_cast<float>(kChatTopP)});
    sampling.fields.apply_to(request.sampling);
    request.sampling.seed = sampling.seed.value_or(fresh_seed());
    if (request.prompt.size() + sampling.tokens_max <= context) {
      request.end.max_tokens = sampling.tokens_max;
    }
    const auto replies = std::make_shared<Replies>();
    ASSIGN_OR_RETURN(const engine::RequestId id, engine_.submit(std::move(request), replies));
    return listen(id, *replies, on_text, stopped);
  }

 private:
  Result<std::vector<TokenId>> prompt_of(const text::ChatJson& messages,
                                         bool add_generation_prompt) const {
    text::Conversation conversation;
    conversation.messages = messages;
    conversation.add_generation_prompt = add_generation_prompt;
    ASSIGN_OR_RETURN(const text::OriginText prompt, template_.render(conversation));
    return text::tokenise_prompt(prompt, model_->tokenizer()).ids;
  }

  Result<ChatReply> listen(engine::RequestId id, Replies& replies,
                           const std::function<void(std::string_view)>& on_text,
                           const std::function<bool()>& stopped) {
    ChatReply answer;
    text::Detokenizer detokenizer(model_->tokenizer(), {.special = false, .continues = true});
    const auto show = [&](const std::string& piece) {
      answer.text += piece;
      if (!piece.empty()) on_text(piece);
    };
    for (bool cancelled = false;;) {
      if (!cancelled && stopped()) {
        engine_.cancel(id);
        cancelled = true;
      }
      const auto reply = replies.take();
      if (!reply) continue;
      if (reply->token) {
        show(detokenizer.push(*reply->token));
        continue;
      }
      show(detokenizer.finish());
      if (reply->reason == engine::FinishReason::kRefused ||
          reply->reason == engine::FinishReason::kError ||
          reply->reason == engine::FinishReason::kLost ||
          reply->reason == engine::FinishReason::kNoToken) {
        return Error{ErrorCode::kExhausted, reply->message};
      }
      answer.finish_reason = api_name(reply->reason);
      answer.prompt_tokens = reply->record.prompt_tokens;
      answer.cached_tokens = reply->record.prompt_tokens_cached;
      answer.output_tokens = reply->record.output_tokens;
      answer.first_token_s = reply->record.first_token_s();
      answer.total_s = reply->record.total_s();
      return answer;
    }
  }

  std::unique_ptr<LoadedModel> model_;
  std::string name_;
  text::ChatTemplate template_;
  SamplingDefaults defaults_;
  std::unique_ptr<engine::Backend> backend_;
  SteadyClock clock_;
  engine::Engine engine_;  // last: its thread uses the others
};

// The template that is named, else the model's own.
Result<text::ChatTemplate> template_of(const LocalChatOptions& options, const LoadedModel& model) {
  if (!options.chat_template.empty()) {
    return text::ChatTemplate::load_file(options.chat_template, model.tokenizer());
  }
  Result<text::ChatTemplate> own = model.chat_template();
  if (own.ok() || own.error().code != ErrorCode::kNotFound) return own;
  return Error{ErrorCode::kNotFound,
               fmt::format("{}: `chat_template` names a file with one; \"pagoda run\" completes a "
                           "text without",
                           own.error().message)};
}

}  // namespace

Result<std::unique_ptr<ChatModel>> open_local_chat(const LocalChatOptions& options) {
  ASSIGN_OR_RETURN(const kernels::KernelSet* const kernels, kernels::select_set());
  ASSIGN_OR_RETURN(const FoundModel found,
                   find_model(options.model, ModelEnvironment::of_process()));
  if (found.is_stand_in && options.chat_template.empty() && options.tokenizer.empty()) {
    return Error{ErrorCode::kNotFound,
                 fmt::format("{} tells stories and has no chat template: a chat needs the default "
                             "model or another one that `model` names",
                             std::filesystem::path(found.path).stem().string())};
  }
  ASSIGN_OR_RETURN(std::unique_ptr<LoadedModel> model,
                   LoadedModel::load(found.path, *kernels,
                                     {.tokenizer = options.tokenizer,
                                      .context_tokens = options.max_model_len,
                                      .overrides = options.overrides,
                                      .quantization = options.quantization}));
  if (options.max_model_len > model->config().context) {
    terminal::print_warning(beyond_training(options.max_model_len, model->config().context));
  }
  SamplingDefaults of_model = model_sampling(model->file().metadata());
  for (const std::string& warning : of_model.warnings) terminal::print_warning(warning);
  ASSIGN_OR_RETURN(SamplingDefaults defaults,
                   with_generation_config(std::move(of_model), options.generation));
  const text::Tokenizer& tokenizer = model->tokenizer();
  ASSIGN_OR_RETURN(text::ChatTemplate chat_template, template_of(options, *model));
  engine::BackendOptions backend_options;
  backend_options.threads = options.threads;
  backend_options.context_tokens = options.max_model_len;
  backend_options.kv_eviction = options.kv_eviction;
  backend_options.kv_cache_dtype = options.kv_cache_dtype;
  backend_options.kv_policy = options.kv_policy;
  backend_options.speculation = options.speculation;
  ASSIGN_OR_RETURN(backend_options.draft_model,
                   load_draft_model(options.speculation, tokenizer, *kernels));
  DeviceOptions device = options.device;
  device.steps = StepFlags{.sequences_max = 1};
  backend_options.model_name = options.model;
  backend_options.on_pack = model->pack_progress();
  backend_options.end_tokens = {tokenizer.end_tokens().begin(), tokenizer.end_tokens().end()};
  ASSIGN_OR_RETURN(std::unique_ptr<engine::Backend> backend,
                   create_backend(device, *model, *kernels, backend_options));
  std::string name =
      found.name.empty() ? std::filesystem::path(found.path).filename().string() : found.name;
  return std::unique_ptr<ChatModel>(new LocalChat(std::move(model), std::move(name),
                                                  std::move(chat_template), std::move(defaults),
                                                  std::move(backend)));
}

}  // namespace pagoda::app
