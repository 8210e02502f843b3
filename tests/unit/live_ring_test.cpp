// The protocol of a ring, step by step: every interleaving of the steps of a pushing thread and a
// reading thread, for small rings.
//
// The pushing thread chooses freely: it appends a sample, or a copy of all samples, or replaces all
// samples by one, or resets. Names are as in live_ring.h. Its fences exclude weaker orders: a
// reader that sees a word of an entry also sees that the entry was begun, which here comes before
// each word as well; and a reader that sees an end also sees the reset before that end.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <set>
#include <string>
#include <vector>

namespace {

constexpr int kMostSlots = 8;
constexpr int kMostKept = 3;
constexpr int kMostWords = 2;  // per slot

enum class Step : uint8_t { kEnd, kFirst, kEntryFirst, kWord, kDone };

// The shared memory of both threads, and the progress of each.
struct State {
  uint8_t begun = 0;
  uint8_t end = 0;
  uint8_t first = 0;
  uint8_t slot[kMostSlots][kMostWords] = {};  // 1 + the entry that a word belongs to
  uint8_t slot_first[kMostSlots] = {};        // of the entry there: earlier ones are forgotten
  uint8_t next_first = 0;                     // of the next entries
  uint8_t written = 0;                        // words of started entries
  uint16_t forgotten = 0;                     // a bit for each end at which all were forgotten
  Step step = Step::kEnd;                     // of the reader
  uint8_t seen_end = 0;
  uint8_t seen_first = 0;
  uint8_t seen_entry_first = 0;
  uint8_t seen_words = 0;
  uint8_t read[kMostKept * kMostWords] = {};

  std::string key() const { return std::string(reinterpret_cast<const char*>(this), sizeof *this); }
};

struct Explorer {
  int kept;              // the capacity
  int words;             // per slot
  int entries;           // appended at most
  int slack = 0;         // entries by which the reader's last check is too lenient
  bool ignores = false;  // the reader ignores what the last entry says about earlier ones
  std::set<std::string> known = {};
  int64_t accepted = 0;
  int64_t empty = 0;
  int64_t retried = 0;
  int64_t wrong = 0;
  int64_t mixed = 0;

  int slots() const {
    int all = 2;
    while (all < 2 * kept) all *= 2;
    return all;
  }
  int begin(const State& s) const { return std::max<int>(s.seen_entry_first, s.seen_end - kept); }

  void explore(const State& s) {
    if (wrong + mixed > 0 || !known.insert(s.key()).second) return;
    if (s.step == Step::kDone) return;
    for (const State& next : writes(s)) explore(next);
    explore(read(s));
  }

  std::vector<State> writes(State s) const {
    if (s.begun == s.end) {
      std::vector<State> next;
      const int held = std::min<int>(s.end - s.next_first, kept);
      State forgetful = s;
      forgetful.next_first = s.end;
      forgetful.forgotten = static_cast<uint16_t>(s.forgotten | 1u << s.end);
      const auto append = [&](State to, int count) {
        if (s.end + count > entries) return;
        to.begun = static_cast<uint8_t>(s.end + count);
        to.written = 0;
        next.push_back(to);
      };
      append(s, 1);
      if (held == kept) append(s, kept);
      if (held > 0) {
        append(forgetful, 1);
        forgetful.first = s.end;
        next.push_back(forgetful);
      }
      return next;
    }
    const int entry = s.end + s.written / (words + 1);
    const int word = s.written % (words + 1);
    if (entry == s.begun) {
      s.end = s.begun;
      return {s};
    }
    if (word == words) {
      s.slot_first[entry % slots()] = s.next_first;
    } else {
      s.slot[entry % slots()][word] = static_cast<uint8_t>(entry + 1);
    }
    ++s.written;
    return {s};
  }

  State read(State s) {
    if (s.step == Step::kEnd) {
      s.seen_end = s.end;
      s.step = Step::kFirst;
      return s;
    }
    if (s.step == Step::kFirst) {
      s.seen_first = s.first;
      s.step = Step::kEntryFirst;
      return s;
    }
    if (s.step == Step::kEntryFirst) {
      if (s.seen_first >= s.seen_end) {
        ++empty;
        s.step = Step::kDone;
        return s;
      }
      if (!ignores) s.seen_entry_first = s.slot_first[(s.seen_end - 1) % slots()];
      s.step = Step::kWord;
      s.seen_words = 0;
      if (begin(s) < s.seen_end) return s;
      // The word belongs to a later entry; the last check also reports that.
      wrong += s.begun > s.seen_end - 1 + slots() ? 0 : 1;
      return lookAgain(s);
    }
    const int held = s.seen_end - begin(s);
    if (s.seen_words < held * words) {
      // From the newest entry backwards, as the reader does.
      const int entry = s.seen_end - 1 - s.seen_words / words;
      s.read[s.seen_words] = s.slot[entry % slots()][s.seen_words % words];
      ++s.seen_words;
      return s;
    }
    if (s.begun > begin(s) + slots() + slack) return lookAgain(s);
    ++accepted;
    for (int i = 0; i < s.seen_words; ++i) wrong += s.read[i] != s.seen_end - i / words ? 1 : 0;
    for (int at = begin(s) + 1; at < s.seen_end; ++at) mixed += s.forgotten >> at & 1;
    s.step = Step::kDone;
    return s;
  }

  State lookAgain(State s) {
    ++retried;
    s.step = Step::kEnd;
    s.seen_end = s.seen_first = s.seen_entry_first = s.seen_words = 0;
    std::fill(std::begin(s.read), std::end(s.read), uint8_t{0});
    return s;
  }
};

}  // namespace

TEST_CASE("live ring: every order of the steps of a push, a copy, a reset and a read") {
  for (Explorer explorer : {Explorer{1, 2, 6}, Explorer{2, 1, 7}, Explorer{3, 1, 9}}) {
    CAPTURE(explorer.kept);
    explorer.explore({});
    CHECK(explorer.wrong == 0);
    CHECK(explorer.mixed == 0);
    CHECK(explorer.accepted > 100);
    CHECK(explorer.empty > 10);
    CHECK(explorer.retried > 10);
  }
}

TEST_CASE("live ring: a check that misses an entry is detected") {
  for (Explorer explorer : {Explorer{1, 2, 6, 1}, Explorer{2, 1, 7, 1}, Explorer{3, 1, 9, 1}}) {
    CAPTURE(explorer.kept);
    explorer.explore({});
    CHECK(explorer.wrong > 0);
  }
}

TEST_CASE("live ring: a reader that takes forgotten entries is detected") {
  Explorer explorer = {2, 1, 7, 0, true};
  explorer.explore({});
  CHECK(explorer.mixed > 0);
}
