// Workspaces for threads that encode. Each call borrows one, so that encoding takes no lock; at
// most kIdleMax are kept for the next call, about 2 MiB each.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "text/fragment_encoder.h"

namespace pagoda::text {

class WorkspacePool {
 public:
  // Returns the workspace to the pool when destroyed.
  class Lease {
   public:
    Lease(WorkspacePool& pool, std::unique_ptr<EncodeWorkspace> workspace)
        : pool_(pool), workspace_(std::move(workspace)) {}
    ~Lease() { pool_.give_back(std::move(workspace_)); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    EncodeWorkspace& operator*() { return *workspace_; }

   private:
    WorkspacePool& pool_;
    std::unique_ptr<EncodeWorkspace> workspace_;
  };

  Lease borrow() {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        auto workspace = std::move(idle_.back());
        idle_.pop_back();
        return {*this, std::move(workspace)};
      }
    }
    return {*this, std::make_unique<EncodeWorkspace>()};
  }

 private:
  static constexpr std::size_t kIdleMax = 16;

  void give_back(std::unique_ptr<EncodeWorkspace> workspace) {
    workspace->release_excess();
    const std::lock_guard lock(mutex_);
    if (idle_.size() < kIdleMax) idle_.push_back(std::move(workspace));
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<EncodeWorkspace>> idle_;
};

}  // namespace pagoda::text
