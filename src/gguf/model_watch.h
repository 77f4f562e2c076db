// ModelWatch notices that a file of a running model has changed since it was opened. Weights are
// read from the mapped file while the model computes: KV computed after a change is of another
// model.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <vector>

#include "gguf/fingerprint.h"

namespace pagoda::gguf {

// Thread rule: any thread.
class ModelWatch {
 public:
  // Descriptors of the parts must stay open while the watch is used.
  explicit ModelWatch(std::vector<OpenedPart> parts, FingerprintOptions options = {});

  // Returns false from the first change on, until accept(). Costs two system calls a file.
  bool is_unchanged();
  // Waits until is_unchanged() has found a change. Returns false after stop().
  bool wait_for_change();
  void stop();

  // Returns the files' states of now; an error when a state cannot be read.
  Result<std::vector<FileState>> read_states() const;
  // The files' bytes were found to be the model's after they had these states.
  void accept(const std::vector<FileState>& states);

 private:
  const FingerprintOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable found_;
  std::vector<OpenedPart> parts_;
  bool has_changed_ = false;
  bool is_stopped_ = false;
};

}  // namespace pagoda::gguf
