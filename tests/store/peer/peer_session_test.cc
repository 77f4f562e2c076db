#include "store/peer/peer_session.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/random.h"
#include "store/page_samples.h"

namespace pagoda::store {
namespace {

PeerSession::Terms sample_terms() {
  PeerSession::Terms terms;
  terms.key.fill(std::byte{42});
  terms.deployment = deployment_id("one");
  terms.nonce.fill(std::byte{7});
  terms.binding = "binding";
  return terms;
}

// The proof of a client with the terms' key, as the server knows nonces and binding.
std::string sample_proof(const PeerSession::Terms& terms, const DeploymentId& deployment) {
  PeerNonce mine;
  mine.fill(std::byte{9});
  return proof_frame({mine,
                      make_proof(terms.key, {.role = PeerRole::kClient,
                                             .server_nonce = terms.nonce,
                                             .client_nonce = mine,
                                             .deployment = deployment,
                                             .binding = terms.binding}),
                      deployment});
}

std::string ask() {
  return find_frame({.number = 1, .keys = {sample_label(1).key}}) +
         read_frame({.number = 2, .key = sample_label(1).key});
}

struct Heard {
  Status status = ok_status();
  std::string reply;
  std::vector<PeerRequest> requests;
};

Heard say(PeerSession& session, const std::string& bytes, std::size_t piece) {
  Heard heard;
  for (std::size_t at = 0; at < bytes.size() && heard.status.ok(); at += piece) {
    heard.status =
        session.feed(std::string_view(bytes).substr(at, piece), heard.reply, heard.requests);
  }
  return heard;
}

TEST(PeerSession, TakesRequestsOfWhoHasProvenToHaveTheKeyHoweverItsBytesCome) {
  const PeerSession::Terms terms = sample_terms();
  for (const std::size_t piece : {1, 3, 1000}) {
    PeerSession session(terms);
    EXPECT_EQ(session.greeting(), challenge_frame(terms.nonce));
    const Heard heard = say(session, sample_proof(terms, terms.deployment) + ask(), piece);
    ASSERT_TRUE(heard.status.ok());
    EXPECT_TRUE(session.is_proven());
    EXPECT_TRUE(session.is_of_this_deployment());
    ASSERT_EQ(heard.requests.size(), 2u);
    EXPECT_EQ(std::get<FindFrame>(heard.requests[0]).keys.front(), sample_label(1).key);
    EXPECT_EQ(std::get<ReadFrame>(heard.requests[1]).key, sample_label(1).key);
    // The server's own proof: for the client's nonce, so that nobody else can stand in its place.
    const auto welcome = read_welcome(std::string_view(heard.reply).substr(kFrameHeadBytes));
    ASSERT_TRUE(welcome);
    PeerNonce client;
    client.fill(std::byte{9});
    EXPECT_TRUE(is_proof(terms.key,
                         {.role = PeerRole::kServer,
                          .server_nonce = terms.nonce,
                          .client_nonce = client,
                          .deployment = terms.deployment,
                          .binding = terms.binding},
                         welcome->proof));
  }
}

TEST(PeerSession, AnswersNothingBeforeTheProof) {
  const PeerSession::Terms terms = sample_terms();
  PeerSession::Terms other = terms;
  other.key.fill(std::byte{43});
  PeerSession::Terms replayed = terms;
  replayed.nonce.fill(std::byte{8});
  PeerSession::Terms relayed = terms;
  relayed.binding = "another TLS session";
  const std::vector<std::string> intruders = {
      ask(),
      found_frame({}),
      welcome_frame({}),
      challenge_frame(terms.nonce),
      sample_proof(other, terms.deployment) + ask(),
      sample_proof(replayed, terms.deployment) + ask(),
      sample_proof(relayed, terms.deployment) + ask(),
      proof_frame({}) + ask(),
      std::string("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
      std::string(200, '\xff'),
  };
  for (const std::string& bytes : intruders) {
    PeerSession session(terms);
    const Heard heard = say(session, bytes, 7);
    EXPECT_FALSE(heard.status.ok());
    EXPECT_EQ(heard.reply, "");
    EXPECT_TRUE(heard.requests.empty());
    EXPECT_FALSE(session.is_proven());
  }
}

TEST(PeerSession, RandomBytesAreNeverAProofAndNeverAnswered) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    std::string bytes;
    for (std::size_t i = 0; i < 120; ++i) {
      bytes += static_cast<char>(random_bits(seed, 1, i));
    }
    // Half of them begin like a proof.
    if (seed % 2 == 0) bytes.replace(0, 5, proof_frame({}).substr(0, 5));
    PeerSession session(sample_terms());
    const Heard heard = say(session, bytes, 11);
    EXPECT_EQ(heard.reply, "");
    EXPECT_TRUE(heard.requests.empty());
  }
}

TEST(PeerSession, IsOverAfterWhatIsNoRequest) {
  const PeerSession::Terms terms = sample_terms();
  for (const std::string& more : {found_frame({}), fault_frame(1, kv::StoreFault::kAbsent),
                                  sample_proof(terms, terms.deployment), std::string(6, '\0'),
                                  std::string("\xff\xff\xff\xff\x04")}) {
    PeerSession session(terms);
    EXPECT_FALSE(say(session, sample_proof(terms, terms.deployment) + more, 5).status.ok());
  }
}

TEST(PeerSession, KnowsAServerOfAnotherSecret) {
  const PeerSession::Terms terms = sample_terms();
  PeerSession session(terms);
  const Heard heard = say(session, sample_proof(terms, deployment_id("two")) + ask(), 100);
  ASSERT_TRUE(heard.status.ok());
  EXPECT_FALSE(session.is_of_this_deployment());
  EXPECT_EQ(heard.requests.size(), 2u);  // what is public is found all the same
}

}  // namespace
}  // namespace pagoda::store
