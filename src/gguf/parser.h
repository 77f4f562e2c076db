// Parses one GGUF file: its header is checked and its tensors have their bytes. A File is made of
// these parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "gguf/file.h"
#include "gguf/metadata.h"

namespace pagoda::gguf {

struct Part {
  std::uint32_t version;
  Metadata metadata;
  std::vector<Tensor> tensors;  // in file order; names differ, bytes do not overlap
};

// Names, texts, arrays and tensor bytes are views into `bytes`.
Result<Part> parse_part(std::span<const std::byte> bytes, const std::string& source);

}  // namespace pagoda::gguf
