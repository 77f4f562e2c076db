// The tensors of a Hugging Face folder under their GGUF names. They stay in the mapped files; those
// that GGUF files hold otherwise, or that are not aligned, are written into memory of the model.
#pragma once

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

// Adds the tensors that the model needs.
Status add_tensors(std::span<const Shard> shards, const FolderShape& shape,
                   gguf::FileBuilder& builder);

}  // namespace pagoda::hf
