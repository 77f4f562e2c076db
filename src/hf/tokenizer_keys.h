// tokenizer.json and what lies beside it (tokenizer_config.json, chat_template.jinja,
// generation_config.json) in GGUF's keys.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "base/result.h"
#include "gguf/file_builder.h"
#include "hf/json_file.h"

namespace pagoda::hf {

// A folder that was listed.
struct FolderFiles {
  const std::string& path;
  const std::set<std::string>& names;
  const JsonValue& config;  // config.json
  // How many tokens the model's embedding has, where that is known.
  std::optional<std::uint64_t> embedding_rows = {};

  bool contains(const std::string& name) const { return names.contains(name); }
  std::string file(const std::string& name) const { return path + "/" + name; }
};

// Writes tokenizer.*, general.sampling.* and pagoda.tokenizer.*. A folder without tokenizer.json
// gets no tokenizer: its weights can still be looked at.
Status write_tokenizer_keys(const FolderFiles& folder, gguf::FileBuilder& builder);

}  // namespace pagoda::hf
