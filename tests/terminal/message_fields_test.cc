#include "terminal/message_fields.h"

#include <gtest/gtest.h>

namespace pagoda::terminal {
namespace {

std::string shown(const MessageField& field) {
  return "<" + std::string(field.name) + "|" + std::string(field.value) + ">";
}

TEST(MessageFields, EachIsReplacedByItsWord) {
  EXPECT_EQ(with_fields("use `device=cpu`, not `block_size`", shown),
            "use <device|cpu>, not <block_size|>");
}

TEST(MessageFields, APlainFieldKeepsItsName) {
  EXPECT_EQ(with_plain_fields("`head_dim`: 9 is out of range; use `device=cpu`"),
            "head_dim: 9 is out of range; use device=cpu");
}

TEST(MessageFields, OtherTextStays) {
  for (const char* const message :
       {"", "block_size: is 8", "`", "``", "a lone ` stays", "`block_size", "`Block_size`",
        "`block size`", "`8_bits`", "`device=`", "`=cpu`", "`block_size\n`", "`device=\x1b[2J`"}) {
    EXPECT_EQ(with_fields(message, shown), message);
    EXPECT_EQ(with_plain_fields(message), message);
  }
}

}  // namespace
}  // namespace pagoda::terminal
