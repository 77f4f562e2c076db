// A model made ready to answer on one device, whichever: what a front door is built over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "engine/core.h"
#include "engine/runner.h"
#include "kv/cache.h"
#include "kv/memory/page_layout.h"
#include "kv/tiers/page_copier.h"

namespace pagoda::engine {

class Backend {
 public:
  virtual ~Backend() = default;

  // Sized to what the cache holds: its context may be shorter than was asked for.
  virtual const CoreOptions& core_options() const = 0;
  virtual kv::Cache& cache() = 0;
  virtual Runner& runner() = 0;
  virtual const kv::memory::PageLayout& page_layout() const = 0;
  virtual std::size_t threads() const = 0;
  // What computes, for people: "2 threads", "NVIDIA H200".
  virtual std::string device_name() const = 0;
  // Of the weights and tables in device memory, which were checked against what was uploaded: the
  // same at every start with the same model. Nothing where weights stay in host memory.
  virtual std::optional<std::uint64_t> weights_digest() const { return std::nullopt; }
  virtual std::uint64_t kv_bytes() const = 0;
  // Tokens that the cache holds when no group forgets any.
  virtual std::uint64_t kv_tokens() const = 0;
  // What the context would have been with more memory, when it was lowered.
  virtual std::optional<std::uint64_t> context_asked() const = 0;

  // Numerics id and KV format: with the model, all that rows depend on besides their tokens.
  virtual std::string rows_id() const = 0;
  // Pages are kept in these stores, too. Before an engine is made of the backend, which must have
  // been made to name its blocks.
  virtual void use_tiers(const TierOptions& tiers) = 0;
  // Copies this backend's pages, for one store; nothing where stores reach pages by themselves. The
  // backend outlives it.
  virtual Result<std::unique_ptr<kv::PageCopier>> create_page_copier() = 0;
};

}  // namespace pagoda::engine
