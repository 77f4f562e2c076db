// Pages come from another server's cache, and nothing else does.
#include "store/peer/peer_store.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>

#include "store/peer/peer_pair.h"

namespace pagoda::store {
namespace {

using kv::StoreFault;
using namespace std::chrono_literals;

TEST(PeerStore, FindsAndFetchesWhatThePeerHas) {
  ServingPeer serving;
  for (std::uint32_t i = 0; i < 5; ++i) serving.pages.add(i);
  FetchingPeer fetching(quick_peer_options({serving.address()}));
  ASSERT_TRUE(fetching.connects());
  EXPECT_EQ(fetching.find(keys_of(0, 8)), 5u);
  EXPECT_EQ(serving.pages.leases(), 5u);
  for (std::uint32_t i = 0; i < 5; ++i) EXPECT_EQ(fetching.read(i), StoreFault::kNone) << i;
  EXPECT_TRUE(serving.pages.all_end());  // a page that was fetched is leased no more
  EXPECT_EQ(serving.listener->served().pages_sent, 5u);
  EXPECT_EQ(fetching.store().stats().pages_read, 5u);
  EXPECT_EQ(fetching.find(keys_of(20, 21)), 0u);
}

// More pages than a connection may have waiting to be sent.
TEST(PeerStore, FetchesManyPagesAtATime) {
  constexpr std::uint32_t kPages = 300;
  ServingPeer serving({.out_bytes_max = 50'000});
  for (std::uint32_t i = 0; i < kPages; ++i) serving.pages.add(i);
  FetchingPeer fetching(quick_peer_options({serving.address()}));
  ASSERT_TRUE(fetching.connects());
  EXPECT_EQ(fetching.find(keys_of(0, kPages)), kPages);
  std::vector<std::vector<std::byte>> pages(kPages, std::vector<std::byte>(kPeerPageBytes));
  for (std::uint32_t i = 0; i < kPages; ++i) {
    fetching.store().read({1000 + i, sample_label(i), pages[i]});
  }
  for (std::uint32_t i = 0; i < kPages; ++i) {
    EXPECT_EQ(fetching.await(1000 + i).fault, StoreFault::kNone) << i;
    EXPECT_EQ(pages[i], sample_page(i, kPeerPageBytes)) << i;
  }
}

TEST(PeerStore, APageThatIsNotLeasedIsLookedForOnceMore) {
  ServingPeer serving({.lease_ns = 50'000'000});
  serving.pages.add(1);
  FetchingPeer fetching(quick_peer_options({serving.address()}));
  ASSERT_TRUE(fetching.connects());
  EXPECT_EQ(fetching.find(keys_of(1, 2)), 1u);
  ASSERT_TRUE(serving.pages.all_end());  // nobody fetched it in time
  EXPECT_EQ(serving.listener->served().leases_expired, 1u);
  EXPECT_EQ(fetching.read(1), StoreFault::kNone);
  EXPECT_TRUE(serving.pages.all_end());
}

// The first page was handed over while the cache was asked for it: what the cache then says of it
// is not said of the next one.
TEST(PeerStore, ALateAnswerIsNotTakenForTheNextPage) {
  ServingPeer serving({.lease_ns = 20'000'000});
  serving.pages.add(1);
  serving.pages.add(2);
  FetchingPeer fetching(quick_peer_options({serving.address()}));
  ASSERT_TRUE(fetching.connects());
  ASSERT_EQ(fetching.find(keys_of(1, 3)), 2u);
  ASSERT_TRUE(serving.pages.all_end()) << "leases are over";
  serving.pages.holds_answers = true;
  StoreFault first = StoreFault::kOff;
  std::thread reading([&] { first = fetching.read(1); });
  ASSERT_EQ(serving.pages.held(1), 1u);
  serving.hand_over(keys_of(1, 2));
  reading.join();
  EXPECT_EQ(first, StoreFault::kNone);
  StoreFault second = StoreFault::kOff;
  std::thread reading_on([&] { second = fetching.read(2); });
  ASSERT_EQ(serving.pages.held(2), 2u);
  serving.pages.holds_answers = false;
  serving.pages.answer_next(false);
  std::this_thread::sleep_for(100ms);  // the listener sends what it takes that for
  serving.pages.answer_next(true);
  reading_on.join();
  EXPECT_EQ(second, StoreFault::kNone);
}

// Clients that leave while their prompts are waited for leave nothing open.
TEST(PeerStore, FindsThatNobodyWaitsForAreWithdrawn) {
  ServingPeer serving;
  serving.pages.add(1);
  FetchingPeer fetching(quick_peer_options({serving.address()}));
  ASSERT_TRUE(fetching.connects());
  const kv::PageOrigin origin = {
      .host = "127.0.0.1", .port = serving.address().port, .is_computing = true};
  for (std::uint32_t i = 0; i < 600; ++i) {
    const std::vector<kv::PageKey> keys = keys_of(100 + i, 101 + i);
    EXPECT_GT(fetching.store().expect(hashes_of(keys), origin), 0);
    const kv::StoreTicket ticket = 1'000'000 + i;
    EXPECT_FALSE(fetching.store().find(ticket, keys));
    fetching.store().cancel(std::span(&ticket, 1));
    EXPECT_EQ(fetching.await(ticket).fault, StoreFault::kCancelled);
  }
  EXPECT_EQ(fetching.find(keys_of(1, 2)), 1u);
  EXPECT_EQ(fetching.read(1), StoreFault::kNone);
  EXPECT_EQ(fetching.notes.count("no pages from"), 0) << fetching.notes.all();
}

TEST(PeerStore, WhatIsAskedForInAllIsBounded) {
  ServingPeer serving({.find_keys_max = 10});
  for (std::uint32_t i = 0; i < 20; ++i) serving.pages.add(i);
  FetchingPeer fetching(quick_peer_options({serving.address()}));
  ASSERT_TRUE(fetching.connects());
  EXPECT_EQ(fetching.find(keys_of(0, 11)), 0u);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(fetching.find(keys_of(0, 10)), 10u) << i;
}

TEST(PeerStore, LeasesEndWithTheConnection) {
  ServingPeer serving;
  for (std::uint32_t i = 0; i < 5; ++i) serving.pages.add(i);
  {
    FetchingPeer fetching(quick_peer_options({serving.address()}));
    ASSERT_TRUE(fetching.connects());
    EXPECT_EQ(fetching.find(keys_of(0, 5)), 5u);
  }
  EXPECT_TRUE(serving.pages.all_end());
}

TEST(PeerStore, FindsNoMoreThanMayBeLeased) {
  ServingPeer serving;
  serving.pages.pages_max = 3;
  for (std::uint32_t i = 0; i < 5; ++i) serving.pages.add(i);
  FetchingPeer fetching(quick_peer_options({serving.address()}));
  ASSERT_TRUE(fetching.connects());
  EXPECT_EQ(fetching.find(keys_of(0, 5)), 3u);
}

TEST(PeerStore, ATenantsPageIsGivenToWhoNamesItsOwnerAlone) {
  ServingPeer serving;
  serving.pages.add(1, sample_owner(1));
  FetchingPeer fetching(quick_peer_options({serving.address()}));
  ASSERT_TRUE(fetching.connects());
  EXPECT_EQ(fetching.find(keys_of(1, 2)), 1u);
  EXPECT_EQ(fetching.read(1, sample_owner(2)), StoreFault::kForeign);
  EXPECT_EQ(fetching.find(keys_of(1, 2)), 1u);
  EXPECT_EQ(fetching.read(1), StoreFault::kForeign);
  EXPECT_EQ(serving.listener->served().pages_sent, 0u);
  EXPECT_EQ(fetching.find(keys_of(1, 2)), 1u);
  EXPECT_EQ(fetching.read(1, sample_owner(1)), StoreFault::kNone);
}

TEST(PeerStore, WhatIsRemovedOfATenantIsLeasedNoMore) {
  ServingPeer serving;
  serving.pages.add(1, sample_owner(1));
  serving.pages.add(2, sample_owner(2));
  FetchingPeer fetching(quick_peer_options({serving.address()}));
  ASSERT_TRUE(fetching.connects());
  EXPECT_EQ(fetching.find(keys_of(1, 3)), 2u);
  serving.listener->revoke(sample_owner(1));
  for (int i = 0; i < 1000 && serving.pages.leases() > 1; ++i) std::this_thread::sleep_for(5ms);
  EXPECT_EQ(serving.pages.leases(), 1u);
  serving.listener->revoke(std::nullopt);
  EXPECT_TRUE(serving.pages.all_end());
}

TEST(PeerStore, AnotherKeyIsRefusedOnBothSidesAndSaidOnce) {
  ServingPeer serving({.key = peer_key(2)});
  serving.pages.add(1);
  FetchingPeer fetching(quick_peer_options({serving.address()}));
  EXPECT_TRUE(serving.notes.comes("kv_store_key"));
  EXPECT_TRUE(fetching.notes.comes("kv_store_key"));
  EXPECT_EQ(fetching.find(keys_of(1, 2)), 0u);
  std::this_thread::sleep_for(200ms);  // it tries again meanwhile
  EXPECT_GT(serving.listener->served().refused, 1u);
  EXPECT_EQ(serving.notes.count("kv_store_key"), 1);
  EXPECT_EQ(fetching.notes.count("kv_store_key"), 1);
  EXPECT_EQ(serving.pages.begun(), 0u);
}

TEST(PeerStore, AnotherSecretIsSaidOnceAndPublicPagesAreFoundAllTheSame) {
  ServingPeer serving({}, "secret");
  serving.pages.add(1);
  FetchingPeer fetching(quick_peer_options({serving.address()}), "another");
  ASSERT_TRUE(fetching.connects());
  EXPECT_TRUE(fetching.notes.comes("another secret"));
  EXPECT_TRUE(serving.notes.comes("another secret"));
  EXPECT_EQ(fetching.find(keys_of(1, 2)), 1u);
  EXPECT_EQ(fetching.read(1), StoreFault::kNone);
}

TEST(PeerStore, PeersAreAskedOneAfterAnother) {
  ServingPeer first;
  ServingPeer second;
  for (std::uint32_t i = 0; i < 3; ++i) first.pages.add(i);
  for (std::uint32_t i = 2; i < 6; ++i) second.pages.add(i);
  FetchingPeer fetching(quick_peer_options({first.address(), second.address()}));
  ASSERT_TRUE(fetching.connects(2));
  EXPECT_EQ(fetching.find(keys_of(0, 8)), 6u);
  EXPECT_EQ(second.pages.leases(), 3u);  // not what the first has
  for (std::uint32_t i = 0; i < 6; ++i) EXPECT_EQ(fetching.read(i), StoreFault::kNone) << i;
}

TEST(PeerStore, ARequestNamesWhereItsPagesAre) {
  ServingPeer serving;
  for (std::uint32_t i = 0; i < 3; ++i) serving.pages.add(i);
  FetchingPeer fetching(quick_peer_options({}));
  EXPECT_EQ(fetching.find(keys_of(0, 3)), 0u);
  const kv::PageOrigin origin = {.host = "127.0.0.1", .port = serving.address().port};
  EXPECT_GT(fetching.store().expect(hashes_of(keys_of(0, 3)), origin), 0);
  EXPECT_EQ(fetching.find(keys_of(0, 3)), 3u);
  EXPECT_EQ(fetching.read(2), StoreFault::kNone);
  EXPECT_EQ(fetching.find(keys_of(7, 8)), 0u);  // a prompt of which nothing was said
}

TEST(PeerStore, AHostThatIsNotAllowedIsNotContacted) {
  ServingPeer serving;
  serving.pages.add(1);
  PeerStoreOptions options = quick_peer_options({});
  options.allowed = PeerAllowList::parse("10.0.0.0/8,localhost").value();
  FetchingPeer fetching(std::move(options));
  const kv::PageOrigin origin = {.host = "127.0.0.1", .port = serving.address().port};
  EXPECT_EQ(fetching.store().expect(hashes_of(keys_of(1, 2)), origin), 0);
  EXPECT_EQ(fetching.find(keys_of(1, 2)), 0u);
  std::this_thread::sleep_for(50ms);
  EXPECT_EQ(serving.listener->served().connections, 0u);
  const kv::PageOrigin by_name = {.host = "localhost", .port = serving.address().port};
  EXPECT_GT(fetching.store().expect(hashes_of(keys_of(1, 2)), by_name), 0);
}

// A prompt that was handed over is leased to nobody until it is asked for, and is there at once.
TEST(PeerStore, WhatWasHandedOverIsThereWithoutAskingTheCache) {
  ServingPeer serving;
  for (std::uint32_t i = 0; i < 4; ++i) serving.pages.add(i);
  serving.hand_over(keys_of(0, 4));
  EXPECT_EQ(serving.pages.begun(), 4u);
  FetchingPeer fetching(quick_peer_options({serving.address()}));
  ASSERT_TRUE(fetching.connects());
  EXPECT_EQ(fetching.find(keys_of(0, 4)), 4u);
  for (std::uint32_t i = 0; i < 4; ++i) EXPECT_EQ(fetching.read(i), StoreFault::kNone) << i;
  EXPECT_EQ(serving.pages.begun(), 4u);
  EXPECT_TRUE(serving.pages.all_end());
}

TEST(PeerStore, WaitsForAPromptThatIsStillComputed) {
  ServingPeer serving;
  FetchingPeer fetching(quick_peer_options({}));
  const kv::PageOrigin origin = {
      .host = "127.0.0.1", .port = serving.address().port, .is_computing = true};
  EXPECT_GT(fetching.store().expect(hashes_of(keys_of(0, 4)), origin), 0);
  std::thread computing([&] {
    std::this_thread::sleep_for(300ms);
    for (std::uint32_t i = 0; i < 4; ++i) serving.pages.add(i);
    serving.hand_over(keys_of(0, 2));  // another prompt that begins alike
    std::this_thread::sleep_for(100ms);
    serving.hand_over(keys_of(0, 4));
  });
  EXPECT_EQ(fetching.find(keys_of(0, 4)), 4u);
  computing.join();
  EXPECT_EQ(fetching.read(3), StoreFault::kNone);
}

// Another prompt that begins with the same block has its pages from there, and waits for none.
TEST(PeerStore, APromptThatBeginsAlikeDoesNotWait) {
  ServingPeer serving;
  serving.pages.add(0);
  PeerStoreOptions options = quick_peer_options({});
  options.wait_ns = 20'000'000'000;
  FetchingPeer fetching(std::move(options));
  const kv::PageOrigin origin = {
      .host = "127.0.0.1", .port = serving.address().port, .is_computing = true};
  EXPECT_GT(fetching.store().expect(hashes_of(keys_of(0, 4)), origin), 0);
  std::vector<kv::PageKey> alike = keys_of(0, 1);
  for (const kv::PageKey& key : keys_of(7, 9)) alike.push_back(key);
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_EQ(fetching.find(alike), 1u);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 15s);
}

// A prompt of two requests is handed over twice between two looks of the listener.
TEST(PeerStore, AnswersOnceWhereAPromptIsHandedOverAgainAndAgain) {
  ServingPeer serving;
  for (std::uint32_t i = 0; i < 4; ++i) serving.pages.add(i);
  serving.pages.pages_max = 0;  // who asks finds nothing, and waits
  FetchingPeer fetching(quick_peer_options({}));
  const kv::PageOrigin origin = {
      .host = "127.0.0.1", .port = serving.address().port, .is_computing = true};
  EXPECT_GT(fetching.store().expect(hashes_of(keys_of(0, 4)), origin), 0);
  std::thread computing([&] {
    std::this_thread::sleep_for(300ms);
    serving.pages.pages_max = 1000;
    for (int i = 0; i < 50; ++i) serving.hand_over(keys_of(0, 4));
  });
  EXPECT_EQ(fetching.find(keys_of(0, 4)), 4u);
  computing.join();
  EXPECT_EQ(fetching.read(3), StoreFault::kNone) << "the listener still answers";
}

TEST(PeerStore, IsToldOfAPromptForWhosePagesThereWasNoRoom) {
  ServingPeer serving;
  FetchingPeer fetching(quick_peer_options({}));
  const kv::PageOrigin origin = {
      .host = "127.0.0.1", .port = serving.address().port, .is_computing = true};
  EXPECT_GT(fetching.store().expect(hashes_of(keys_of(0, 4)), origin), 0);
  std::thread computing([&] {
    std::this_thread::sleep_for(300ms);
    serving.hand_over(keys_of(0, 4));
  });
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_EQ(fetching.find(keys_of(0, 4)), 0u);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 5s) << "what is not there is not waited for";
  computing.join();
}

TEST(PeerStore, WaitsForAPromptOnlySoLong) {
  ServingPeer serving;
  PeerStoreOptions options = quick_peer_options({});
  options.wait_ns = 200'000'000;
  FetchingPeer fetching(std::move(options));
  const kv::PageOrigin origin = {
      .host = "127.0.0.1", .port = serving.address().port, .is_computing = true};
  EXPECT_GT(fetching.store().expect(hashes_of(keys_of(0, 4)), origin), 0);
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_EQ(fetching.find(keys_of(0, 4)), 0u);
  EXPECT_GE(std::chrono::steady_clock::now() - begun, 150ms);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 9s);
}

TEST(PeerStore, ANamedServerThatIsAwayCostsAMoment) {
  FetchingPeer fetching(quick_peer_options({}));
  std::uint16_t port = 0;
  {
    const ServingPeer gone;
    port = gone.address().port;
  }
  EXPECT_GT(fetching.store().expect(hashes_of(keys_of(0, 4)),
                                    {.host = "127.0.0.1", .port = port, .is_computing = true}),
            0);
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_EQ(fetching.find(keys_of(0, 4)), 0u);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 4s);
  EXPECT_TRUE(fetching.notes.comes("no pages from 127.0.0.1"));
}

