// Describes a model file in numbers and as a report: metadata, tensors by type, architecture and
// the size of its KV cache.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/kv_size.h"
#include "gguf/file.h"

namespace pagoda::inspect {

struct TensorTotal {
  std::string type;  // "Q4_K"
  std::uint64_t tensors = 0;
  std::uint64_t parameters = 0;
  std::uint64_t bytes = 0;

  bool operator==(const TensorTotal&) const = default;
};

// The cache of one sequence in 16-bit elements, and a token's bytes in others.
struct KvInspection {
  struct Format {
    std::string_view name;
    std::int64_t bytes_per_token = 0;
  };

  std::vector<app::KvLayers> groups;
  std::int64_t context_length = 0;
  std::int64_t bytes_per_token = 0;         // all layers
  std::int64_t bytes_per_full_context = 0;  // windowed layers keep their window only
  std::vector<Format> formats;              // those below 16 bits that --kv-cache-dtype takes
};

struct Inspection {
  std::vector<TensorTotal> types;  // most bytes first
  TensorTotal all;
  std::optional<KvInspection> kv;
  std::string kv_reason;  // why there is no `kv`: the message of what is missing or wrong
};

Inspection inspect_model(const gguf::File& file);

// For people: long texts and arrays are shortened.
std::string inspection_text(const gguf::File& file, const Inspection& inspection);
// One JSON value and a newline; arrays over 8 elements become {"type", "count", "first"}.
std::string inspection_json(const gguf::File& file, const Inspection& inspection);

}  // namespace pagoda::inspect
