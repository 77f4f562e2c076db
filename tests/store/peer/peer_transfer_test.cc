// The connection is cut, slowed or changed on its way: what does not come whole does not come.
#include <gtest/gtest.h>

#include <atomic>

#include "store/peer/peer_pair.h"

namespace pagoda::store {
namespace {

using kv::StoreFault;

// Passes bytes between a client and a listener in pieces, and changes or cuts what the listener
// sends.
class Relay {
 public:
  struct Options {
    std::size_t piece = 65'536;
    std::size_t cut_at = SIZE_MAX;   // bytes of the listener, then the connection ends
    std::size_t flip_at = SIZE_MAX;  // this byte of the listener is changed
    std::size_t stop_at = SIZE_MAX;  // nothing more of the listener is passed on
  };

  Relay(std::uint16_t port, const Options& options) : port_(port), options_(options) {
    socket_ = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(socket_, 4), 0);
    socklen_t bytes = sizeof address;
    EXPECT_EQ(::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &bytes), 0);
    own_port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { run(); });
  }
  ~Relay() {
    is_stopping_ = true;
    thread_.join();
    ::close(socket_);
  }
  PeerAddress address() const { return {"127.0.0.1", own_port_}; }
  std::size_t passed() const { return passed_; }

 private:
  void run() {
    while (!is_stopping_) {
      pollfd watched = {socket_, POLLIN, 0};
      if (::poll(&watched, 1, 20) == 1) serve(::accept(socket_, nullptr, nullptr));
    }
  }
  void serve(int client) {
    const int server = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(port_);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bool goes_on =
        ::connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    std::vector<char> room(options_.piece);
    while (goes_on && !is_stopping_) {
      pollfd both[2] = {{client, POLLIN, 0}, {server, POLLIN, 0}};
      if (passed_ >= options_.stop_at) both[1].events = 0;
      if (::poll(both, 2, 20) <= 0) continue;
      if (both[0].revents != 0) goes_on = pass(client, server, room, false);
      if (goes_on && both[1].revents != 0) goes_on = pass(server, client, room, true);
    }
    ::close(client);
    ::close(server);
  }
  bool pass(int from, int to, std::vector<char>& room, bool is_listeners) {
    const ssize_t bytes = ::recv(from, room.data(), room.size(), 0);
    if (bytes <= 0) return false;
    auto count = static_cast<std::size_t>(bytes);
    if (is_listeners) {
      const std::size_t end = passed_ + count;
      if (options_.flip_at >= passed_ && options_.flip_at < end) {
        room[options_.flip_at - passed_] = static_cast<char>(room[options_.flip_at - passed_] ^ 1);
      }
      const bool is_cut = end > options_.cut_at;
      if (is_cut) count = options_.cut_at - passed_;
      passed_ = end;
      if (is_cut) {
        (void)::send(to, room.data(), count, MSG_NOSIGNAL);
        return false;
      }
    }
    return ::send(to, room.data(), count, MSG_NOSIGNAL) == static_cast<ssize_t>(count);
  }

  std::uint16_t port_;
  Options options_;
  int socket_;
  std::uint16_t own_port_ = 0;
  std::atomic<bool> is_stopping_{false};
  std::atomic<std::size_t> passed_{0};
  std::thread thread_;
};

TEST(PeerTransfer, WorksWhateverPiecesTheBytesComeIn) {
  for (const std::size_t piece : {1, 7, 1000}) {
    ServingPeer serving;
    serving.pages.add(1);
    const Relay relay(serving.address().port, {.piece = piece});
    FetchingPeer fetching(quick_peer_options({relay.address()}));
    ASSERT_TRUE(fetching.connects());
    EXPECT_EQ(fetching.find(keys_of(1, 2)), 1u);
    EXPECT_EQ(fetching.read(1), StoreFault::kNone);
  }
}

