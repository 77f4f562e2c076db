// Folders of tests/data/models with another config or other tensors, and what opening them says.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "hf/folder.h"
#include "hf/test_folder.h"

namespace pagoda::hf {

inline std::string error_of(const TestFolder& folder) {
  const auto file = open_folder(folder.path());
  return file.ok() ? "no error" : file.error().message;
}

// Changes config.json by a JSON merge patch.
inline void patch_config(const TestFolder& folder, const std::string& patch) {
  nlohmann::ordered_json config =
      nlohmann::ordered_json::parse(read_file(folder.file("config.json")));
  config.merge_patch(nlohmann::ordered_json::parse(patch));
  folder.write("config.json", config.dump());
}

// A safetensors file of tensors of one element each.
inline std::string safetensors_of(const std::vector<std::pair<std::string, std::string>>& tensors) {
  std::vector<TestTensor> all;
  for (const auto& [name, dtype] : tensors) {
    all.push_back({name, dtype, {1}, std::string(dtype == "I64" ? 8 : 2, '\1')});
  }
  return safetensors_text(all);
}

}  // namespace pagoda::hf
