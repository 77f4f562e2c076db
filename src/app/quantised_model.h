// Weights quantised, or rounded to another type of floats, when a model is loaded, once: the result
// is a GGUF file in the cache folder.
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
  std::optional<gguf::TensorType> dtype = {};     // F32, F16 or BF16; unset: floats stay, too
  std::optional<std::uint64_t> cache_bytes = {};  // unset: QuantisedCache::default_bytes()
  std::string cache_folder = app::cache_folder();
};

// Reads q8_0, q4_0 or q4_k, in letters of any case. What other programs call so is refused by its
// name, with what there is instead.
Result<gguf::TensorType> parse_quantization(std::string_view word);

// Reads vLLM's names: auto (unset), bfloat16, float16 or half, float32 or float.
Result<std::optional<gguf::TensorType>> parse_dtype(std::string_view word);
// The first of the names of a type.
std::string_view dtype_name(gguf::TensorType type);

// Returns the model with its matrices quantised (gguf/quantised_file.h), as an ordinary GGUF file
// with a fingerprint of its own. It is found again by the bytes of the model's files and by all
// that is written before the tensors: keys (overrides included), names, shapes and types. `check`
// is asked before anything is written.
Result<gguf::File> quantised_model(gguf::File file, const QuantizationOptions& options,
                                   const std::function<Status(const gguf::File&)>& check);
// Returns the model with its matrices in options.dtype, likewise. A model that has them so already
// is returned as it is; so is one that has quantised matrices, with a note.
Result<gguf::File> rounded_model(gguf::File file, const QuantizationOptions& options,
                                 const std::function<Status(const gguf::File&)>& check);

}  // namespace pagoda::app
