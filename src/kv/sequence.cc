#include "kv/sequence.h"

#include <utility>

#include "kv/cache.h"

namespace pagoda::kv {

Sequence::Sequence(Cache& cache, NodeId root, SaltId salt, std::uint32_t groups,
                   std::uint32_t block_tokens)
    : cache_(&cache),
      root_(root),
      salt_(salt),
      block_tokens_(block_tokens),
      tables_(groups),
      first_held_(groups, 0) {
  tail_.reserve(block_tokens);
}

Sequence::Sequence(Sequence&& other) noexcept
    : cache_(std::exchange(other.cache_, nullptr)),
      root_(other.root_),
      salt_(other.salt_),
      account_(other.account_),
      public_tokens_(other.public_tokens_),
      prompt_tokens_(other.prompt_tokens_),
      block_tokens_(other.block_tokens_),
      request_(other.request_),
      hashes_(std::move(other.hashes_)),
      nodes_(std::move(other.nodes_)),
      tail_(std::move(other.tail_)),
      tables_(std::move(other.tables_)),
      first_held_(std::move(other.first_held_)) {}

Sequence& Sequence::operator=(Sequence&& other) noexcept {
  if (this == &other) return *this;
  if (cache_ != nullptr) cache_->close(*this);
  cache_ = std::exchange(other.cache_, nullptr);
  root_ = other.root_;
  salt_ = other.salt_;
  account_ = other.account_;
  public_tokens_ = other.public_tokens_;
  prompt_tokens_ = other.prompt_tokens_;
  block_tokens_ = other.block_tokens_;
  request_ = other.request_;
  hashes_ = std::move(other.hashes_);
  nodes_ = std::move(other.nodes_);
  tail_ = std::move(other.tail_);
  tables_ = std::move(other.tables_);
  first_held_ = std::move(other.first_held_);
  return *this;
}

void Sequence::expect(std::uint64_t tokens) {
  const std::uint64_t blocks = (tokens + block_tokens_ - 1) / block_tokens_;
  nodes_.reserve(blocks);
  for (std::vector<BlockId>& table : tables_) table.reserve(blocks);
}

Sequence::~Sequence() {
  if (cache_ != nullptr) cache_->close(*this);
}

}  // namespace pagoda::kv
