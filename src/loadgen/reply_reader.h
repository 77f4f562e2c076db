// Bytes of a server to one HTTP/1.1 reply after another. Knows no socket; bytes may come cut
// anywhere.
//
//   kHead -> kBody -> kDone
//       `-------`---> kBroken
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace pagoda::loadgen {

class ReplyReader {
 public:
  enum class State : std::uint8_t { kHead, kBody, kDone, kBroken };

  // Appends what belongs to the body to `body`. What follows a reply that is done is not read.
  void put(std::string_view bytes, std::string& body);
  // The server has closed the connection; for some replies that is their end.
  void end();

  State state() const { return state_; }
  bool has_begun() const { return state_ != State::kHead || !head_.empty(); }
  int status() const { return status_; }  // from kBody on
  bool keeps_alive() const { return keeps_alive_ && framing_ != Framing::kUntilClose; }

 private:
  enum class Framing : std::uint8_t { kLength, kChunked, kUntilClose };
  // Where in a chunk: its size, its bytes, the line end behind them, the lines behind the last.
  enum class ChunkState : std::uint8_t { kSize, kBytes, kBytesEnd, kTrailer };

  std::string_view take_head(std::string_view bytes);
  bool read_head();
  void read_field(std::string_view name, std::string_view value);
  std::string_view take_chunked(std::string_view bytes, std::string& body);
  // True when a whole line stands in line_, without its end.
  bool take_line(std::string_view& bytes);
  void end_line();

  State state_ = State::kHead;
  std::string head_;
  int status_ = 0;
  bool keeps_alive_ = true;
  Framing framing_ = Framing::kUntilClose;
  ChunkState chunk_state_ = ChunkState::kSize;
  std::string line_;
  std::uint64_t left_ = 0;  // of the body, or of a chunk
};

}  // namespace pagoda::loadgen
