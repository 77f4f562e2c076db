#include "text/pretokenizer.h"

#include <algorithm>
#include <array>

#include "text/utf8.h"

// The patterns follow the models' own tokenizer files, with three differences that change no piece:
// `\s+` is added where it was missing, so that white space is matched rather than left between
// matches; steps are fused where one pattern can express both; quantifiers are possessive where
// backtracking could cost more than linear time.

namespace pagoda::text {
namespace {

#define PAGODA_CONTRACTIONS R"((?i:'s|'t|'re|'ve|'m|'ll|'d))"
#define PAGODA_SPACES R"(\s*[\r\n]+|\s+(?!\S)|\s+)"
// Matches words that end in lower case, then words that do not.
#define PAGODA_TITLE_LETTERS R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])"
#define PAGODA_LOWER_LETTERS R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])"
#define PAGODA_CASED_WORDS(title, lower, suffix)                                              \
  R"([^\r\n\p{L}\p{N}]?)" title "*" lower "+" suffix R"(|[^\r\n\p{L}\p{N}]?)" title "+" lower \
  "*" suffix
// The same classes without ideographs: PCRE2 cannot intersect classes, so that the rest is listed.
#define PAGODA_TITLE_NOT_HAN R"([^\p{sc:Han}\p{Ll}\p{N}\p{P}\p{S}\p{Z}\p{C}])"
#define PAGODA_LOWER_NOT_HAN R"([^\p{sc:Han}\p{Lu}\p{Lt}\p{N}\p{P}\p{S}\p{Z}\p{C}])"
#define PAGODA_CJK_AND_BELOW R"([\x{4E00}-\x{9FA5}\x{800}-\x{4E00}\x{AC00}-\x{D7FF}]+)"
#define PAGODA_CJK_AND_KANA R"([\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)"
#define PAGODA_SENTENCE_PARTS \
  R"( ?[^(\s|.,!?\x{2026}\x{3002}\x{FF0C}\x{3001}\x{964}\x{6D4}\x{60C})]+)"

constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kNewlineRuns = R"([^\n]+|\n+)";

constexpr std::string_view kQwen2Pattern = PAGODA_CONTRACTIONS
    R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|)" PAGODA_SPACES;

// The cased letters of the Latin, Greek, Cyrillic, Armenian, Georgian, Cherokee and other scripts.
constexpr std::string_view kDeepseekLetters =
    R"(\s?[)"
    R"(A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293})"
    R"(\x{295}-\x{2AF}\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386})"
    R"(\x{388}-\x{38A}\x{38C}\x{38E}-\x{3A1}\x{3A3}-\x{3F5}\x{3F7}-\x{481}\x{48A}-\x{52F})"
    R"(\x{531}-\x{556}\x{10A0}-\x{10C5}\x{13A0}-\x{13F5}\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA})"
    R"(\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77}\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15})"
    R"(\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59}\x{1F5B})"
    R"(\x{1F5D}\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4})"
    R"(\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4})"
    R"(\x{1FF6}-\x{1FFC}\x{2102}\x{2107}\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D}\x{2124})"
    R"(\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139}\x{213C}-\x{213F})"
    R"(\x{2145}-\x{2149}\x{214E}\x{2183}\x{2184}\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4})"
    R"(\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D}\x{A680}-\x{A69B}\x{A722}-\x{A76F})"
    R"(\x{A771}-\x{A787}\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06}\x{FB13}-\x{FB17})"
    R"(\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A}\x{10400}-\x{1044F}\x{104B0}-\x{104D3})"
    R"(\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2}\x{118A0}-\x{118DF})"
    R"(\x{1E900}-\x{1E943})"
    R"(]+)";

constexpr std::array<std::string_view, 1> kGpt2 = {kGpt2Pattern};
constexpr std::array<std::string_view, 1> kLlama3 = {
    PAGODA_CONTRACTIONS
    R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|)" PAGODA_SPACES};
constexpr std::array<std::string_view, 1> kQwen2 = {kQwen2Pattern};
constexpr std::array<std::string_view, 1> kQwen35 = {
    PAGODA_CONTRACTIONS
    R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|)" PAGODA_SPACES};
constexpr std::array<std::string_view, 1> kTekken = {
    PAGODA_CASED_WORDS(PAGODA_TITLE_LETTERS, PAGODA_LOWER_LETTERS,
                       "") R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|)" PAGODA_SPACES};
constexpr std::array<std::string_view, 1> kGpt4o = {PAGODA_CASED_WORDS(
    PAGODA_TITLE_LETTERS, PAGODA_LOWER_LETTERS,
    PAGODA_CONTRACTIONS "?") R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|)" PAGODA_SPACES};
constexpr std::array<std::string_view, 1> kKimiK2 = {R"(\p{sc:Han}+|)" PAGODA_CASED_WORDS(
    PAGODA_TITLE_NOT_HAN, PAGODA_LOWER_NOT_HAN,
    PAGODA_CONTRACTIONS "?") R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|)" PAGODA_SPACES};
// Fuses \p{N} with gpt-2's pattern: white space before a digit is before the end of a piece.
constexpr std::array<std::string_view, 1> kStarcoder = {
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+(?![^\s\p{N}])|\s+)"};
constexpr std::array<std::string_view, 3> kFalcon = {R"([\p{P}\$\+<=>\^~\|`]+)", kGpt2Pattern,
                                                     R"([0-9][0-9][0-9])"};
constexpr std::array<std::string_view, 6> kDeepseekLlm = {
    R"([\r\n])",
    kDeepseekLetters,
    R"(\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+)",
    R"((?<!\s)\s++\z)",
    PAGODA_CJK_AND_BELOW,
    R"(\p{N}+)"};
// The same with one digit a piece.
constexpr std::array<std::string_view, 6> kDeepseekV2 = {kDeepseekLlm[0], kDeepseekLlm[1],
                                                         kDeepseekLlm[2], kDeepseekLlm[3],
                                                         kDeepseekLlm[4], R"(\p{N})"};
constexpr std::array<std::string_view, 5> kDeepseekCoder = {
    R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", PAGODA_CJK_AND_BELOW, R"(\p{N})"};
constexpr std::array<std::string_view, 3> kDeepseekV3 = {
    R"(\p{N}{1,3})", PAGODA_CJK_AND_KANA,
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)"
    R"(| ?[\p{P}\p{S}]+[\r\n]*|)" PAGODA_SPACES};
constexpr std::array<std::string_view, 1> kBloom = {PAGODA_SENTENCE_PARTS};
constexpr std::array<std::string_view, 2> kViking = {PAGODA_SENTENCE_PARTS, R"(\p{N})"};
constexpr std::array<std::string_view, 1> kGemma4 = {kNewlineRuns};
constexpr std::array<std::string_view, 4> kDefault = {R"([\p{P}\$\+<=>\^~\|]+)", kGpt2Pattern,
                                                      R"(\p{N}+)", R"([0-9][0-9][0-9])"};
constexpr std::array<std::string_view, 1> kBailing = {
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*)"
    R"(|\s*[\r\n]|\s+(?!\S)|\s+)"};
