// RemoteLoop is the store's thread: it connects, carries requests, gives up and tries again.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "store/page_cipher.h"
#include "store/remote/known_keys.h"
#include "store/remote/remote_connection.h"
#include "store/remote/remote_mailbox.h"
#include "store/remote/remote_options.h"
#include "store/remote/request_pipeline.h"

namespace pagoda::store {

class RemoteLoop {
 public:
  static Result<std::unique_ptr<RemoteLoop>> start(const RemoteOptions& options);
  ~RemoteLoop();

  // Any thread
  const RemoteOptions& options() const { return options_; }
  RemoteMailbox& mailbox() { return mailbox_; }
  KnownKeys& known() { return known_; }
  std::int64_t now_ns() const { return clock_.now_ns(); }
  std::int64_t deadline_ns() const { return now_ns() + options_.request_timeout_ns; }

 private:
  RemoteLoop(const RemoteOptions& options, const std::optional<PageCipher>& cipher,
             std::optional<net::TlsClient> tls);

  void run();
  Result<std::unique_ptr<RemoteConnection>> connect();
  Result<std::unique_ptr<RemoteConnection>> connect_to(const net::Socket::Address& address,
                                                       std::int64_t deadline_ns);
  Status handshake(RemoteConnection& connection, std::int64_t deadline_ns);
  // Serves until the connection is over; returns why.
  std::string serve(RemoteConnection& connection);
  void take_inbox(RemoteMailbox::Inbox inbox);
  void begin_jobs(RemoteConnection& connection);
  void give_up(const std::string& condition);
  // Waits for the socket (-1: none), the eventfd or the time.
  void wait(int descriptor, short events, std::int64_t until_ns);

  RemoteOptions options_;
  std::optional<PageCipher> cipher_;
  std::optional<net::TlsClient> tls_;
  SteadyClock clock_;
  KnownKeys known_;
  RemoteMailbox mailbox_;
  RequestPipeline pipeline_;
  std::vector<std::shared_ptr<Job>> jobs_;  // jobs that wait for writes before them
  std::thread thread_;
};

}  // namespace pagoda::store
