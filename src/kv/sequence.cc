#include "kv/sequence.h"

#include <algorithm>
#include <utility>

#include "kv/cache.h"

namespace pagoda::kv {

Sequence::Sequence(Cache& cache, const LookupScope& scope, std::uint32_t block_tokens)
    : cache_(&cache),
      scope_(scope),
      block_tokens_(block_tokens),
      tables_(scope.groups.size()),
      first_held_(scope.groups.size(), 0) {
  tail_.reserve(block_tokens);
}

Sequence::Sequence(Sequence&& other) noexcept
    : cache_(std::exchange(other.cache_, nullptr)),
      scope_(other.scope_),
      tenant_(other.tenant_),
      prompt_tokens_(other.prompt_tokens_),
      block_tokens_(other.block_tokens_),
      request_(other.request_),
      branch_(other.branch_),
      hashes_(std::move(other.hashes_)),
      nodes_(std::move(other.nodes_)),
      blocks_unpublished_(other.blocks_unpublished_),
      tail_(std::move(other.tail_)),
      tables_(std::move(other.tables_)),
      first_held_(std::move(other.first_held_)),
      selection_(std::move(other.selection_)) {}

Sequence& Sequence::operator=(Sequence&& other) noexcept {
  if (this == &other) return *this;
  if (cache_ != nullptr) cache_->close(*this);
  cache_ = std::exchange(other.cache_, nullptr);
  scope_ = other.scope_;
  tenant_ = other.tenant_;
  prompt_tokens_ = other.prompt_tokens_;
  block_tokens_ = other.block_tokens_;
  request_ = other.request_;
  branch_ = other.branch_;
  hashes_ = std::move(other.hashes_);
  nodes_ = std::move(other.nodes_);
  blocks_unpublished_ = other.blocks_unpublished_;
  tail_ = std::move(other.tail_);
  tables_ = std::move(other.tables_);
  first_held_ = std::move(other.first_held_);
  selection_ = std::move(other.selection_);
  return *this;
}

Sequence::~Sequence() {
  if (cache_ != nullptr) cache_->close(*this);
}

std::uint64_t Sequence::blocks_held_alone(const BlockPool& pool) const {
  std::uint64_t blocks = 0;
  for (std::uint32_t group = 0; group < tables_.size(); ++group) {
    for (std::uint64_t block = 0; block < tables_[group].size(); ++block) {
      if (holds(group, block)) blocks += pool.references(tables_[group][block]) == 1 ? 1 : 0;
    }
  }
  return blocks;
}

std::vector<BlockId> Sequence::drop_pages(const KvPolicy& policy, std::uint64_t prompt_tokens) {
  const SequenceLengths lengths = {.prompt = prompt_tokens, .tokens = tokens_computed()};
  std::vector<BlockId> pages;
  for (std::uint32_t group = 0; group < tables_.size(); ++group) {
    if (scope_.groups[group].window != 0) continue;
    const std::vector<std::uint64_t> blocks = selection_->drop(policy, lengths, group);
    for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) {
      pages.push_back(tables_[group][*block]);
    }
  }
  return pages;
}

void Sequence::expect(std::uint64_t tokens) {
  const std::uint64_t blocks = (tokens + block_tokens_ - 1) / block_tokens_;
  nodes_.reserve(blocks);
  for (std::vector<BlockId>& table : tables_) table.reserve(blocks);
}

}  // namespace pagoda::kv
