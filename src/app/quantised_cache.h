// Quantised models in a folder, kept for the next start: bounded, the least recently used removed
// first, checked before use. Processes share it.
//
//   KEY.gguf     the model
//   KEY.sha256   its SHA-256, as sha256sum writes it; written last, so that a model without it is
//   no
//                whole one. Its modification time is when the model was last used.
//   *.tmp        being written, or left by a process that was killed
//   lock         held (flock) by whoever writes or removes
//
// A process that uses a model holds a shared lock on it, and no other removes it meanwhile. Of a
// model itself nothing is ever changed, times neither: servers watch them (gguf/model_watch.h).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "gguf/file.h"
#include "gguf/file_writer.h"

namespace pagoda::app {

class QuantisedCache {
 public:
  // Unset `bytes_max`: default_bytes(). 0: a model is removed as soon as it is opened, and its
  // space is free when the process ends.
  QuantisedCache(std::string folder, std::optional<std::uint64_t> bytes_max);

  // How a model that is not there comes to be.
  struct Source {
    std::uint64_t bytes = 0;                         // of the file
    std::function<Status()> check;                   // asked before anything is removed or written
    std::function<Status(gguf::FileWriter&)> write;  // all but commit()
  };
  // Opens the model of a key, which is a file name without its end. It is written where it is not
  // there or is damaged (with a warning); processes that ask for it at once wait for the first. A
  // model that does not fit into bytes_max is used, with a warning, and not kept.
  Result<gguf::File> open(const std::string& key, const Source& source);

  // 32 GiB, or half of what is free or the cache's on a smaller disk.
  static std::uint64_t default_bytes(std::uint64_t available, std::uint64_t kept);

 private:
  std::string model_path(const std::string& key) const;
  std::string record_path(const std::string& key) const;
  std::string lock_path() const;

  // Returns the model, locked for use. kNotFound: it is not there; other errors: it is damaged.
  Result<gguf::File> find(const std::string& key) const;
  // Writes and opens the model. The folder is locked.
  Result<gguf::File> make(const std::string& key, const Source& source) const;
  // Removes others so that `bytes` more fit into the limit and onto the disk. False: they do not
  // fit into the limit, and no more was removed than the disk needs.
  bool make_room(std::uint64_t bytes) const;
  // Removes what is beyond a limit that was given, unless another process is at work.
  void trim() const;
  // Removes what is no model: files of killed processes, and models without a digest.
  void sweep() const;
  Status check_space(std::uint64_t bytes) const;
  // Opens a file that has no name any more.
  Result<gguf::File> open_unnamed(const std::string& key) const;

  std::string folder_;
  std::optional<std::uint64_t> bytes_max_;
};

}  // namespace pagoda::app
