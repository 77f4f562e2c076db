// The bindings of the cache alone: which blocks exist, which tokens they hold and which go first.
// No model, no bytes of keys and values.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "kv/cache.h"
#include "python/bindings.h"
#include "python/python_policy.h"
#include "replay/belady.h"
#include "replay/block_numbers.h"
#include "replay/run.h"
#include "replay/trace.h"

namespace pagoda::python {
namespace {

using Ids = std::vector<std::uint32_t>;

std::vector<TokenId> tokens_of(const Ids& ids) {
  if (ids.empty()) throw nb::value_error("tokens: is empty, expected at least one");
  return {ids.begin(), ids.end()};
}

Ids ids_of(const std::vector<TokenId>& tokens) {
  Ids ids;
  for (const TokenId token : tokens) ids.push_back(token.value());
  return ids;
}

std::vector<std::string> policy_names() {
  std::vector<std::string> names;
  for (const kv::EvictionPolicy* const policy : kv::eviction_policies()) {
    names.emplace_back(policy->name);
  }
  return names;
}

const kv::EvictionPolicy& policy_named(const std::string& name) {
  if (const kv::EvictionPolicy* const found = kv::find_policy(name)) return *found;
  std::string message = "policy: is '" + name + "', expected one of";
  for (const std::string& known : policy_names()) message += " " + known;
  throw nb::value_error(message.c_str());
}

// A cache whose blocks hold nothing but the names of tokens.
class LoneCache {
 public:
  LoneCache(std::uint32_t blocks, std::uint32_t block_tokens, const std::string& policy)
      : block_tokens_(block_tokens) {
    if (blocks == 0 || blocks > std::numeric_limits<std::uint32_t>::max() / 2) {
      throw nb::value_error("blocks: is not within 1 and 2147483647");
    }
    if (block_tokens == 0 || block_tokens > 4096) {
      throw nb::value_error("block_tokens: is not within 1 and 4096");
    }
    cache_.emplace(kv::CacheOptions{.blocks = blocks,
                                    .block_tokens = block_tokens,
                                    .policy = &policy_named(policy),
                                    .eviction_records_max = blocks});
  }

  kv::Cache& cache() { return *cache_; }
  std::uint32_t block_tokens() const { return block_tokens_; }
  kv::CacheScope scope(const std::string& salt) {
    auto made = cache_->scope("", salt);
    if (!made.ok()) raise(made.error());
    return std::move(made).value();
  }
  std::uint64_t match(const Ids& ids, const std::string& salt) {
    return cache_->match(scope(salt), tokens_of(ids)).tokens;
  }
  kv::Explanation explain(const Ids& ids, const std::string& salt) {
    const kv::CacheScope looked = scope(salt);
    const std::vector<TokenId> tokens = tokens_of(ids);
    return cache_->explain(looked, tokens, cache_->match(looked, tokens));
  }

 private:
  std::uint32_t block_tokens_;
  std::optional<kv::Cache> cache_;
};

[[noreturn]] void refuse_for_room(const kv::OutOfBlocks& refused) {
  const std::string message = "needs " + std::to_string(refused.blocks_needed) + " blocks, " +
                              std::to_string(refused.blocks_available) + " are available";
  PyErr_SetString(PyExc_MemoryError, message.c_str());
  throw nb::python_error();
}

class HeldSequence {
 public:
  HeldSequence(std::shared_ptr<LoneCache> cache, kv::CacheScope scope, kv::Sequence sequence,
               std::uint64_t tokens_found)
      : cache_(std::move(cache)),
        scope_(std::move(scope)),
        sequence_(std::move(sequence)),
        tokens_found_(tokens_found) {}

  std::uint64_t tokens_found() const { return tokens_found_; }
  std::uint64_t tokens_computed() { return open_one().tokens_computed(); }
  std::uint64_t tokens_reserved() { return open_one().tokens_reserved(); }

  void reserve(std::uint64_t tokens) {
    // More than all blocks hold: refused before the cache counts them.
    const std::uint64_t blocks = (tokens + cache_->block_tokens() - 1) / cache_->block_tokens();
    if (blocks > cache_->cache().pool().blocks()) {
      refuse_for_room({blocks, cache_->cache().blocks_available()});
    }
    auto reserved = cache_->cache().reserve(open_one(), tokens);
    if (const auto* const refused = std::get_if<kv::OutOfBlocks>(&reserved)) {
      refuse_for_room(*refused);
    }
    for (const kv::Copy& copy : std::get<0>(reserved)) cache_->cache().copied(copy);
  }
  void commit(const Ids& ids) {
    kv::Sequence& sequence = open_one();
    if (ids.size() > sequence.tokens_reserved() - sequence.tokens_computed()) {
      throw nb::value_error("tokens: are more than reserve() made room for");
    }
    if (!ids.empty()) cache_->cache().commit(sequence, tokens_of(ids));
  }
  void close() {
    if (sequence_) cache_->cache().close(*sequence_);
    sequence_.reset();
  }

 private:
  kv::Sequence& open_one() {
    if (!sequence_) throw nb::value_error("the sequence is closed");
    return *sequence_;
  }

