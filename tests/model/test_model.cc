#include "model/test_model.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <numeric>

#include "base/random.h"
#include "base/thread_pool.h"
#include "hf/folder.h"
#include "kv/memory/page_buffer.h"
#include "test_data.h"

namespace pagoda::model {
namespace {

template <class T>
T value_or_exit(Result<T> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "%s\n", result.error().message.c_str());
    std::exit(1);
  }
  return std::move(result).value();
}

// Block tables for some sequences over one pool, with shuffled block ids.
class Tables {
 public:
  Tables(const Decoder& decoder, const std::vector<Tokens>& sequences, std::uint64_t seed)
      : buffer_(value_or_exit(kv::memory::PageBuffer::allocate(
            decoder.page_layout(), 2 * blocks_needed(decoder, sequences)))) {
    std::vector<kv::BlockId> ids;
    for (std::uint32_t i = 0; i < buffer_.pages(); ++i) {
      ids.push_back(kv::BlockId(i));
      buffer_.fill_with_nan(ids.back());
    }
    for (std::size_t i = ids.size(); i > 1; --i) {
      std::swap(ids[i - 1], ids[random_bits(seed, 0, i) % i]);
    }
    const std::size_t groups = decoder.group_plan().groups.size();
    storage_.resize(sequences.size() * groups);
    tables_.resize(sequences.size());
    for (std::size_t s = 0; s < sequences.size(); ++s) {
      for (std::size_t group = 0; group < groups; ++group) {
        std::vector<kv::BlockId>& table = storage_[s * groups + group];
        const std::size_t blocks = blocks_of(decoder, sequences[s].size());
        table.assign(ids.end() - static_cast<std::ptrdiff_t>(blocks), ids.end());
        ids.resize(ids.size() - blocks);
        tables_[s].push_back(table.data());
      }
    }
  }

  const kv::memory::PageBuffer& buffer() const { return buffer_; }
  std::span<const kv::memory::BlockTable> of(std::size_t sequence) const {
    return tables_[sequence];
  }
  // Pages that no query behind the first `tokens` tokens of the sequence sees become NaN.
  void spoil_unseen(const Decoder& decoder, std::size_t sequence, std::uint64_t tokens,
                    const kv::memory::AttentionSpec& policy) const {
    const std::vector<kv::memory::AttentionSpec>& groups = decoder.group_plan().groups;
    const std::uint32_t per_block = decoder.page_layout().block_tokens;
    for (std::size_t group = 0; group < groups.size(); ++group) {
      const kv::memory::AttentionSpec spec = groups[group].window == 0 ? policy : groups[group];
      const kv::memory::BlocksKept kept(spec, tokens, per_block);
      for (std::uint64_t block = 0; block < tokens / per_block; ++block) {
        if (!kept.contains(block)) buffer_.fill_with_nan(tables_[sequence][group][block]);
      }
    }
  }

 private:
  static std::size_t blocks_of(const Decoder& decoder, std::size_t tokens) {
    const std::size_t per_block = decoder.page_layout().block_tokens;
    return (tokens + per_block - 1) / per_block;
  }
  static std::uint32_t blocks_needed(const Decoder& decoder, const std::vector<Tokens>& sequences) {
    std::size_t blocks = 0;
    for (const Tokens& tokens : sequences) blocks += blocks_of(decoder, tokens.size());
    return static_cast<std::uint32_t>(blocks * decoder.group_plan().groups.size());
  }

  kv::memory::PageBuffer buffer_;
  std::vector<std::vector<kv::BlockId>> storage_;
  std::vector<std::vector<kv::memory::BlockTable>> tables_;
};

DecoderOptions options_of(const Conditions& conditions, std::size_t rows_max) {
  return {.rows_max = static_cast<std::uint32_t>(rows_max),
          .kv_cache_dtype = conditions.element,
          .block_tokens = conditions.block_tokens,
          .communicator = conditions.communicator};
}

