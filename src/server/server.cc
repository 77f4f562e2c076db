#include "server/server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/strand.hpp>
#include <condition_variable>
#include <csignal>
#include <map>
#include <mutex>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

#include "server/access/local_client.h"
#include "server/as_tuple.h"
#include "server/connection.h"
#include "server/request_reader.h"
#include "server/retry_after.h"
#include "server/server_state.h"
#include "server/transport.h"

namespace pagoda::server {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr int kAcceptsPerTurn = 64;
// The pause between two accept() calls when the system has no socket left.
constexpr std::chrono::milliseconds kAcceptPause{100};
// Connections get this long for their last bytes when the server stops.
constexpr std::chrono::milliseconds kStopTimeout{2'000};

// Descriptors that are not connections: the model file, the terminal, the event loops.
constexpr rlim_t kOtherDescriptors = 64;

// Every connection is a descriptor, and most systems start a process below its hard limit.
void raise_descriptor_limit(std::uint32_t connections) {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const rlim_t wanted = std::min<rlim_t>(limit.rlim_max, connections + kOtherDescriptors);
  if (limit.rlim_cur >= wanted) return;
  limit.rlim_cur = wanted;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// Returns the client that a connection counts for: an IPv4 address, or the /64 network of an IPv6
// address, whose owner has as many addresses as it likes.
asio::ip::address client_of(const asio::ip::address& address) {
  if (!address.is_v6()) return address;
  asio::ip::address_v6::bytes_type bytes = address.to_v6().to_bytes();
  if (address.to_v6().is_v4_mapped()) return address;
  std::fill(bytes.begin() + 8, bytes.end(), std::uint8_t{0});
  return asio::ip::address_v6(bytes);
}

// Refuses a client with too many connections. The reply may not arrive.
void turn_away(tcp::socket& socket, const ServerState& state) {
  const std::string reply = fmt::format(
      "HTTP/1.1 429 Too Many Requests\r\nX-Request-Id: {}\r\nRetry-After: {}\r\n"
      "Content-Length: 0\r\nConnection: close\r\n\r\n",
      fresh_request_id(), retry_after_s(state, "too_many_connections"));
  error_code ignored;
  socket.non_blocking(true, ignored);
  socket.send(asio::buffer(reply), 0, ignored);
  socket.shutdown(tcp::socket::shutdown_both, ignored);
}

// Keeps a flag true while it lives.
class Marked {
 public:
  explicit Marked(std::atomic<bool>& mark) : mark_(mark) { mark_ = true; }
  ~Marked() { mark_ = false; }
  Marked(const Marked&) = delete;
  Marked& operator=(const Marked&) = delete;

 private:
  std::atomic<bool>& mark_;
};

std::string url_of(const tcp::endpoint& endpoint, bool tls) {
  const std::string host = endpoint.address().to_string();
  return fmt::format("{}://{}:{}", tls ? "https" : "http",
                     endpoint.address().is_v6() ? fmt::format("[{}]", host) : host,
                     endpoint.port());
}

Error cannot_listen(const ServerOptions& options, const error_code& error) {
  const bool is_taken = error == asio::error::address_in_use;
  return {ErrorCode::kIo,
          fmt::format("cannot listen on {}:{}: {}{}", options.host, options.port, error.message(),
                      is_taken ? "; `port` takes another one, and `port=0` any that is free" : "")};
}

}  // namespace

struct Server::State {
  State(const ServerOptions& asked, std::function<void(int)> signal_handler)
      : options(asked),
        shared(asked.version, asked.log, asked.access, asked.text_threads, asked.option_name),
        acceptor(asio::make_strand(io)),
        room(acceptor.get_executor()),
        signals(acceptor.get_executor(), SIGINT, SIGTERM, SIGHUP),
        on_signal(std::move(signal_handler)) {
    shared.body_memory().set_max(asked.body_memory_max);
    shared.request_memory().set_max(asked.request_memory_max);
  }

  Status bind();
  void start();
  void start_loops();  // restarts loops that have ended; on the acceptor's strand
  void run_handlers();
  asio::awaitable<void> accept_connections();
  asio::awaitable<bool> accept_one();
  asio::awaitable<void> await_signals();
  void serve(tcp::socket socket);
  struct Slot;
  std::shared_ptr<Slot> enter(const asio::ip::address& client);
  void forget(const std::shared_ptr<Connection>& connection,
              const asio::ip::address& client) noexcept;
  bool is_full();
  template <class Action>
  void for_each_connection(const Action& action);

  ServerOptions options;
  ServerState shared;
  std::atomic<bool> accepts = false;
  std::atomic<bool> hears_signals = false;
  asio::io_context io;
  asio::basic_socket_acceptor<tcp> acceptor;  // its strand also runs `room` and the signals
  asio::steady_timer room;                    // wakes the acceptor when a connection ends
  asio::signal_set signals;
  std::function<void(int)> on_signal;
  std::vector<std::thread> threads;

  std::mutex mutex;
  std::condition_variable all_closed;
  std::unordered_set<std::shared_ptr<Connection>> connections;  // guarded by mutex
  // Number of connections by client; guarded by mutex.
  std::map<asio::ip::address, std::uint32_t> clients;
  std::shared_ptr<TlsIdentity> identity;  // guarded by mutex
};

Status Server::State::bind() {
  error_code error;
  tcp::resolver resolver(io);
  const auto found =
      resolver.resolve(options.host, std::to_string(options.port),
                       tcp::resolver::passive | tcp::resolver::numeric_service, error);
  if (error) return cannot_listen(options, error);
  const tcp::endpoint endpoint = found.begin()->endpoint();
  acceptor.open(endpoint.protocol(), error);
  if (!error) fcntl(acceptor.native_handle(), F_SETFD, FD_CLOEXEC);  // no child has the port
  if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (!error) acceptor.non_blocking(true, error);
  if (error) return cannot_listen(options, error);
  return ok_status();
}

void Server::State::start() {
  start_loops();
  for (std::uint32_t i = 0; i < options.threads; ++i) {
    threads.emplace_back([this] { run_handlers(); });
    pthread_setname_np(threads.back().native_handle(), "http");  // the name that top and perf show
  }
}

void Server::State::start_loops() {
  const auto executor = acceptor.get_executor();
  if (!accepts) asio::co_spawn(executor, accept_connections(), asio::detached);
  if (!hears_signals) asio::co_spawn(executor, await_signals(), asio::detached);
}

// An exception from a handler without a request ends neither the thread nor the server. A loop
// whose handler threw is restarted.
void Server::State::run_handlers() {
  for (bool has_thrown = false;;) {
    try {
      if (std::exchange(has_thrown, false)) {
        asio::post(acceptor.get_executor(), [this] {
          if (acceptor.is_open()) start_loops();
        });
      }
      io.run();
      return;
    } catch (...) {
      has_thrown = true;
      shared.log().write_thrown({}, "a handler", std::current_exception());
    }
  }
}

asio::awaitable<void> Server::State::accept_connections() {
  const Marked marked(accepts);
  for (bool pauses = false; acceptor.is_open();) {
    try {
      if (pauses) {
        room.expires_after(kAcceptPause);
        co_await room.async_wait(kAsTuple);
      }
      pauses = !co_await accept_one();
    } catch (...) {
      pauses = true;
      shared.log().write_thrown({}, "accepting a connection", std::current_exception());
    }
  }
}

// Returns false when the system has no socket left.
asio::awaitable<bool> Server::State::accept_one() {
  if (is_full()) {
    room.expires_after(std::chrono::seconds(1));
    co_await room.async_wait(kAsTuple);
    co_return true;
  }
  auto [error, socket] =
      co_await acceptor.async_accept(asio::any_io_executor(asio::make_strand(io)), kAsTuple);
  if (!error) serve(std::move(socket));
  // Whoever else waits is accepted in the same turn: a turn may be long behind busy connections.
  for (int more = 1; !error && more < kAcceptsPerTurn && !is_full(); ++more) {
    tcp::socket next(asio::make_strand(io));
    error_code nobody;
    acceptor.accept(next, nobody);
    if (nobody) break;
    serve(std::move(next));
  }
  co_return !error || error == asio::error::operation_aborted;
}

asio::awaitable<void> Server::State::await_signals() {
  const Marked marked(hears_signals);
  asio::steady_timer pause(acceptor.get_executor());
  for (bool pauses = false;;) {
    try {
      if (pauses) {
        pause.expires_after(kAcceptPause);
        co_await pause.async_wait(kAsTuple);
      }
      pauses = true;  // cleared once the signal was handled
      const auto [error, signal] = co_await signals.async_wait(kAsTuple);
      if (error) co_return;
      on_signal(signal);
      pauses = false;
    } catch (...) {
      shared.log().write_thrown({}, "a signal", std::current_exception());
    }
  }
}

// A connection's entry in the counts, from enter() until it is destroyed.
struct Server::State::Slot {
  State& state;
  asio::ip::address client;
  std::shared_ptr<Connection> connection = {};

  Slot(State& of, asio::ip::address from) : state(of), client(std::move(from)) {}
  ~Slot() { state.forget(connection, client); }
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;
};

void Server::State::serve(tcp::socket socket) {
  error_code error;
  const asio::ip::address from = socket.remote_endpoint(error).address();
  if (error) return;  // the client has left
  const asio::ip::address to = socket.local_endpoint(error).address();
  if (error) return;
  const asio::ip::address client = client_of(from);
  const std::shared_ptr<Slot> slot = enter(client);
  if (!slot) return turn_away(socket, shared);
  const asio::any_io_executor strand = socket.get_executor();
  ClientAddress who = {client.to_string(), is_local_client(from.to_string(), to.to_string())};
  {
    const std::lock_guard lock(mutex);
    slot->connection = std::make_shared<Connection>(make_transport(std::move(socket), identity),
                                                    std::move(who), shared, options.connection);
    connections.insert(slot->connection);
  }
  asio::co_spawn(strand, slot->connection->run(), [this, slot](const std::exception_ptr& thrown) {
    if (thrown) shared.log().write_thrown({}, "a connection", thrown);
  });
}

// Returns nullptr when the client has as many connections as it may.
std::shared_ptr<Server::State::Slot> Server::State::enter(const asio::ip::address& client) {
  {
    const std::lock_guard lock(mutex);
    std::uint32_t& count = clients[client];
    if (count == options.connections_per_client_max) return nullptr;
    ++count;
  }
  try {
    return std::make_shared<Slot>(*this, client);
  } catch (...) {
    forget(nullptr, client);
    throw;
  }
}

void Server::State::forget(const std::shared_ptr<Connection>& connection,
                           const asio::ip::address& client) noexcept {
  const std::lock_guard lock(mutex);
  const bool was_full = connections.size() == options.connections_max;
  connections.erase(connection);
  const auto counted = clients.find(client);
  if (--counted->second == 0) clients.erase(counted);
  if (connections.empty()) all_closed.notify_all();
  if (!was_full) return;
  try {
    asio::post(acceptor.get_executor(), [this] { room.cancel(); });
  } catch (...) {  // the acceptor also polls for room
  }
}

bool Server::State::is_full() {
  const std::lock_guard lock(mutex);
  return connections.size() >= options.connections_max;
}

template <class Action>
void Server::State::for_each_connection(const Action& action) {
  const std::lock_guard lock(mutex);
  for (const std::shared_ptr<Connection>& connection : connections) action(*connection);
}

Server::Server(std::unique_ptr<State> state) : state_(std::move(state)) {}

Server::~Server() { stop(); }

Result<std::unique_ptr<Server>> Server::listen(const ServerOptions& options,
                                               std::function<void(int)> on_signal) {
  raise_descriptor_limit(options.connections_max);
  auto state = std::make_unique<State>(options, std::move(on_signal));
  if (options.tls) {
    ASSIGN_OR_RETURN(state->identity, load_tls_identity(*options.tls));
  }
  RETURN_IF_ERROR(state->bind());
  state->start();
  return std::unique_ptr<Server>(new Server(std::move(state)));
}

std::string Server::address() const {
  return url_of(state_->acceptor.local_endpoint(), state_->options.tls.has_value());
}

std::string Server::local_address() const {
  tcp::endpoint endpoint = state_->acceptor.local_endpoint();
  if (endpoint.address().is_unspecified()) {
    if (endpoint.address().is_v6()) {
      endpoint.address(asio::ip::address_v6::loopback());
    } else {
      endpoint.address(asio::ip::address_v4::loopback());
    }
  }
  return url_of(endpoint, state_->options.tls.has_value());
}

void Server::set_keys(std::shared_ptr<const KeyRing> keys) {
  state_->shared.set_keys(std::move(keys));
}

Status Server::reload_certificate() {
  if (!state_->options.tls) return ok_status();
  ASSIGN_OR_RETURN(std::shared_ptr<TlsIdentity> identity, load_tls_identity(*state_->options.tls));
  const std::lock_guard lock(state_->mutex);
  state_->identity = std::move(identity);
  return ok_status();
}

void Server::open(const ServedModel& model) { state_->shared.open(model); }

void Server::drain() { state_->shared.advance(Phase::kDraining); }

void Server::wait_for_bodies(std::chrono::nanoseconds timeout) {
  state_->shared.workers().wait_idle(timeout);
}

void Server::stop() {
  if (state_->threads.empty()) return;
  state_->shared.advance(Phase::kStopping);
  asio::post(state_->acceptor.get_executor(), [state = state_.get()] {
    state->acceptor.close();
    state->room.cancel();
    state->signals.cancel();
  });
  state_->for_each_connection([](Connection& connection) { connection.stop(); });
  {
    std::unique_lock lock(state_->mutex);
    state_->all_closed.wait_for(lock, kStopTimeout, [&] { return state_->connections.empty(); });
  }
  state_->for_each_connection([](Connection& connection) { connection.close(); });
  for (std::thread& thread : state_->threads) thread.join();
  state_->threads.clear();
  state_->shared.workers().finish();
}

}  // namespace pagoda::server
