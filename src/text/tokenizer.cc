#include "text/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "gguf/printable.h"
#include "text/byte_pair.h"
#include "text/end_tokens.h"
#include "text/nfc.h"
#include "text/pretokenizer.h"
#include "text/sentence_piece.h"
#include "text/token_offsets.h"
#include "text/unigram.h"
#include "text/vocabulary.h"
#include "text/workspace_pool.h"

namespace pagoda::text {

struct Tokenizer::State {
  Vocabulary vocabulary;
  std::vector<TokenId> end_tokens;
  bool add_bos = false;
  bool add_eos = false;
  std::optional<SpecialTokens> specials;
  std::unique_ptr<FragmentEncoder> encoder;
  std::size_t token_bytes_max = 0;
  bool normalises = false;  // text is encoded in NFC
  mutable WorkspacePool workspaces;
};

namespace {

// Returns the family that the file names, or, with a warning, the default family when that name is
// unknown.
const PretokenizerFamily& choose_family(const gguf::Metadata& metadata, Vocabulary& vocabulary) {
  const std::string& name = vocabulary.pretokenizer;
  if (vocabulary.family != TokenizerFamily::kBytePair) {
    const bool marked = name == "whole-text" || name == "marked-words";
    return *find_pretokenizer_family(marked ? std::string_view(name) : "gemma4");
  }
  const PretokenizerFamily* family = find_pretokenizer_family(name);
  if (family != nullptr) return *family;
  const std::string what =
      name.empty()
          ? std::string("tokenizer.ggml.pre is missing")
          : fmt::format("tokenizer.ggml.pre is '{}', which is unknown", gguf::printable(name, 60));
  vocabulary.warnings.push_back(
      fmt::format("{}: {}: text is cut by the default rule, which is wrong for most models",
                  metadata.source(), what));
  return *find_pretokenizer_family("default");
}

std::size_t find_token_bytes_max(const Vocabulary& vocabulary) {
  // With space marks a text may hold the mark itself, which a reader sees as one space.
  const bool has_marks = vocabulary.family != TokenizerFamily::kBytePair;
  std::size_t most = 1;
  for (std::uint32_t i = 0; i < vocabulary.size(); ++i) {
    most = std::max(most, vocabulary.bytes[i].size());
    if (has_marks) most = std::max(most, vocabulary.texts[i].size());
  }
  return most;
}

// Does the vocabulary expect a text in NFC? GGUF files do not say; those of Qwen do.
Result<bool> expects_nfc(const gguf::Metadata& metadata, const Vocabulary& vocabulary) {
  const std::string& pre = vocabulary.pretokenizer;
  const bool is_qwen =
      vocabulary.family == TokenizerFamily::kBytePair && (pre == "qwen2" || pre == "qwen35");
  return metadata.flag_or("pagoda.tokenizer.nfc", is_qwen);
}

bool needs_id(const gguf::Metadata& metadata, Vocabulary& vocabulary, bool add,
              const std::optional<TokenId>& id, std::string_view name) {
  if (!add || id.has_value()) return add;
  vocabulary.warnings.push_back(
      fmt::format("{}: {} should be added to prompts but is not defined: none is added",
                  metadata.source(), name));
  return false;
}

}  // namespace

Tokenizer::Tokenizer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Tokenizer::~Tokenizer() = default;

Result<std::unique_ptr<Tokenizer>> Tokenizer::load(const gguf::Metadata& metadata) {
  auto state = std::make_unique<State>();
  Vocabulary& vocabulary = state->vocabulary;
  ASSIGN_OR_RETURN(vocabulary, load_vocabulary(metadata));
  ASSIGN_OR_RETURN(state->end_tokens, find_end_tokens(metadata, vocabulary));
  state->specials.emplace(vocabulary);
  bool family_adds_bos = true;
  if (vocabulary.family == TokenizerFamily::kSentencePiece) {
    state->encoder = std::make_unique<SentencePieceEncoder>(vocabulary);
  } else if (vocabulary.family == TokenizerFamily::kUnigram) {
    ASSIGN_OR_RETURN(state->encoder,
                     UnigramEncoder::load(vocabulary, choose_family(metadata, vocabulary)));
  } else {
    const PretokenizerFamily& family = choose_family(metadata, vocabulary);
    family_adds_bos = family.add_bos;
    ASSIGN_OR_RETURN(state->encoder, BytePairEncoder::load(metadata, vocabulary, family));
  }
  state->add_bos = needs_id(metadata, vocabulary, vocabulary.add_bos.value_or(family_adds_bos),
                            vocabulary.bos, "BOS");
  state->add_eos =
      needs_id(metadata, vocabulary, vocabulary.add_eos.value_or(false), vocabulary.eos, "EOS");
  ASSIGN_OR_RETURN(state->normalises, expects_nfc(metadata, vocabulary));
  state->token_bytes_max =
      find_token_bytes_max(vocabulary) * (state->normalises ? kNfcBytesMax : 1);
  return std::unique_ptr<Tokenizer>(new Tokenizer(std::move(state)));
}

// Calls on_fragment(fragment) and on_special(id, offset) in the order of the text; both return
// whether to continue.
template <class OnFragment, class OnSpecial>
bool Tokenizer::encode_parts(std::string_view text, std::span<const TextRange> special,
                             const OnFragment& on_fragment, const OnSpecial& on_special) const {
  bool after_break = true;
  for (std::size_t at = 0; at < text.size();) {
    const SpecialTokens::Cut cut = state_->specials->cut(text, at, special);
    std::string_view rest = cut.before;
    while (!rest.empty()) {
      const std::string_view bytes = rest.substr(0, FragmentEncoder::kFragmentBytesMax);
      const auto begin = static_cast<std::size_t>(bytes.data() - text.data());
      if (!on_fragment(Fragment{bytes, begin, after_break})) return false;
      rest.remove_prefix(bytes.size());
      after_break = false;
    }
    if (cut.token.has_value()) {
      if (!on_special(*cut.token, cut.begin)) return false;
      after_break = !state_->vocabulary.space_prefix_at_start_only;
    }
    at = cut.next;
  }
  return true;
}

// Returns whether a fragment may fit behind `tokens` others, judging by its bytes.
bool Tokenizer::may_fit(std::string_view fragment, std::size_t tokens,
                        std::size_t tokens_max) const {
  if (tokens > tokens_max) return false;
  const std::size_t bytes_max = state_->token_bytes_max;
  const std::size_t room = tokens_max - tokens;
  if (fragment.size() / bytes_max <= room) return true;
  // A byte without a token may be dropped from the text.
  const Vocabulary& vocabulary = state_->vocabulary;
  const auto spelt = std::count_if(fragment.begin(), fragment.end(), [&](char byte) {
    return vocabulary.unknown || vocabulary.byte_tokens[static_cast<std::uint8_t>(byte)];
  });
  return static_cast<std::size_t>(spelt) / bytes_max <= room;
}

// Appends the tokens of a fragment that begins at byte `base` of the text, and where each begins,
// where `begins` is not null. Returns false when there are more than tokens_max.
bool Tokenizer::encode_fragment(const Fragment& fragment, EncodeWorkspace& workspace,
                                std::size_t tokens_max, std::vector<TokenId>& ids,
                                std::vector<std::size_t>* begins) const {
  const std::size_t before = ids.size();
  if (!may_fit(fragment.bytes, before, tokens_max)) return false;
  std::optional<NfcText> normalised;
  if (state_->normalises) normalised.emplace(fragment.bytes);
  const std::string_view bytes = normalised ? normalised->bytes() : fragment.bytes;
  state_->encoder->encode(bytes, fragment.after_break, workspace, tokens_max, ids);
  if (ids.size() > tokens_max) return false;
  if (begins == nullptr) return true;
  TokenOffsets offsets(state_->vocabulary, bytes, fragment.after_break);
  for (std::size_t i = before; i < ids.size(); ++i) {
    const std::size_t offset = offsets.next(ids[i]);
    begins->push_back(fragment.begin + (normalised ? normalised->place_of(offset) : offset));
  }
  return true;
}

std::vector<TokenId> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  return std::move(encode_within(text, options, SIZE_MAX)).value();
}

