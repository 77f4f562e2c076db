// Whoever reaches the port of a PeerListener without the key gets a challenge and nothing else, and
// whoever has the key may still not take more than is allowed.
#include <gtest/gtest.h>

#include "base/random.h"
#include "store/peer/peer_pair.h"

namespace pagoda::store {
namespace {

using kv::StoreFault;
using namespace std::chrono_literals;

// The server is as before for one who may fetch.
void expect_well(ServingPeer& serving) {
  FetchingPeer fetching(quick_peer_options({serving.address()}));
  ASSERT_TRUE(fetching.connects());
  EXPECT_EQ(fetching.find(keys_of(1, 2)), 1u);
  EXPECT_EQ(fetching.read(1), StoreFault::kNone);
  EXPECT_TRUE(serving.pages.all_end());
}

std::string challenge_of(const std::string& heard) { return heard.substr(0, 45); }

TEST(HostilePeer, RandomBytesGetNoAnswerButTheChallenge) {
  ServingPeer serving;
  serving.pages.add(1);
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const RawClient client(serving.address().port);
    std::string bytes;
    for (std::size_t i = 0; i < 1 + seed * 5; ++i) {
      bytes += static_cast<char>(random_bits(seed, 1, i));
    }
    bytes += std::string(300, '\xff');
    client.say(bytes);
    bool closed = false;
    const std::string heard = client.hear(closed);
    EXPECT_TRUE(closed) << seed;
    EXPECT_LE(heard.size(), challenge_of(heard).size()) << seed;
  }
  EXPECT_EQ(serving.listener->served().refused, 200u);
  EXPECT_EQ(serving.notes.count("was refused"), 1);
  EXPECT_EQ(serving.pages.begun(), 0u);
  expect_well(serving);
}

TEST(HostilePeer, ASilentClientIsLetGo) {
  ServingPeer serving({.handshake_ns = 100'000'000});
  serving.pages.add(1);
  const RawClient client(serving.address().port);
  bool closed = false;
  EXPECT_EQ(client.hear(closed).size(), 45u);
  EXPECT_TRUE(closed);
  expect_well(serving);
}

TEST(HostilePeer, ConnectionsAreBounded) {
  ServingPeer serving({.handshake_ns = 500'000'000, .connections_max = 4});
  serving.pages.add(1);
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 30; ++i) {
    clients.push_back(std::make_unique<RawClient>(serving.address().port));
  }
  for (int i = 0; i < 1000 && serving.listener->served().refused < 26; ++i) {
    std::this_thread::sleep_for(5ms);
  }
  EXPECT_LE(serving.listener->served().connections, 4u);
  EXPECT_GE(serving.listener->served().refused, 26u);
  clients.clear();
  expect_well(serving);
}

