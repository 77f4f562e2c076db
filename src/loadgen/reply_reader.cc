#include "loadgen/reply_reader.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace pagoda::loadgen {
namespace {

constexpr std::size_t kHeadBytesMax = 64 << 10;
constexpr std::size_t kLineBytesMax = 8 << 10;

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

bool equal_words(std::string_view one, std::string_view other) {
  return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                    [](char a, char b) { return lower(a) == lower(b); });
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool parse_number(std::string_view text, int base, std::uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

void ReplyReader::put(std::string_view bytes, std::string& body) {
  while (!bytes.empty() && state_ != State::kDone && state_ != State::kBroken) {
    if (state_ == State::kHead) {
      bytes = take_head(bytes);
    } else if (framing_ == Framing::kChunked) {
      bytes = take_chunked(bytes, body);
    } else {
      const bool bounded = framing_ == Framing::kLength;
      const std::size_t count =
          bounded ? std::min<std::uint64_t>(left_, bytes.size()) : bytes.size();
      body += bytes.substr(0, count);
      bytes.remove_prefix(count);
      if (bounded && (left_ -= count) == 0) state_ = State::kDone;
    }
  }
}

void ReplyReader::end() {
  if (state_ == State::kDone) return;
  const bool whole = state_ == State::kBody && framing_ == Framing::kUntilClose;
  state_ = whole ? State::kDone : State::kBroken;
}

std::string_view ReplyReader::take_head(std::string_view bytes) {
  constexpr std::string_view kEnd = "\r\n\r\n";
  const std::size_t before = head_.size();
  head_ += bytes;
  const std::size_t end = head_.find(kEnd, before < kEnd.size() ? 0 : before - kEnd.size());
  if (end == std::string::npos) {
    if (head_.size() > kHeadBytesMax) state_ = State::kBroken;
    return {};
  }
  const std::string_view rest = bytes.substr(end + kEnd.size() - before);
  head_.resize(end + 2);
  if (!read_head()) state_ = State::kBroken;
  head_.clear();
  return rest;
}

bool ReplyReader::read_head() {
  const std::string_view head = head_;
  std::size_t at = head.find("\r\n");
  const std::string_view first = head.substr(0, at);
  std::uint64_t status = 0;
  if (!first.starts_with("HTTP/1.") || first.size() < 12 ||
      !parse_number(first.substr(9, 3), 10, status)) {
    return false;
  }
  if (status >= 100 && status < 200) return true;  // the reply itself is still to come
  status_ = static_cast<int>(status);
  keeps_alive_ = first[7] != '0';
  const bool bodiless = status == 204 || status == 304;
  framing_ = bodiless ? Framing::kLength : Framing::kUntilClose;
  left_ = 0;
  while ((at += 2) < head.size()) {
    const std::size_t end = head.find("\r\n", at);
    const std::string_view line = head.substr(at, end - at);
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) return false;
    read_field(line.substr(0, colon), trimmed(line.substr(colon + 1)));
    at = end;
  }
  state_ = framing_ == Framing::kLength && left_ == 0 ? State::kDone : State::kBody;
  return true;
}

void ReplyReader::read_field(std::string_view name, std::string_view value) {
  if (equal_words(name, "Content-Length") && framing_ != Framing::kChunked) {
    if (parse_number(value, 10, left_)) framing_ = Framing::kLength;
  } else if (equal_words(name, "Transfer-Encoding")) {
    if (equal_words(value, "chunked")) framing_ = Framing::kChunked;
  } else if (equal_words(name, "Connection")) {
    keeps_alive_ =
        equal_words(value, "keep-alive") || (keeps_alive_ && !equal_words(value, "close"));
  }
}

std::string_view ReplyReader::take_chunked(std::string_view bytes, std::string& body) {
  if (chunk_state_ == ChunkState::kBytes) {
    const std::size_t count = std::min<std::uint64_t>(left_, bytes.size());
    body += bytes.substr(0, count);
    left_ -= count;
    if (left_ == 0) chunk_state_ = ChunkState::kBytesEnd;
    return bytes.substr(count);
  }
  if (take_line(bytes)) end_line();
  return bytes;
}

bool ReplyReader::take_line(std::string_view& bytes) {
  const std::size_t end = bytes.find('\n');
  line_ += bytes.substr(0, end);
  bytes.remove_prefix(end == std::string_view::npos ? bytes.size() : end + 1);
  if (line_.size() > kLineBytesMax) state_ = State::kBroken;
  if (end == std::string_view::npos) return false;
  if (line_.ends_with('\r')) line_.pop_back();
  return true;
}

void ReplyReader::end_line() {
  const std::string_view line = line_;
  if (chunk_state_ == ChunkState::kSize) {
    const bool good = parse_number(trimmed(line.substr(0, line.find(';'))), 16, left_);
    if (!good) state_ = State::kBroken;
    chunk_state_ = left_ == 0 ? ChunkState::kTrailer : ChunkState::kBytes;
  } else if (chunk_state_ == ChunkState::kBytesEnd) {
    if (!line.empty()) state_ = State::kBroken;
    chunk_state_ = ChunkState::kSize;
  } else if (line.empty()) {
    state_ = State::kDone;
  }
  line_.clear();
}

}  // namespace pagoda::loadgen