std::optional<std::vector<TokenId>> Tokenizer::encode_within(std::string_view text,
                                                             EncodeOptions options,
                                                             std::size_t tokens_max) const {
  std::vector<TokenId> tokens;
  tokens.reserve(std::min(text.size() / 3, tokens_max) + 2);
  if (options.add_bos_eos && state_->add_bos) tokens.push_back(*state_->vocabulary.bos);
  WorkspacePool::Lease workspace = state_->workspaces.borrow();
  const TextRange everywhere{0, text.size()};
  const bool whole = encode_parts(
      text, {&everywhere, options.special ? 1U : 0U},
      [&](const Fragment& fragment) {
        return encode_fragment(fragment, *workspace, tokens_max, tokens, nullptr);
      },
      [&](TokenId id, std::size_t) {
        tokens.push_back(id);
        return tokens.size() <= tokens_max;
      });
  if (options.add_bos_eos && state_->add_eos) tokens.push_back(*state_->vocabulary.eos);
  if (!whole || tokens.size() > tokens_max) return std::nullopt;
  return tokens;
}

std::optional<TokensWithOffsets> Tokenizer::encode_with_offsets_within(
    std::string_view text, std::span<const TextRange> special, std::size_t tokens_max) const {
  TokensWithOffsets tokens;
  WorkspacePool::Lease workspace = state_->workspaces.borrow();
  const bool whole = encode_parts(
      text, special,
      [&](const Fragment& fragment) {
        return encode_fragment(fragment, *workspace, tokens_max, tokens.ids, &tokens.begins);
      },
      [&](TokenId id, std::size_t place) {
        tokens.ids.push_back(id);
        tokens.begins.push_back(place);
        return tokens.ids.size() <= tokens_max;
      });
  if (!whole) return std::nullopt;
  return tokens;
}

