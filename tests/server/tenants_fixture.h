// A server with the keys of a key file, and requests by one of them.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "server/access/key_file.h"
#include "server/access/key_ring.h"
#include "server/story_fixture.h"

namespace pagoda::server {

class TenantsFixture : public testing::Test {
 protected:
  explicit TenantsFixture(const char* keys, std::uint64_t output_tokens_default = 0)
      : fixture_(100, true, {}, output_tokens_default) {
    TenantRegistry registry;
    const auto ring =
        KeyRing::make(parse_keys(keys, "keys").value(), registry, "a secret of some length");
    fixture_.engine().set_tenants(registry.tenants());
    fixture_.state().set_keys(ring);
  }

  HttpReply post(const std::string& key, const std::string& path, const Json& body) {
    return fixture_.send({.method = "POST",
                          .path = path,
                          .content_type = "application/json",
                          .body = body.dump(),
                          .authorization = "Bearer " + key});
  }
  // The reply must be 200.
  Json ask(const std::string& key, const std::string& path, const Json& body) {
    const HttpReply reply = post(key, path, body);
    EXPECT_EQ(reply.status, 200) << reply.body;
    return Json::parse(reply.body);
  }

  StoryFixture fixture_;
};

}  // namespace pagoda::server
