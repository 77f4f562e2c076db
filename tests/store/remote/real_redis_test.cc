// Tests what only Redis has: passwords, databases, TLS, keys that others may touch.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "store/page_record.h"
#include "store/remote/page_keys.h"
#include "store/remote/server_process.h"
#include "store/remote/store_driver.h"

namespace pagoda::store {
namespace {

using kv::StoreFault;

std::string output_of(const std::string& command) {
  std::string text;
  FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return text;
  for (int c = 0; (c = std::fgetc(pipe)) != EOF;) text += static_cast<char>(c);
  pclose(pipe);
  return text;
}

std::string redis_cli(const ServerProcess& server, const std::string& command) {
  return output_of("redis-cli -p " + std::to_string(server.port()) + " " + command);
}

RemoteOptions options_for(const ServerProcess& server, const std::string& login = "",
                          const std::string& path = "") {
  return quick_options("redis://" + login + server.host_and_port() + path);
}

class RealRedis : public ::testing::Test {
 protected:
  void SetUp() override { REQUIRE_SERVER(ServerProcess::has_redis(), "redis-server"); }
};

TEST_F(RealRedis, LetsInWhoHasThePasswordAndTellsTheOthersWhyNot) {
  const ServerProcess server = ServerProcess::redis(
      {"--requirepass", "s3cret", "--user", "kv", "on", ">its-own", "~pagoda1:*", "+get", "+set",
       "+exists", "+scan", "+getrange", "+strlen", "+unlink", "+ping", "+select"});
  StoreDriver by_password(options_for(server, ":s3cret@"));
  StoreDriver by_user(options_for(server, "kv:its-own@"));
  ASSERT_TRUE(by_password.connect() && by_user.connect());
  EXPECT_EQ(by_password.write(1), StoreFault::kNone);
  EXPECT_EQ(by_user.read(1), StoreFault::kNone);
  EXPECT_EQ(by_user.write(2, sample_owner(2)), StoreFault::kNone);
  EXPECT_EQ(by_user.find({sample_label(1).key}), 1u);
  EXPECT_EQ(by_user.store().remove(sample_owner(2)).value().pages, 1u);

  StoreDriver wrong(options_for(server, ":guess@"));
  StoreDriver none(options_for(server));
  EXPECT_TRUE(wrong.is_off_because("WRONGPASS"));
  EXPECT_TRUE(none.is_off_because("NOAUTH"));
  EXPECT_EQ(wrong.store().stats().condition.find("guess"), std::string::npos);
  EXPECT_EQ(wrong.read(1), StoreFault::kOff);
  EXPECT_FALSE(wrong.store().stats().is_on);
}

TEST_F(RealRedis, KeepsDatabasesApart) {
  const ServerProcess server = ServerProcess::redis();
  StoreDriver zero(options_for(server));
  StoreDriver three(options_for(server, "", "/3"));
  ASSERT_TRUE(zero.connect() && three.connect());
  ASSERT_EQ(three.write(1), StoreFault::kNone);
  EXPECT_EQ(zero.read(1), StoreFault::kAbsent);
  EXPECT_EQ(three.read(1), StoreFault::kNone);
  StoreDriver beyond(options_for(server, "", "/99"));
  EXPECT_TRUE(beyond.is_off_because("DB index"));
}

TEST_F(RealRedis, APageThatSomebodyChangedIsDamagedAndWrittenAnew) {
  const ServerProcess server = ServerProcess::redis();
  StoreDriver one(options_for(server));
  ASSERT_TRUE(one.connect());
  ASSERT_EQ(one.write(1), StoreFault::kNone);
  const std::string key = page_key(sample_label(1).key);
  redis_cli(server, "SETRANGE " + key + " 5000 tampered");
  EXPECT_EQ(one.read(1), StoreFault::kDamaged);
  EXPECT_FALSE(one.store().keeps(sample_label(1).key));
  redis_cli(server, "SET " + key + " short");
  EXPECT_EQ(one.read(1), StoreFault::kDamaged);
  redis_cli(server, "DEL " + key);
  redis_cli(server, "LPUSH " + key + " list");
  EXPECT_EQ(one.read(1), StoreFault::kAbsent);
  EXPECT_EQ(one.store().remove({}).value().pages, 0u);
  ASSERT_EQ(one.write(1), StoreFault::kNone);
  EXPECT_EQ(one.read(1), StoreFault::kNone);
}

TEST_F(RealRedis, RemovingLeavesWhatIsNotOursAndNoPartBehind) {
  const ServerProcess server = ServerProcess::redis();
  redis_cli(server, "SET somebody else");
  RemoteOptions small = options_for(server);
  small.item_bytes_max = 3000;
  StoreDriver one(small);
  ASSERT_TRUE(one.connect());
  for (std::uint64_t number = 0; number < 1500; ++number) {
    ASSERT_EQ(one.write(number, sample_owner(number % 2)), StoreFault::kNone);
  }
  // A page is 10,000 bytes and its label, in values of 3000.
  EXPECT_EQ(std::stoul(redis_cli(server, "DBSIZE")), 1500u * 4 + 1);
  const auto removal = one.store().remove(sample_owner(1));
  ASSERT_TRUE(removal.ok()) << removal.error().message;
  EXPECT_EQ(removal.value().pages, 750u);
  EXPECT_EQ(removal.value().bytes, 750 * record_bytes(16, StoreDriver::kPageBytes));
  EXPECT_EQ(std::stoul(redis_cli(server, "DBSIZE")), 750u * 4 + 1);
  // Nobody can read parts whose page was evicted; the next removal takes them.
  redis_cli(server, "DEL " + page_key(sample_label(2).key));
  ASSERT_TRUE(one.store().remove(sample_owner(1)).ok());
  EXPECT_EQ(std::stoul(redis_cli(server, "DBSIZE")), 749u * 4 + 1);
  const auto all = one.store().remove_all();
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(all.value().pages, 749u);
  EXPECT_EQ(all.value().bytes, 749 * record_bytes(16, StoreDriver::kPageBytes));
  EXPECT_EQ(redis_cli(server, "GET somebody"), "else\n");
  EXPECT_EQ(std::stoul(redis_cli(server, "DBSIZE")), 1u);
}

TEST_F(RealRedis, OverTlsItMustProveWhoItIs) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("pagoda_tls_" + std::to_string(free_port()));
  std::filesystem::create_directories(folder);
  const std::string cert = folder / "cert.pem";
  const std::string key = folder / "key.pem";
  const std::string other = folder / "other.pem";
  for (const std::string& to : {other, cert}) {
    output_of(
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "
        "/CN=pagoda -addext subjectAltName=IP:127.0.0.1 -keyout " +
        key + " -out " + to + " 2>&1");
  }
  ASSERT_TRUE(std::filesystem::exists(cert)) << "openssl made no certificate";
  const ServerProcess server = ServerProcess::redis(
      {"--port", "0", "--tls-port", "PORT", "--tls-cert-file", cert, "--tls-key-file", key,
       "--tls-ca-cert-file", cert, "--tls-auth-clients", "optional", "--requirepass", "pw"});
  RemoteOptions tls = quick_options("rediss://:pw@" + server.host_and_port());
  tls.tls_ca_file = cert;
  {
    StoreDriver one(tls);
    ASSERT_TRUE(one.connect()) << one.store().stats().condition;
    EXPECT_EQ(one.write(1), StoreFault::kNone);
    EXPECT_EQ(one.read(1), StoreFault::kNone);
    EXPECT_EQ(one.write(2, {}, 5'000'000), StoreFault::kNone);
    EXPECT_EQ(one.read(2, {}, 5'000'000), StoreFault::kNone);

    RemoteOptions untrusting = tls;
    untrusting.tls_ca_file = other;
    StoreDriver two(untrusting);
    EXPECT_TRUE(two.is_off_because("certificate"));

    RemoteOptions misnamed = tls;
    misnamed.url.addresses.front().host = "localhost";
    StoreDriver three(misnamed);
    EXPECT_TRUE(three.is_off_because("certificate"));

    StoreDriver plain(options_for(server, ":pw@"));
    EXPECT_FALSE(plain.connect(200'000'000));
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace pagoda::store
