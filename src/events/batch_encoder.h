// Encodes events as vLLM writes them:
//
//   batch        [seconds since 1970, [event, ...], rank]   and the incarnation where it is wanted
//   BlockStored  a run of blocks, each the child of the one before, in one group
//   BlockRemoved, AllBlocksCleared
//
// A group is one of vLLM's KV cache groups. Pages that a snapshot lists are encoded as stored ones:
// a reader treats both alike. A private block is told by its hash alone, as vLLM tells blocks
// outside the GPU: without tokens, with a block size of 0. Where its tokens come with it, they are
// told with "salted" as its extra key, in place of the salt.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/token_id.h"
#include "events/events_config.h"
#include "events/msgpack_writer.h"
#include "kv/events/event.h"
#include "kv/memory/cache_groups.h"

namespace pagoda::events {

struct EncoderOptions {
  Encoding encoding = Encoding::kMaps;
  bool int_block_hashes = true;
  std::string incarnation = {};  // empty: batches do not carry it
  std::vector<kv::memory::AttentionSpec> groups = {{}};
  std::uint32_t block_tokens = 16;
};

class BatchEncoder {
 public:
  explicit BatchEncoder(const EncoderOptions& options);

  // Adds any event about a page, or kCleared.
  void add(const kv::CacheEvent& event, std::span<const TokenId> tokens);
  bool empty() const { return events_ == 0; }
  std::size_t events() const { return events_; }
  // Returns the batch of the events added since the last call.
  std::string finish(double time_s);

 private:
  struct Run {
    std::vector<kv::BlockHash> names;  // hashes of the run's blocks; empty: there is no run
    kv::CacheEvent first = {};
    std::vector<TokenId> tokens = {};
  };

  void add_stored(const kv::CacheEvent& event, std::span<const TokenId> tokens);
  void end_run(Run& run);
  void end_runs();
  void write_stored(const Run& run);
  void write_extra_keys(bool is_public);
  void write_removed(const kv::CacheEvent& event);
  void write_cleared();

  void begin(std::string_view type, std::size_t fields);
  void key(std::string_view name);
  void hash(const kv::BlockHash& name);

  EncoderOptions options_;
  std::vector<Run> runs_;  // [group]
  MsgpackWriter body_;     // the events so far
  std::size_t written_ = 0;
  std::size_t events_ = 0;  // events added since the last batch
};

}  // namespace pagoda::events
