// The state that all connections share: the phase, the model, and the keys.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "server/access/access_rules.h"
#include "server/access/key_ring.h"
#include "server/byte_budget.h"
#include "server/cache_looks.h"
#include "server/cache_map.h"
#include "server/cache_tree.h"
#include "server/option_name.h"
#include "server/request_fingerprints.h"
#include "server/request_log.h"
#include "server/seen_texts.h"
#include "server/served_model.h"
#include "server/server_meters.h"
#include "server/server_options.h"
#include "server/text_workers.h"

namespace pagoda::server {

//   kLoading -> kReady -> kDraining -> kStopping
enum class Phase : std::uint8_t {
  kLoading,   // the socket is bound, the model is not loaded yet
  kReady,     // requests are served
  kDraining,  // running requests may end; new ones are refused
  kStopping,  // running requests are told and aborted
};

class ServerState {
 public:
  explicit ServerState(std::string version, const LogOptions& log = {}, AccessRules access = {},
                       std::uint32_t text_threads = 1, OptionName option_name = plain_option_name)
      : version_(std::move(version)),
        access_(std::move(access)),
        option_name_(std::move(option_name)),
        log_(log),
        workers_(text_threads) {}

  Phase phase() const { return phase_.load(std::memory_order_acquire); }
  // Whether model() is there: from kReady on, but for a stop before the model was loaded.
  bool has_model() const { return phase() != Phase::kLoading && model_ != nullptr; }
  const ServedModel& model() const { return *model_; }
  const std::string& version() const { return version_; }
  // Connections use the following from any thread.
  ServerMeters& meters() const { return meters_; }
  RequestLog& log() const { return log_; }
  CacheMapReader& cache_map_reader() const { return cache_map_reader_; }
  CacheTreeReader& cache_tree_reader() const { return cache_tree_reader_; }
  CacheLooks& cache_looks() const { return cache_looks_; }
  TextWorkers& workers() const { return workers_; }
  // body_memory() counts a body from its first byte until it is parsed, request_memory() a request
  // from then to its end.
  ByteBudget& body_memory() const { return body_memory_; }
  ByteBudget& request_memory() const { return request_memory_; }

  RequestFingerprints& fingerprints() const { return fingerprints_; }
  SeenTexts& normalised_texts() const { return normalised_texts_; }

  const AccessRules& access() const { return access_; }
  const OptionName& option_name() const { return option_name_; }

  // Returns nullptr when no key is needed.
  std::shared_ptr<const KeyRing> keys() const {
    const std::lock_guard lock(keys_mutex_);
    return keys_;
  }
  void set_keys(std::shared_ptr<const KeyRing> keys) {
    const std::lock_guard lock(keys_mutex_);
    keys_ = std::move(keys);
  }

  // `model` must outlive every connection.
  void open(const ServedModel& model) {
    model_ = &model;
    phase_.store(Phase::kReady, std::memory_order_release);
  }
  void advance(Phase phase) {
    phase_.store(phase, std::memory_order_release);
    if (phase == Phase::kStopping) stops_.store(true, std::memory_order_relaxed);
  }
  // True from kStopping on: requests that are being read on a text worker end there.
  const std::atomic<bool>& stops() const { return stops_; }

 private:
  std::string version_;
  AccessRules access_;
  OptionName option_name_;
  mutable std::mutex keys_mutex_;
  std::shared_ptr<const KeyRing> keys_;  // guarded by keys_mutex_
  mutable ServerMeters meters_;
  mutable RequestLog log_;
  mutable RequestFingerprints fingerprints_;
  mutable SeenTexts normalised_texts_;
  mutable CacheMapReader cache_map_reader_{access_.show_prompts_to_admins};
  mutable TextWorkers workers_;
  mutable CacheTreeReader cache_tree_reader_{workers_};
  mutable CacheLooks cache_looks_;
  mutable ByteBudget body_memory_{kBodyMemoryMax, option_name_("max_total_body_bytes", {})};
  mutable ByteBudget request_memory_{kRequestsMemoryMax,
                                     option_name_("max_request_memory_bytes", {})};
  const ServedModel* model_ = nullptr;  // written before the phase that lets others read it
  std::atomic<Phase> phase_{Phase::kLoading};
  std::atomic<bool> stops_{false};
};

}  // namespace pagoda::server
