// Speaks Redis' protocol (RESP 2), formatted and parsed by hiredis; but for large values, which go
// past it: their bytes are received where they stay.
#pragma once

#include "store/remote/protocol.h"

struct redisReader;

namespace pagoda::store {

class RedisProtocol final : public Protocol {
 public:
  RedisProtocol(const RemoteUrl& url, std::size_t item_bytes_max);

  std::string_view name() const override { return "redis"; }
  bool can_list() const override { return true; }
  std::size_t item_bytes_max() const override { return item_bytes_max_; }
  std::size_t begin_handshake(std::string& out) override;
  Status take_handshake_reply(const Reply& reply) override;
  void encode(const Command& command, std::string& out) override;
  std::size_t encode_set(std::string_view key, std::size_t value_bytes, std::uint32_t ttl_s,
                         std::string& out) override;
  Status feed(std::string_view bytes) override;
  Result<std::optional<Reply>> next() override;
  std::span<char> room() override;
  void filled(std::size_t bytes) override { value_got_ += bytes; }
  void recycle(std::string text) override;

 private:
  struct FreeReader {
    void operator()(redisReader* reader) const;
  };

  std::string_view unread() const { return std::string_view(unread_).substr(unread_at_); }
  void consume(std::size_t bytes);
  // Begins to receive a large value, if the next bytes are its length.
  void begin_value();
  Result<std::optional<Reply>> next_value();
  Result<std::optional<Reply>> parse();

  std::string user_;
  std::string password_;
  std::uint32_t database_;
  std::size_t item_bytes_max_;
  std::unique_ptr<redisReader, FreeReader> reader_;
  std::size_t list_bytes_ = 0;  // memory of the list that hiredis builds
  bool parsing_ = false;        // hiredis has the beginning of a reply
  bool after_cr_ = false;       // the last byte that hiredis got is a '\r'

  std::string unread_;  // bytes that were fed and are no part of a reply yet
  std::size_t unread_at_ = 0;
  std::string value_;            // the large value being received, and its end of line
  std::size_t value_bytes_ = 0;  // 0: none is
  std::size_t value_got_ = 0;
  std::string spare_;
};

}  // namespace pagoda::store
