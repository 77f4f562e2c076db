// What the flags of a server say of who may ask it, besides keys.
#pragma once

#include <string>
#include <vector>

namespace pagoda::server {

struct AccessRules {
  std::vector<std::string> cors_origins = {};  // "https://chat.example.com"; "*": all
  // What may stand in Host besides addresses and localhost; "*": all.
  std::vector<std::string> own_names = {};
  bool checks_host_with_keys = false;  // without keys it is always checked
  bool metrics_need_admin = false;
};

}  // namespace pagoda::server
