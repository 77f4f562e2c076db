// The server: a listening socket, threads, and the connections they serve.
//
// It answers from the moment it listens: 503 until open() gives it a model. The model must outlive
// stop(), and the server must outlive the engine: wake-ups of the last step end in its queues.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "server/access/key_ring.h"
#include "server/served_model.h"
#include "server/server_options.h"

namespace pagoda::server {

class Server {
 public:
  // `on_signal` is called for every SIGINT, SIGTERM and SIGHUP, on a thread of the server. An error
  // names the address that cannot be had, or the file of the certificate.
  static Result<std::unique_ptr<Server>> listen(const ServerOptions& options,
                                                std::function<void(int)> on_signal);
  ~Server();

  std::string address() const;  // "http://127.0.0.1:8000"

  // Who may ask from now on. None: everyone.
  void set_keys(std::shared_ptr<const KeyRing> keys);
  // For connections from now on; after an error the old one stays. Nothing to do without TLS.
  Status reload_certificate();

  void open(const ServedModel& model);
  // What runs may end; everything new is 503.
  void drain();
  // Tells what still runs that it ends, and closes all connections. No request is touched after.
  void stop();

 private:
  struct State;
  explicit Server(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace pagoda::server
