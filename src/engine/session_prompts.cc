#include "engine/session_prompts.h"

#include <iterator>

namespace pagoda::engine {
namespace {

std::size_t bytes_of(const std::vector<TokenId>& prompt) { return prompt.size() * sizeof(TokenId); }

}  // namespace

void SessionPrompts::note(const std::string& cache_salt, const std::string& session,
                          const std::vector<TokenId>& prompt) {
  if (bytes_of(prompt) > kBytesMax) return;
  const std::lock_guard lock(mutex_);
  const Name name = {cache_salt, session};
  if (const auto known = by_name_.find(name); known != by_name_.end()) drop(known->second);
  while (!entries_.empty() &&
         (entries_.size() >= kSessionsMax || bytes_ + bytes_of(prompt) > kBytesMax)) {
    drop(entries_.begin());
  }
  entries_.push_back({name, prompt});
  by_name_.emplace(name, std::prev(entries_.end()));
  bytes_ += bytes_of(prompt);
}

std::optional<std::vector<TokenId>> SessionPrompts::find(const std::string& cache_salt,
                                                         const std::string& session) const {
  const std::lock_guard lock(mutex_);
  const auto known = by_name_.find({cache_salt, session});
  if (known == by_name_.end()) return std::nullopt;
  return known->second->prompt;
}

std::size_t SessionPrompts::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

void SessionPrompts::drop(std::list<Entry>::iterator entry) {
  bytes_ -= bytes_of(entry->prompt);
  by_name_.erase(entry->name);
  entries_.erase(entry);
}

}  // namespace pagoda::engine
