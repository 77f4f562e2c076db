#include "hf/tensors.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/e4m3.h"
#include "base/half.h"
#include "gguf/printable.h"
#include "hf/gpt_oss_experts.h"
#include "hf/tensor_names.h"

namespace pagoda::hf {
namespace {

constexpr std::string_view kWeightEnd = ".weight";
constexpr std::string_view kScaleEnd = "_scale_inv";
// The scale of a matrix's inputs, which are not quantised here.
constexpr std::string_view kInputScaleEnd = ".activation_scale";
constexpr std::string_view kBlocksEnd = "_blocks";
constexpr std::size_t kAlignment = 8;  // of tensors in an opened gguf::File

struct Located {
  const SafeTensor* tensor;
  const std::string* path;
};

std::optional<gguf::TensorType> tensor_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::kF32:
      return gguf::TensorType::kF32;
    case Dtype::kF16:
      return gguf::TensorType::kF16;
    case Dtype::kBf16:
      return gguf::TensorType::kBF16;
    case Dtype::kF8E4M3:
    case Dtype::kU8:
    case Dtype::kOther:
      break;
  }
  return std::nullopt;
}

float element(const SafeTensor& tensor, std::uint64_t index) {
  if (tensor.dtype == Dtype::kF32) {
    float value = 0;
    std::memcpy(&value, tensor.bytes.data() + index * sizeof(value), sizeof(value));
    return value;
  }
  std::uint16_t bits = 0;
  std::memcpy(&bits, tensor.bytes.data() + index * sizeof(bits), sizeof(bits));
  return tensor.dtype == Dtype::kF16 ? float_from_fp16(bits) : float_from_bf16(bits);
}

class TensorAdder {
 public:
  TensorAdder(const FolderShape& shape, gguf::FileBuilder& builder)
      : shape_(shape), builder_(builder) {}

  Status index(std::span<const Shard> shards) {
    for (const Shard& shard : shards) {
      for (const SafeTensor& tensor : shard.tensors) {
        const auto [first, is_new] = by_name_.emplace(tensor.name, Located{&tensor, &shard.path});
        if (is_new) continue;
        return fault(ErrorCode::kCorrupt, {&tensor, &shard.path},
                     fmt::format("is also in {}", *first->second.path));
      }
    }
    return ok_status();
  }

  Status add(const Located& located) {
    const SafeTensor& tensor = *located.tensor;
    if (is_scale(tensor.name)) return ok_status();
    const Result<std::optional<TensorPlace>> place = find_place(tensor.name, shape_);
    if (!place.ok()) {
      return Error{place.error().code, fmt::format("{}: {}", *located.path, place.error().message)};
    }
    if (!place.value() || place.value()->change == TensorChange::kScales) return ok_status();
    if (tensor.shape.size() > 4 || tensor.elements() == 0) {
      return fault(ErrorCode::kUnsupported, located,
                   fmt::format("has {} dimensions and {} elements, expected at most 4 and at "
                               "least 1",
                               tensor.shape.size(), tensor.elements()));
    }
    if (tensor.dtype == Dtype::kF8E4M3) return add_fp8(located, place.value()->name);
    if (is_gpt_oss(place.value()->change)) return add_gpt_oss(located, *place.value());
    const std::optional<gguf::TensorType> type = tensor_type(tensor.dtype);
    if (!type) {
      return fault(ErrorCode::kUnsupported, located,
                   fmt::format("has dtype {}, this version reads F32, F16, BF16 and F8_E4M3 with "
                               "scales",
                               gguf::printable(tensor.dtype_name, 20)));
    }
    return add_plain(located, *place.value(), *type);
  }

 private:
  Status add_gpt_oss(const Located& located, const TensorPlace& place) {
    const SafeTensor& tensor = *located.tensor;
    const SafeTensor* scales = nullptr;
    if (tensor.name.ends_with(kBlocksEnd)) {
      const std::string base = tensor.name.substr(0, tensor.name.size() - kBlocksEnd.size());
      const auto found = by_name_.find(base + "_scales");
      if (found == by_name_.end()) return fault(ErrorCode::kCorrupt, located, "has no scales");
      scales = found->second.tensor;
    }
    Status added = add_gpt_oss_experts(tensor, scales, place, builder_);
    if (added.ok()) return added;
    return fault(added.error().code, located, added.error().message);
  }

