// The quality gate for KV policies that requests name: what pagoda eval measured of them beside the
// KV format that is served, in the same store as the server's own verdict. Nothing is measured for
// a request: that is the operator's to do.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "app/served_source.h"
#include "base/lru_map.h"
#include "base/result.h"
#include "engine/backends/backend.h"
#include "serve/serve_options.h"
#include "server/policy_quality.h"

namespace pagoda::serve {

// Thread rule: judge() may be called from any thread.
class PolicyVerdicts final : public server::PolicyQuality {
 public:
  // All arguments must outlive it. Nullptr where the gate has no say: it is off, or weights are
  // random. With `refuse` the model's fingerprint is taken first.
  static Result<std::unique_ptr<PolicyVerdicts>> create(const ServeOptions& options,
                                                        const app::ServedSource& source,
                                                        const engine::Backend& backend);
  ~PolicyVerdicts() override;

  Judgement judge(const kv::KvPolicy& policy) override;

 private:
  using Time = std::chrono::steady_clock::time_point;
  // Store files are read again after a while: another process may have measured.
  struct Known {
    Judgement judgement;
    Time until;
  };
  static constexpr std::chrono::seconds kKnownFor{5};
  static constexpr std::size_t kPoliciesMax = 256;

  PolicyVerdicts(const ServeOptions& options, const app::ServedSource& source,
                 const engine::Backend& backend)
      : options_(options), source_(source), backend_(backend) {}

  Judgement look_up(const kv::KvPolicy& policy, const std::string& configuration) const;
  // Takes the fingerprint on a thread of its own.
  void find_model();

  const ServeOptions& options_;
  const app::ServedSource& source_;
  const engine::Backend& backend_;
  std::mutex mutex_;
  std::optional<std::string> model_;  // its fingerprint, once it is known
  LruMap<std::string, Known> known_{kPoliciesMax};
  std::atomic<bool> stopping_{false};
  std::thread finder_;
};

}  // namespace pagoda::serve
