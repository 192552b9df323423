/* SPDX-License-Identifier: BSD-3-Clause */
/* Words of a line, integers in network byte order, and texts of statuses. */
#include <criterion/criterion.h>

#include "base/big_endian.h"
#include "base/status_reason.h"
#include "base/str.h"

Test(base_str, words_are_separated_by_blanks)
{
    struct nj_str line = NJ_STR(" \tone  two\t\rthree\r"), word;

    cr_assert(nj_str_next_word(&line, &word));
    cr_expect(nj_str_eq(word, NJ_STR("one")));
    cr_assert(nj_str_next_word(&line, &word));
    cr_expect(nj_str_eq(word, NJ_STR("two")));
    cr_assert(nj_str_next_word(&line, &word));
    cr_expect(nj_str_eq(word, NJ_STR("three")));
    cr_expect_not(nj_str_next_word(&line, &word));
    cr_expect_eq(line.n_bytes, 0);
}

Test(base_str, a_blank_line_has_no_word)
{
    struct nj_str line = NJ_STR(" \t\r"), word;

    cr_expect_not(nj_str_next_word(&line, &word));
    cr_expect_eq(word.n_bytes, 0);
}

Test(base_str, integers_in_network_byte_order)
{
    uint8_t p[5] = {0xff};

    nj_put_be32(p + 1, 0x81020384);
    cr_expect_eq(p[0], 0xff);
    cr_expect_eq(p[1], 0x81);
    cr_expect_eq(p[4], 0x84);
    cr_expect_eq(nj_get_be32(p + 1), 0x81020384);
    cr_expect_eq(nj_get_be16(p + 1), 0x8102);
}

Test(base_str, texts_of_statuses)
{
    cr_expect(nj_str_eq(nj_status_text(421), NJ_STR("421 Misdirected Request\n")));
    cr_expect(nj_str_eq(nj_status_reason(421), NJ_STR("Misdirected Request")));
    cr_expect_eq(nj_status_text(299).n_bytes, 0);
    cr_expect_eq(nj_status_reason(299).n_bytes, 0);
    for (uint16_t status = 400; status < 600; status++) {
        struct nj_str text = nj_status_text(status);
        char digits[NJ_U64_DIGITS_MAX];

        cr_expect(text.n_bytes == 0 || nj_str_starts_with(text, nj_str_of_u64(digits, status)),
                  "%u: %.*s", status, (int)text.n_bytes, text.p);
    }
}