Result<std::string> Tokenizer::decode(std::span<const TokenId> ids, bool special) const {
  std::string text;
  bool at_start = true;
  for (const TokenId id : ids) {
    if (!contains(id)) {
      return Error{ErrorCode::kOutOfRange, fmt::format("token id {} is outside the vocabulary of "
                                                       "{} tokens",
                                                       id.value(), size())};
    }
    text += visible_bytes(id, special, at_start);
  }
  return text;
}

std::string_view Tokenizer::bytes_of(TokenId id) const {
  return contains(id) ? state_->vocabulary.bytes[id.value()] : std::string_view();
}

std::string_view Tokenizer::visible_bytes(TokenId id, bool special, bool& at_start) const {
  if (!contains(id)) return {};
  const TokenType type = type_of(id);
  const bool is_special = type == TokenType::kControl || type == TokenType::kUnknown;
  if (is_special && !special) return {};
  std::string_view bytes = bytes_of(id);
  if (bytes.empty()) return bytes;
  const bool drop_space = at_start && !is_special && state_->vocabulary.add_space_prefix;
  at_start = false;
  if (drop_space && bytes.front() == ' ') bytes.remove_prefix(1);
  return bytes;
}

std::string_view Tokenizer::text_of(TokenId id) const {
  return contains(id) ? state_->vocabulary.texts[id.value()] : std::string_view();
}

std::size_t Tokenizer::token_bytes_max() const { return state_->token_bytes_max; }

std::size_t Tokenizer::size() const { return state_->vocabulary.size(); }

TokenType Tokenizer::type_of(TokenId id) const {
  ASSERT(contains(id), "token id outside the vocabulary");
  return state_->vocabulary.type(id);
}

bool Tokenizer::is_control(TokenId id) const {
  return contains(id) && type_of(id) == TokenType::kControl;
}

bool Tokenizer::ends_generation(TokenId id) const {
  return std::binary_search(state_->end_tokens.begin(), state_->end_tokens.end(), id);
}

std::span<const TokenId> Tokenizer::end_tokens() const { return state_->end_tokens; }
std::optional<TokenId> Tokenizer::bos() const { return state_->vocabulary.bos; }
std::optional<TokenId> Tokenizer::eos() const { return state_->vocabulary.eos; }
bool Tokenizer::add_bos() const { return state_->add_bos; }
bool Tokenizer::add_eos() const { return state_->add_eos; }
std::span<const std::string> Tokenizer::warnings() const { return state_->vocabulary.warnings; }

}  // namespace pagoda::text
