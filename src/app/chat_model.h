// A ChatModel replies in a terminal chat: a model in this process, or a server.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "app/device_choice.h"
#include "app/quantised_model.h"
#include "app/sampling_defaults.h"
#include "app/speculation.h"
#include "base/result.h"
#include "hf/overrides.h"
#include "kv/evict/policy.h"
#include "kv/kv_policy.h"
#include "model/kv_cache_dtype.h"
#include "net/server_access.h"
#include "text/chat_template.h"

namespace pagoda::app {

struct ChatSampling {
  SamplingFields fields;  // what was said; the rest is up to the model, or to the server
  std::uint32_t tokens_max = 1024;
  std::optional<std::uint64_t> seed;
};

struct ChatReply {
  std::string text;
  std::string finish_reason;  // as the API names it: stop, length; cancelled when stopped by hand
  std::uint64_t prompt_tokens = 0;
  std::uint64_t cached_tokens = 0;
  std::uint64_t output_tokens = 0;
  double first_token_s = 0;
  double total_s = 0;
};

class ChatModel {
 public:
  virtual ~ChatModel() = default;
  // Who it is, for the greeting.
  virtual std::string name() const = 0;
  // Names the sampling where ChatSampling is silent, for the greeting; empty: only the server
  // knows.
  virtual std::string sampling() const { return ""; }
  // How many tokens a conversation may have.
  virtual Result<std::uint64_t> context_tokens() = 0;
  // Computes what the next question's prompt begins with, where that can be done meanwhile.
  virtual void fill(const text::ChatJson& /*messages*/) {}
  // Text goes to `on_text` as it comes; the reply ends early once `stopped` says so. kOutOfRange:
  // the conversation and some room for the reply do not fit into the context.
  virtual Result<ChatReply> complete(const text::ChatJson& messages, const ChatSampling& sampling,
                                     const std::function<void(std::string_view)>& on_text,
                                     const std::function<bool()>& stopped) = 0;
};

struct LocalChatOptions {
  std::string model;
  std::string tokenizer;  // another model's; empty: the model's own
  hf::ConfigOverrides overrides;
  QuantizationOptions quantization;
  std::string chat_template;  // a file; empty: the model's own
  std::size_t threads = 0;    // 0: usable cores
  std::uint64_t max_model_len = 0;
  const kv::EvictionPolicy* kv_eviction = &kv::lru_policy();
  model::KvCacheDtype kv_cache_dtype = {};
  kv::KvPolicy kv_policy = {};
  speculate::SpeculationOptions speculation = default_speculation();
  DeviceOptions device;
  GenerationConfig generation;
};

// A chat with a local model that recommends nothing samples by these.
inline constexpr double kChatTemperature = 0.7;
inline constexpr double kChatTopP = 0.95;

Result<std::unique_ptr<ChatModel>> open_local_chat(const LocalChatOptions& options);

// `url`: http://host[:port][/v1]. `model`: empty for whatever the server serves.
Result<std::unique_ptr<ChatModel>> open_remote_chat(const std::string& url,
                                                    const std::string& model,
                                                    const net::ServerAccess& access);

}  // namespace pagoda::app
