// Reads keys of a model's metadata below "<architecture>." and names file, key and range in every
// error.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gguf/metadata.h"

namespace pagoda::model {

// The limits are far above any current model, and so low that no product of two overflows.
inline constexpr std::uint64_t kLayersMax = 4096;
inline constexpr std::uint64_t kWidthMax = 1 << 20;
inline constexpr std::uint64_t kHeadsMax = 4096;
inline constexpr std::uint64_t kHeadDimMax = 1024;
inline constexpr std::uint64_t kExpertsMax = 4096;
inline constexpr std::uint64_t kContextMax = 1u << 30;

// Divisors of frequencies: [rope pairs].
inline constexpr std::string_view kDivisors = "rope_freqs.weight";
// Tensors of longrope: [rope pairs].
inline constexpr std::string_view kShortFactors = "rope_factors_short.weight";
inline constexpr std::string_view kLongFactors = "rope_factors_long.weight";

// Does a caller's scaling take the place of the file's?
bool replaces_scaling(const gguf::Metadata& metadata);

class ConfigReader {
 public:
  ConfigReader(const gguf::Metadata& metadata, std::string architecture)
      : metadata_(metadata), architecture_(std::move(architecture)) {}

  // "llama.block_count" of "block_count".
  std::string key(std::string_view name) const;
  bool contains(std::string_view name) const { return metadata_.contains(key(name)); }

  Result<std::uint32_t> count(std::string_view name, std::uint64_t max) const;
  Result<std::uint32_t> count_or(std::string_view name, std::uint64_t fallback,
                                 std::uint64_t max) const;
  // How many dimensions of a head rotate: an even number; all `head_dim` where the file is silent.
  Result<std::uint32_t> rope_dims(std::string_view name, std::uint32_t head_dim) const;
  // A finite number above 0.
  Result<double> positive_or(std::string_view name, double fallback) const;
  // A finite number above 0; the fallback also where the file states 0, which is none.
  Result<float> scale_or(std::string_view name, float fallback) const;
  // Reads a number, or one number per layer, which must then all be equal.
  Result<std::uint32_t> count_for_all_layers(std::string_view name, std::uint64_t fallback,
                                             std::uint64_t max) const;

  // Reads one number per layer: all the same where the file states one, or none (the fallback).
  Result<std::vector<std::uint32_t>> count_by_layer(std::string_view name, std::uint64_t fallback,
                                                    std::uint64_t max, std::uint32_t layers) const;
  // An error when the file does not have the key: a guess would give other logits.
  Status require(std::string_view name) const;
  // Returns the error for a value that must be the same in all layers.
  Error differs_between_layers(std::string_view name) const;

  Error out_of_range(std::string_view name, std::string_view value, std::string_view range) const;
  const gguf::Metadata& metadata() const { return metadata_; }
  std::string_view architecture() const { return architecture_; }

 private:
  Result<std::uint32_t> checked(std::string_view name, std::uint64_t value,
                                std::uint64_t max) const;

  const gguf::Metadata& metadata_;
  std::string architecture_;
};

}  // namespace pagoda::model