  static Error fault(ErrorCode code, const Located& located, std::string_view what) {
    return {code,
            fmt::format("{}: tensor '{}' at offset {} {}", *located.path,
                        gguf::printable(located.tensor->name, 120), located.tensor->offset, what)};
  }

  // The scales of a matrix are read together with it, those of its inputs are left out.
  bool is_scale(const std::string& name) const {
    if (shape_.storage != Storage::kFp8) return false;
    const std::string_view text = name;
    if (text.ends_with(kInputScaleEnd)) {
      const std::string_view base = text.substr(0, text.size() - kInputScaleEnd.size());
      return by_name_.contains(fmt::format("{}{}", base, kWeightEnd));
    }
    return text.ends_with(kScaleEnd) &&
           by_name_.contains(text.substr(0, text.size() - kScaleEnd.size()));
  }

  // GGUF's extents begin with the row length.
  static std::vector<std::uint64_t> extents_of(const SafeTensor& tensor) {
    if (tensor.shape.empty()) return {1};
    return {tensor.shape.rbegin(), tensor.shape.rend()};
  }

  std::span<const std::byte> aligned(std::span<const std::byte> bytes) {
    if (std::bit_cast<std::uintptr_t>(bytes.data()) % kAlignment == 0) return bytes;
    const std::span<std::byte> copy = builder_.allocate(bytes.size());
    std::memcpy(copy.data(), bytes.data(), bytes.size());
    return copy;
  }

  Status add_plain(const Located& located, const TensorPlace& place, gguf::TensorType type) {
    const SafeTensor& tensor = *located.tensor;
    const bool is_norm = place.name.ends_with("norm.weight");
    if (shape_.family->norms_plus_one && is_norm) return add_plus_one(tensor, place.name);
    if (place.change != TensorChange::kNone) return add_experts(located, place, type);
    return builder_.add_tensor(place.name, type, extents_of(tensor), aligned(tensor.bytes));
  }

  Status add_plus_one(const SafeTensor& tensor, const std::string& name) {
    const std::uint64_t count = tensor.elements();
    const std::span<std::byte> bytes = builder_.allocate(count * sizeof(float));
    for (std::uint64_t i = 0; i < count; ++i) {
      const float value = 1.0f + element(tensor, i);
      std::memcpy(bytes.data() + i * sizeof(value), &value, sizeof(value));
    }
    return builder_.add_tensor(name, gguf::TensorType::kF32, extents_of(tensor), bytes);
  }

  // A matrix for every expert, where they lie.
  Status add_experts(const Located& located, const TensorPlace& place, gguf::TensorType type) {
    const SafeTensor& tensor = *located.tensor;
    const bool halves = place.change == TensorChange::kSplitGateUp;
    if (tensor.shape.size() != 3 || (halves && tensor.shape[1] % 2 != 0)) {
      return fault(ErrorCode::kCorrupt, located, "is not one matrix for every expert");
    }
    const std::uint64_t experts = tensor.shape[0];
    const std::uint64_t parts = halves ? 2 : 1;
    const std::array<std::uint64_t, 2> extents = {tensor.shape[2], tensor.shape[1] / parts};
    const std::uint64_t bytes = tensor.bytes.size() / experts / parts;
    for (std::uint64_t i = 0; i < experts * parts; ++i) {
      std::string name = place.name;
      if (i % parts == 1) name.replace(name.find("ffn_gate"), 8, "ffn_up");
      name.replace(name.find('*'), 1, fmt::format("{}", i / parts));
      RETURN_IF_ERROR(builder_.add_tensor(name, type, extents,
                                          aligned(tensor.bytes.subspan(i * bytes, bytes))));
    }
    return ok_status();
  }