TEST(PeerStore, APeerThatComesBackIsUsedAgain) {
  std::uint16_t port = 0;
  {
    const ServingPeer gone;
    port = gone.address().port;
  }
  FetchingPeer fetching(quick_peer_options({{"127.0.0.1", port}}));
  EXPECT_EQ(fetching.find(keys_of(1, 2)), 0u);
  PagesToLease pages;
  pages.add(1);
  PeerListenerOptions options;
  options.address = {"127.0.0.1", port};
  options.key = peer_key();
  options.page_bytes = kPeerPageBytes;
  const auto listener = PeerListener::open(std::move(options)).value();
  listener->start(pages, {});
  ASSERT_TRUE(fetching.connects());
  EXPECT_EQ(fetching.find(keys_of(1, 2)), 1u);
  EXPECT_EQ(fetching.read(1), StoreFault::kNone);
  listener->stop();
}

// Makes a certificate of its own and its key as files, in place of those that are there.
void make_certificate(const std::string& certificate, const std::string& key) {
  const std::string command =
      "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "
      "/CN=pagoda -addext subjectAltName=IP:127.0.0.1 -keyout " +
      key + " -out " + certificate + " 2>/dev/null";
  ASSERT_EQ(std::system(command.c_str()), 0);
}

class PeerTls : public testing::Test {
 protected:
  PeerTls() {
    std::filesystem::create_directories(folder_);
    make_certificate(other_, key_);
    make_certificate(certificate_, key_);
  }
  ~PeerTls() override { std::filesystem::remove_all(folder_); }
  PeerStoreOptions trusts(const std::string& certificate, const PeerAddress& peer) const {
    PeerStoreOptions options = quick_peer_options({peer});
    options.has_tls = true;
    options.tls_ca_file = certificate;
    return options;
  }

  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("pagoda_peer_tls_" + std::to_string(::getpid()));
  const std::string certificate_ = folder_ / "certificate.pem";
  const std::string key_ = folder_ / "key.pem";
  const std::string other_ = folder_ / "other.pem";
};

