#include "hf/folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <vector>

#include "gguf/file_builder.h"
#include "gguf/printable.h"
#include "hf/config_keys.h"
#include "hf/json_file.h"
#include "hf/safetensors.h"
#include "hf/tensors.h"
#include "hf/tokenizer_keys.h"

namespace pagoda::hf {
namespace {

constexpr const char* kIndexName = "model.safetensors.index.json";
constexpr const char* kSingleName = "model.safetensors";

// The model's safetensors files, and which tensors the index promises in each.
struct ShardList {
  std::vector<std::string> names;  // sorted
  std::map<std::string, std::vector<std::string>> promised = {};
};

class FolderReader {
 public:
  FolderReader(const std::string& path, const ConfigOverrides& overrides)
      : path_(path), overrides_(overrides), builder_(path) {}

  Result<gguf::File> read() && {
    RETURN_IF_ERROR(list_files());
    if (!files_.contains("config.json")) {
      return Error{ErrorCode::kNotFound,
                   fmt::format("{}: is a folder without config.json: a model is a GGUF file, or a "
                               "folder with config.json and *.safetensors",
                               path_)};
    }
    ASSIGN_OR_RETURN(JsonValue config, read_json(builder_, file("config.json")));
    if (config.is_object()) RETURN_IF_ERROR(override_config(overrides_, config));
    note_overrides(overrides_, builder_);
    ASSIGN_OR_RETURN(const FolderShape shape,
                     write_config_keys(config, file("config.json"), builder_));
    write_name();
    ASSIGN_OR_RETURN(const ShardList list, list_shards());
    std::vector<Shard> shards;
    for (const std::string& name : list.names) {
      ASSIGN_OR_RETURN(Shard shard, open_shard(name, list));
      shards.push_back(std::move(shard));
    }
    // Faults of the tokenizer are found before weights are converted, which takes minutes.
    RETURN_IF_ERROR(
        write_tokenizer_keys({path_, files_, config, embedding_rows(shards, shape)}, builder_));
    RETURN_IF_ERROR(add_tensors(shards, shape, builder_));
    return std::move(builder_).build();
  }

 private:
  std::string file(const std::string& name) const { return path_ + "/" + name; }

  Status list_files() {
    std::error_code error;
    for (std::filesystem::directory_iterator at(path_, error), end; !error && at != end;
         at.increment(error)) {
      files_.insert(at->path().filename().string());
    }
    if (!error) return ok_status();
    return Error{ErrorCode::kIo, fmt::format("{}: cannot list: {}", path_, error.message())};
  }

  // The name of the folder, or of the repository whose snapshot it is in a Hugging Face cache:
  // models--Qwen--Qwen3-8B/snapshots/REVISION.
  void write_name() {
    std::filesystem::path path = std::filesystem::path(path_).lexically_normal();
    if (!path.has_filename()) path = path.parent_path();
    std::string name = path.filename().string();
    const std::filesystem::path above = path.parent_path();
    const std::string repository = above.parent_path().filename().string();
    if (above.filename() == "snapshots" && repository.starts_with("models--")) {
      name = repository.substr(repository.rfind("--") + 2);
    }
    if (!name.empty() && name != "." && name != "..") builder_.set_text("general.name", name);
  }

  Result<ShardList> list_shards() {
    if (files_.contains(kSingleName)) return ShardList{{kSingleName}};
    if (files_.contains(kIndexName)) return read_index();
    ShardList list;
    bool has_adapter = false;
    bool has_pickle = false;
    for (const std::string& name : files_) {
      const bool is_adapter = name.starts_with("adapter_");
      has_adapter = has_adapter || is_adapter;
      has_pickle =
          has_pickle || name.ends_with(".bin") || name.ends_with(".pth") || name.ends_with(".pt");
      // Mistral's own format lies beside that of transformers, under other names.
      const bool is_other = is_adapter || name.starts_with("consolidated");
      if (name.ends_with(".safetensors") && !is_other) list.names.push_back(name);
    }
    if (!list.names.empty()) return list;
    return Error{ErrorCode::kNotFound,
                 fmt::format("{}: has config.json, but neither {} nor {} nor other *.safetensors{}",
                             path_, kSingleName, kIndexName,
                             has_pickle    ? ": convert its weights to safetensors"
                             : has_adapter ? ": it holds an adapter, which is no whole model"
                                           : "")};
  }

  Result<ShardList> read_index() {
    const std::string path = file(kIndexName);
    ASSIGN_OR_RETURN(const JsonValue index, read_json(builder_, path));
    ASSIGN_OR_RETURN(const JsonFields fields, JsonFields::of(index, path + ": "));
    ASSIGN_OR_RETURN(const std::optional<JsonFields> map, fields.object("weight_map"));
    if (!map) return fields.missing("weight_map");
    ShardList list;
    for (const auto& [tensor, name] : map->json().items()) {
      if (!name.is_string()) {
        return Error{ErrorCode::kCorrupt,
                     fmt::format("{}: weight_map names {} as a file", path, shown(name))};
      }
      list.promised[name.get<std::string>()].push_back(tensor);
    }
    for (const auto& [name, tensors] : list.promised) {
      if (!files_.contains(name)) {
        return Error{ErrorCode::kNotFound,
                     fmt::format("{}: names '{}', which is not in the folder (tensor '{}' and {} "
                                 "more)",
                                 path, gguf::printable(name, 120),
                                 gguf::printable(tensors.front(), 120), tensors.size() - 1)};
      }
      list.names.push_back(name);
    }
    if (list.names.empty()) {
      return Error{ErrorCode::kCorrupt, fmt::format("{}: weight_map is empty", path)};
    }
    return list;
  }

  Result<Shard> open_shard(const std::string& name, const ShardList& list) {
    const std::string path = file(name);
    ASSIGN_OR_RETURN(const gguf::MappedFile* const mapped, builder_.open(path));
    ASSIGN_OR_RETURN(std::vector<SafeTensor> tensors, parse_safetensors(mapped->bytes(), path));
    const auto promised = list.promised.find(name);
    if (promised != list.promised.end()) {
      std::set<std::string_view> names;
      for (const SafeTensor& tensor : tensors) names.insert(tensor.name);
      for (const std::string& tensor : promised->second) {
        if (names.contains(tensor)) continue;
        return Error{ErrorCode::kCorrupt,
                     fmt::format("{}: tensor '{}' is missing, which {} names", path,
                                 gguf::printable(tensor, 120), kIndexName)};
      }
    }
    return Shard{path, std::move(tensors)};
  }

  std::string path_;
  const ConfigOverrides& overrides_;
  std::set<std::string> files_;
  gguf::FileBuilder builder_;
};

}  // namespace

Result<gguf::File> open_folder(const std::string& path, const ConfigOverrides& overrides) {
  return FolderReader(path, overrides).read();
}

}  // namespace pagoda::hf