  std::shared_ptr<LoneCache> cache_;
  kv::CacheScope scope_;
  std::optional<kv::Sequence> sequence_;
  std::uint64_t tokens_found_;
};

std::unique_ptr<HeldSequence> open_sequence(std::shared_ptr<LoneCache> lone, const Ids& ids,
                                            const std::string& salt) {
  kv::Cache& cache = lone->cache();
  kv::CacheScope looked = lone->scope(salt);
  const std::vector<TokenId> tokens = tokens_of(ids);
  const kv::Match match = cache.match(looked, tokens);
  auto opened = cache.open(looked, match, tokens);
  if (const auto* const refused = std::get_if<kv::OutOfBlocks>(&opened)) refuse_for_room(*refused);
  auto& held = std::get<kv::Opened>(opened);
  for (const kv::Copy& copy : held.copies) cache.copied(copy);
  return std::make_unique<HeldSequence>(std::move(lone), std::move(looked),
                                        std::move(held.sequence), match.tokens);
}

replay::Trace trace_of(const std::vector<std::vector<std::uint64_t>>& requests,
                       std::uint64_t block_tokens) {
  replay::Trace trace;
  std::unordered_map<std::uint64_t, std::uint32_t> numbers;
  for (const std::vector<std::uint64_t>& blocks : requests) {
    trace.requests.push_back({.first = trace.ids.size(),
                              .blocks = blocks.size(),
                              .input_tokens = blocks.size() * block_tokens});
    for (const std::uint64_t block : blocks) {
      const auto fresh = static_cast<std::uint32_t>(numbers.size());
      trace.ids.emplace_back(numbers.try_emplace(block, fresh).first->second);
    }
    trace.ids.emplace_back(std::numeric_limits<std::uint32_t>::max());
  }
  return trace;
}

using TraceSource = std::variant<std::string, std::vector<std::vector<std::uint64_t>>>;

replay::Trace trace_from(const TraceSource& source, std::uint64_t block_tokens) {
  if (const auto* const path = std::get_if<std::string>(&source)) {
    auto read = replay::read_trace(*path, {});
    if (!read.ok()) raise(read.error());
    return std::move(read).value();
  }
  return trace_of(std::get<1>(source), block_tokens);
}

replay::HitCounts replay_requests(const TraceSource& source, std::uint64_t blocks,
                                  const nb::object& policy, std::uint64_t block_tokens) {
  if (blocks == 0 || block_tokens == 0) {
    throw nb::value_error("blocks and block_tokens: are at least 1");
  }
  const replay::Trace trace = trace_from(source, block_tokens);
  const replay::BlockNumbers numbers(trace);
  replay::CacheRun run = {.capacity_blocks = blocks, .block_tokens = block_tokens};
  std::string name;
  if (!nb::try_cast(policy, name)) {
    const PythonPolicy asked(policy);
    run.policy = &asked.policy();
    const replay::HitCounts counts = replay::run_cache(trace, run, numbers.unique(), {});
    asked.rethrow();
    return counts;
  }
  if (name != "belady" && name != "infinite") run.policy = &policy_named(name);
  const nb::gil_scoped_release released;
  const replay::TraceOracle oracle(trace, numbers);
  if (name == "belady") return oracle.belady(blocks, block_tokens);
  if (name == "infinite") return oracle.infinite(block_tokens);
  return replay::run_cache(trace, run, numbers.unique(), {});
}

void bind_values(nb::module_& module) {
  nb::class_<kv::Explanation>(module, "Explanation")
      .def_ro("prompt_tokens", &kv::Explanation::prompt_tokens)
      .def_ro("tokens_matched", &kv::Explanation::tokens_matched)
      .def_ro("tokens_reachable", &kv::Explanation::tokens_reachable)
      .def_prop_ro(
          "reason",
          [](const kv::Explanation& why) { return std::string(kv::reason_name(why.reason)); })
      .def_prop_ro("stored", [](const kv::Explanation& why) { return ids_of(why.stored); })
      .def_prop_ro("stops_at", &kv::Explanation::stops_at);
  nb::class_<replay::HitCounts>(module, "HitCounts")
      .def_ro("blocks", &replay::HitCounts::blocks)
      .def_ro("blocks_hit", &replay::HitCounts::blocks_hit)
      .def_ro("tokens", &replay::HitCounts::tokens)
      .def_ro("tokens_hit", &replay::HitCounts::tokens_hit)
      .def_prop_ro("hit_rate", &replay::HitCounts::blocks_hit_rate)
      .def_prop_ro("token_hit_rate", &replay::HitCounts::tokens_hit_rate);
}

}  // namespace

void bind_kv(nb::module_& module) {
  nb::module_ kv_module = module.def_submodule("kv");
  bind_values(kv_module);
  nb::class_<HeldSequence>(kv_module, "Sequence")
      .def_prop_ro("tokens_found", &HeldSequence::tokens_found)
      .def_prop_ro("tokens_computed", &HeldSequence::tokens_computed)
      .def_prop_ro("tokens_reserved", &HeldSequence::tokens_reserved)
      .def("reserve", &HeldSequence::reserve, nb::arg("tokens"))
      .def("commit", &HeldSequence::commit, nb::arg("tokens"))
      .def("close", &HeldSequence::close);
  nb::class_<LoneCache>(kv_module, "Cache")
      .def(nb::init<std::uint32_t, std::uint32_t, const std::string&>(), nb::arg("blocks"),
           nb::arg("block_tokens") = 16, nb::arg("policy") = "lru")
      .def_prop_ro("blocks", [](LoneCache& cache) { return cache.cache().pool().blocks(); })
      .def_prop_ro("blocks_available",
                   [](LoneCache& cache) { return cache.cache().blocks_available(); })
      .def("match", &LoneCache::match, nb::arg("tokens"), nb::arg("salt") = "")
      .def("explain", &LoneCache::explain, nb::arg("tokens"), nb::arg("salt") = "")
      .def("open", open_sequence, nb::arg("tokens"), nb::arg("salt") = "")
      .def("clear", [](LoneCache& cache) { cache.cache().clear(); });
  kv_module.def("policies", policy_names);
  kv_module.def("replay", replay_requests, nb::arg("trace"), nb::arg("blocks"),
                nb::arg("policy") = "lru", nb::arg("block_tokens") = 512);
}

}  // namespace pagoda::python