// Strangers that stay for as long as they may, and come again, keep nobody out.
TEST(HostilePeer, WhoHasTheKeyComesInBesideManyStrangers) {
  ServingPeer serving({.handshake_ns = 30'000'000'000, .connections_max = 4});
  serving.pages.add(1);
  std::vector<std::unique_ptr<RawClient>> strangers;
  for (int i = 0; i < 8; ++i) {
    strangers.push_back(std::make_unique<RawClient>(serving.address().port));
  }
  FetchingPeer fetching(quick_peer_options({serving.address()}));
  EXPECT_TRUE(fetching.connects());
  EXPECT_EQ(fetching.find(keys_of(1, 2)), 1u);
  EXPECT_EQ(fetching.read(1), StoreFault::kNone);
  for (int i = 0; i < 8; ++i) {
    strangers.push_back(std::make_unique<RawClient>(serving.address().port));
  }
  EXPECT_EQ(fetching.find(keys_of(1, 2)), 1u) << "who is in stays";
}

// Speaks as one who has the key.
std::string proof_for(const RawClient& client) {
  bool closed = false;
  const std::string heard = client.hear(closed, 10'000, 45);
  const auto nonce = read_challenge(std::string_view(heard).substr(kFrameHeadBytes));
  EXPECT_TRUE(nonce);
  const PeerNonce mine = {};
  return proof_frame({mine,
                      make_proof(peer_key(), {.role = PeerRole::kClient,
                                              .server_nonce = nonce.value_or(PeerNonce{}),
                                              .client_nonce = mine}),
                      {}});
}

TEST(HostilePeer, ServersThatMayComeInAreBoundedToo) {
  ServingPeer serving({.connections_max = 2});
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(std::make_unique<RawClient>(serving.address().port));
    clients.back()->say(proof_for(*clients.back()));
    bool closed = false;
    const std::size_t enough = welcome_frame({}).size();
    const std::size_t heard = clients.back()->hear(closed, 10'000, enough).size();
    EXPECT_EQ(closed, i == 2) << heard;
    EXPECT_EQ(heard, i == 2 ? 0 : enough);
  }
  EXPECT_EQ(serving.notes.count("more than 2 servers"), 1);
}

TEST(HostilePeer, AProofIsNotGoodForAnotherConnection) {
  ServingPeer serving;
  const RawClient first(serving.address().port);
  const std::string proof = proof_for(first);
  first.say(proof);
  bool closed = false;
  EXPECT_EQ(first.hear(closed, 10'000, welcome_frame({}).size()).size(), welcome_frame({}).size());
  EXPECT_FALSE(closed);
  const RawClient second(serving.address().port);
  second.say(proof);
  EXPECT_LE(second.hear(closed).size(), 45u);
  EXPECT_TRUE(closed);
}

TEST(HostilePeer, WithTheKeyAFloodOfRequestsEndsTheConnection) {
  ServingPeer serving;
  serving.pages.add(1);
  const RawClient client(serving.address().port);
  std::string flood = proof_for(client);
  for (std::uint64_t i = 0; i < 3000; ++i) {
    flood += read_frame({.number = i, .key = sample_label(1).key});
  }
  client.say(flood);
  bool closed = false;
  client.hear(closed);
  EXPECT_TRUE(closed);
  EXPECT_TRUE(serving.pages.all_end());
  expect_well(serving);
}

TEST(HostilePeer, WithTheKeyAnEndlessFrameEndsTheConnection) {
  ServingPeer serving;
  serving.pages.add(1);
  for (const std::string& bytes :
       {std::string("\xff\xff\xff\x7f\x04", 5), std::string(5, '\0'), welcome_frame({})}) {
    const RawClient client(serving.address().port);
    client.say(proof_for(client) + bytes);
    bool closed = false;
    client.hear(closed);
    EXPECT_TRUE(closed);
  }
  expect_well(serving);
}

// Who asks and takes nothing is let go, and holds no lease afterwards.
TEST(HostilePeer, AClientThatTakesNothingIsLetGo) {
  ServingPeer serving({.stall_ns = 200'000'000, .out_bytes_max = 100'000});
  for (std::uint32_t i = 0; i < 200; ++i) serving.pages.add(i);
  const RawClient client(serving.address().port, /*room_bytes=*/4096);
  std::string requests = proof_for(client) + find_frame({.number = 0, .keys = keys_of(0, 200)});
  for (std::uint32_t i = 0; i < 200; ++i) {
    requests += read_frame({.number = 1 + i, .key = sample_label(i).key});
  }
  client.say(requests);
  for (int i = 0; i < 2000 && serving.listener->served().connections > 0; ++i) {
    std::this_thread::sleep_for(5ms);
  }
  EXPECT_EQ(serving.listener->served().connections, 0u);
  EXPECT_TRUE(serving.pages.all_end());
  serving.pages.add(1);
  expect_well(serving);
}

// The other way round: whoever a request named may be anything that listens.
TEST(HostilePeer, AServerThatIsNoPeerIsToldNothing) {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(socket, 4), 0);
  socklen_t bytes = sizeof address;
  ASSERT_EQ(::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &bytes), 0);
  PeerStoreOptions options = quick_peer_options({{"127.0.0.1", ntohs(address.sin_port)}});
  options.connect_timeout_ns = 300'000'000;
  options.retry_first_ns = options.retry_last_ns = 60'000'000'000;
  FetchingPeer fetching(std::move(options));
  const int client = ::accept(socket, nullptr, nullptr);
  const std::string words = "HTTP/1.1 400 Bad Request\r\n\r\n";
  ASSERT_GT(::send(client, words.data(), words.size(), MSG_NOSIGNAL), 0);
  char room[64];
  EXPECT_LE(::recv(client, room, sizeof room, 0), 0);  // it says nothing, and goes
  EXPECT_TRUE(fetching.notes.comes("no pages from"));
  ::close(client);
  ::close(socket);
}

}  // namespace
}  // namespace pagoda::store
