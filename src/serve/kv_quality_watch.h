// The quality gate of pagoda serve: what pagoda eval measured of the KV format that is served, and
// what is done where it measured nothing (--kv-quality-gate).
//
// A measurement is another process (pagoda eval): it shares nothing with the server, neither the
// cache nor its threads, and runs in idle time alone (process/idle_process.h).
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "app/served_source.h"
#include "app/verdict_store.h"
#include "base/result.h"
#include "engine/backends/backend.h"
#include "engine/engine.h"
#include "eval/quality_gate.h"
#include "serve/serve_options.h"

namespace pagoda::serve {

// Makes the backend that is served. With `refuse` its configuration must have a verdict that
// passes: where there is none it is measured, without the backend, which is made again.
Result<std::unique_ptr<engine::Backend>> create_admitted_backend(
    const ServeOptions& options, const app::ServedSource& source,
    const engine::BackendOptions& sizes);

// Says the verdict of what is served, and measures one while the engine is idle where there is
// none. All arguments must outlive this, whose end ends the measurement.
class KvQualityWatch {
 public:
  KvQualityWatch(const ServeOptions& options, const app::ServedSource& source,
                 const engine::Engine& engine, const engine::Backend& backend);
  ~KvQualityWatch();
  KvQualityWatch(const KvQualityWatch&) = delete;
  KvQualityWatch& operator=(const KvQualityWatch&) = delete;

 private:
  // Runs on its thread.
  void watch(const engine::Engine& engine, const eval::ServedKv& kv, const app::VerdictKey& key,
             bool on_gpu);
  Status measure(const engine::Engine& engine, const std::string& configuration, bool on_gpu);

  const ServeOptions& options_;
  const app::ServedSource& source_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace pagoda::serve
