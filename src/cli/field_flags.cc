#include "cli/field_flags.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace pagoda::cli {
namespace {

// The fields that errors name.
constexpr std::array<std::string_view, 57> kFields = {
    "allowed_hosts",
    "api_key",
    "api_keys",
    "batch_size",
    "block_size",
    "bytes_per_token",
    "ca_file",
    "capacity",
    "chat_template",
    "context",
    "cors_origin",
    "depths",
    "device",
    "enable_prefix_caching",
    "file",
    "gpu_memory_utilization",
    "head_dim",
    "input_tokens",
    "kv_cache_dtype",
    "kv_cache_memory_bytes",
    "kv_disk",
    "kv_disk_size",
    "kv_events_config",
    "kv_host_size",
    "kv_stop_seconds",
    "llama_bench",
    "max_num_batched_tokens",
    "max_request_memory_bytes",
    "max_total_body_bytes",
    "new_tokens",
    "num_gpu_blocks_override",
    "num_kv_heads",
    "num_layers",
    "output_tokens",
    "page_bytes",
    "prompt",
    "prompt_tokens",
    "prompt_tokens_max",
    "prompt_tokens_min",
    "question_tokens",
    "questions",
    "quiet_tokens",
    "random_weights",
    "sequence_length",
    "served_model",
    "ssl_certfile",
    "ssl_keyfile",
    "system_tokens",
    "token_ids",
    "tokens",
    "tp_size",
    "trace",
    "type",
    "url",
    "weights",
    "workload",
    "works",
};

// Paths and keys such as "tokenizer.chat_template" are words of their own.
bool is_in_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         std::string_view("_-./").find(c) != std::string_view::npos;
}

// `is_marked`: the word stands where only a field does.
bool is_field(std::string_view word, bool is_marked) {
  const bool known = std::find(kFields.begin(), kFields.end(), word) != kFields.end();
  return known && (is_marked || word.find('_') != std::string_view::npos);
}

}  // namespace

std::string with_flags(std::string_view message) {
  std::string result;
  for (std::size_t at = 0; at < message.size();) {
    std::size_t end = at;
    while (end < message.size() && is_in_word(message[end])) ++end;
    if (end == at) {
      result += message[at++];
      continue;
    }
    const std::string_view word = message.substr(at, end - at);
    const bool has_value = end < message.size() && message[end] == '=';
    const bool begins = at == 0 && end < message.size() && message[end] == ':';
    if (is_field(word, has_value || begins)) {
      result += "--";
      for (const char c : word) result += c == '_' ? '-' : c;
      if (has_value) result += ' ';
      at = end + (has_value ? 1 : 0);
    } else {
      result += word;
      at = end;
    }
  }
  return result;
}

}  // namespace pagoda::cli
