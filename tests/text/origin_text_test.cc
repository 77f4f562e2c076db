#include "text/origin_text.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace pagoda::text {
namespace {

constexpr Origin kTemplate{};
constexpr Origin kUser{Source::kUser, 3};

// Expands runs to one origin per byte.
std::vector<Origin> by_byte(const OriginText& text) {
  std::vector<Origin> origins;
  for (const OriginText::Run& run : text.runs()) origins.resize(run.end, run.origin);
  return origins;
}

void check(const OriginText& text) {
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.runs().size(); ++i) {
    EXPECT_GT(text.runs()[i].end, begin) << "an empty run";
    if (i > 0) {
      EXPECT_NE(text.runs()[i].origin, text.runs()[i - 1].origin) << "runs that could be one";
    }
    begin = text.runs()[i].end;
  }
  EXPECT_EQ(begin, text.size()) << "bytes without an origin";
}

TEST(OriginText, NeighboursOfOneOriginAreOneRun) {
  OriginText text("ab", kTemplate);
  text.append("cd", kTemplate);
  text.append("", kUser);
  text.append("ef", kUser);
  ASSERT_EQ(text.runs().size(), 2U);
  EXPECT_EQ(text.runs()[0], (OriginText::Run{4, kTemplate}));
  EXPECT_EQ(text.runs()[1], (OriginText::Run{6, kUser}));
  EXPECT_EQ(text.origin_at(3), kTemplate);
  EXPECT_EQ(text.origin_at(4), kUser);
}

TEST(OriginText, EveryOperationKeepsTheOriginOfEveryByte) {
  std::mt19937 random(5);
  for (int round = 0; round < 500; ++round) {
    OriginText text;
    std::string bytes;
    std::vector<Origin> origins;
    for (int step = 0; step < 20; ++step) {
      const std::string piece(random() % 4, static_cast<char>('a' + random() % 26));
      const Origin origin{static_cast<Source>(random() % 3),
                          static_cast<std::uint32_t>(random() % 2)};
      if (random() % 3 == 0 && !bytes.empty()) {
        const std::size_t begin = random() % bytes.size();
        const std::size_t end = begin + random() % (bytes.size() - begin + 1);
        const OriginText part = text.slice(begin, end);
        check(part);
        EXPECT_EQ(part.bytes(), bytes.substr(begin, end - begin));
        text.append(part);
        bytes += bytes.substr(begin, end - begin);
        const std::vector<Origin> copied(origins.begin() + static_cast<std::ptrdiff_t>(begin),
                                         origins.begin() + static_cast<std::ptrdiff_t>(end));
        origins.insert(origins.end(), copied.begin(), copied.end());
      } else if (random() % 8 == 0) {
        const std::size_t kept = random() % (bytes.size() + 2);
        text.truncate(kept);
        bytes.resize(std::min(kept, bytes.size()));
        origins.resize(bytes.size());
      } else {
        text.append(piece, origin);
        bytes += piece;
        origins.resize(bytes.size(), origin);
      }
      check(text);
      ASSERT_EQ(text.bytes(), bytes);
      ASSERT_EQ(by_byte(text), origins);
    }
  }
}

}  // namespace
}  // namespace pagoda::text
