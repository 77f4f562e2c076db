// Prompts without a model: text is a sequence of symbols, numbers without meaning, that become
// token ids where the server takes ids, and words where it does not. Equal symbols are equal text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pagoda::loadgen {

// A piece of a prompt, by one side of a conversation.
struct PromptPart {
  std::vector<std::uint32_t> symbols;
  std::string text = {};  // instead of symbols: as it is
  bool from_server = false;
  bool is_system = false;  // of a chat: a message of its own
};

using LoadPrompt = std::vector<PromptPart>;

enum class PromptForm : std::uint8_t {
  kIds,       // "prompt": [301, 302]
  kWords,     // "prompt": "one two"
  kMessages,  // "messages": [{"role": "user", "content": "one two"}]
};

// Inclusive; the default is in every vocabulary and clear of the special tokens of most.
struct IdRange {
  std::uint32_t first = 300;
  std::uint32_t last = 499;
};

std::vector<std::uint32_t> random_symbols(std::uint64_t seed, std::uint64_t stream,
                                          std::uint32_t count);

// About a token each: short English words, a space before every one but the first.
std::string words_of(const std::vector<std::uint32_t>& symbols);

// The member of a request's JSON that holds the prompt. Text that is given as it is cannot be ids:
// such a prompt is written as words.
std::string prompt_member(const LoadPrompt& prompt, PromptForm form, const IdRange& ids);

}  // namespace pagoda::loadgen
