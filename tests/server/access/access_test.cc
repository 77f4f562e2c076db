// Tests keys, salts, secrets and origins, which are pure functions of their arguments.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "server/access/host.h"
#include "server/access/key_ring.h"
#include "server/access/local_client.h"
#include "server/access/origin.h"
#include "server/access/rights.h"
#include "server/access/secret.h"
#include "server/access/tenant_salt.h"
#include "server/api_error.h"
#include "server/request_target.h"

namespace pagoda::server {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// The SHA-256 of the four bytes "test", as sha256sum prints it.
constexpr const char* kHashOfTest =
    "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

std::shared_ptr<const KeyRing> ring_of(const std::string& text,
                                       TenantRegistry* registry = nullptr) {
  TenantRegistry own;
  return KeyRing::make(parse_keys(text, "keys").value(), registry != nullptr ? *registry : own,
                       "a secret of some length");
}

std::string error_of(const std::string& text) {
  const auto parsed = parse_keys(text, "keys");
  return parsed.ok() ? "" : parsed.error().message;
}

TEST(Digest, IsThatOfPublishedVectors) {
  EXPECT_EQ(to_hex(sha256("test")), kHashOfTest);
  // RFC 4231, test case 2.
  EXPECT_EQ(to_hex(hmac_sha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST(KeyFile, GivesTenantsTheirLimitsAndKeysTheirRights) {
  const KeyList list = parse_keys(
                           "# who may ask\n\n"
                           "tenant acme weight=2.5 answers_running=16 requests_queued=7 "
                           "kv_tokens=1000 tokens_per_minute=60000 context_tokens=512 "
                           "output_tokens=64 output_tokens_default=32 priority_min=-3\n"
                           "key sk-one acme   # the laptop\r\n"
                           "\tkey sha256:" +
                               std::string(kHashOfTest) + " acme may_publish admin\n",
                           "keys")
                           .value();
  ASSERT_EQ(list.tenants.size(), 1u);
  const engine::TenantLimits& limits = list.tenants[0].limits;
  EXPECT_EQ(limits.weight, 2.5);
  EXPECT_EQ(limits.sequences_running, 16u);
  EXPECT_EQ(limits.requests_queued, 7u);
  EXPECT_EQ(limits.kv_tokens, 1000u);
  EXPECT_EQ(limits.tokens_per_minute, 60000u);
  EXPECT_EQ(limits.context_tokens, 512u);
  EXPECT_EQ(limits.output_tokens, 64u);
  EXPECT_EQ(limits.output_tokens_default, 32u);
  EXPECT_EQ(list.tenants[0].priority_min, -3);
  ASSERT_EQ(list.keys.size(), 2u);
  EXPECT_EQ(list.keys[0].digest, sha256("sk-one"));
  EXPECT_FALSE(list.keys[0].may_publish || list.keys[0].is_admin);
  EXPECT_EQ(list.keys[1].digest, sha256("test"));
  EXPECT_TRUE(list.keys[1].may_publish && list.keys[1].is_admin);
}

TEST(KeyFile, ErrorsNameTheFileTheLineAndTheWord) {
  const std::string good = "tenant a\nkey k a\n";
  EXPECT_EQ(error_of(good), "");
  EXPECT_EQ(error_of(good + "tenant a\n"), "keys:3: word 2: this tenant stands on line 1 already");
  EXPECT_EQ(error_of(good + "key k a\n"), "keys:3: word 2: this key stands on line 2 already");
  EXPECT_THAT(error_of("key k a\n"), StartsWith("keys:1: word 3: expected a tenant that stands"));
  EXPECT_THAT(error_of("tenant\n"), StartsWith("keys:1: word 2: is missing"));
  EXPECT_THAT(error_of(good + "key\n"), StartsWith("keys:3: word 2: is missing"));
  EXPECT_THAT(error_of(good + "key j\n"), StartsWith("keys:3: word 3: expected a tenant"));
  EXPECT_THAT(error_of("tenant a weight=1 wieght=2\n"),
              StartsWith("keys:1: word 4: is no setting"));
  EXPECT_THAT(error_of("tenant a weight=0\n"),
              StartsWith("keys:1: word 3: weight takes 0.001 to "));
  EXPECT_THAT(error_of("tenant a weight=nan\n"), StartsWith("keys:1: word 3: weight takes"));
  EXPECT_THAT(error_of("tenant a kv_tokens=-1\n"), StartsWith("keys:1: word 3: kv_tokens takes 1"));
  EXPECT_THAT(error_of("tenant a answers_running=4294967296\n"),
              HasSubstr("takes 1 to 4294967295"));
  EXPECT_THAT(error_of("tenant a/b\n"), StartsWith("keys:1: word 2: is no tenant's name"));
  EXPECT_THAT(error_of("tenant default\n"),
              HasSubstr("is the tenant of the server option `api_key`"));
  EXPECT_THAT(error_of(good + "key j a root\n"),
              StartsWith("keys:3: word 4: is no right of a key"));
  EXPECT_THAT(error_of(good + "key sha256:12 a\n"), HasSubstr("64 hexadecimal digits"));
  EXPECT_THAT(error_of(good + "key \xc3\xa9 a\n"), HasSubstr("visible ASCII"));
  EXPECT_THAT(error_of(good + "keys\n"), StartsWith("keys:3: word 1: begins no line"));
  EXPECT_THAT(error_of("tenant a\n"), HasSubstr("has no key"));
  EXPECT_THAT(read_key_file("/nowhere/keys").error().message, StartsWith("/nowhere/keys: "));
}

// Any word of the file may be a key, so that no error may show a word of a wrong line, whole or in
// part.
TEST(KeyFile, ErrorsNeverShowAWordOfIt) {
  const std::string secret = "sk-8f3aQ";
  const std::string good = "tenant ace\nkey first ace\n";
  std::size_t wrong = 0;
  for (const char* const line : {"* ace",
                                 "*",
                                 "key ace *",
                                 "key * *",
                                 "key other ace *",
                                 "key other ace admin *",
                                 "tenant *",
                                 "tenant ace *",
                                 "tenant two *",
                                 "tenant two weight=*",
                                 "tenant two kv_tokens=*",
                                 "tenant two priority_min=*",
                                 "tenant two *=3",
                                 "tenant */",
                                 "key sha256:* ace",
                                 "key *\x01 ace",
                                 "key * ace\nkey * ace",
                                 "Key * ace",
                                 "key=* ace",
                                 "tenant two key=*",
                                 "key * nobody"}) {
    std::string text = good + line + "\n";
    for (std::size_t at; (at = text.find('*')) != std::string::npos;) text.replace(at, 1, secret);
    const std::string error = error_of(text);
    wrong += error.empty() ? 0 : 1;
    EXPECT_THAT(error, testing::Not(HasSubstr(secret))) << line;
    EXPECT_THAT(error, testing::Not(HasSubstr("8f3a"))) << line;
  }
  EXPECT_EQ(wrong, 20u) << "but for a tenant of that name";
}

TEST(KeyFile, SaysWhetherAKeyStandsThereItself) {
  const std::string hashed = "tenant a\nkey sha256:" + std::string(kHashOfTest) + " a\n";
  EXPECT_FALSE(parse_keys(hashed, "keys").value().shows_keys);
  EXPECT_TRUE(parse_keys(hashed + "key k a\n", "keys").value().shows_keys);
}

TEST(KeyFile, KeysAreWhatCanStandInAHeader) {
  EXPECT_TRUE(check_key("a").ok());
  EXPECT_TRUE(check_key(std::string(512, '~')).ok());
  for (const std::string& wrong : {std::string(), std::string(513, 'a'), std::string("a b"),
                                   std::string("a\n"), std::string("\xc3\xa9")}) {
    EXPECT_FALSE(check_key(wrong).ok());
    EXPECT_THAT(check_key(wrong).error().message, HasSubstr("1 to 512 visible ASCII"));
  }
}

TEST(KeyRing, KnowsItsKeysAndNothingElse) {
  const auto ring = ring_of("tenant a\ntenant b priority_min=2\nkey ka a\nkey kb b admin\n");
  const Caller anna = identify("Bearer ka", ring);
  EXPECT_TRUE(anna.is_known);
  EXPECT_FALSE(anna.is_admin);
  EXPECT_EQ(anna.tenant_name, "a");
  EXPECT_EQ(anna.tenant, engine::TenantId(1));
  const Caller bert = identify("bearer  kb", ring);
  EXPECT_TRUE(bert.is_admin);
  EXPECT_EQ(bert.tenant, engine::TenantId(2));
  EXPECT_EQ(bert.priority_min, 2);
  for (const char* const wrong : {"", "ka", "Bearer", "Bearer ", "Bearer k", "Bearer kaa",
                                  "Bearer KA", "Basic ka", "Bearer ka b"}) {
    EXPECT_FALSE(identify(wrong, ring).is_known) << wrong;
  }
}

TEST(KeyRing, OfTheHashOfNothingIsNotOpenToThoseWithoutAKey) {
  const auto ring = ring_of("tenant a\nkey sha256:" + to_hex(sha256("")) + " a\n");
  EXPECT_FALSE(identify("", ring).is_known);
  EXPECT_FALSE(identify("Bearer ", ring).is_known);
}

TEST(KeyRing, WithoutOneEveryoneMayDoEverything) {
  const Caller anyone = identify("", nullptr);
  EXPECT_TRUE(anyone.is_known && anyone.is_admin && anyone.may_publish);
  EXPECT_EQ(anyone.tenant, engine::TenantId(0));
  EXPECT_EQ(anyone.salt(""), "");
  EXPECT_EQ(anyone.salt("as given"), "as given");
}

TEST(KeyRing, ReadAgainTenantsKeepTheirNumbers) {
  TenantRegistry registry;
  ring_of("tenant a\ntenant b\nkey ka a\nkey kb b\n", &registry);
  const auto again = ring_of("tenant c\ntenant b weight=3\nkey kb b\nkey kc c\n", &registry);
  EXPECT_EQ(identify("Bearer kb", again).tenant, engine::TenantId(2));
  EXPECT_EQ(identify("Bearer kc", again).tenant, engine::TenantId(3));
  EXPECT_FALSE(identify("Bearer ka", again).is_known);
  ASSERT_EQ(registry.tenants().size(), 3u);
  EXPECT_EQ(registry.tenants()[1].limits.weight, 3.0);
}

TEST(TenantSalt, IsAnotherForEveryPairAndSecret) {
  const std::vector<std::string> parts = {
      "", "a", "b", "ab", "aa", "ba", std::string(1, '\0'), std::string(9, '\0')};
  std::set<std::string> seen;
  for (const char* const secret : {"one secret", "another secret"}) {
    for (const std::string& tenant : parts) {
      for (const std::string& salt : parts) seen.insert(tenant_salt(secret, tenant, salt));
    }
  }
  EXPECT_EQ(seen.size(), 2 * parts.size() * parts.size());
}

// Python's hmac and struct modules computed the expected value.
TEST(TenantSalt, IsTheHmacOfItsCountedParts) {
  EXPECT_EQ(tenant_salt("0123456789abcdef", "acme", "project 7"),
            "7df57f035514195eac372670033c2a46c7e6509c6facee71dbe2eee8b60cd7fd");
  EXPECT_EQ(tenant_salt("0123456789abcdef", "acme", ""),
            "dae154db41d1dada0d9c07ca58a75bed1a71461bf8612750d673d48f0f80012d");
}

class SecretFile : public testing::Test {
 protected:
  SecretFile()
      : folder_(std::filesystem::temp_directory_path() /
                ("pagoda_secret_" + std::to_string(::getpid()))) {}
  ~SecretFile() override { std::filesystem::remove_all(folder_); }
  std::string path() const { return folder_ / "made" / "secret"; }
  std::filesystem::path folder_;
};

TEST_F(SecretFile, IsMadeOnceForItsOwnerAlone) {
  const std::string secret = read_or_make_secret(path()).value();
  EXPECT_EQ(secret.size(), 64u);
  EXPECT_EQ(read_or_make_secret(path()).value(), secret);
  struct stat status = {};
  ASSERT_EQ(::stat(path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  std::filesystem::remove(path());
  EXPECT_NE(read_or_make_secret(path()).value(), secret);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_ / "made"), {}), 1)
      << "no draft is left";
}

TEST_F(SecretFile, IsTheSameForAllWhoStartAtOnce) {
  std::vector<std::string> secrets(8);
  std::vector<std::thread> threads;
  for (std::string& secret : secrets) {
    threads.emplace_back([&] { secret = read_or_make_secret(path()).value(); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(std::set<std::string>(secrets.begin(), secrets.end()).size(), 1u);
}

TEST_F(SecretFile, ThatIsTooShortOrCannotBeMadeIsAnError) {
  std::filesystem::create_directories(folder_ / "made");
  std::ofstream(path()) << "fifteen letters\n";
  ASSERT_EQ(::chmod(path().c_str(), 0600), 0);
  EXPECT_THAT(read_or_make_secret(path()).error().message, HasSubstr("16 to 4096 bytes"));
  EXPECT_THAT(read_or_make_secret(path() + "/below").error().message, StartsWith(path()));
}

TEST_F(SecretFile, ThatIsAFolderOrThatOthersMayReadIsAnError) {
  std::filesystem::create_directories(folder_ / "made");
  EXPECT_THAT(read_or_make_secret(folder_ / "made").error().message, HasSubstr("Is a directory"));
  EXPECT_THAT(read_key_file(folder_ / "made").error().message, HasSubstr("Is a directory"));
  read_or_make_secret(path()).value();
  for (const unsigned mode : {0640u, 0604u, 0644u, 0660u}) {
    ASSERT_EQ(::chmod(path().c_str(), mode), 0);
    const auto secret = read_or_make_secret(path());
    ASSERT_FALSE(secret.ok()) << mode;
    EXPECT_THAT(secret.error().message, HasSubstr("others may read this secret"));
  }
  ASSERT_EQ(::chmod(path().c_str(), 0400), 0);
  EXPECT_TRUE(read_or_make_secret(path()).ok());
}

int status_of(Access level, const Caller& caller, bool metrics_need_admin = false) {
  try {
    require(level, caller, metrics_need_admin);
    return 200;
  } catch (const ApiError& error) {
    return error.status;
  }
}

TEST(Rights, AreThoseOfTheTable) {
  const Caller nobody;
  const Caller tenant = {.is_known = true};
  const Caller admin = {.is_known = true, .is_admin = true};
  EXPECT_EQ(status_of(Access::kAnyone, nobody), 200);
  EXPECT_EQ(status_of(Access::kKey, nobody), 401);
  EXPECT_EQ(status_of(Access::kKey, tenant), 200);
  EXPECT_EQ(status_of(Access::kAdmin, nobody), 401);
  EXPECT_EQ(status_of(Access::kAdmin, tenant), 403);
  EXPECT_EQ(status_of(Access::kAdmin, admin), 200);
  EXPECT_EQ(status_of(Access::kMetrics, nobody), 200);
  EXPECT_EQ(status_of(Access::kMetrics, nobody, true), 401);
  EXPECT_EQ(status_of(Access::kMetrics, tenant, true), 403);
  EXPECT_EQ(status_of(Access::kMetrics, admin, true), 200);
}

TEST(Rights, TextIsForAdminsAndThatOfPrivatePromptsWhereTheServerShowsIt) {
  const auto keys = ring_of("tenant anna\nkey ka anna\ntenant ops\nkey ko ops admin\n");
  const Caller admin = identify("Bearer ko", keys);
  EXPECT_EQ(readable_text(admin, false), ReadableText::kPublic);
  EXPECT_EQ(readable_text(admin, true), ReadableText::kAll);
  Caller tenant = identify("Bearer ka", keys);
  Caller nobody = identify("Bearer wrong", keys);
  for (Caller* const other : {&tenant, &nobody}) {
    for (const bool is_local : {false, true}) {
      other->is_local = is_local;
      EXPECT_EQ(readable_text(*other, false), ReadableText::kNone);
      EXPECT_EQ(readable_text(*other, true), ReadableText::kNone);
    }
  }
}

TEST(Rights, WithoutKeysTextIsForCallersOnThisMachine) {
  Caller caller = identify("", nullptr);
  EXPECT_EQ(readable_text(caller, false), ReadableText::kNone);
  EXPECT_EQ(readable_text(caller, true), ReadableText::kNone);
  caller.is_local = true;
  EXPECT_EQ(readable_text(caller, false), ReadableText::kPublic);
  EXPECT_EQ(readable_text(caller, true), ReadableText::kAll);
}

TEST(LocalClient, IsAtALoopbackAddressOrAtTheAddressThatItAsks) {
  EXPECT_TRUE(is_local_client("127.0.0.1", "127.0.0.1"));
  EXPECT_TRUE(is_local_client("127.0.0.1", "127.0.0.2"));
  EXPECT_TRUE(is_local_client("::1", "::1"));
  EXPECT_TRUE(is_local_client("::ffff:127.0.0.1", "::ffff:127.0.0.1"));
  EXPECT_TRUE(is_local_client("192.168.1.5", "192.168.1.5"));
  EXPECT_FALSE(is_local_client("192.168.1.6", "192.168.1.5"));
  EXPECT_FALSE(is_local_client("172.17.0.1", "172.17.0.2"));
  EXPECT_FALSE(is_local_client("12.7.0.1", "127.0.0.1"));
  EXPECT_FALSE(is_local_client("::ffff:10.0.0.1", "::1"));
  EXPECT_FALSE(is_local_client("::ffff:0:1", "::1"));
  EXPECT_FALSE(is_local_client("", ""));
}

bool asks(const std::string& host, const std::string& origin,
          const std::vector<std::string>& allowed = {}) {
  return may_ask({.method = "POST", .path = "/", .host = host, .origin = origin}, allowed);
}

TEST(Origin, OnlyOwnAndListedPagesMayAsk) {
  EXPECT_TRUE(asks("x", "")) << "no browser";
  EXPECT_TRUE(asks("127.0.0.1:8000", "http://127.0.0.1:8000"));
  EXPECT_TRUE(asks("[::1]:8000", "http://[::1]:8000"));
  EXPECT_TRUE(asks("localhost:8000", "http://localhost:8000"));
  EXPECT_TRUE(asks("ours.example", "https://ours.example"));
  EXPECT_FALSE(asks("127.0.0.1:8000", "http://127.0.0.1:9000"));
  EXPECT_FALSE(asks("127.0.0.1:8000", "https://evil.example"));
  EXPECT_FALSE(asks("127.0.0.1:8000", "null"));
  EXPECT_FALSE(asks("", "http://"));
  EXPECT_FALSE(may_ask({.method = "GET", .path = "/", .origin = "http://a.example"}, {}));
  const std::vector<std::string> listed = {"https://chat.example"};
  EXPECT_TRUE(asks("x", "https://chat.example", listed));
  EXPECT_FALSE(asks("x", "https://chat.example.evil", listed));
  EXPECT_FALSE(asks("x", "http://chat.example", listed));
  EXPECT_TRUE(asks("x", "https://any.example", {"*"}));
}

struct HostCase {
  std::string host;
  bool plain;  // without keys and without an option
  bool named;  // with the names ours.example and gpu1
};

TEST(Origin, PagesMaySendTheHeadersThatRequestsAreReadFor) {
  const HeaderList headers = preflight_reply().headers;
  const auto allowed = std::find_if(headers.begin(), headers.end(), [](const auto& one) {
    return one.first == "Access-Control-Allow-Headers";
  });
  ASSERT_NE(allowed, headers.end());
  for (const char* const name : {"Authorization", "X-Api-Key", "X-Request-Id", "X-Session-Id"}) {
    EXPECT_THAT(allowed->second, HasSubstr(name));
  }
}

TEST(Host, WithoutKeysIsAnAddressLocalhostOrAGivenName) {
  const AccessRules none;
  const AccessRules named = {.own_names = {"ours.example", "gpu1"}};
  const std::vector<HostCase> cases = {{"127.0.0.1", true, true},
                                       {"127.0.0.1:8000", true, true},
                                       {"192.168.1.7:1", true, true},
                                       {"[::1]:8000", true, true},
                                       {"[::1]", true, true},
                                       {"[2001:db8::7]:443", true, true},
                                       {"localhost", true, true},
                                       {"LocalHost:8000", true, true},
                                       {"localhost.", true, true},
                                       {"ours.example", false, true},
                                       {"OURS.example.:8000", false, true},
                                       {"gpu1:8000", false, true},
                                       {"evil.example", false, false},
                                       {"localhost.evil.example", false, false},
                                       {"evil.example:127", false, false},
                                       {"127.0.0.1.evil.example", false, false},
                                       {"a.ours.example", false, false},
                                       {"ours.example.evil", false, false},
                                       {"gpu12", false, false},
                                       {"", false, false},
                                       {"1.2.3", false, false},
                                       {"0x7f.1", false, false},
                                       {"[evil]", false, false},
                                       {"[::1", false, false},
                                       {"localhost:evil", false, false},
                                       {"localhost@evil", false, false}};
  for (const HostCase& each : cases) {
    const HttpRequest request = {.method = "GET", .path = "/", .host = each.host};
    EXPECT_EQ(is_for_us(request, none, false), each.plain) << each.host;
    EXPECT_EQ(is_for_us(request, named, false), each.named) << each.host;
    EXPECT_TRUE(is_for_us(request, none, true)) << "keys protect us: " << each.host;
    EXPECT_TRUE(is_for_us(request, named, true)) << each.host;
    const AccessRules always = {.own_names = named.own_names, .checks_host_with_keys = true};
    EXPECT_EQ(is_for_us(request, always, true), each.named) << each.host;
    const AccessRules all = {.own_names = {"*"}, .checks_host_with_keys = true};
    EXPECT_EQ(is_for_us(request, all, false), host_of(each.host).has_value()) << each.host;
  }
  EXPECT_TRUE(is_for_us({.method = "GET", .path = "/"}, none, false)) << "HTTP/1.0 without a Host";
}

}  // namespace
}  // namespace pagoda::server
