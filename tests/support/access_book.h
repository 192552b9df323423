/* SPDX-License-Identifier: BSD-3-Clause */
/* A book of access log records, in the order in which they were written. One per test program. */
#pragma once

#include <criterion/criterion.h>

#include <string.h>

#include "telem/access_log_record.h"

#define BOOK_LINES 64u

static struct {
    struct nj_access_record open[BOOK_LINES], line[BOOK_LINES];
    bool used[BOOK_LINES];
    uint32_t n_open, n_lines, n_max;
} book;

static inline struct nj_access_record *book_take(void *ctx)
{
    (void)ctx;
    for (uint32_t i = 0; i < book.n_max; i++)
        if (!book.used[i]) {
            book.used[i] = true;
            book.n_open++;
            memset(&book.open[i], 0xee, sizeof book.open[i]);
            return &book.open[i];
        }
    return NULL;
}

static inline void book_put(void *ctx, struct nj_access_record *a)
{
    (void)ctx;
    cr_assert(book.n_lines < BOOK_LINES && book.n_open > 0);
    book.line[book.n_lines++] = *a;
    book.used[a - book.open] = false;
    book.n_open--;
}

static inline void book_drop(void *ctx, struct nj_access_record *a)
{
    (void)ctx;
    cr_assert_gt(book.n_open, 0);
    book.used[a - book.open] = false;
    book.n_open--;
}

/* An empty book, in which `n_max` records may be open at once. */
static inline struct nj_access_ops book_begin(uint32_t n_max)
{
    memset(&book, 0, sizeof book);
    book.n_max = n_max;
    return (struct nj_access_ops){NULL, book_take, book_put, book_drop};
}

/* When all connections have ended. */
static inline void book_expect_written(void)
{
    cr_expect_eq(book.n_open, 0, "each line was written");
}
