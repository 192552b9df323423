/* SPDX-License-Identifier: BSD-3-Clause */
/* The floating-point control modes (rounding, traps, flush to zero) of the calling thread, to
 * detect a task that changed them. The sticky exception flags are not included. */
#pragma once

#include <stdint.h>

#if defined(__x86_64__)

#define NJ__MXCSR_FLAGS 0x3fu

static inline uint64_t nj__fpu_get_control(void)
{
    uint32_t mxcsr;
    uint16_t x87;

    __asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
    __asm__ volatile("fnstcw %0" : "=m"(x87));
    return (uint64_t)x87 << 32 | (mxcsr & ~NJ__MXCSR_FLAGS);
}

static inline void nj__fpu_set_control(uint64_t mode)
{
    uint32_t mxcsr = (uint32_t)mode;
    uint16_t x87 = (uint16_t)(mode >> 32);

    __asm__ volatile("ldmxcsr %0" : : "m"(mxcsr));
    __asm__ volatile("fldcw %0" : : "m"(x87));
}

#elif defined(__aarch64__)

static inline uint64_t nj__fpu_get_control(void)
{
    uint64_t fpcr;

    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    return fpcr;
}

static inline void nj__fpu_set_control(uint64_t mode)
{
    __asm__ volatile("msr fpcr, %0" : : "r"(mode));
}

#else
#error "say here how floating point modes are read and set"
#endif
