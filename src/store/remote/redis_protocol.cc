#include "store/remote/redis_protocol.h"

#include <fmt/format.h>
#include <hiredis/hiredis.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <utility>

#include "base/assert.h"

namespace pagoda::store {
namespace {

constexpr std::size_t kItemBytesDefault = 512u << 20;  // proto-max-bulk-len of a Redis by default
// Memory that the parts of one list may take: every slot of a cluster alone in its range needs half
// of it.
constexpr std::size_t kListBytesMax = 64u << 20;
constexpr long long kElementsMax = 100'000;
constexpr std::size_t kPieceBytes = 1u << 20;  // larger than one read of the socket
constexpr std::size_t kLargeValueBytes = 16u << 10;
constexpr std::size_t kLengthLineBytesMax = 24;  // '$', 20 digits, the end of line
constexpr std::size_t kSpareValueBytesMax = 8u << 20;
constexpr std::string_view kRedisLineEnd = "\r\n";
constexpr std::string_view kKeys = "pagoda1:*";
constexpr std::string_view kScanCount = "1000";

// hiredis builds our replies: no value is copied twice, and no count is trusted. A part stays where
// it is while hiredis adds to it: its next sibling comes when it is whole.
void* attach(const redisReadTask* task, Reply reply) {
  if (task->parent == nullptr) return std::make_unique<Reply>(std::move(reply)).release();
  auto& list_bytes = *static_cast<std::size_t*>(task->privdata);
  list_bytes += sizeof(Reply) + reply.text.size();
  if (list_bytes > kListBytesMax) return nullptr;
  return &static_cast<Reply*>(task->parent->obj)->parts.emplace_back(std::move(reply));
}

void* make_text(const redisReadTask* task, char* text, std::size_t bytes) {
  const std::string_view view(text, bytes);
  switch (task->type) {
    case REDIS_REPLY_STATUS:
      return attach(task, {.kind = ReplyKind::kDone});
    case REDIS_REPLY_STRING:
      return attach(task, {.kind = ReplyKind::kValue, .text = std::string(view)});
    case REDIS_REPLY_ERROR:
      if (view.starts_with("WRONGTYPE ")) {  // another program's list or set: no value
        return attach(task, {.kind = ReplyKind::kAbsent});
      }
      return attach(task,
                    {.kind = view.starts_with("OOM ") ? ReplyKind::kNoRoom : ReplyKind::kRefused,
                     .text = std::string(view)});
    default:
      return nullptr;
  }
}

// A count is an int or a size_t, by hiredis' version.
template <class Count>
void* make_array(const redisReadTask* task, Count elements) {
  if (elements < 0 || static_cast<long long>(elements) > kElementsMax) return nullptr;
  if (task->type != REDIS_REPLY_ARRAY) return nullptr;
  return attach(task, {.kind = ReplyKind::kList});
}

void* make_number(const redisReadTask* task, long long number) {
  if (number < 0) return nullptr;
  return attach(task, {.kind = ReplyKind::kNumber, .number = static_cast<std::uint64_t>(number)});
}

void* make_nil(const redisReadTask* task) { return attach(task, {.kind = ReplyKind::kAbsent}); }

void free_reply(void* reply) { std::unique_ptr<Reply>{static_cast<Reply*>(reply)}.reset(); }

// Refuses types of RESP 3, which the store does not speak.
template <class... Arguments>
void* refuse(const redisReadTask*, Arguments...) {
  return nullptr;
}

template <class Functions>
Functions reply_functions() {
  Functions functions = {};
  functions.createString = make_text;
  functions.createArray = make_array;
  functions.createInteger = make_number;
  functions.createNil = make_nil;
  functions.freeObject = free_reply;
  if constexpr (requires { functions.createDouble; }) functions.createDouble = refuse;
  if constexpr (requires { functions.createBool; }) functions.createBool = refuse;
  return functions;
}

redisReplyObjectFunctions& shared_reply_functions() {
  static redisReplyObjectFunctions functions = reply_functions<redisReplyObjectFunctions>();
  return functions;
}

void append(std::initializer_list<std::string_view> words, std::string& out) {
  constexpr std::size_t kWordsMax = 8;
  ASSERT(words.size() <= kWordsMax, "our commands are short");
  const char* texts[kWordsMax];
  std::size_t lengths[kWordsMax];
  std::size_t count = 0;
  for (const std::string_view word : words) {
    texts[count] = word.data() == nullptr ? "" : word.data();
    lengths[count++] = word.size();
  }
  char* formatted = nullptr;
  // The result is an int in hiredis 0.14, a long long in 1.2.
  const auto bytes = redisFormatCommandArgv(&formatted, static_cast<int>(count), texts, lengths);
  ASSERT(bytes >= 0, "memory for a command");
  out.append(formatted, static_cast<std::size_t>(bytes));
  redisFreeCommand(formatted);
}

}  // namespace

void RedisProtocol::FreeReader::operator()(redisReader* reader) const { redisReaderFree(reader); }

RedisProtocol::RedisProtocol(const RemoteUrl& url, std::size_t item_bytes_max)
    : user_(url.user),
      password_(url.password),
      database_(url.database),
      item_bytes_max_(item_bytes_max == 0 ? kItemBytesDefault
                                          : std::min(item_bytes_max, kItemBytesDefault)),
      reader_(redisReaderCreateWithFunctions(&shared_reply_functions())) {
  ASSERT(reader_ != nullptr, "memory for a parser");
  reader_->privdata = &list_bytes_;
  reader_->maxbuf = 0;  // values follow each other: the buffer is kept between them
}

std::size_t RedisProtocol::begin_handshake(std::string& out) {
  std::size_t replies = 1;
  if (!password_.empty()) {
    ++replies;
    if (user_.empty()) {
      append({"AUTH", password_}, out);
    } else {
      append({"AUTH", user_, password_}, out);
    }
  }
  if (database_ != 0) {
    ++replies;
    append({"SELECT", fmt::format("{}", database_)}, out);
  }
  append({"PING"}, out);
  return replies;
}

// A server that does not know a command shows its arguments: those of AUTH are a login.
Status RedisProtocol::take_handshake_reply(const Reply& reply) {
  if (reply.kind == ReplyKind::kDone) return ok_status();
  const auto shows = [&](const std::string& secret) {
    return !secret.empty() && reply.text.find(secret) != std::string::npos;
  };
  const std::string text = shows(password_) ? "it does not take the login, and its reply repeats it"
                                            : std::string(reply.text.substr(0, 200));
  return Error{ErrorCode::kUnsupported, fmt::format("redis refuses us: {}", text)};
}

void RedisProtocol::encode(const Command& command, std::string& out) {
  const std::string number = fmt::format("{}", command.number);
  switch (command.verb) {
    case Verb::kGet:
      return append({"GET", command.key}, out);
    case Verb::kHolds:
      return append({"EXISTS", command.key}, out);
    case Verb::kErase:
      return append({"UNLINK", command.key}, out);
    case Verb::kList:
      return append({"SCAN", number, "MATCH", kKeys, "COUNT", kScanCount}, out);
    case Verb::kHead:
      return append({"GETRANGE", command.key, "0", fmt::format("{}", command.number - 1)}, out);
    case Verb::kLength:
      return append({"STRLEN", command.key}, out);
    case Verb::kSlots:
      return append({"CLUSTER", "SLOTS"}, out);
    case Verb::kAsking:
      return append({"ASKING"}, out);
    case Verb::kPrimary:
      return append({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", command.key}, out);
    case Verb::kGeneration:
      break;
  }
  ASSERT(false, "redis lists its keys: nobody asks it for a generation");
}

std::size_t RedisProtocol::encode_set(std::string_view key, std::size_t value_bytes,
                                      std::uint32_t ttl_s, std::string& out) {
  const std::string begin =
      fmt::format("*5\r\n$3\r\nSET\r\n${}\r\n{}\r\n${}\r\n", key.size(), key, value_bytes);
  const std::string ttl = fmt::format("{}", ttl_s);
  const std::string end = fmt::format("\r\n$2\r\nEX\r\n${}\r\n{}\r\n", ttl.size(), ttl);
  out.resize(begin.size() + value_bytes + end.size());
  out.replace(0, begin.size(), begin);
  out.replace(begin.size() + value_bytes, end.size(), end);
  return begin.size();
}

Status RedisProtocol::feed(std::string_view bytes) {
  unread_.erase(0, std::exchange(unread_at_, 0));
  unread_ += bytes;
  return ok_status();
}

void RedisProtocol::consume(std::size_t bytes) {
  unread_at_ += bytes;
  if (unread_at_ < unread_.size()) return;
  unread_.clear();
  unread_at_ = 0;
}

Result<std::optional<Reply>> RedisProtocol::next() {
  if (!parsing_ && value_bytes_ == 0 && unread().starts_with('$')) {
    const bool is_cut = unread().size() < kLengthLineBytesMax &&
                        unread().find(kRedisLineEnd) == std::string_view::npos;
    if (is_cut) return std::optional<Reply>();
    begin_value();
  }
  return value_bytes_ > 0 ? next_value() : parse();
}

void RedisProtocol::begin_value() {
  const std::string_view text = unread();
  const std::size_t line_end = text.substr(0, kLengthLineBytesMax).find(kRedisLineEnd);
  if (line_end == std::string_view::npos) return;
  std::size_t bytes = 0;
  const auto [end, error] = std::from_chars(text.data() + 1, text.data() + line_end, bytes);
  if (error != std::errc() || end != text.data() + line_end) return;
  if (bytes < kLargeValueBytes || bytes > value_bytes_max_) return;  // hiredis' part
  consume(line_end + kRedisLineEnd.size());
  value_ = std::exchange(spare_, {});
  value_.resize(bytes + kRedisLineEnd.size());
  value_bytes_ = bytes;
  value_got_ = 0;
}

Result<std::optional<Reply>> RedisProtocol::next_value() {
  const std::size_t bytes = std::min(unread().size(), value_.size() - value_got_);
  std::copy_n(unread().begin(), bytes, value_.begin() + static_cast<std::ptrdiff_t>(value_got_));
  consume(bytes);
  value_got_ += bytes;
  if (value_got_ < value_.size()) return std::optional<Reply>();
  if (!value_.ends_with(kRedisLineEnd)) {
    return Error{ErrorCode::kCorrupt, "redis sends a value that is longer than it says"};
  }
  value_.resize(std::exchange(value_bytes_, 0));
  return std::optional(Reply{.kind = ReplyKind::kValue, .text = std::exchange(value_, {})});
}

// A reply ends where a line ends: given line by line, hiredis never has bytes of the next reply.
Result<std::optional<Reply>> RedisProtocol::parse() {
  while (!unread().empty()) {
    const std::string_view text = unread();
    const bool line_ended = after_cr_ && text.front() == '\n';
    const std::size_t line_end = line_ended ? std::string_view::npos : text.find(kRedisLineEnd);
    const std::size_t bytes = line_ended ? 1
                              : line_end == std::string_view::npos
                                  ? text.size()
                                  : line_end + kRedisLineEnd.size();
    after_cr_ = text[bytes - 1] == '\r';
    parsing_ = true;
    void* found = nullptr;
    const bool fine = redisReaderFeed(reader_.get(), text.data(), bytes) == REDIS_OK &&
                      redisReaderGetReply(reader_.get(), &found) == REDIS_OK;
    consume(bytes);
    if (!fine) {
      const bool refused = reader_->err == REDIS_ERR_OOM;  // by our own functions
      return Error{ErrorCode::kCorrupt,
                   refused ? "redis sends a reply of a kind not asked for, or without an end"
                           : fmt::format("redis: {}", reader_->errstr)};
    }
    if (found != nullptr) {
      const std::unique_ptr<Reply> reply(static_cast<Reply*>(found));
      // hiredis skips what stands where the end of a string's line must be.
      const bool ends_here = line_ended || line_end != std::string_view::npos;
      if (!ends_here || reader_->len != reader_->pos) {
        return Error{ErrorCode::kCorrupt, "redis sends a value that is longer than it says"};
      }
      parsing_ = after_cr_ = false;
      list_bytes_ = 0;
      return std::optional(std::move(*reply));
    }
    if (reader_->len - reader_->pos > value_bytes_max_ + kPieceBytes) {
      return Error{ErrorCode::kOutOfRange,
                   fmt::format("redis sends more than the {} bytes asked for", value_bytes_max_)};
    }
  }
  return std::optional<Reply>();
}

std::span<char> RedisProtocol::room() {
  if (value_bytes_ == 0 || !unread().empty()) return {};
  return std::span(value_).subspan(value_got_);
}

void RedisProtocol::recycle(std::string text) {
  if (text.capacity() >= kLargeValueBytes && text.capacity() <= kSpareValueBytesMax) {
    spare_ = std::move(text);
  }
}

}  // namespace pagoda::store
