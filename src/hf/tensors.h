// The tensors of a Hugging Face folder under their GGUF names. They stay in the mapped files; those
// that GGUF files hold otherwise, or that are not aligned, are written into memory of the model.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "gguf/file_builder.h"
#include "hf/config_keys.h"
#include "hf/safetensors.h"

namespace pagoda::hf {

// The tensors of one safetensors file, which a FileBuilder holds open.
struct Shard {
  std::string path;
  std::vector<SafeTensor> tensors;
};

// Returns how many tokens the embedding has; nothing when there is none.
std::optional<std::uint64_t> embedding_rows(std::span<const Shard> shards,
                                            const FolderShape& shape);

// Adds the tensors that the model needs.
Status add_tensors(std::span<const Shard> shards, const FolderShape& shape,
                   gguf::FileBuilder& builder);

}  // namespace pagoda::hf
