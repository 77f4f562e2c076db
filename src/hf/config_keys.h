// config.json of a Hugging Face folder in GGUF's keys. What it asks for and this version does not
// do is refused by the field's name: nothing that changes logits is left out in silence.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "gguf/file_builder.h"
#include "hf/family.h"
#include "hf/json_file.h"

namespace pagoda::hf {

// How weights are stored.
enum class Storage : std::uint8_t {
  kPlain,
  kFp8,    // F8_E4M3 with a scale for each block of a matrix, or for the whole
  kMxfp4,  // experts in blocks of 32 values with a scale each
};

// The fields of config.json that decide which tensors are read, and how.
struct FolderShape {
  const Family* family = nullptr;
  std::uint64_t layers = 0;
  std::optional<bool> tied = {};  // absent: tied where there is no lm_head
  bool has_text_config = false;   // the model is a part of one that sees images
  Storage storage = Storage::kPlain;
  std::uint64_t block_rows = 0;  // rows of a block of kFp8; 0: the matrix is one block
  std::uint64_t block_columns = 0;
};

// Writes the model's keys, and the tensor of rotation divisors where the config asks for one.
// `source` is the path of config.json.
Result<FolderShape> write_config_keys(const JsonValue& config, const std::string& source,
                                      gguf::FileBuilder& builder);

}  // namespace pagoda::hf