TEST_F(PeerTls, AServerMustProveWhoItIs) {
  ServingPeer serving({.tls_certificate = certificate_, .tls_key = key_});
  for (std::uint32_t i = 0; i < 50; ++i) serving.pages.add(i);
  FetchingPeer trusting(trusts(certificate_, serving.address()));
  ASSERT_TRUE(trusting.connects());
  EXPECT_EQ(trusting.find(keys_of(0, 50)), 50u);
  for (std::uint32_t i = 0; i < 50; ++i) EXPECT_EQ(trusting.read(i), StoreFault::kNone) << i;
  FetchingPeer untrusting(trusts(other_, serving.address()));
  EXPECT_TRUE(untrusting.notes.comes("certificate"));
  PeerStoreOptions without = quick_peer_options({serving.address()});
  without.connect_timeout_ns = 300'000'000;
  FetchingPeer plain(without);
  EXPECT_TRUE(plain.notes.comes("no pages from"));
  EXPECT_EQ(plain.find(keys_of(0, 1)), 0u);
}

TEST_F(PeerTls, ARenewedCertificateIsForClientsToCome) {
  ServingPeer serving({.tls_certificate = certificate_, .tls_key = key_});
  serving.pages.add(1);
  FetchingPeer before(trusts(certificate_, serving.address()));
  ASSERT_TRUE(before.connects());
  make_certificate(certificate_, key_);
  ASSERT_TRUE(serving.listener->reload_certificate().ok());
  FetchingPeer after(trusts(certificate_, serving.address()));
  EXPECT_TRUE(after.connects());
  EXPECT_EQ(before.find(keys_of(1, 2)), 1u) << "who is connected stays so";
  std::filesystem::remove(key_);
  EXPECT_FALSE(serving.listener->reload_certificate().ok());
  FetchingPeer later(trusts(certificate_, serving.address()));
  EXPECT_TRUE(later.connects()) << "the old one stays";
}

// Both threads sleep while nobody asks for anything.
TEST(PeerStore, CostsNothingWhileIdle) {
  ServingPeer serving;
  FetchingPeer fetching(quick_peer_options({serving.address()}));
  ASSERT_TRUE(fetching.connects());
  std::this_thread::sleep_for(100ms);
  const auto switches = [] {
    rusage usage = {};
    ::getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nvcsw;
  };
  const auto before = switches();
  std::this_thread::sleep_for(1s);
  EXPECT_LE(switches() - before, 20);
}

}  // namespace
}  // namespace pagoda::store
