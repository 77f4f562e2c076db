#include <cmath>

#include "structured/grammar_cases.h"

namespace pagoda::structured {
namespace {

// Bytes, and an end.
std::shared_ptr<const MaskVocabulary> digit_vocabulary() {
  static const auto kVocabulary = [] {
    std::vector<std::string> bytes;
    for (int byte = 0; byte < 128; ++byte) bytes.emplace_back(1, static_cast<char>(byte));
    const std::vector<TokenId> ends = {TokenId(128)};
    return MaskVocabulary::build(std::move(bytes), ends, 129);
  }();
  return kVocabulary;
}

TEST(NumberTest, BoundsOfIntegersAreExact) {
  const std::vector<std::pair<int, int>> ranges = {{0, 0},    {-5, 7},   {3, 3},   {9, 10},
                                                   {95, 108}, {-99, -9}, {-1, 0},  {17, 1234},
                                                   {1, 100},  {-20, -3}, {10, 99}, {999, 1001}};
  for (const auto& [low, high] : ranges) {
    const auto grammar = schema_grammar(R"({"type":"integer","minimum":)" + std::to_string(low) +
                                        R"(,"maximum":)" + std::to_string(high) + "}");
    ASSERT_TRUE(grammar.ok());
    for (int i = -1300; i <= 1300; ++i) {
      EXPECT_EQ(matches_text(*grammar.value(), std::to_string(i)), low <= i && i <= high)
          << low << " to " << high << ": " << i;
    }
  }
}

TEST(NumberTest, BoundsOfFractionsAreExact) {
  struct Bounds {
    const char* low;
    const char* high;
  };
  for (const Bounds& bounds :
       {Bounds{"0", "1"}, Bounds{"-1.5", "0.25"}, Bounds{"0.125", "0.25"}, Bounds{"-2", "-0.75"},
        Bounds{"0.75", "2.25"}, Bounds{"1.5", "1.5"}, Bounds{"-0.25", "0"}, Bounds{"3", "12"}}) {
    for (const bool excluded : {false, true}) {
      const std::string prefix = excluded ? "exclusiveM" : "m";
      const auto grammar =
          schema_grammar(R"({"type":"number",")" + prefix + R"(inimum":)" + bounds.low + ",\"" +
                         prefix + R"(aximum":)" + bounds.high + "}");
      const double low = std::stod(bounds.low);
      const double high = std::stod(bounds.high);
      if (excluded && low == high) {
        EXPECT_FALSE(grammar.ok());
        continue;
      }
      ASSERT_TRUE(grammar.ok()) << grammar.error().message;
      for (int i = -3 * 32; i <= 13 * 32; ++i) {
        const double value = i / 32.0;  // has at most five digits behind the point
        std::string text = nlohmann::json(value).dump();
        if (text == "-0.0") text = "0.0";
        const bool fits = excluded ? low < value && value < high : low <= value && value <= high;
        EXPECT_EQ(matches_text(*grammar.value(), text), fits)
            << bounds.low << " to " << bounds.high << (excluded ? " excluded: " : ": ") << text;
      }
    }
  }
}

TEST(NumberTest, MultiplesAreExact) {
  for (const int divisor : {1, 2, 3, 7, 10, 100, 512}) {
    const auto grammar =
        schema_grammar(R"({"type":"integer","multipleOf":)" + std::to_string(divisor) + "}");
    ASSERT_TRUE(grammar.ok());
    for (int i = -2000; i <= 2000; ++i) {
      EXPECT_EQ(matches_text(*grammar.value(), std::to_string(i)), i % divisor == 0)
          << divisor << ": " << i;
    }
  }
  expect_cases(
      {{R"({"type":"number","multipleOf":0.01,"minimum":0})",
        {"0", "0.1", "12.34", "5"},
        {"0.001", "-1", "1.234", "1."}},
       {R"({"type":"number","multipleOf":0.01})",
        {"0", "-0.01", "0.1", "0.12", "-12.34"},
        {"0.012", "0.001", "-0.012", "-0.0"}},
       {R"({"type":"number","multipleOf":0.01,"exclusiveMinimum":0})",
        {"0.01", "0.1", "0.12", "7"},
        {"0", "0.0", "0.00", "0.012", "0.001", "0.101"}},
       {R"({"type":"integer","multipleOf":5,"minimum":-7,"maximum":11})",
        {"-5", "0", "5", "10"},
        {"-10", "15", "3"}},
       {R"({"type":"number","multipleOf":0.25})",
        {"0", "0.25", "-0.5", "0.50", "12", "-7.75", "100000000000000000.25"},
        {"0.2", "0.255", "0.125", "-0", "0.0", "01", "1.", ".5", "7.7"}},
       {R"({"type":"number","multipleOf":2.5,"minimum":-5,"maximum":7.5})",
        {"-5", "-2.5", "0", "7.5"},
        {"-7.5", "10", "1", "2.50"}},
       {R"({"type":"number","multipleOf":0.05,"exclusiveMinimum":0})",
        {"0.05", "0.1", "3.15"},
        {"0", "-0.05", "0.01", "0.00"}},
       {R"({"type":"integer","multipleOf":7,"minimum":0})", {"0", "7", "700"}, {"-7", "8"}},
       {R"({"type":"integer","multipleOf":7,"exclusiveMaximum":0})",
        {"-7", "-700"},
        {"0", "7", "-8"}}},
      schema_grammar);
}

// In hundredths and thousandths, as whole numbers.
TEST(NumberTest, MultiplesOfFractionsAreExact) {
  const auto text = [](int value, int places) {
    std::string digits = std::to_string(std::abs(value));
    while (static_cast<int>(digits.size()) <= places) digits.insert(0, "0");
    digits.insert(digits.size() - static_cast<std::size_t>(places), ".");
    return (value < 0 ? "-" : "") + digits;
  };
  for (const auto& [unit, divisor, places] : std::vector<std::tuple<std::string, int, int>>{
           {"0.25", 25, 2}, {"0.3", 3, 1}, {"1.5", 15, 1}, {"0.125", 125, 3}, {"0.06", 6, 2}}) {
    const auto grammar = schema_grammar(R"({"type":"number","multipleOf":)" + unit + "}");
    ASSERT_TRUE(grammar.ok()) << grammar.error().message;
    for (int i = -3000; i <= 3000; ++i) {
      if (i == 0) continue;
      EXPECT_EQ(matches_text(*grammar.value(), text(i, places)), i % divisor == 0)
          << unit << ": " << text(i, places);
    }
  }
}

// A model that writes digits for ever comes to an end, and there the number is a multiple.
TEST(NumberTest, MultiplesHaveAsManyDigitsAsOtherIntegers) {
  for (const int divisor : {2, 3, 7, 100, 499, 512}) {
    const auto grammar =
        schema_grammar(R"({"type":"integer","multipleOf":)" + std::to_string(divisor) + "}");
    ASSERT_TRUE(grammar.ok());
    const std::int64_t most = 999'999'999'999'999'999 / divisor * divisor;
    EXPECT_TRUE(matches_text(*grammar.value(), std::to_string(most))) << divisor;
    EXPECT_TRUE(matches_text(*grammar.value(), std::to_string(-most))) << divisor;
    EXPECT_FALSE(matches_text(*grammar.value(), std::to_string(most) + "0")) << divisor;
    for (const char digit : {'0', '3', '7', '9'}) {
      Matcher matcher(grammar.value(), digit_vocabulary());
      ASSERT_TRUE(matcher.accept(TokenId('1')).ok());
      std::vector<MaskWord> mask(digit_vocabulary()->words());
      std::string text = "1";
      while (true) {
        ASSERT_TRUE(matcher.fill_mask(mask).ok()) << divisor << ": " << text;
        // The digit, or the next one that is allowed.
        char next = 0;
        for (char i = 0; i < 10 && next == 0; ++i) {
          const char other = static_cast<char>('0' + (digit - '0' + i) % 10);
          if (has_mask_bit(mask, static_cast<unsigned char>(other))) next = other;
        }
        if (next == 0) break;
        ASSERT_TRUE(matcher.accept(TokenId(static_cast<unsigned char>(next))).ok());
        text += next;
      }
      EXPECT_LE(text.size(), 18U);
      EXPECT_EQ(std::stoll(text) % divisor, 0) << text;
    }
  }
}

TEST(NumberTest, BoundsBeyondAllNumbersMatchNothingOrEverything) {
  expect_cases(
      {{R"({"type":"integer","maximum":1e30})", {"999999999999999999", "-1"}, {"1.5"}},
       {R"({"type":"integer","minimum":-1e30,"exclusiveMaximum":0.5})", {"0", "-3"}, {"1"}},
       {R"({"type":"integer"})",
        {"1189998819991197253", "-9223372036854775807", "999999999999999999"},
        {"9223372036854775808", "12345678901234567890"}},
       {R"({"type":"integer","minimum":1e18})",
        {"1000000000000000000", "9223372036854775807"},
        {"999999999999999999", "9223372036854775808"}},
       {R"({"type":"integer","exclusiveMaximum":9223372036854775807})",
        {"9223372036854775806", "-1"},
        {"9223372036854775807"}},
       {R"({"type":"number","minimum":1e17})",
        {"100000000000000000", "999999999999999999.5"},
        {"1", "99999999999999999"}}},
      schema_grammar);
  expect_errors(
      {{R"({"type":"integer","minimum":1e30})", "integers are those from"},
       {R"({"type":"number","maximum":-1e30})", "nothing matches"},
       {R"({"type":"number","maximum":1e300})", "/maximum: the number has too many digits"}},
      schema_grammar);
}

// Clients read numbers as doubles: what is rounded to a bound is on it.
TEST(NumberTest, AnExcludedBoundIsNotMetAfterRounding) {
  expect_cases({{R"({"type":"number","exclusiveMaximum":1})",
                 {"0.99999999999999", "0", "-3.5", "0.5"},
                 {"1", "1.0", "0.99999999999999999"}},
                {R"({"type":"number","exclusiveMinimum":100})",
                 {"100.000000000001", "101"},
                 {"100", "100.00000000000000001"}},
                {R"({"type":"number","exclusiveMaximum":0.3,"minimum":0})",
                 {"0.2", "0.299999999999999"},
                 {"0.3", "0.29999999999999999"}},
                {R"({"type":"number","maximum":1})", {"1", "0.99999999999999999"}, {"1.5"}}},
               schema_grammar);
}

}  // namespace
}  // namespace pagoda::structured
