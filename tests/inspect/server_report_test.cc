#include "inspect/server_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace pagoda::inspect {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A reply of /cache/curve: twelve sizes, three policies.
nlohmann::ordered_json curve_reply(double low, double high) {
  nlohmann::ordered_json curve = {{"enabled", true},
                                  {"blocks", 64},
                                  {"blocks_asked", 28},
                                  {"sampling_rate", 1.0},
                                  {"policy", "lru"}};
  for (int i = 0; i < 12; ++i) {
    curve["lru"].push_back(
        {{"blocks", 4 << i}, {"bytes", 4096 << i}, {"hit_rate", i < 6 ? low : high}});
  }
  for (const char* const policy : {"lru", "fifo", "arc"}) {
    curve["policies"].push_back(
        {{"policy", policy},
         {"points", {{{"hit_rate", low}}, {{"hit_rate", low}}, {{"hit_rate", high}}}}});
  }
  return curve;
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++count;
  return count;
}

TEST(InspectServer, FiguresOfACurveStandOnce) {
  const std::string flat = curve_text(curve_reply(0.4, 0.4));
  EXPECT_EQ(count_of(flat, "40.0 %"), 2u + 3u) << flat;  // the least size and now; one row for all
  EXPECT_THAT(flat, HasSubstr("sizes that are left out have the rate of the row above them"));
  EXPECT_THAT(flat, HasSubstr("each of them"));
  const std::string steep = curve_text(curve_reply(0.1, 0.9));
  EXPECT_EQ(count_of(steep, "90.0 %"), 1u + 1u) << steep;
  nlohmann::ordered_json differing = curve_reply(0.1, 0.9);
  differing["policies"][2]["points"][1]["hit_rate"] = 0.5;
  EXPECT_THAT(curve_text(differing),
              AllOf(HasSubstr("  fifo"), HasSubstr("50.0 %"), HasSubstr("  runs")));
  differing["blocks_asked"] = 0;
  EXPECT_EQ(curve_text(differing), "");
}

TEST(InspectServer, AdviceIsALineEach) {
  nlohmann::ordered_json curve = curve_reply(0.1, 0.9);
  EXPECT_EQ(advice_text(curve), "") << "of a server that gives none";
  curve["advice"] = nlohmann::ordered_json::array();
  EXPECT_EQ(advice_text(curve), "");
  curve["advice"].push_back({{"text", "1.60 GiB more would raise hits from 61 to 74 %"}});
  curve["advice"].push_back({{"text", "int8 KV would do it in today's memory"}});
  EXPECT_EQ(advice_text(curve),
            "\nadvice     1.60 GiB more would raise hits from 61 to 74 %\n"
            "           int8 KV would do it in today's memory\n");
}

TEST(InspectServer, WhatIsRetainedStandsBesideItsLimits) {
  const nlohmann::ordered_json info = {
      {"now", {{"blocks_all", 1136}, {"blocks_free", 1000}, {"blocks_idle", 12}}}};
  nlohmann::ordered_json retained = {{"blocks_retained", 0},
                                     {"blocks_retained_max", 568},
                                     {"blocks_per_tenant_max", 0},
                                     {"grants", nlohmann::ordered_json::array()}};
  EXPECT_EQ(blocks_text(info, retained),
            "blocks     1,136 in all, 1,000 free, 12 reusable\n"
            "retained   0 (limit 568; per tenant 0: off)\n");
  retained["blocks_retained"] = 9;
  retained["blocks_per_tenant_max"] = 284;
  retained["tenants"] = {{{"tenant", "anna"}, {"blocks", 8}}, {{"tenant", "bert"}, {"blocks", 1}}};
  EXPECT_THAT(blocks_text(info, retained),
              AllOf(HasSubstr("retained   9 (limit 568; per tenant 284)\n"),
                    HasSubstr("           8 blocks of anna\n           1 block of bert\n")));
}

}  // namespace
}  // namespace pagoda::inspect
