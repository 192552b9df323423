/* SPDX-License-Identifier: BSD-3-Clause */
/* Compiler attributes and helpers that every layer uses. */
#pragma once

#define nj_likely(x)   __builtin_expect(!!(x), 1)
#define nj_unlikely(x) __builtin_expect(!!(x), 0)

#define NJ_CACHE_LINE     64
#define NJ_CACHE_ALIGNED  __attribute__((aligned(NJ_CACHE_LINE)))
#define NJ_PRINTF(fmt, a) __attribute__((format(printf, fmt, a)))

#define NJ_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* Call in a spin loop, between two reads of a variable that another CPU will change. */
static inline void nj_cpu_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* The struct that holds `member` at `ptr`. */
#define nj_container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))
