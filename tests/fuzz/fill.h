// Fills the arrays of a call: mostly with values that the operation expects, sometimes with
// extremes.
#pragma once

#include <functional>

#include "fuzz/call.h"

namespace fuzz {

void fillReals(Call& call, Tensor& t, Choices& choices, double low = -4, double high = 4);
// Any bits, for integers and bool.
void fillBits(Call& call, Tensor& t, Choices& choices);
void fillIntegers(Call& call, Tensor& t, Choices& choices, int64_t low, int64_t high);
// Ascending along the last axis, with equal ones, and sometimes a NaN or a step back.
void fillTimes(Call& call, Tensor& t, Choices& choices);
void fillMask(Call& call, Tensor& t, Choices& choices);
// 0 .. n, ascending from first to last; sometimes it does not begin at 0 or end at n.
void fillOffsets(Call& call, Tensor& t, Choices& choices, int64_t n);
void fillConstant(Call& call, Tensor& t, double value);
// The elements that are chosen by their index in row-major order.
void fillWhere(Call& call, Tensor& t, double value, const std::function<bool(int64_t)>& chosen);

rbcDType anyFloat(Choices& choices);
rbcDType anyReal(Choices& choices);   // f32, f64
rbcDType anyIndex(Choices& choices);  // i32, i64
rbcDType anyFlag(Choices& choices);   // bool, u8

}  // namespace fuzz