Config config_of(const gguf::File& file, std::uint64_t context) {
  Config config = value_or_exit(read_config(file));
  if (context > 0) serve_context(context, config);
  return config;
}

}  // namespace

TestModel::TestModel(const std::string& path, std::uint64_t context)
    : file_(value_or_exit(std::filesystem::is_directory(path) ? hf::open_folder(path)
                                                              : gguf::File::open(path))),
      config_(config_of(file_, context)),
      weights_(value_or_exit(load_weights(file_, config_, kernels::ref_set()))) {}

std::string test_model_path(const std::string& name) { return test_data() + "/models/" + name; }

Tokens random_tokens(const Config& config, std::size_t count, std::uint64_t seed) {
  Tokens tokens;
  for (std::size_t i = 0; i < count; ++i) {
    tokens.push_back(
        TokenId(static_cast<std::uint32_t>(random_bits(seed, 3, i) % config.vocabulary)));
  }
  return tokens;
}

std::vector<Logits> run_sequences(const ModelParts& model, const Conditions& conditions,
                                  const std::vector<Tokens>& sequences) {
  std::size_t rows_max = 0;
  for (const Tokens& tokens : sequences) rows_max += tokens.size();
  ThreadPool pool(conditions.threads);
  Decoder decoder(model.config, model.weights, *conditions.kernels, pool,
                  options_of(conditions, rows_max));
  const Tables tables(decoder, sequences, conditions.shuffle_seed);
  const std::size_t vocabulary = model.config.vocabulary;
  std::vector<Logits> logits(sequences.size());
  std::vector<std::size_t> done(sequences.size(), 0);

  for (;;) {
    Tokens batch_tokens;
    std::vector<SequenceRows> rows;
    std::vector<std::size_t> members;
    for (std::size_t s = 0; s < sequences.size(); ++s) {
      const std::size_t left = sequences[s].size() - done[s];
      if (left == 0) continue;
      const std::size_t take =
          conditions.chunk == 0 ? left : std::min<std::size_t>(conditions.chunk, left);
      const auto from = sequences[s].begin() + static_cast<std::ptrdiff_t>(done[s]);
      batch_tokens.insert(batch_tokens.end(), from, from + static_cast<std::ptrdiff_t>(take));
      rows.push_back({static_cast<std::uint32_t>(take), done[s], tables.of(s), conditions.policy});
      members.push_back(s);
    }
    if (conditions.bytes_exchanged != nullptr) {
      *conditions.bytes_exchanged = decoder.bytes_exchanged();
    }
    if (rows.empty()) return logits;
    std::vector<std::uint32_t> all_rows(batch_tokens.size());
    std::iota(all_rows.begin(), all_rows.end(), 0u);
    Logits step(batch_tokens.size() * vocabulary);
    decoder.forward({batch_tokens, rows, all_rows}, tables.buffer(), step.data());
    const float* at = step.data();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      logits[members[i]].insert(logits[members[i]].end(), at, at + rows[i].rows * vocabulary);
      at += rows[i].rows * vocabulary;
      done[members[i]] += rows[i].rows;
      if (conditions.policy.window == 0) continue;
      tables.spoil_unseen(decoder, members[i], done[members[i]], conditions.policy);
    }
  }
}

Logits run_without_cache(const ModelParts& model, const Conditions& conditions,
                         const Tokens& tokens) {
  ThreadPool pool(conditions.threads);
  Decoder decoder(model.config, model.weights, *conditions.kernels, pool,
                  options_of(conditions, tokens.size()));
  const std::size_t vocabulary = model.config.vocabulary;
  Logits logits(tokens.size() * vocabulary);
  for (std::uint32_t last = 0; last < tokens.size(); ++last) {
    const Tables tables(decoder, {tokens}, conditions.shuffle_seed + last);
    const SequenceRows rows = {last + 1, 0, tables.of(0), conditions.policy};
    decoder.forward({{tokens.data(), last + 1}, {&rows, 1}, {&last, 1}}, tables.buffer(),
                    logits.data() + last * vocabulary);
  }
  return logits;
}

}  // namespace pagoda::model
