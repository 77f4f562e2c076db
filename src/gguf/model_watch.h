// ModelWatch notices that a file of a running model has changed since it was opened. Weights are
// read from the mapped file while the model computes: KV computed after a change is of another
// model.
//
// Files are watched where change times tell every change and reading them waits for nobody: on file
// systems of this machine (keeps_change_times()).
#pragma once

#include <condition_variable>
#include <mutex>
#include <vector>

#include "gguf/fingerprint.h"

namespace pagoda::gguf {

// Thread rule: any thread.
class ModelWatch {
 public:
  // Descriptors of the parts must stay open while the watch is used.
  explicit ModelWatch(const std::vector<OpenedPart>& parts);

  // Returns false from the first change on, for good: what was computed since then cannot be told
  // from what was computed before. Costs one fstat(2) a file.
  bool is_unchanged();
  // Waits until is_unchanged() has found a change. Returns false after stop().
  bool wait_for_change();
  void stop();

 private:
  std::mutex mutex_;
  std::condition_variable found_;
  std::vector<OpenedPart> parts_;
  bool has_changed_ = false;
  bool is_stopped_ = false;
};

}  // namespace pagoda::gguf