constexpr std::array<std::string_view, 1> kSeedCoder = {
    PAGODA_CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}\r\n]+|)" PAGODA_SPACES};
constexpr std::array<std::string_view, 1> kExaoneMoe = {
    PAGODA_CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*+(?: \p{L}\p{M}*+)*+)++|\p{N})"
                        R"(| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+)"};
constexpr std::array<std::string_view, 2> kMiniCpm5 = {
    R"(\p{N}{1,3})", PAGODA_CONTRACTIONS
    R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*|)" PAGODA_SPACES};
constexpr std::array<std::string_view, 2> kLaguna = {kNewlineRuns, kQwen2Pattern};
// For texts with space marks: one piece, or pieces that begin at the marks.
constexpr std::array<std::string_view, 1> kWholeText = {R"((?s).+)"};
constexpr std::array<std::string_view, 1> kMarkedWords = {R"(\x{2581}[^\x{2581}]*|[^\x{2581}]+)"};

constexpr std::array<std::string_view, 18> kGpt2Names = {
    "gpt-2",      "phi-2",       "mpt",         "olmo",     "jais",
    "exaone4",    "modern-bert", "roberta-bpe", "trillion", "granite-docling",
    "gigachat",   "a.x-4.0",     "mellum",      "jina-es",  "jina-de",
    "jina-v2-es", "jina-v2-de",  "jina-v2-code"};
