#include "gguf/model_watch.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace pagoda::gguf {

ModelWatch::ModelWatch(std::vector<OpenedPart> parts, FingerprintOptions options)
    : options_(std::move(options)), parts_(std::move(parts)) {}

bool ModelWatch::is_unchanged() {
  const std::lock_guard lock(mutex_);
  if (has_changed_) return false;
  has_changed_ = !std::all_of(parts_.begin(), parts_.end(), [this](const OpenedPart& part) {
    const Result<FileState> state = options_.state_of(part);
    return state.ok() && state.value() == part.state;
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

Result<std::vector<FileState>> ModelWatch::read_states() const {
  const std::lock_guard lock(mutex_);
  std::vector<FileState> states;
  for (const OpenedPart& part : parts_) {
    ASSIGN_OR_RETURN(const FileState state, options_.state_of(part));
    states.push_back(state);
  }
  return states;
}

void ModelWatch::accept(const std::vector<FileState>& states) {
  const std::lock_guard lock(mutex_);
  ASSERT(states.size() == parts_.size(), "every part has a state");
  for (std::size_t i = 0; i < states.size(); ++i) parts_[i].state = states[i];
  has_changed_ = false;
}

}  // namespace pagoda::gguf