// Where the connection is cut does not matter: a page comes whole or is reported as a fault, and
// its lease ends.
TEST(PeerTransfer, CutAnywhereItIsAFault) {
  // Challenge, welcome, found and a page, as they lie behind each other.
  const std::size_t head = challenge_frame({}).size() + welcome_frame({}).size();
  const std::size_t found = head + found_frame({}).size();
  std::vector<std::size_t> cuts = {found, found + 1, found + 14, found + 500, found + 20'000};
  for (std::size_t at = 0; at < found; at += 5) cuts.push_back(at);
  for (const std::size_t cut : cuts) {
    ServingPeer serving;
    serving.pages.add(1);
    {
      const Relay relay(serving.address().port, {.cut_at = cut});
      PeerStoreOptions options = quick_peer_options({relay.address()});
      options.retry_first_ns = options.retry_last_ns = 60'000'000'000;  // one connection alone
      FetchingPeer fetching(std::move(options));
      if (cut < head) {
        EXPECT_TRUE(fetching.notes.comes("no pages from")) << cut;
        continue;
      }
      ASSERT_TRUE(fetching.connects()) << cut;
      EXPECT_EQ(fetching.find(keys_of(1, 2)), cut < found ? 0u : 1u) << cut;
      EXPECT_NE(fetching.read(1), StoreFault::kNone) << cut;
    }
    EXPECT_TRUE(serving.pages.all_end()) << cut;
  }
}

// No byte of what the other server sends can be changed without the page being refused.
TEST(PeerTransfer, AChangedByteIsAFault) {
  const std::size_t head = challenge_frame({}).size() + welcome_frame({}).size();
  const std::size_t page = head + found_frame({}).size();
  std::vector<std::size_t> places;
  for (std::size_t at = page; at < page + 160; at += 7) places.push_back(at);
  places.insert(places.end(), {page + 5000, page + 20'000});
  for (const std::size_t at : places) {
    ServingPeer serving;
    serving.pages.add(1);
    const Relay relay(serving.address().port, {.flip_at = at});
    PeerStoreOptions options = quick_peer_options({relay.address()});
    options.timeout_ns = 400'000'000;  // a length that lies is waited for
    FetchingPeer fetching(std::move(options));
    ASSERT_TRUE(fetching.connects());
    ASSERT_EQ(fetching.find(keys_of(1, 2)), 1u);
    EXPECT_NE(fetching.read(1), StoreFault::kNone) << at - page;
  }
}

TEST(PeerTransfer, AChallengeOrWelcomeThatWasChangedIsNoPeer) {
  const std::size_t head = challenge_frame({}).size() + welcome_frame({}).size();
  for (std::size_t at = 0; at < head; at += 6) {
    ServingPeer serving;
    serving.pages.add(1);
    const Relay relay(serving.address().port, {.flip_at = at});
    PeerStoreOptions options = quick_peer_options({relay.address()});
    options.connect_timeout_ns = 300'000'000;
    options.retry_first_ns = options.retry_last_ns = 60'000'000'000;
    FetchingPeer fetching(std::move(options));
    EXPECT_TRUE(fetching.notes.comes("no pages from")) << at;
    EXPECT_EQ(fetching.store().stats().nodes_on, 0u) << at;
  }
}

TEST(PeerTransfer, AServerThatFallsSilentCostsItsTimeLimit) {
  ServingPeer serving;
  for (std::uint32_t i = 0; i < 4; ++i) serving.pages.add(i);
  const std::size_t head = challenge_frame({}).size() + welcome_frame({}).size();
  const Relay relay(serving.address().port, {.stop_at = head + found_frame({}).size()});
  PeerStoreOptions options = quick_peer_options({relay.address()});
  options.timeout_ns = 150'000'000;
  options.retry_first_ns = options.retry_last_ns = 60'000'000'000;
  FetchingPeer fetching(std::move(options));
  ASSERT_TRUE(fetching.connects());
  EXPECT_EQ(fetching.find(keys_of(0, 4)), 4u);
  for (std::uint32_t i = 0; i < 3; ++i) EXPECT_EQ(fetching.read(i), StoreFault::kTimeout) << i;
  EXPECT_TRUE(fetching.notes.comes("does not answer in time"));
  EXPECT_EQ(fetching.read(3), StoreFault::kOff);  // it is left alone
  EXPECT_EQ(fetching.find(keys_of(0, 4)), 0u);
}

}  // namespace
}  // namespace pagoda::store
