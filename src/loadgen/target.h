// The server that is asked, and how a request for it is written.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "loadgen/workload.h"
#include "net/url.h"

namespace pagoda::loadgen {

struct Target {
  net::Url url;
  bool verify = true;  // the certificate, against the system's authorities
  std::string api_key = {};
};

// As net::parse_url.
Result<Target> parse_target(const std::string& text, const std::string& argument);

// How completions are asked for.
struct CompletionForm {
  bool chat = false;  // /v1/chat/completions
  bool stream = true;
  bool ignore_eos = true;  // outputs are as long as asked; servers that do not know it pass over it
  double temperature = 0;
  PromptForm prompts = PromptForm::kWords;
  IdRange ids = {};
  std::string model = {};
  bool sends_sessions = false;  // a planned session goes along as "prompt_cache_key"
};

// Whole requests, header and body, that leave the connection open.
std::string get_request(const Target& target, const std::string& path);
std::string post_request(const Target& target, const std::string& path, const std::string& body);
std::string completion_request(const Target& target, const CompletionForm& form,
                               const PlannedRequest& planned);

}  // namespace pagoda::loadgen
