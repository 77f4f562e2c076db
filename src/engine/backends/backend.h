// A Backend is a model made ready to generate on one device: an engine is built over it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/core.h"
#include "engine/runner.h"
#include "kv/cache.h"
#include "kv/memory/cache_groups.h"
#include "kv/memory/page_layout.h"
#include "kv/tiers/page_copier.h"

namespace pagoda::engine {

// The memory of one of several ranks.
struct RankMemory {
  std::uint64_t weight_bytes = 0;
  std::uint64_t kv_bytes = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;

  // The options fit the cache's size: the context may be shorter than was asked for.
  virtual const CoreOptions& core_options() const = 0;
  virtual kv::Cache& cache() = 0;
  virtual Runner& runner() = 0;
  virtual const kv::memory::PageLayout& page_layout() const = 0;
  // Returns what each KV cache group keeps by the model itself; a request's KV policy bounds more.
  virtual std::span<const kv::memory::AttentionSpec> groups() const = 0;
  virtual std::size_t threads() const = 0;
  // Returns the backend of the draft model; nullptr: there is none.
  virtual const Backend* draft_backend() const { return nullptr; }
  // Names the computing device for people: "2 threads", "NVIDIA H200".
  virtual std::string device_name() const = 0;
  // Names the kernel set by which a CPU computes, as `inspect --kernels` lists it; empty on a GPU.
  virtual std::string kernel_set() const { return {}; }
  // Returns a digest of the weights and tables in device memory, which were checked against what
  // was uploaded: the same at every start with the same model. Nothing where weights stay in host
  // memory.
  virtual std::optional<std::uint64_t> weights_digest() const { return std::nullopt; }
  // Returns the memory of every rank; empty where one process computes.
  virtual std::vector<RankMemory> ranks() const { return {}; }
  // Returns the bytes that ranks send to each other, all together, for a token and its logits.
  virtual std::uint64_t bytes_exchanged_per_token() const { return 0; }
  virtual std::uint64_t kv_bytes() const = 0;
  // Returns how many tokens the cache holds when no group forgets any.
  virtual std::uint64_t kv_tokens() const = 0;
  // Returns how many sequences of so many tokens, at least one, the cache holds at once where
  // they have no prefix in common and no KV policy.
  virtual std::uint64_t sequences_at(std::uint64_t tokens) const = 0;
  // Returns the bytes that a step computes in, besides weights and KV, as far as they are there
  // before the first step; 0: not known.
  virtual std::uint64_t workspace_bytes() const { return 0; }
  // Returns the context that was asked for, where too little memory lowered it.
  virtual std::optional<std::uint64_t> context_asked() const = 0;

  // Returns numerics id and KV format: with the model, all that keys and values depend on besides
  // their tokens.
  virtual std::string rows_id() const = 0;
  // Returns the part of rows_id() that does not depend on the KV format.
  virtual std::string numerics_id() const = 0;
  // Keeps pages in these stores, too. Call before an engine is made of the backend, which must have
  // been made to hash its blocks.
  virtual void use_tiers(const TierOptions& tiers) = 0;
  // Makes a copier of this backend's pages for one store; nothing where stores reach pages by
  // themselves. The backend outlives the copier.
  virtual Result<std::unique_ptr<kv::PageCopier>> create_page_copier() = 0;
};

}  // namespace pagoda::engine
