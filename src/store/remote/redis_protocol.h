// Speaks Redis' protocol (RESP 2), formatted and parsed by hiredis.
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
  Status feed(std::string_view bytes) override;
  Result<std::optional<Reply>> next() override;

 private:
  struct FreeReader {
    void operator()(redisReader* reader) const;
  };

  std::string user_;
  std::string password_;
  std::uint32_t database_;
  std::size_t item_bytes_max_;
  std::unique_ptr<redisReader, FreeReader> reader_;
};

}  // namespace pagoda::store
