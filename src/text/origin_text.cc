#include "text/origin_text.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace pagoda::text {

OriginText::OriginText(std::string bytes, Origin origin) : bytes_(std::move(bytes)) {
  extend_runs(origin);
}

std::size_t OriginText::run_at(std::size_t at) const {
  const auto found =
      std::upper_bound(runs_.begin(), runs_.end(), at,
                       [](std::size_t byte, const Run& run) { return byte < run.end; });
  return static_cast<std::size_t>(found - runs_.begin());
}

Origin OriginText::origin_at(std::size_t at) const {
  ASSERT(at < bytes_.size(), "no such byte");
  return runs_[run_at(at)].origin;
}

void OriginText::extend_runs(Origin origin) {
  const std::size_t covered = runs_.empty() ? 0 : runs_.back().end;
  if (covered == bytes_.size()) return;
  if (runs_.empty() || runs_.back().origin != origin) {
    runs_.push_back({bytes_.size(), origin});
  } else {
    runs_.back().end = bytes_.size();
  }
}

void OriginText::append(std::string_view bytes, Origin origin) {
  bytes_.append(bytes);
  extend_runs(origin);
}

void OriginText::append(const OriginText& other, std::size_t begin, std::size_t end) {
  ASSERT(begin <= end && end <= other.size() && &other != this, "a slice of another text");
  for (std::size_t run = other.run_at(begin); begin < end; ++run) {
    const std::size_t stop = std::min(end, other.runs_[run].end);
    append(other.bytes().substr(begin, stop - begin), other.runs_[run].origin);
    begin = stop;
  }
}

OriginText OriginText::slice(std::size_t begin, std::size_t end) const {
  OriginText part;
  part.append(*this, begin, end);
  return part;
}

void OriginText::truncate(std::size_t bytes) {
  if (bytes >= bytes_.size()) return;
  bytes_.resize(bytes);
  while (!runs_.empty() && (runs_.size() > 1 ? runs_[runs_.size() - 2].end : 0) >= bytes) {
    runs_.pop_back();
  }
  if (!runs_.empty()) runs_.back().end = bytes;
}

}  // namespace pagoda::text
