// The server options that decide who has access, besides keys.
#pragma once

#include <string>
#include <vector>

namespace pagoda::server {

struct AccessRules {
  std::vector<std::string> cors_origins = {};  // "https://chat.example.com"; "*" allows all
  // Names that Host may carry besides addresses and localhost; "*" allows all.
  std::vector<std::string> own_names = {};
  bool checks_host_with_keys = false;  // without keys Host is always checked
  bool metrics_need_admin = false;
  bool show_prompts_to_admins = false;  // also the text of prompts with a tenant or a salt
};

}  // namespace pagoda::server
