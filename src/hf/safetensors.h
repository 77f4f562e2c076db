// One safetensors file, checked completely before anything of it is used:
//
//   u64 header bytes | JSON header {name: {dtype, shape, data_offsets}} | tensor data
//
// Offsets count from the beginning of tensor data. Tensors cover it without holes or overlaps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace pagoda::hf {

// The element types that this version reads.
enum class Dtype : std::uint8_t { kF32, kF16, kBf16, kF8E4M3, kU8, kOther };

struct SafeTensor {
  std::string name;
  Dtype dtype = Dtype::kOther;
  std::string dtype_name;            // as the file has it: "BF16"
  std::vector<std::uint64_t> shape;  // the last extent is the row length
  std::span<const std::byte> bytes;  // of any alignment
  std::uint64_t offset = 0;          // of the first byte in the file, for messages

  std::uint64_t elements() const;
};

// Parses `file`, which `source` names in messages. Tensors view its bytes, ordered by offset.
// Element types that this version does not read are no error here: a model may not need them.
Result<std::vector<SafeTensor>> parse_safetensors(std::span<const std::byte> file,
                                                  const std::string& source);

}  // namespace pagoda::hf
