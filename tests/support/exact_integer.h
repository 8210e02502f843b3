// Integers of any size, for references: slow and simple.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

namespace support {

class ExactInteger {
 public:
  ExactInteger() = default;
  explicit ExactInteger(int64_t value) : negative_(value < 0) {
    uint64_t rest = negative_ ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
    for (; rest != 0; rest >>= 32) digits_.push_back(static_cast<uint32_t>(rest));
  }

  // A finite x in units of 2^-1075: all doubles, and the middles between neighbours, are integers.
  static ExactInteger scaled(double x) {
    int exponent = 0;
    const double fraction = std::frexp(x, &exponent);
    ExactInteger result(static_cast<int64_t>(std::ldexp(fraction, 53)));
    return shifted(result, exponent - 53 + 1075);
  }

  friend ExactInteger operator+(const ExactInteger& a, const ExactInteger& b) {
    if (a.negative_ == b.negative_) return make(added(a.digits_, b.digits_), a.negative_);
    if (less(a.digits_, b.digits_)) return make(reduced(b.digits_, a.digits_), b.negative_);
    return make(reduced(a.digits_, b.digits_), a.negative_);
  }
  friend ExactInteger operator-(const ExactInteger& a, const ExactInteger& b) {
    return a + make(b.digits_, !b.negative_);
  }
  friend ExactInteger operator*(const ExactInteger& a, const ExactInteger& b) {
    std::vector<uint32_t> product(a.digits_.size() + b.digits_.size(), 0);
    for (size_t i = 0; i < a.digits_.size(); ++i) {
      uint64_t carry = 0;
      if (a.digits_[i] == 0) continue;
      for (size_t k = 0; k < b.digits_.size(); ++k) {
        carry += uint64_t{a.digits_[i]} * b.digits_[k] + product[i + k];
        product[i + k] = static_cast<uint32_t>(carry);
        carry >>= 32;
      }
      product[i + b.digits_.size()] = static_cast<uint32_t>(carry);
    }
    return make(std::move(product), a.negative_ != b.negative_);
  }
  friend bool operator<(const ExactInteger& a, const ExactInteger& b) {
    if (a.negative_ != b.negative_) return a.negative_;
    return a.negative_ ? less(b.digits_, a.digits_) : less(a.digits_, b.digits_);
  }
  friend bool operator==(const ExactInteger& a, const ExactInteger& b) {
    return a.negative_ == b.negative_ && a.digits_ == b.digits_;
  }

 private:
  using Digits = std::vector<uint32_t>;

  static ExactInteger make(Digits digits, bool negative) {
    while (!digits.empty() && digits.back() == 0) digits.pop_back();
    ExactInteger result;
    result.negative_ = negative && !digits.empty();
    result.digits_ = std::move(digits);
    return result;
  }
  // Requires that a shift to the right loses no bits.
  static ExactInteger shifted(const ExactInteger& x, int bits) {
    Digits digits;
    if (bits < 0) {
      uint64_t low = 0;
      for (size_t i = 0; i < x.digits_.size(); ++i) low |= uint64_t{x.digits_[i]} << (32 * i);
      low >>= -bits;
      digits = {static_cast<uint32_t>(low), static_cast<uint32_t>(low >> 32)};
      return make(std::move(digits), x.negative_);
    }
    digits.assign(static_cast<size_t>(bits / 32), 0);
    uint64_t carry = 0;
    for (const uint32_t digit : x.digits_) {
      carry |= uint64_t{digit} << (bits % 32);
      digits.push_back(static_cast<uint32_t>(carry));
      carry >>= 32;
    }
    digits.push_back(static_cast<uint32_t>(carry));
    return make(std::move(digits), x.negative_);
  }
  static bool less(const Digits& a, const Digits& b) {
    if (a.size() != b.size()) return a.size() < b.size();
    return std::lexicographical_compare(a.rbegin(), a.rend(), b.rbegin(), b.rend());
  }
  static Digits added(const Digits& a, const Digits& b) {
    Digits sum;
    uint64_t carry = 0;
    for (size_t i = 0; i < std::max(a.size(), b.size()) || carry != 0; ++i) {
      carry += (i < a.size() ? a[i] : 0);
      carry += (i < b.size() ? b[i] : 0);
      sum.push_back(static_cast<uint32_t>(carry));
      carry >>= 32;
    }
    return sum;
  }
  static Digits reduced(const Digits& a, const Digits& b) {
    Digits difference = a;
    int64_t borrow = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      const int64_t digit = int64_t{a[i]} - (i < b.size() ? b[i] : 0) + borrow;
      difference[i] = static_cast<uint32_t>(digit);
      borrow = digit < 0 ? -1 : 0;
    }
    return difference;
  }

  Digits digits_;  // the lowest first; empty for 0
  bool negative_ = false;
};

}  // namespace support
