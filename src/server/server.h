// The server: a listening socket, threads, and the connections they serve.
//
// The server replies from the moment it listens: with 503 until open() gives it a model. The model
// must outlive stop(), and the server must outlive the engine, whose last step still wakes
// connections.
#pragma once

#include <chrono>
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
  // names the address that cannot be bound, or the certificate file.
  static Result<std::unique_ptr<Server>> listen(const ServerOptions& options,
                                                std::function<void(int)> on_signal);
  ~Server();

  std::string address() const;  // "http://127.0.0.1:8000"
  // The same as this machine reaches it: of 0.0.0.0 and ::, which are no address to connect to, the
  // loopback address.
  std::string local_address() const;

  // Sets the keys that are valid from now on. nullptr: no key is needed.
  void set_keys(std::shared_ptr<const KeyRing> keys);
  // Reads the certificate again for new connections; after an error the old one stays. Does nothing
  // without TLS.
  Status reload_certificate();

  void open(const ServedModel& model);
  // Lets running requests end and answers 503 to new ones.
  void drain();
  // After drain(): waits until the bodies that had come are read and their requests have begun, for
  // as long at most.
  void wait_for_bodies(std::chrono::nanoseconds timeout);
  // Aborts running requests and closes all connections. No request is touched afterwards.
  void stop();

 private:
  struct State;
  explicit Server(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace pagoda::server
