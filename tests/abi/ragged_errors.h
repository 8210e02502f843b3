// Error rows of `lengths` and `batch_offsets`: the same for all operations with ragged batches.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "abi/error_table.h"

namespace support {

// The first tensor of the call is [2,rows,...], and pack() reshapes it to [2 * rows,...]. Messages
// use `noun` for its rows.
template <class Call>
class RaggedRows {
 public:
  RaggedRows(const char* noun, Seen seen, std::function<void(Call&)> prepare)
      : noun_(noun), seen_(seen), prepare_(std::move(prepare)) {
    Call call;
    rows_ = Call::tensors()[0].of(call).shape[1];
  }

  void checkShapesAndDTypes() const {
    checkShapes<Call>({{"lengths", {1}, "shape is [1], expected [2]"},
                       {"lengths", {2, 1}, "shape is [2,1], expected [2]"},
                       {"lengths", {}, "shape is [], expected [2]"},
                       {"batch_offsets", {3, 1}, "rank is 2 (shape [3,1]), expected 1"},
                       {"batch_offsets", {}, "rank is 0 (shape []), expected 1"},
                       {"batch_offsets", {0}, "shape is [0], expected [B+1]"}});
    for (const char* name : {"lengths", "batch_offsets"}) {
      checkDTypes<Call>({{name, kU32, "dtype is uint32, expected int32 or int64"},
                         {name, kF32, "dtype is float32, expected int32 or int64"},
                         {name, kF64, "dtype is float64, expected int32 or int64"}});
    }
    checkError<Call>({RBC_STATUS_INVALID_ARGUMENT,
                      "lengths: expected null with batch_offsets; lengths are for ",
                      [](Call& call) {
                        call.pack();
                        call.params.lengths = &call.lengths.raw;
                      }});
  }

  void checkLengths() const {
    const std::string expected = ", expected 0 to " + std::to_string(rows_);
    const auto refuse = [&](const std::string& found, std::initializer_list<int64_t> lengths) {
      check("lengths: " + found + expected, [&](Call& call) { put(call.lengths, lengths); });
    };
    refuse("row 1 is " + std::to_string(rows_ + 1), {rows_, rows_ + 1});
    refuse("row 0 is -1", {-1, rows_ + 1});
    if (Call().lengths.array.dtype().bits == 64) refuse("row 1 is 4294967296", {rows_, kLarge});
  }

  void checkOffsets() const {
    const int64_t total = 2 * rows_;
    const std::string past = ", past the " + std::to_string(total) + " " + noun_;
    const auto refuse = [&](const std::string& found, std::initializer_list<int64_t> offsets) {
      check("batch_offsets: " + found, [&](Call& call) {
        call.pack();
        put(call.offsets, offsets);
      });
    };
    const std::string over = std::to_string(total + 1);
    refuse(
        "decrease at index 2 (" + std::to_string(rows_) + " -> " + std::to_string(rows_ - 1) + ")",
        {0, rows_, rows_ - 1});
    refuse("index 2 is " + over + past, {0, rows_, total + 1});
    refuse("index 0 is " + over + past, {total + 1, total + 1, total + 1});
    refuse("index 0 is -1, expected 0 or more", {-1, rows_, total});
    if (Call().offsets.array.dtype().bits == 64) {
      refuse("index 1 is 4294967296" + past, {0, kLarge, total});
    }
  }

 private:
  static constexpr int64_t kLarge = int64_t{1} << 32;

  static void put(Argument& argument, std::initializer_list<int64_t> numbers) {
    int64_t i = 0;
    for (const int64_t number : numbers) {
      argument.array.set({i++}, encodeInteger(argument.array.dtype(), number));
    }
  }
  template <class Spoil>
  void check(const std::string& message, Spoil spoil) const {
    checkError<Call>({RBC_STATUS_INVALID_ARGUMENT, message,
                      [&](Call& call) {
                        if (prepare_) prepare_(call);
                        spoil(call);
                      },
                      seen_});
  }

  const char* noun_;
  Seen seen_;
  std::function<void(Call&)> prepare_;
  int64_t rows_;
};

template <class Call>
void checkRaggedRows(const char* noun, Seen seen = Seen::kByBoth,
                     std::function<void(Call&)> prepare = nullptr) {
  const RaggedRows<Call> rows(noun, seen, std::move(prepare));
  rows.checkShapesAndDTypes();
  rows.checkLengths();
  rows.checkOffsets();
}

}  // namespace support
