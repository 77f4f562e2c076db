#include "net/socket.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>

namespace pagoda::net {
namespace {

using Progress = Socket::Progress;

// Listens on a port of 127.0.0.1 that the system chooses.
class Listener {
 public:
  Listener() : descriptor_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(descriptor_, 1), 0);
    socklen_t bytes = sizeof address;
    EXPECT_EQ(::getsockname(descriptor_, reinterpret_cast<sockaddr*>(&address), &bytes), 0);
    port_ = std::to_string(ntohs(address.sin_port));
  }
  ~Listener() { close(); }

  int accept() const { return ::accept(descriptor_, nullptr, nullptr); }
  void close() {
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = -1;
  }
  const std::string& port() const { return port_; }

 private:
  int descriptor_;
  std::string port_;
};

Socket connect_to(const std::string& port) {
  const auto addresses = look_up("127.0.0.1", port);
  EXPECT_TRUE(addresses.ok());
  return Socket::connect(addresses.value().front(), "127.0.0.1", nullptr).value();
}

Result<bool> wait_until_established(Socket& socket) {
  while (true) {
    const Result<bool> established = socket.establish();
    if (!established.ok() || established.value()) return established;
    pollfd watched = {socket.descriptor(), POLLOUT, 0};
    EXPECT_EQ(::poll(&watched, 1, 5000), 1);
  }
}

Progress wait_and_read(Socket& socket, std::span<char> room, std::size_t& moved) {
  pollfd watched = {socket.descriptor(), POLLIN, 0};
  EXPECT_EQ(::poll(&watched, 1, 5000), 1);
  return socket.read(room, moved);
}

TEST(SocketTest, BytesTravelBothWaysUntilTheServerCloses) {
  const Listener listener;
  Socket socket = connect_to(listener.port());
  const int server = listener.accept();
  ASSERT_TRUE(wait_until_established(socket).ok());
  std::size_t moved = 0;
  ASSERT_EQ(socket.write("ask", moved), Progress::kMoved);
  EXPECT_EQ(moved, 3u);
  std::array<char, 8> room = {};
  EXPECT_EQ(socket.read(room, moved), Progress::kBlocked) << "nothing was answered yet";
  ASSERT_EQ(::recv(server, room.data(), room.size(), 0), 3);
  ASSERT_EQ(::send(server, "yes!", 4, 0), 4);
  ASSERT_EQ(wait_and_read(socket, room, moved), Progress::kMoved);
  EXPECT_EQ(std::string(room.data(), moved), "yes!");
  ::close(server);
  EXPECT_EQ(wait_and_read(socket, room, moved), Progress::kClosed);
}

TEST(SocketTest, APortThatNobodyListensOnIsAnErrorInWords) {
  Listener listener;
  listener.close();
  Socket socket = connect_to(listener.port());
  const Result<bool> established = wait_until_established(socket);
  ASSERT_FALSE(established.ok());
  EXPECT_EQ(established.error().message, "cannot connect: Connection refused");
}

TEST(SocketTest, AHostThatIsNotKnownIsAnError) {
  EXPECT_FALSE(look_up("no.such.host.invalid", "80").ok());
}

}  // namespace
}  // namespace pagoda::net
