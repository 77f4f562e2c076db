#include "engine/backends/launch_message.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "base/assert.h"

namespace pagoda::engine {
namespace {

class Writer {
 public:
  explicit Writer(std::vector<std::byte>& to) : to_(to) { to_.clear(); }

  template <class T>
  void put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    const auto* const bytes = reinterpret_cast<const std::byte*>(&value);
    to_.insert(to_.end(), bytes, bytes + sizeof value);
  }
  template <class T>
  void put_list(std::span<const T> values) {
    put(values.size());
    const auto bytes = std::as_bytes(values);
    to_.insert(to_.end(), bytes.begin(), bytes.end());
  }

 private:
  std::vector<std::byte>& to_;
};

// Reads until something is not there; then everything else is 0, and is_whole() false.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> from) : from_(from) {}

  template <class T>
  T get() {
    T value = {};
    if (take(sizeof value)) std::memcpy(&value, from_.data() - sizeof value, sizeof value);
    return value;
  }
  template <class T>
  void get_list(std::vector<T>& values) {
    const auto count = get<std::size_t>();
    values.resize(is_ok_ && count <= from_.size() / sizeof(T) ? count : 0);
    is_ok_ = is_ok_ && values.size() == count;
    if (!take(values.size() * sizeof(T)) || values.empty()) return;
    const std::size_t bytes = values.size() * sizeof(T);
    std::memcpy(static_cast<void*>(values.data()), from_.data() - bytes, bytes);
  }
  bool is_ok() const { return is_ok_; }
  bool is_whole() const { return is_ok_ && from_.empty(); }

 private:
  bool take(std::size_t bytes) {
    is_ok_ = is_ok_ && bytes <= from_.size();
    if (is_ok_) from_ = from_.subspan(bytes);
    return is_ok_;
  }

  std::span<const std::byte> from_;
  bool is_ok_ = true;
};

struct SequenceHead {
  std::uint64_t first_position;
  std::uint32_t rows;
  std::uint32_t window;
  std::uint32_t sinks;
  std::uint32_t groups;
};

std::uint64_t blocks_of(const SequenceHead& head, std::uint32_t block_tokens) {
  return (head.first_position + head.rows + block_tokens - 1) / block_tokens;
}

Error corrupt() { return {ErrorCode::kCorrupt, "a launch that came is not one of this program's"}; }

bool all_rows_below(std::span<const std::uint32_t> rows, std::size_t end) {
  return std::ranges::all_of(rows, [end](std::uint32_t row) { return row < end; });
}

}  // namespace

void write_launch(const Launch& launch, std::span<const std::uint32_t> logit_rows,
                  std::uint32_t block_tokens, std::vector<std::byte>& message) {
  Writer writer(message);
  writer.put_list(launch.copies);
  writer.put(launch.rows.size());
  for (const LaunchRows& rows : launch.rows) {
    ASSERT(rows.tokens.size() + rows.drafts.size() == rows.rows,
           "nothing is launched ahead here: all tokens are known");
    ASSERT(rows.selected.counters.empty() && rows.selected.tokens_dropped.empty(),
           "policies that select pages were refused");
    const SequenceHead head = {.first_position = rows.first_position,
                               .rows = rows.rows,
                               .window = rows.policy.window,
                               .sinks = rows.policy.sinks,
                               .groups = static_cast<std::uint32_t>(rows.tables.size())};
    writer.put(head);
    writer.put_list(rows.tokens);
    writer.put_list(rows.drafts);
    for (const kv::memory::BlockTable table : rows.tables) {
      writer.put_list(std::span(table, blocks_of(head, block_tokens)));
    }
  }
  writer.put_list(launch.hidden_rows);
  writer.put_list(logit_rows);
}

Status ReadLaunch::read(std::span<const std::byte> message, const LaunchLimits& limits) {
  Reader reader(message);
  reader.get_list(copies_);
  for (const kv::Copy& copy : copies_) {
    const bool fits = copy.from.value() < limits.pages && copy.to.value() < limits.pages &&
                      copy.tokens <= limits.block_tokens && copy.group < limits.groups;
    if (!fits) return corrupt();
  }
  tokens_.clear();
  blocks_.clear();
  sequences_.clear();
  std::vector<TokenId> some;
  std::vector<kv::BlockId> table;
  std::vector<std::size_t> begins;  // of tables, in blocks_
  const auto count = reader.get<std::size_t>();
  for (std::size_t i = 0; i < count; ++i) {
    const auto head = reader.get<SequenceHead>();
    for (int part = 0; part < 2; ++part) {
      reader.get_list(some);
      tokens_.insert(tokens_.end(), some.begin(), some.end());
    }
    const bool fits = reader.is_ok() && head.groups == limits.groups && head.rows > 0 &&
                      head.first_position < UINT32_MAX && tokens_.size() <= limits.rows_max;
    if (!fits) return corrupt();
    for (std::uint32_t group = 0; group < head.groups; ++group) {
      reader.get_list(table);
      if (!reader.is_ok() || table.size() != blocks_of(head, limits.block_tokens)) {
        return corrupt();
      }
      begins.push_back(blocks_.size());
      blocks_.insert(blocks_.end(), table.begin(), table.end());
    }
    sequences_.push_back({.rows = head.rows,
                          .first_position = head.first_position,
                          .tables = {},
                          .policy = {.window = head.window, .sinks = head.sinks},
                          .selected = {}});
  }
  reader.get_list(hidden_rows_);
  reader.get_list(logit_rows_);
  std::size_t rows = 0;
  for (const model::SequenceRows& sequence : sequences_) rows += sequence.rows;
  const auto is_token = [&](TokenId token) { return token.value() < limits.vocabulary; };
  const auto is_page = [&](kv::BlockId block) { return block.value() < limits.pages; };
  if (!reader.is_whole() || rows != tokens_.size() || !std::ranges::all_of(tokens_, is_token) ||
      !std::ranges::all_of(blocks_, is_page) || !all_rows_below(hidden_rows_, rows) ||
      !all_rows_below(logit_rows_, rows)) {
    return corrupt();
  }
  tables_.clear();
  for (const std::size_t begin : begins) tables_.push_back(blocks_.data() + begin);
  for (std::size_t i = 0; i < sequences_.size(); ++i) {
    sequences_[i].tables = std::span(tables_).subspan(i * limits.groups, limits.groups);
  }
  return ok_status();
}

}  // namespace pagoda::engine
