#include "cli/field_flags.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace pagoda::cli {
namespace {

// The fields that errors of engine, model and server name.
constexpr std::array<std::string_view, 14> kFields = {
    "allowed_hosts",
    "api_key",
    "block_size",
    "chat_template",
    "cors_origin",
    "device",
    "enable_prefix_caching",
    "gpu_memory_utilization",
    "kv_cache_dtype",
    "kv_cache_memory_bytes",
    "kv_events_config",
    "max_request_memory_bytes",
    "max_total_body_bytes",
    "num_gpu_blocks_override",
};

// Paths and keys such as "tokenizer.chat_template" are words of their own.
bool is_in_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         std::string_view("_-./").find(c) != std::string_view::npos;
}

bool is_field(std::string_view word, bool has_value) {
  const bool known = std::find(kFields.begin(), kFields.end(), word) != kFields.end();
  return known && (has_value || word.find('_') != std::string_view::npos);
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
    if (is_field(word, has_value)) {
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
