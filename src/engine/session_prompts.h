// SessionPrompts remembers the last prompt of each session, so that its pages can be fetched before
// the next turn. Bounded in bytes: the sessions used longest ago are forgotten. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/token_id.h"

namespace pagoda::engine {

class SessionPrompts {
 public:
  static constexpr std::size_t kSessionsMax = 1024;
  static constexpr std::size_t kBytesMax = std::size_t{16} << 20;

  void note(const std::string& cache_salt, const std::string& session,
            const std::vector<TokenId>& prompt);
  std::optional<std::vector<TokenId>> find(const std::string& cache_salt,
                                           const std::string& session) const;
  std::size_t bytes() const;

 private:
  using Name = std::pair<std::string, std::string>;  // salt and session
  struct Entry {
    Name name;
    std::vector<TokenId> prompt;
  };

  void drop(std::list<Entry>::iterator entry);

  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // used longest ago first
  std::map<Name, std::list<Entry>::iterator> by_name_;
  std::size_t bytes_ = 0;
};

}  // namespace pagoda::engine
