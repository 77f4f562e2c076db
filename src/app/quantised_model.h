// Weights quantised when a model is loaded, once: the result is a GGUF file in the cache folder.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "app/cache_folder.h"
#include "base/result.h"
#include "gguf/file.h"
#include "gguf/tensor_type.h"

namespace pagoda::app {

struct QuantizationOptions {
  std::optional<gguf::TensorType> type = {};      // unset: weights stay as they are
  std::optional<std::uint64_t> cache_bytes = {};  // unset: QuantisedCache::default_bytes()
  std::string cache_folder = app::cache_folder();
};

// Reads q8_0, q4_0 or q4_k, in letters of any case. What other programs call so is refused by its
// name, with what there is instead.
Result<gguf::TensorType> parse_quantization(std::string_view word);

// Returns the model with its matrices quantised (gguf/quantised_file.h), as an ordinary GGUF file
// with a fingerprint of its own. It is found again by the bytes of the model's files and by all
// that is written before the tensors: keys (overrides included), names, shapes and types. `check`
// is asked before anything is written.
Result<gguf::File> quantised_model(gguf::File file, const QuantizationOptions& options,
                                   const std::function<Status(const gguf::File&)>& check);

}  // namespace pagoda::app
