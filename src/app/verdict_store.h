// Keeps measurements of a model's choices for the next start: one small JSON file a model.
//
//   FOLDER/<fingerprint>.json   {"format": 1, "verdicts": [{"subject", "choice", "numerics",
//                               "measured_s", "weight", "settings", "result"}, …]}, newest first
//   FOLDER/lock                 held (flock) by whoever writes
//
// A file is written beside its place and renamed. A damaged one counts as none, and is replaced by
// the next write. Files and verdicts in a file are bounded: the oldest go first, of verdicts those
// of less weight before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace pagoda::app {

// Identifies a verdict: `subject` is the kind of choice ("kv": how keys and values are kept),
// `choice` its name ("int8"), `numerics` the arithmetic that it was measured with.
struct VerdictKey {
  std::string subject;
  std::string choice;
  std::string numerics;

  bool operator==(const VerdictKey&) const = default;
};

struct StoredVerdict {
  VerdictKey key;
  std::int64_t measured_s = 0;      // Unix time
  std::int64_t weight = 0;          // of what was measured: quick looks never drive out more
  nlohmann::ordered_json settings;  // of the measurement: others give other figures
  nlohmann::ordered_json result;
};

class VerdictStore {
 public:
  static constexpr std::size_t kVerdictsMax = 64;  // of a model
  static constexpr std::size_t kModelsMax = 256;

  explicit VerdictStore(std::string folder) : folder_(std::move(folder)) {}
  // In the cache folder.
  static VerdictStore of_user();

  // Returns the verdicts of a model, newest first. `model` is its fingerprint: hexadecimal digits.
  std::vector<StoredVerdict> read(const std::string& model) const;
  // Returns the verdict of a key that was measured with these settings.
  std::optional<StoredVerdict> find(const std::string& model, const VerdictKey& key,
                                    const nlohmann::ordered_json& settings) const;
  // Keeps a verdict in place of the one with its key and settings. An error where the folder cannot
  // be written.
  Status write(const std::string& model, const StoredVerdict& verdict) const;

 private:
  std::string path_of(const std::string& model) const;
  void remove_oldest_models() const;

  std::string folder_;
};

}  // namespace pagoda::app
