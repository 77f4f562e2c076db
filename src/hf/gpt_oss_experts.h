// The experts of gpt-oss: rows of gates and ups take turns, MXFP4 has blocks and scales apart, and
// matrices that are not quantised are transposed. GGUF files have gates and ups apart, a scale
// before each block, and rows of outputs.
#pragma once

#include "base/result.h"
#include "gguf/file_builder.h"
#include "hf/safetensors.h"
#include "hf/tensor_names.h"

namespace pagoda::hf {

bool is_gpt_oss(TensorChange change);

// Writes the tensor into memory of the model. `scales` are those of blocks, else null. The error's
// message says what is wrong with the tensor, without its name.
Status add_gpt_oss_experts(const SafeTensor& tensor, const SafeTensor* scales,
                           const TensorPlace& place, gguf::FileBuilder& builder);

}  // namespace pagoda::hf
