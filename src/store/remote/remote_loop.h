// RemoteLoop is the store's thread: it moves connections and requests, and switches the store on
// and off.
#pragma once

#include <poll.h>

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
#include "store/remote/node_set.h"
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
  void take_inbox(RemoteMailbox::Inbox inbox);
  void begin_jobs();
  void begin_removal(const std::shared_ptr<Job>& job);
  // Tells the mailbox what the nodes are like by now.
  void show_nodes();
  void give_up(const std::string& condition);
  // Waits for a socket, a caller or the time.
  void wait();

  RemoteOptions options_;
  std::optional<PageCipher> cipher_;
  std::optional<net::TlsClient> tls_;
  SteadyClock clock_;
  KnownKeys known_;
  RemoteMailbox mailbox_;
  RequestPipeline pipeline_;
  std::vector<std::shared_ptr<Job>> jobs_;  // jobs that wait for writes before them
  NodeSet nodes_;                           // behind those to whom commands that are lost come back
  bool is_on_ = false;
  std::string condition_;
  std::vector<pollfd> sources_;
  std::thread thread_;
};

}  // namespace pagoda::store
