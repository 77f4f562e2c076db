// What replies in a terminal chat: a model in this process, or a server.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "app/device_choice.h"
#include "base/result.h"
#include "kv/evict/policy.h"
#include "net/server_access.h"
#include "text/chat_template.h"

namespace pagoda::app {

struct ChatSampling {
  double temperature = 0.7;
  double top_p = 0.95;
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
  // Text goes to `on_text` as it comes; the reply ends early once `stopped` says so.
  virtual Result<ChatReply> complete(const text::ChatJson& messages, const ChatSampling& sampling,
                                     const std::function<void(std::string_view)>& on_text,
                                     const std::function<bool()>& stopped) = 0;
};

struct LocalChatOptions {
  std::string model;
  std::string chat_template;  // a file; empty: the model's own
  std::size_t threads = 0;    // 0: usable cores
  std::uint64_t max_model_len = 0;
  const kv::EvictionPolicy* kv_eviction = &kv::lru_policy();
  DeviceOptions device;
};

Result<std::unique_ptr<ChatModel>> open_local_chat(const LocalChatOptions& options);

// `url`: http://host[:port][/v1]. `model`: empty for whatever the server serves.
Result<std::unique_ptr<ChatModel>> open_remote_chat(const std::string& url,
                                                    const std::string& model,
                                                    const net::ServerAccess& access);

}  // namespace pagoda::app
