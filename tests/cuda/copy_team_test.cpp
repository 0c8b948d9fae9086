// The threads that fill and empty staging memory, with a bus made of memcpy.
#include "copy_team.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

namespace tessera::cuda {
namespace {

constexpr int64_t kSlots = 6;
constexpr size_t kSlotBytes = 4096;

struct Bench {
  std::vector<char> line, slots = std::vector<char>(kSlots * kSlotBytes), far;
  std::mt19937 random{7};

  CopyPieces pieces(size_t bytes, bool up) {
    line.resize(bytes);
    far.resize(bytes);
    for (char& c : up ? line : far) c = static_cast<char>(random());
    std::memset((up ? far : line).data(), 0, bytes);
    CopyPieces p;
    p.line = line.data();
    p.slots = slots.data();
    p.slot_bytes = kSlotBytes;
    p.slot_count = kSlots;
    p.first_slot = static_cast<int64_t>(random() % kSlots);
    p.bytes = bytes;
    p.per_unit = 1 + static_cast<int64_t>(random() % 8);
    p.piece = 8 + random() % (kSlotBytes / static_cast<size_t>(p.per_unit) - 7);
    p.to_slots = up;
    p.past_caches = random() % 2 == 0;
    return p;
  }
  void to_far(const CopyPieces& p, int64_t unit) {
    std::memcpy(far.data() + p.offset_of(unit), p.slot_of(unit), p.size_of(unit));
  }
  void from_far(const CopyPieces& p, int64_t unit) {
    std::memcpy(p.slot_of(unit), far.data() + p.offset_of(unit), p.size_of(unit));
  }
};

bool is_done(const CopyTeam& team, const CopyPieces& p, int64_t unit) {
  for (int64_t i = p.pieces_in(unit); i < p.pieces_in(unit + 1); ++i)
    if (!team.is_done(i)) return false;
  return true;
}

// Sends up to `most` units, then gives up.
void upload(Bench& b, CopyTeam& team, const CopyPieces& p, int64_t most) {
  team.open(p);
  int64_t allowed = 0;
  for (int64_t sent = 0; sent < p.units() && sent < most;) {
    while (allowed < p.units() && allowed - sent < kSlots) team.allow(p.pieces_in(++allowed));
    if (is_done(team, p, sent))
      b.to_far(p, sent++);
    else if (team.at_work() || !team.help())
      team.relax();
  }
  team.close();
}

void download(Bench& b, CopyTeam& team, const CopyPieces& p) {
  team.open(p);
  int64_t asked = 0;
  for (int64_t taken = 0; taken < p.units();) {
    while (asked < p.units() && asked - taken < kSlots) {
      b.from_far(p, asked);
      team.allow(p.pieces_in(++asked));
    }
    if (is_done(team, p, taken))
      ++taken;
    else if (!team.help())
      team.relax();
  }
  team.close();
}

class CopyTeamTest : public testing::TestWithParam<int> {};

TEST_P(CopyTeamTest, EveryByteArrivesWhoeverTakesThePieces) {
  CopyTeam team(GetParam());
  Bench b;
  for (int round = 0; round < 100; ++round) {
    const CopyPieces up = b.pieces(1 + b.random() % 200000, true);
    upload(b, team, up, up.units());
    ASSERT_EQ(b.line, b.far) << "up, round " << round;
    const CopyPieces down = b.pieces(1 + b.random() % 200000, false);
    download(b, team, down);
    ASSERT_EQ(b.line, b.far) << "down, round " << round;
  }
}

TEST_P(CopyTeamTest, WorkGivenUpLeavesNobodyCopying) {
  CopyTeam team(GetParam());
  Bench b;
  for (int round = 0; round < 100; ++round) {
    const CopyPieces p = b.pieces(100000, true);
    upload(b, team, p, static_cast<int64_t>(b.random() % 8));
    const std::vector<char> before = b.slots;
    b.line.assign(b.line.size(), 0);  // freed or changed by its owner: nobody may read it now
    ASSERT_EQ(before, b.slots);
  }
}

INSTANTIATE_TEST_SUITE_P(Helpers, CopyTeamTest, testing::Values(0, 1, 3));

}  // namespace
}  // namespace tessera::cuda
