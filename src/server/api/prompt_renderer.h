// Renders a conversation and tokenises it, whole or without the turns that do not fit.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "chat/turns.h"
#include "server/api/chat_prompt.h"
#include "server/api/truncation.h"
#include "server/reading_memory.h"
#include "server/served_model.h"
#include "text/chat_template.h"
#include "text/memory_account.h"
#include "text/origin_text.h"
#include "text/prompt_tokens.h"

namespace pagoda::server {

struct RenderedPrompt {
  text::OriginText text;
  text::PromptTokens tokens;
  std::optional<PromptTruncation> truncated = {};
};

// The messages of a conversation that may be dropped. They are found before calls become text,
// because results then no longer name the call that they belong to.
struct DroppableMessages {
  std::vector<chat::MessageRange> ranges = {};
  std::size_t added = 0;  // messages that were put in front of the client's since

  static DroppableMessages of(const Json& messages, TruncationType type);
  void add_in_front(std::size_t messages);
};

// Counts the memory of one attempt at a time: the next has what the last one gave back.
class ReusedMemory final : public text::MemoryAccount {
 public:
  explicit ReusedMemory(ReadingMemory& memory) : memory_(memory) {}

  void begin_attempt() { used_ = 0; }
  bool take(std::uint64_t bytes) override {
    used_ += bytes;
    const std::uint64_t more = used_ - std::min(used_, held_);
    if (!memory_.take(more)) return false;
    held_ += more;
    return true;
  }

 private:
  ReadingMemory& memory_;
  std::uint64_t used_ = 0;
  std::uint64_t held_ = 0;
};

// The arguments must outlive it; the model has a chat template.
class PromptRenderer {
 public:
  PromptRenderer(const ServedModel& model, const ReadingTerms& terms,
                 text::Conversation& conversation)
      : model_(model), terms_(terms), conversation_(conversation), memory_(terms.memory) {}

  // Returns nothing when the prompt is too long, also without all of `droppable`, which go in their
  // order where the limits allow it: those that go are taken out of the conversation. Throws
  // ApiError and TakesLong.
  std::optional<RenderedPrompt> render(const PromptLimits& limits,
                                       const DroppableMessages& droppable);

 private:
  text::OriginText rendered();
  // `whole` is the prompt with all messages, where it was tokenised.
  std::optional<RenderedPrompt> without_turns(const PromptLimits& limits,
                                              const DroppableMessages& droppable,
                                              const std::optional<text::PromptTokens>& whole);

  const ServedModel& model_;
  const ReadingTerms& terms_;
  text::Conversation& conversation_;
  ReusedMemory memory_;
};

}  // namespace pagoda::server
