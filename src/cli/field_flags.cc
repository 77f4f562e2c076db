#include "cli/field_flags.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>

namespace pagoda::cli {
namespace {

// Where a field is meant by its name. Before '=' it is meant always.
enum class Where : std::uint8_t {
  kAnywhere,  // nothing else has this name
  kLabel,     // before a ':' that follows the message's first word
  kValue,     // before '=' alone: the name begins other messages, too
};

struct Field {
  std::string_view name;  // the flag's, with underscores for dashes
  Where where = Where::kAnywhere;
};

// The fields that errors of folders below the command line name.
constexpr auto kFields = std::to_array<Field>({
    {"allowed_hosts"},
    {"api_key"},
    {"api_keys", Where::kLabel},
    {"batch_size", Where::kLabel},
    {"block_size"},
    {"bytes_per_token"},
    {"ca_file"},
    {"capacity", Where::kLabel},
    {"chat_template"},
    {"context", Where::kValue},
    {"cors_origin"},
    {"depths", Where::kValue},
    {"device", Where::kValue},
    {"enable_prefix_caching"},
    {"file", Where::kValue},
    {"gpu_memory_utilization"},
    {"head_dim", Where::kLabel},
    {"input_tokens", Where::kLabel},
    {"kv_cache_dtype"},
    {"kv_cache_memory_bytes"},
    {"kv_disk"},
    {"kv_disk_size"},
    {"kv_events_config"},
    {"kv_host_size"},
    {"kv_stop_seconds"},
    {"llama_bench", Where::kLabel},
    {"max_num_batched_tokens"},
    {"max_request_memory_bytes"},
    {"max_total_body_bytes"},
    {"new_tokens", Where::kLabel},
    {"num_gpu_blocks_override"},
    {"num_kv_heads", Where::kLabel},
    {"num_layers", Where::kLabel},
    {"output_tokens", Where::kLabel},
    {"page_bytes", Where::kLabel},
    {"prompt", Where::kValue},
    {"prompt_tokens", Where::kLabel},
    {"prompt_tokens_max", Where::kLabel},
    {"prompt_tokens_min", Where::kLabel},
    {"question_tokens", Where::kLabel},
    {"questions", Where::kLabel},
    {"quiet_tokens", Where::kLabel},
    {"random_weights"},
    {"sequence_length", Where::kLabel},
    {"served_model"},
    {"ssl_certfile"},
    {"ssl_keyfile"},
    {"system_tokens", Where::kLabel},
    {"token_ids", Where::kLabel},
    {"tokens", Where::kLabel},
    {"tp_size", Where::kLabel},
    {"trace", Where::kValue},
    {"type", Where::kLabel},
    {"url", Where::kLabel},
    {"weights", Where::kLabel},
    {"workload", Where::kValue},
    {"works", Where::kValue},
});

// Paths and keys such as "tokenizer.chat_template" are words of their own.
bool is_in_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         std::string_view("_-./").find(c) != std::string_view::npos;
}

// Whether the word of a message from `begin` to `end` means a field.
bool is_field(std::string_view message, std::size_t begin, std::size_t end) {
  const std::string_view word = message.substr(begin, end - begin);
  const auto* const field = std::find_if(kFields.begin(), kFields.end(),
                                         [&](const Field& row) { return row.name == word; });
  if (field == kFields.end()) return false;
  const std::string_view rest = message.substr(end);
  if (field->where == Where::kAnywhere || rest.starts_with('=')) return true;
  return field->where == Where::kLabel && begin == 0 && rest.starts_with(": ");
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
    if (is_field(message, at, end)) {
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
