#include "inspect/store_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>
#include <vector>

#include "base/byte_size.h"
#include "base/clock.h"
#include "store/disk/slab.h"
#include "store/disk/survey.h"
#include "terminal/interrupt.h"
#include "terminal/json_text.h"
#include "terminal/progress_bar.h"

namespace pagoda::inspect {
namespace {

using Json = nlohmann::ordered_json;
using store::SlabSurvey;

constexpr std::size_t kListedMax = 8;  // spaces and owners shown to people

std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes) text += fmt::format("{:02x}", std::to_integer<int>(byte));
  return text;
}

std::string name_of(const kv::SpaceId& space) { return hex(space.digest); }

std::string name_of(const kv::OwnerTag& owner) {
  return owner == kv::OwnerTag{} ? "public" : hex(owner.bytes);
}

double age_s(std::uint64_t then_us) {
  const std::uint64_t now_us = store::wall_clock_us();
  return now_us > then_us ? static_cast<double>(now_us - then_us) * 1e-6 : 0;
}

std::string age_text(std::uint64_t then_us) {
  const double seconds = age_s(then_us);
  if (seconds < 120) return fmt::format("{:.0f} s", seconds);
  if (seconds < 7200) return fmt::format("{:.0f} min", seconds / 60);
  if (seconds < 172800) return fmt::format("{:.0f} h", seconds / 3600);
  return fmt::format("{:.0f} days", seconds / 86400);
}

// A space with its numerics and KV format, where they are known.
std::string titled(const std::string& space, const std::map<std::string, std::string>& formats) {
  const auto known = formats.find(space);
  return known == formats.end() ? space : fmt::format("{} ({})", space, known->second);
}

std::map<std::string, std::string> formats_of(const store::SpaceNames& spaces) {
  std::map<std::string, std::string> formats;
  for (const auto& [space, text] : spaces) formats.emplace(name_of(space), text);
  return formats;
}

// Most pages first.
template <class Id>
std::vector<std::pair<std::string, std::uint64_t>> ranked(const std::map<Id, std::uint64_t>& ids) {
  std::vector<std::pair<std::string, std::uint64_t>> rows;
  for (const auto& [id, pages] : ids) rows.emplace_back(name_of(id), pages);
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return rows;
}

template <class Id>
std::string listed(std::string_view title, const std::map<Id, std::uint64_t>& ids,
                   const std::map<std::string, std::string>& formats = {}) {
  std::string text = fmt::format("  {:<12}{}\n", title, format_grouped(ids.size()));
  const auto rows = ranked(ids);
  for (std::size_t i = 0; i < std::min(rows.size(), kListedMax); ++i) {
    text += fmt::format("    {:<34}{:>12} pages\n", titled(rows[i].first, formats),
                        format_grouped(rows[i].second));
  }
  if (rows.size() > kListedMax) text += fmt::format("    and {} more\n", rows.size() - kListedMax);
  return text;
}

std::string slab_text(const SlabSurvey& slab, bool is_verified,
                      const std::map<std::string, std::string>& formats) {
  std::string text =
      fmt::format("\npages of {} bytes, blocks of {} tokens: {}{}\n",
                  format_grouped(slab.geometry.page_bytes), slab.geometry.block_tokens,
                  slab.cipher == store::Cipher::kNone ? "not encrypted" : "AES-256-GCM",
                  slab.was_closed ? "" : "; not closed cleanly, or in use");
  text += fmt::format("  {:<12}{} of {} slots\n", "pages", format_grouped(slab.pages),
                      format_grouped(slab.slots));
  text += fmt::format("  {:<12}{} on disk\n", "bytes",
                      format_byte_size(static_cast<double>(slab.bytes_on_disk)));
  if (slab.pages > 0) {
    text += fmt::format("  {:<12}{} to {} ago\n", "last used", age_text(slab.newest_use_us),
                        age_text(slab.oldest_use_us));
    text += listed("spaces", slab.pages_by_space, formats) + listed("owners", slab.pages_by_owner);
  }
  if (is_verified) {
    text += fmt::format("  {:<12}{} whole, {} damaged, {} stale, {} not readable\n", "verified",
                        format_grouped(slab.pages_whole), format_grouped(slab.pages_damaged),
                        format_grouped(slab.pages_stale), format_grouped(slab.pages_unread));
  }
  return text;
}

template <class Id>
Json counts_json(const std::map<Id, std::uint64_t>& ids) {
  Json json = Json::object();
  for (const auto& [name, pages] : ranked(ids)) json[name] = pages;
  return json;
}

Json slab_json(const SlabSurvey& slab, bool is_verified,
               const std::map<std::string, std::string>& formats) {
  Json json = {{"page_bytes", slab.geometry.page_bytes},
               {"block_tokens", slab.geometry.block_tokens},
               {"slot_bytes", slab.geometry.slot_bytes()},
               {"encrypted", slab.cipher != store::Cipher::kNone},
               {"closed_cleanly", slab.was_closed},
               {"slots", slab.slots},
               {"pages", slab.pages},
               {"bytes_on_disk", slab.bytes_on_disk},
               {"pages_by_space", counts_json(slab.pages_by_space)},
               {"pages_by_owner", counts_json(slab.pages_by_owner)}};
  for (const auto& [space, pages] : slab.pages_by_space) {
    const auto known = formats.find(name_of(space));
    if (known != formats.end()) json["formats_by_space"][known->first] = known->second;
  }
  if (slab.pages > 0) {
    json["newest_use_seconds_ago"] = age_s(slab.newest_use_us);
    json["oldest_use_seconds_ago"] = age_s(slab.oldest_use_us);
  }
  if (is_verified) {
    json["verified"] = {{"whole", slab.pages_whole},
                        {"damaged", slab.pages_damaged},
                        {"stale", slab.pages_stale},
                        {"not_readable", slab.pages_unread}};
  }
  return json;
}

}  // namespace

Result<bool> inspect_store(const StoreInspection& inspection) {
  const SteadyClock clock;
  const terminal::Interrupt interrupt;
  terminal::ProgressBar progress("verifying", "pages", clock);
  store::SurveyOptions options;
  options.path = inspection.path;
  options.verify = inspection.verify;
  options.go_on = [&](std::uint64_t done, std::uint64_t all) {
    progress.show(done, all);
    return !interrupt.requested();
  };
  ASSIGN_OR_RETURN(const store::StoreSurvey survey, store::survey_store(options));
  progress.clear();
  const std::map<std::string, std::string> formats = formats_of(survey.spaces);
  bool is_whole = true;
  Json slabs = Json::array();
  std::string text =
      fmt::format("{}{}\n", inspection.path, survey.is_in_use ? ": in use by another process" : "");
  for (const SlabSurvey& slab : survey.slabs) {
    is_whole = is_whole && slab.pages_damaged == 0 && slab.pages_unread == 0;
    slabs.push_back(slab_json(slab, inspection.verify, formats));
    text += slab_text(slab, inspection.verify, formats);
  }
  const Json json = {
      {"path", inspection.path}, {"in_use", survey.is_in_use}, {"slabs", std::move(slabs)}};
  fmt::print("{}", inspection.json ? terminal::json_text(json) + "\n" : text);
  return is_whole;
}

}  // namespace pagoda::inspect