constexpr std::array<std::string_view, 8> kLlama3Names = {
    "llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "lfm2", "pixtral", "midm-2.0"};
constexpr std::array<std::string_view, 5> kLlama3PlainNames = {"dbrx", "smaug", "smaug-bpe", "glm4",
                                                               "chatglm-bpe"};
constexpr std::array<std::string_view, 9> kQwen2Names = {
    "qwen2",  "deepseek-r1-qwen", "stablelm2", "hunyuan", "megrez",
    "grok-2", "solar-open",       "kormo",     "f2llmv2"};
constexpr std::array<std::string_view, 1> kQwen35Names = {"qwen35"};
constexpr std::array<std::string_view, 1> kTekkenNames = {"tekken"};
constexpr std::array<std::string_view, 5> kGpt4oNames = {"gpt-4o", "llama4", "kanana2",
                                                         "minimax-m2", "talkie"};
constexpr std::array<std::string_view, 1> kKimiK2Names = {"kimi-k2"};
constexpr std::array<std::string_view, 9> kStarcoderNames = {"starcoder", "refact",     "command-r",
                                                             "smollm",    "codeshell",  "exaone",
                                                             "minerva",   "minerva-7b", "mellum2"};
constexpr std::array<std::string_view, 1> kFalconNames = {"falcon"};
constexpr std::array<std::string_view, 1> kDeepseekLlmNames = {"deepseek-llm"};
constexpr std::array<std::string_view, 1> kDeepseekV2Names = {"deepseek-v2"};
constexpr std::array<std::string_view, 1> kDeepseekCoderNames = {"deepseek-coder"};
constexpr std::array<std::string_view, 5> kDeepseekV3Names = {"deepseek-v3", "hunyuan-dense",
                                                              "joyai", "joyai-llm", "hy_v4"};
constexpr std::array<std::string_view, 4> kBloomNames = {"bloom", "poro", "poro-chat",
                                                         "gpt3-finnish"};
constexpr std::array<std::string_view, 1> kVikingNames = {"viking"};
constexpr std::array<std::string_view, 1> kGemma4Names = {"gemma4"};
constexpr std::array<std::string_view, 1> kDefaultNames = {"default"};
constexpr std::array<std::string_view, 3> kBailingNames = {"bailingmoe", "bailingmoe2",
                                                           "llada-moe"};
constexpr std::array<std::string_view, 1> kSeedCoderNames = {"seed-coder"};
constexpr std::array<std::string_view, 1> kExaoneMoeNames = {"exaone-moe"};
constexpr std::array<std::string_view, 1> kMiniCpm5Names = {"minicpm5"};
constexpr std::array<std::string_view, 1> kLagunaNames = {"laguna"};
constexpr std::array<std::string_view, 1> kWholeTextNames = {"whole-text"};
constexpr std::array<std::string_view, 1> kMarkedWordsNames = {"marked-words"};

constexpr bool kWholeWordsFirst = true;
constexpr bool kAddBos = true;
constexpr bool kWholeNewlinesFirst = true;

constexpr PretokenizerFamily kFamilies[] = {
    {kGpt2Names, kGpt2},
    {kLlama3Names, kLlama3, kWholeWordsFirst, kAddBos},
    {kLlama3PlainNames, kLlama3},
    {kQwen2Names, kQwen2},
    {kQwen35Names, kQwen35},
    {kTekkenNames, kTekken, kWholeWordsFirst, kAddBos},
    {kGpt4oNames, kGpt4o},
    {kKimiK2Names, kKimiK2},
    {kStarcoderNames, kStarcoder},
    {kFalconNames, kFalcon},
    {kDeepseekLlmNames, kDeepseekLlm},
    {kDeepseekV2Names, kDeepseekV2},
    {kDeepseekCoderNames, kDeepseekCoder},
    {kDeepseekV3Names, kDeepseekV3},
    {kBloomNames, kBloom},
    {kVikingNames, kViking},
    {kGemma4Names, kGemma4, false, kAddBos, kWholeNewlinesFirst},
    {kDefaultNames, kDefault},
    {kBailingNames, kBailing},
    {kSeedCoderNames, kSeedCoder},
    {kExaoneMoeNames, kExaoneMoe},
    {kMiniCpm5Names, kMiniCpm5, kWholeWordsFirst},
    {kLagunaNames, kLaguna},
    {kWholeTextNames, kWholeText},
    {kMarkedWordsNames, kMarkedWords},
};

#undef PAGODA_CONTRACTIONS
#undef PAGODA_SPACES
#undef PAGODA_TITLE_LETTERS
#undef PAGODA_LOWER_LETTERS
#undef PAGODA_CASED_WORDS
#undef PAGODA_TITLE_NOT_HAN
#undef PAGODA_LOWER_NOT_HAN
#undef PAGODA_CJK_AND_BELOW
#undef PAGODA_CJK_AND_KANA
#undef PAGODA_SENTENCE_PARTS

// Returns how many bytes at the start of `text` begin no character.
std::size_t malformed_prefix(std::string_view text) {
  std::size_t bytes = 0;
  while (bytes < text.size() && utf8_char_bytes(text.substr(bytes)) == 0) ++bytes;
  return bytes;
}

}  // namespace

