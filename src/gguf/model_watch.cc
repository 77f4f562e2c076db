#include "gguf/model_watch.h"

#include <algorithm>

namespace pagoda::gguf {

ModelWatch::ModelWatch(const std::vector<OpenedPart>& parts) {
  std::copy_if(parts.begin(), parts.end(), std::back_inserter(parts_),
               [](const OpenedPart& part) { return keeps_change_times(part.state.filesystem); });
}

bool ModelWatch::is_unchanged() {
  const std::lock_guard lock(mutex_);
  if (has_changed_) return false;
  has_changed_ = std::any_of(parts_.begin(), parts_.end(), [](const OpenedPart& part) {
    const Result<FileState> state = file_state(part.descriptor, part.path, part.state.filesystem);
    return !state.ok() || state.value() != part.state;
  });
  if (has_changed_) found_.notify_all();
  return !has_changed_;
}

bool ModelWatch::wait_for_change() {
  std::unique_lock lock(mutex_);
  found_.wait(lock, [this] { return has_changed_ || is_stopped_; });
  return !is_stopped_;
}

void ModelWatch::stop() {
  const std::lock_guard lock(mutex_);
  is_stopped_ = true;
  found_.notify_all();
}

}  // namespace pagoda::gguf
