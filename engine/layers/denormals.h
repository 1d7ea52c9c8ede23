// While it lives, the thread's arithmetic takes denormal numbers for zero: old optimizer moments and vanishing
// probabilities would slow every GEMM they meet. Each call of a stage holds one, so that its bits depend on no
// caller.
#pragma once

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace stagewright::layers {

class FlushDenormals {
public:
#if defined(__SSE2__)
    FlushDenormals() : m_before(_mm_getcsr()) { _mm_setcsr(m_before | 0x8040U); } // flush to zero, denormals are zero
    ~FlushDenormals() { _mm_setcsr(m_before); }
#else
    FlushDenormals() = default;
#endif
    FlushDenormals(const FlushDenormals&) = delete;
    FlushDenormals& operator=(const FlushDenormals&) = delete;

private:
#if defined(__SSE2__)
    unsigned m_before;
#endif
};

} // namespace stagewright::layers