std::span<const PretokenizerFamily> pretokenizer_families() { return kFamilies; }

const PretokenizerFamily* find_pretokenizer_family(std::string_view name) {
  for (const PretokenizerFamily& family : kFamilies) {
    if (std::find(family.names.begin(), family.names.end(), name) != family.names.end()) {
      return &family;
    }
  }
  return nullptr;
}

Result<Pretokenizer> Pretokenizer::compile(const PretokenizerFamily& family) {
  Pretokenizer pretokenizer;
  for (const std::string_view pattern : family.patterns) {
    ASSIGN_OR_RETURN(SplitPattern compiled, SplitPattern::compile(pattern));
    pretokenizer.patterns_.push_back(std::move(compiled));
  }
  return pretokenizer;
}

void Pretokenizer::split(std::string_view text, SplitWorkspace& workspace,
                         std::vector<std::uint32_t>& ends) const {
  ends.clear();
  workspace.bytes_longest = std::max(workspace.bytes_longest, text.size());
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t bytes = utf8_valid_prefix(text.substr(at));
    if (bytes > 0) {
      const auto base = static_cast<std::uint32_t>(at);
      split_well_formed(text.substr(at, bytes), base, workspace, ends);
    }
    at += bytes;
    const std::size_t malformed = malformed_prefix(text.substr(at));
    if (malformed > 0) ends.push_back(static_cast<std::uint32_t>(at + malformed));
    at += malformed;
  }
}

void Pretokenizer::split_well_formed(std::string_view text, std::uint32_t base,
                                     SplitWorkspace& workspace,
                                     std::vector<std::uint32_t>& ends) const {
  const std::size_t first = ends.size();
  patterns_.front().split(text, base, workspace.match, ends);
  for (std::size_t i = 1; i < patterns_.size(); ++i) {
    std::vector<std::uint32_t>& before = workspace.ends_before;
    before.assign(ends.begin() + static_cast<std::ptrdiff_t>(first), ends.end());
    ends.resize(first);
    std::uint32_t begin = base;
    for (const std::uint32_t end : before) {
      patterns_[i].split(text.substr(begin - base, end - begin), begin, workspace.match, ends);
      begin = end;
    }
  }
}

}  // namespace pagoda::text
