// PolicyQuality knows what KV policies that requests name cost: each changes answers.
#pragma once

#include <cstdint>
#include <string>

#include "kv/kv_policy.h"

namespace pagoda::server {

class PolicyQuality {
 public:
  enum class Verdict : std::uint8_t { kUnmeasured, kPasses, kFails };

  struct Judgement {
    Verdict verdict = Verdict::kUnmeasured;
    bool is_refused = false;
    std::string reason = {};  // of kFails: which bound it does not keep
  };

  virtual ~PolicyQuality() = default;

  // Judges a policy beside the KV format that is served. Any thread may call this; it returns
  // within milliseconds.
  virtual Judgement judge(const kv::KvPolicy& policy) = 0;
};

}  // namespace pagoda::server
