#include "app/verdict_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <thread>
#include <utility>

#include "app/cache_folder.h"
#include "base/file_bytes.h"

namespace pagoda::app {
namespace {

using VerdictJson = nlohmann::ordered_json;

constexpr int kVerdictFormat = 1;
constexpr std::size_t kVerdictFileBytesMax = std::size_t{4} << 20;

VerdictJson verdict_json(const StoredVerdict& verdict) {
  return {{"subject", verdict.key.subject},   {"choice", verdict.key.choice},
          {"numerics", verdict.key.numerics}, {"measured_s", verdict.measured_s},
          {"weight", verdict.weight},         {"settings", verdict.settings},
          {"result", verdict.result}};
}

bool has_text(const VerdictJson& json, const char* key) {
  return json.contains(key) && json[key].is_string();
}

std::optional<StoredVerdict> read_verdict(const VerdictJson& json) {
  if (!json.is_object() || !has_text(json, "subject") || !has_text(json, "choice") ||
      !has_text(json, "numerics") || !json.contains("measured_s") ||
      !json["measured_s"].is_number_integer() || !json.contains("settings") ||
      !json.contains("result")) {
    return std::nullopt;
  }
  const VerdictJson weight = json.value("weight", VerdictJson(0));  // absent in older files
  return StoredVerdict{.key = {json["subject"], json["choice"], json["numerics"]},
                       .measured_s = json["measured_s"],
                       .weight = weight.is_number_integer() ? weight.get<std::int64_t>() : 0,
                       .settings = json["settings"],
                       .result = json["result"]};
}

// Removes verdicts beyond the bound: the lightest, of equal ones the oldest. The first stays.
void remove_lightest(std::vector<StoredVerdict>& verdicts) {
  while (verdicts.size() > VerdictStore::kVerdictsMax) {
    auto lightest = verdicts.end() - 1;
    for (auto at = lightest; at != verdicts.begin(); --at) {
      if (at->weight < lightest->weight) lightest = at;
    }
    verdicts.erase(lightest);
  }
}

// Held while a file is read, changed and written, which takes milliseconds. Where the folder cannot
// be locked, or somebody who was halted has it, the last writer wins.
class FolderLock {
 public:
  explicit FolderLock(const std::string& path)
      : descriptor_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
    if (descriptor_ < 0) return;
    for (int tries = 0; tries < kTries && ::flock(descriptor_, LOCK_EX | LOCK_NB) != 0; ++tries) {
      std::this_thread::sleep_for(kPause);
    }
  }
  ~FolderLock() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  static constexpr int kTries = 200;
  static constexpr std::chrono::milliseconds kPause{10};

  int descriptor_;
};

}  // namespace

VerdictStore VerdictStore::of_user() { return VerdictStore(cache_folder() + "/verdicts"); }

std::string VerdictStore::path_of(const std::string& model) const {
  return fmt::format("{}/{}.json", folder_, model);
}

std::vector<StoredVerdict> VerdictStore::read(const std::string& model) const {
  const Result<FileBytes> file = read_file_bytes(path_of(model), kVerdictFileBytesMax);
  if (!file.ok()) return {};
  const VerdictJson json = VerdictJson::parse(file.value().bytes, nullptr, false);
  if (!json.is_object() || json.value("format", VerdictJson()) != VerdictJson(kVerdictFormat) ||
      !json.contains("verdicts") || !json["verdicts"].is_array()) {
    return {};
  }
  std::vector<StoredVerdict> verdicts;
  for (const VerdictJson& each : json["verdicts"]) {
    if (std::optional<StoredVerdict> verdict = read_verdict(each)) {
      verdicts.push_back(*std::move(verdict));
    }
  }
  return verdicts;
}

std::optional<StoredVerdict> VerdictStore::find(const std::string& model, const VerdictKey& key,
                                                const VerdictJson& settings) const {
  for (StoredVerdict& verdict : read(model)) {
    if (verdict.key == key && verdict.settings == settings) return std::move(verdict);
  }
  return std::nullopt;
}

Status VerdictStore::write(const std::string& model, const StoredVerdict& verdict) const {
  std::error_code ignored;
  std::filesystem::create_directories(folder_, ignored);
  const FolderLock lock(folder_ + "/lock");
  std::vector<StoredVerdict> verdicts = read(model);
  std::erase_if(verdicts, [&](const StoredVerdict& each) {
    return each.key == verdict.key && each.settings == verdict.settings;
  });
  verdicts.insert(verdicts.begin(), verdict);
  remove_lightest(verdicts);
  VerdictJson list = VerdictJson::array();
  for (const StoredVerdict& each : verdicts) list.push_back(verdict_json(each));
  const VerdictJson json = {{"format", kVerdictFormat}, {"verdicts", std::move(list)}};
  const std::string path = path_of(model);
  const std::string fresh = fmt::format("{}.{}.tmp", path, ::getpid());
  {
    std::ofstream file(fresh, std::ios::trunc | std::ios::binary);
    file << json.dump(1, ' ', false, VerdictJson::error_handler_t::replace) << '\n';
    file.close();
    if (!file) {
      std::filesystem::remove(fresh, ignored);
      return Error{ErrorCode::kIo, fmt::format("{}: cannot be written", fresh)};
    }
  }
  if (::rename(fresh.c_str(), path.c_str()) != 0) {
    const int error = errno;
    std::filesystem::remove(fresh, ignored);
    return Error{ErrorCode::kIo, fmt::format("{}: {}", path, std::strerror(error))};
  }
  remove_oldest_models();
  return ok_status();
}

// Also removes what killed processes left half written: nobody else writes under the lock.
void VerdictStore::remove_oldest_models() const {
  namespace fs = std::filesystem;
  std::vector<std::pair<fs::file_time_type, fs::path>> files;
  std::error_code error;
  for (fs::directory_iterator at(folder_, error), end; !error && at != end; at.increment(error)) {
    if (at->path().extension() == ".tmp") fs::remove(at->path(), error);
    if (at->path().extension() != ".json") continue;
    std::error_code unknown;
    files.emplace_back(at->last_write_time(unknown), at->path());
  }
  if (files.size() <= kModelsMax) return;
  std::sort(files.begin(), files.end());
  files.resize(files.size() - kModelsMax);
  for (const auto& [time, path] : files) fs::remove(path, error);
}

}  // namespace pagoda::app