  // Values are element * scale of the block, rounded to bf16.
  Status add_fp8(const Located& located, const std::string& name) {
    const SafeTensor& tensor = *located.tensor;
    const auto found = by_name_.find(tensor.name + std::string(kScaleEnd));
    if (shape_.storage != Storage::kFp8 || found == by_name_.end()) {
      return fault(ErrorCode::kUnsupported, located,
                   "has dtype F8_E4M3 without its scales (weight_scale_inv), which is not "
                   "supported");
    }
    const SafeTensor& scales = *found->second.tensor;
    if (tensor.shape.size() != 2) return fault(ErrorCode::kCorrupt, located, "is no matrix");
    const bool whole = shape_.block_rows == 0;
    const std::uint64_t block_rows = whole ? tensor.shape[0] : shape_.block_rows;
    const std::uint64_t block_columns = whole ? tensor.shape[1] : shape_.block_columns;
    const auto blocks = [](std::uint64_t extent, std::uint64_t size) {
      return extent / size + (extent % size == 0 ? 0 : 1);
    };
    const bool one = whole && scales.elements() == 1;
    const bool many = !whole && scales.shape.size() == 2 &&
                      scales.shape[0] == blocks(tensor.shape[0], block_rows) &&
                      scales.shape[1] == blocks(tensor.shape[1], block_columns);
    if (!tensor_type(scales.dtype) || (!one && !many)) {
      return fault(ErrorCode::kCorrupt, found->second,
                   whole ? std::string("is not one scale for all of the weights")
                         : fmt::format("has no scale for each block of {} x {} of the weights",
                                       block_rows, block_columns));
    }
    const std::uint64_t scale_columns = whole ? 1 : scales.shape[1];
    const std::span<std::byte> bytes =
        builder_.allocate(tensor.bytes.size() * sizeof(std::uint16_t));
    std::byte* out = bytes.data();
    for (std::uint64_t row = 0; row < tensor.shape[0]; ++row) {
      for (std::uint64_t column = 0; column < tensor.shape[1]; ++column) {
        const float scale =
            element(scales, row / block_rows * scale_columns + column / block_columns);
        const auto bits =
            std::to_integer<std::uint8_t>(tensor.bytes[row * tensor.shape[1] + column]);
        const std::uint16_t value = bf16_from_float(float_from_e4m3(bits) * scale);
        std::memcpy(out, &value, sizeof(value));
        out += sizeof(value);
      }
    }
    return builder_.add_tensor(name, gguf::TensorType::kBF16, extents_of(tensor), bytes);
  }

  const FolderShape& shape_;
  gguf::FileBuilder& builder_;
  std::unordered_map<std::string_view, Located> by_name_;
};

}  // namespace

std::optional<std::uint64_t> embedding_rows(std::span<const Shard> shards,
                                            const FolderShape& shape) {
  for (const Shard& shard : shards) {
    for (const SafeTensor& tensor : shard.tensors) {
      if (tensor.shape.empty() || !tensor.name.ends_with("embed_tokens.weight")) continue;
      const auto place = find_place(tensor.name, shape);
      if (place.ok() && place.value() && place.value()->name == "token_embd.weight") {
        return tensor.shape.front();
      }
    }
  }
  return std::nullopt;
}

Status add_tensors(std::span<const Shard> shards, const FolderShape& shape,
                   gguf::FileBuilder& builder) {
  TensorAdder adder(shape, builder);
  RETURN_IF_ERROR(adder.index(shards));
  for (const Shard& shard : shards) {
    for (const SafeTensor& tensor : shard.tensors) {
      RETURN_IF_ERROR(adder.add({&tensor, &shard.path}));
    }
  }
  if (shape.tied == false && !builder.has_tensor("output.weight")) {
    return Error{ErrorCode::kNotFound,
                 fmt::format("{}: tensor 'lm_head.weight' is missing, and tie_word_embeddings of "
                             "config.json is false",
                             builder.source())};
  }
  return ok_status();
}

}  // namespace pagoda::hf
