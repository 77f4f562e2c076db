// Counts the memory of a completion besides its body, while the request is read: prompts become
// tokens, every choice has a state, and some fields repeat the prompt in every choice of the reply.
// The count is an upper estimate that follows sizes and not numbers: many short prompts may take as
// much as a few long ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "server/api/completion_request.h"

namespace pagoda::server {

// The limit for one request, in bytes.
inline constexpr std::uint64_t kRequestMemoryMax = 256 << 20;
inline constexpr std::uint64_t kTokenIdBytes = 32;   // as JSON, value and text
inline constexpr std::uint64_t kLogprobBytes = 256;  // as JSON, value and text

class RequestMemory {
 public:
  // Counts the choices of `prompts` prompts, which need not have been read yet; the request's
  // options are read here and later. Beyond kRequestMemoryMax the constructor and add() throw
  // ApiError (400) about `field`.
  RequestMemory(const CompletionRequest& request, std::size_t prompts, std::string field);

  void add(const Prompt& prompt);
  // Counts how the request's answers are read.
  void add_answer();
  // Counts the grammar that the request has now, and a matcher a choice.
  void add_constraint();
  std::uint64_t bytes() const { return bytes_; }
  // The part of it that add_constraint() counted.
  std::uint64_t matcher_bytes() const { return matcher_bytes_; }

 private:
  void take(std::uint64_t bytes);
  std::uint64_t repeated_bytes(const Prompt& prompt) const;

  const CompletionRequest& request_;
  std::string field_;
  std::size_t prompts_;
  std::uint64_t bytes_ = 0;
  std::uint64_t matcher_bytes_ = 0;
};

}  // namespace pagoda::server
