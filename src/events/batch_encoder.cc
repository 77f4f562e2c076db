#include "events/batch_encoder.h"

#include <string_view>

namespace pagoda::events {
namespace {

// Routers know "GPU" as the medium on which the model computes, whatever the device is.
constexpr std::string_view kMedium = "GPU";
// Readers that hash tokens themselves must not take a private block for a public one.
constexpr std::string_view kSalted = "salted";

}  // namespace

BatchEncoder::BatchEncoder(const EncoderOptions& options)
    : options_(options), runs_(options.groups.size()) {}

void BatchEncoder::add(const kv::CacheEvent& event, std::span<const TokenId> tokens) {
  ++events_;
  switch (event.kind) {
    case kv::CacheEventKind::kRemoved:
      end_runs();
      return write_removed(event);
    case kv::CacheEventKind::kCleared:
      end_runs();
      return write_cleared();
    default:
      return add_stored(event, tokens);
  }
}

void BatchEncoder::add_stored(const kv::CacheEvent& event, std::span<const TokenId> tokens) {
  Run& run = runs_[event.group];
  const bool goes_on = !run.names.empty() && run.names.back() == event.parent &&
                       run.first.is_public == event.is_public &&
                       run.tokens.empty() == tokens.empty();
  if (!goes_on) {
    end_run(run);
    run.first = event;
  }
  run.names.push_back(event.hash);
  run.tokens.insert(run.tokens.end(), tokens.begin(), tokens.end());
}

void BatchEncoder::end_run(Run& run) {
  if (run.names.empty()) return;
  write_stored(run);
  run.names.clear();
  run.tokens.clear();
}

void BatchEncoder::end_runs() {
  for (Run& run : runs_) end_run(run);
}

// Fields are in vLLM's order; a map leaves out null fields after lora_name, an array cannot.
void BatchEncoder::write_stored(const Run& run) {
  const bool is_array = options_.encoding == Encoding::kArrays;
  const kv::CacheEvent& first = run.first;
  const std::uint32_t window = options_.groups[first.group].window;
  const bool tells_tokens = !run.tokens.empty();
  begin("BlockStored", is_array ? 13 : 10 + (tells_tokens ? 1 : 0) + (window != 0 ? 1 : 0));
  key("block_hashes");
  body_.array(run.names.size());
  for (const kv::BlockHash& name : run.names) hash(name);
  key("parent_block_hash");
  first.parent == kv::root_hash() ? body_.nil() : hash(first.parent);
  key("token_ids");
  body_.array(run.tokens.size());
  for (const TokenId token : run.tokens) body_.number(std::uint64_t{token.value()});
  key("block_size");
  body_.number(std::uint64_t{tells_tokens ? options_.block_tokens : 0});
  key("lora_id");
  body_.nil();
  key("medium");
  body_.text(kMedium);
  key("lora_name");
  body_.nil();
  if (tells_tokens) {
    key("extra_keys");
    body_.array(run.names.size());
    for (std::size_t i = 0; i < run.names.size(); ++i) write_extra_keys(first.is_public);
  } else if (is_array) {
    body_.nil();
  }
  key("group_idx");
  body_.number(std::uint64_t{first.group});
  key("kv_cache_spec_kind");
  body_.text(window != 0 ? "sliding_window" : "full_attention");
  if (window != 0) {
    key("kv_cache_spec_sliding_window");
    body_.number(std::uint64_t{window});
  } else if (is_array) {
    body_.nil();
  }
  if (is_array) body_.nil();  // locality
}

void BatchEncoder::write_extra_keys(bool is_public) {
  if (is_public) return body_.nil();
  body_.array(1);
  body_.text(kSalted);
}

void BatchEncoder::write_removed(const kv::CacheEvent& event) {
  const bool is_array = options_.encoding == Encoding::kArrays;
  begin("BlockRemoved", is_array ? 5 : 4);
  key("block_hashes");
  body_.array(1);
  hash(event.hash);
  key("medium");
  body_.text(kMedium);
  key("group_idx");
  body_.number(std::uint64_t{event.group});
  if (is_array) body_.nil();  // locality
}

void BatchEncoder::write_cleared() { begin("AllBlocksCleared", 1); }

// `fields` counts the type.
void BatchEncoder::begin(std::string_view type, std::size_t fields) {
  ++written_;
  if (options_.encoding == Encoding::kMaps) {
    body_.map(fields);
    body_.text("type");
  } else {
    body_.array(fields);
  }
  body_.text(type);
}

void BatchEncoder::key(std::string_view name) {
  if (options_.encoding == Encoding::kMaps) body_.text(name);
}

void BatchEncoder::hash(const kv::BlockHash& name) {
  options_.int_block_hashes ? body_.number(name.event_hash()) : body_.bytes(name.digest);
}

std::string BatchEncoder::finish(double time_s) {
  end_runs();
  MsgpackWriter batch;
  batch.array(options_.incarnation.empty() ? 3 : 4);
  batch.number(time_s);
  batch.array(written_);
  batch.append(body_);
  batch.number(std::uint64_t{0});  // data_parallel_rank
  if (!options_.incarnation.empty()) batch.text(options_.incarnation);
  body_.clear();
  written_ = 0;
  events_ = 0;
  return batch.take();
}

}  // namespace pagoda::events
