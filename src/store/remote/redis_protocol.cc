#include "store/remote/redis_protocol.h"

#include <fmt/format.h>
#include <hiredis/hiredis.h>

#include <algorithm>
#include <cstdlib>
#include <span>

#include "base/assert.h"

namespace pagoda::store {
namespace {

constexpr std::size_t kItemBytesDefault = 512u << 20;  // proto-max-bulk-len of a Redis by default
constexpr int kElementsMax = 100'000;          // elements of one reply; SCAN is asked for far fewer
constexpr std::size_t kPieceBytes = 1u << 20;  // larger than one read of the socket
constexpr std::string_view kKeys = "pagoda1:*";
constexpr std::string_view kScanCount = "1000";

// hiredis builds replies out of Parts: no value is copied twice, and no length is trusted.
struct Part {
  int type = 0;
  std::string text;
  long long number = 0;
  std::vector<std::unique_ptr<Part>> parts;
};

void* attach(const redisReadTask* task, std::unique_ptr<Part> part) {
  part->type = task->type;
  if (task->parent == nullptr) return part.release();
  auto& siblings = static_cast<Part*>(task->parent->obj)->parts;
  siblings.push_back(std::move(part));
  return siblings.back().get();
}

void* make_text(const redisReadTask* task, char* text, std::size_t bytes) {
  auto part = std::make_unique<Part>();
  part->text.assign(text, bytes);
  return attach(task, std::move(part));
}

// A count is an int or a size_t, by hiredis' version.
template <class Count>
void* make_array(const redisReadTask* task, Count elements) {
  if (elements < 0 || elements > Count{kElementsMax}) return nullptr;
  return attach(task, std::make_unique<Part>());
}

void* make_number(const redisReadTask* task, long long number) {
  auto part = std::make_unique<Part>();
  part->number = number;
  return attach(task, std::move(part));
}

// The task still has the type of the value that is missing.
void* make_nil(const redisReadTask* task) {
  auto* const part = static_cast<Part*>(attach(task, std::make_unique<Part>()));
  part->type = REDIS_REPLY_NIL;
  return part;
}

void free_part(void* part) { std::unique_ptr<Part>{static_cast<Part*>(part)}.reset(); }

// Refuses types of RESP 3, which the store does not speak.
template <class... Arguments>
void* refuse(const redisReadTask*, Arguments...) {
  return nullptr;
}

template <class Functions>
Functions part_functions() {
  Functions functions = {};
  functions.createString = make_text;
  functions.createArray = make_array;
  functions.createInteger = make_number;
  functions.createNil = make_nil;
  functions.freeObject = free_part;
  if constexpr (requires { functions.createDouble; }) functions.createDouble = refuse;
  if constexpr (requires { functions.createBool; }) functions.createBool = refuse;
  return functions;
}

redisReplyObjectFunctions& shared_part_functions() {
  static redisReplyObjectFunctions functions = part_functions<redisReplyObjectFunctions>();
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

// SCAN replies the next cursor, then the keys.
bool flatten(Part& scan, Reply& reply) {
  if (scan.parts.size() != 2 || scan.parts[0]->type != REDIS_REPLY_STRING ||
      scan.parts[1]->type != REDIS_REPLY_ARRAY) {
    return false;
  }
  reply.items.push_back(std::move(scan.parts[0]->text));
  for (auto& key : scan.parts[1]->parts) reply.items.push_back(std::move(key->text));
  return true;
}

std::optional<Reply> as_reply(Part& part) {
  Reply reply;
  switch (part.type) {
    case REDIS_REPLY_STATUS:
      reply.kind = ReplyKind::kDone;
      return reply;
    case REDIS_REPLY_STRING:
      reply.kind = ReplyKind::kValue;
      reply.text = std::move(part.text);
      return reply;
    case REDIS_REPLY_INTEGER:
      if (part.number < 0) return std::nullopt;
      reply.kind = ReplyKind::kNumber;
      reply.number = static_cast<std::uint64_t>(part.number);
      return reply;
    case REDIS_REPLY_NIL:
      reply.kind = ReplyKind::kAbsent;
      return reply;
    case REDIS_REPLY_ERROR:
      if (part.text.starts_with("WRONGTYPE ")) {  // another program's list or set: no value
        reply.kind = ReplyKind::kAbsent;
        return reply;
      }
      reply.kind = part.text.starts_with("OOM ") ? ReplyKind::kNoRoom : ReplyKind::kRefused;
      reply.text = std::move(part.text);
      return reply;
    case REDIS_REPLY_ARRAY:
      reply.kind = ReplyKind::kList;
      if (!flatten(part, reply)) return std::nullopt;
      return reply;
    default:
      return std::nullopt;
  }
}

}  // namespace

void RedisProtocol::FreeReader::operator()(redisReader* reader) const { redisReaderFree(reader); }

RedisProtocol::RedisProtocol(const RemoteUrl& url, std::size_t item_bytes_max)
    : user_(url.user),
      password_(url.password),
      database_(url.database),
      item_bytes_max_(item_bytes_max == 0 ? kItemBytesDefault
                                          : std::min(item_bytes_max, kItemBytesDefault)),
      reader_(redisReaderCreateWithFunctions(&shared_part_functions())) {
  ASSERT(reader_ != nullptr, "memory for a parser");
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
    case Verb::kSet:
      return append({"SET", command.key, command.value, "EX", fmt::format("{}", command.ttl_s)},
                    out);
    case Verb::kErase:
      return append({"UNLINK", command.key}, out);
    case Verb::kList:
      return append({"SCAN", number, "MATCH", kKeys, "COUNT", kScanCount}, out);
    case Verb::kHead:
      return append({"GETRANGE", command.key, "0", fmt::format("{}", command.number - 1)}, out);
    case Verb::kLength:
      return append({"STRLEN", command.key}, out);
    case Verb::kGeneration:
      break;
  }
  ASSERT(false, "redis lists its keys: nobody asks it for a generation");
}

Status RedisProtocol::feed(std::string_view bytes) {
  if (redisReaderFeed(reader_.get(), bytes.data(), bytes.size()) == REDIS_OK) return ok_status();
  return Error{ErrorCode::kCorrupt, reader_->errstr};
}

Result<std::optional<Reply>> RedisProtocol::next() {
  void* found = nullptr;
  if (redisReaderGetReply(reader_.get(), &found) != REDIS_OK) {
    return Error{ErrorCode::kCorrupt, fmt::format("redis: {}", reader_->errstr)};
  }
  if (found == nullptr) {
    if (reader_->len - reader_->pos > value_bytes_max_ + kPieceBytes) {
      return Error{ErrorCode::kOutOfRange,
                   fmt::format("redis sends more than the {} bytes asked for", value_bytes_max_)};
    }
    return std::optional<Reply>();
  }
  const std::unique_ptr<Part> part(static_cast<Part*>(found));
  std::optional<Reply> reply = as_reply(*part);
  if (!reply) return Error{ErrorCode::kCorrupt, "redis sends a reply of a kind not asked for"};
  return reply;
}

}  // namespace pagoda::store
