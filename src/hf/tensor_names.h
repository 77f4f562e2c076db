// Names of tensors in Hugging Face folders, and their names in GGUF files.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "hf/config_keys.h"

namespace pagoda::hf {

// A tensor's place in GGUF's words.
struct TensorPlace {
  std::string name;  // "blk.0.attn_q.weight"; '*' stands for an expert's number
  TensorChange change = TensorChange::kNone;
};

// Returns nothing for tensors that the text model does not have: those of images, of layers that
// predict more tokens, tables of rotations, and lm_head where the embedding is used for it. An
// error names a tensor that would be left out although the model might need it.
Result<std::optional<TensorPlace>> find_place(std::string_view tensor, const FolderShape& shape);

}  // namespace pagoda::hf
