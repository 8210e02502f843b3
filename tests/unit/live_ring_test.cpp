// The protocol of a ring, step by step: every order in which the steps of a thread that pushes and of
// one that reads may follow each other, for a small ring.
//
// Weaker orders than these are ruled out by the fences, as live_ring.h says: a read that sees a word of
// a number makes the reader see that it was begun, which here comes before each word as well.
#include <doctest/doctest.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace {

constexpr int kSlots = 4;
constexpr int kKept = 2;
constexpr int kWords = 2;     // of a slot
constexpr int kNumbers = 12;  // that are pushed

// What both threads share, and how far each of them is.
struct State {
  uint8_t begun = 0;
  uint8_t end = 0;
  uint8_t slot[kSlots][kWords] = {};  // 1 + the number that a word is of
  uint8_t writer_step = 0;            // of the number begun: 0 begin, then words, then the end
  uint8_t reader_step = 0;            // 0: learn the end; then words; then look
  uint8_t seen_end = 0;
  uint8_t read[kKept * kWords] = {};
  uint8_t retries = 0;

  std::string key() const { return std::string(reinterpret_cast<const char*>(this), sizeof *this); }
  int first() const { return seen_end > kKept ? seen_end - kKept : 0; }
  int wordsToRead() const { return (seen_end - first()) * kWords; }
};

struct Explorer {
  int slack = 0;  // numbers by which the reader's last look is too kind
  std::set<std::string> known;
  int64_t accepted = 0;
  int64_t retried = 0;
  int64_t wrong = 0;

  void explore(const State& s) {
    if (!known.insert(s.key()).second) return;
    if (s.end < kNumbers) explore(write(s));
    if (s.reader_step <= kKept * kWords + 1) explore(read(s));
  }

  static State write(State s) {
    const int number = s.end;
    if (s.writer_step == 0) {
      s.begun = static_cast<uint8_t>(number + 1);
    } else if (s.writer_step <= kWords) {
      s.slot[number % kSlots][s.writer_step - 1] = static_cast<uint8_t>(number + 1);
    } else {
      s.end = static_cast<uint8_t>(number + 1);
      s.writer_step = 0;
      return s;
    }
    ++s.writer_step;
    return s;
  }

  State read(State s) {
    constexpr uint8_t kDone = kKept * kWords + 2;
    if (s.reader_step == 0) {
      s.seen_end = s.end;
      s.reader_step = 1;
      return s;
    }
    const int word = s.reader_step - 1;
    if (word < s.wordsToRead()) {
      // From the newest back, as the reader does.
      const int number = s.seen_end - 1 - word / kWords;
      s.read[word] = s.slot[number % kSlots][word % kWords];
      ++s.reader_step;
      return s;
    }
    if (s.begun > s.first() + kSlots + slack) {  // look again
      ++retried;
      s.reader_step = 0;
      ++s.retries;
      return s;
    }
    ++accepted;
    for (int i = 0; i < s.wordsToRead(); ++i) {
      if (s.read[i] != s.seen_end - i / kWords) ++wrong;
    }
    s.reader_step = kDone;
    return s;
  }
};

}  // namespace

TEST_CASE("live ring: every order of the steps of a push and a look") {
  Explorer explorer = {};
  explorer.explore({});
  CHECK(explorer.wrong == 0);
  CHECK(explorer.accepted > 100);
  CHECK(explorer.retried > 10);
}

TEST_CASE("live ring: a look that misses a number is found out") {
  Explorer explorer = {};
  explorer.slack = 1;
  explorer.explore({});
  CHECK(explorer.wrong > 0);
}
