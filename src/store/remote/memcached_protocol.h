// Speaks Memcached's meta protocol: mg, ms, ma.
#pragma once

#include "store/remote/protocol.h"

namespace pagoda::store {

class MemcachedProtocol final : public Protocol {
 public:
  explicit MemcachedProtocol(std::size_t item_bytes_max) : asked_bytes_max_(item_bytes_max) {}

  std::string_view name() const override { return "memcached"; }
  bool can_list() const override { return false; }
  std::size_t item_bytes_max() const override { return item_bytes_max_; }
  std::size_t begin_handshake(std::string& out) override;
  Status take_handshake_reply(const Reply& reply) override;
  void encode(const Command& command, std::string& out) override;
  std::size_t encode_set(std::string_view key, std::size_t value_bytes, std::uint32_t ttl_s,
                         std::string& out) override;
  Status feed(std::string_view bytes) override;
  Result<std::optional<Reply>> next() override;

 private:
  Result<std::optional<Reply>> take_value(std::string_view line, std::size_t line_end);
  Result<std::optional<Reply>> take_statistic(std::string_view line);
  void drop(std::size_t bytes);

  std::size_t asked_bytes_max_;
  std::size_t item_bytes_max_ = 0;
  std::string buffer_;
  std::size_t at_ = 0;  // offset of the first byte that is not parsed yet
  Reply statistics_;    // what has arrived of them so far
};

}  // namespace pagoda::store
