/* SPDX-License-Identifier: BSD-3-Clause */
/* Protocol detection: each beginning, one byte at a time. */
#include <criterion/criterion.h>
#include <string.h>

#include "base/compiler.h"
#include "conn/preface_detect.h"

/* `verdicts` has one letter per number of bytes, from 1 on: . more, 2, 1, x; the last one repeats.
 */
struct row {
    const char *bytes, *verdicts;
};

static const struct row rows[] = {
    {NJ_H2_PREFACE, "...2"},
    {"PRI * HTTP/1.1\r\n", "...2"}, /* after "PRI " the HTTP/2 session checks the rest */
    {"PRO", "..."},
    {"PROPFIND / HTTP/1.1", "........1"},
    {"PROPPATCH / ", ".........1"},
    {"PROPER", "....x"},
    {"PRIVET", "...x"},
    {"GET / HTTP/1.1\r\n", "...1"},
    {"GETX / HTTP/1.1\r\n", "...x"},
    {"HEAD / ", "....1"},
    {"POST / ", "....1"},
    {"PUT / ", "...1"},
    {"PATCH / ", ".....1"},
    {"PA", ".."},
    {"DELETE / ", "......1"},
    {"OPTIONS * ", ".......1"},
    {"TRACE / ", ".....1"},
    {"CONNECT a", ".......1"},
    {"COPY / ", "....1"},
    {"COO", "..x"},
    {"MKCOL / ", ".....1"},
    {"get / HTTP/1.1", "x"},
    {" GET /", "x"},
    {"\r\nGET /", "x"},
    {"\x16\x03\x01\x02", "x"}, /* TLS */
    {"SSH-2.0", "x"},
    {"GET\t/", "...x"},
};

Test(conn_preface_detect, table)
{
    for (size_t i = 0; i < NJ_ARRAY_LEN(rows); i++) {
        const struct row *r = &rows[i];
        size_t n_verdicts = strlen(r->verdicts);
        for (size_t n = 1; n <= strlen(r->bytes); n++) {
            char v = r->verdicts[n <= n_verdicts ? n - 1 : n_verdicts - 1];
            enum nj_sniff want = v == '.'   ? NJ_SNIFF_MORE
                                 : v == '2' ? NJ_SNIFF_H2
                                 : v == '1' ? NJ_SNIFF_HTTP1
                                            : NJ_SNIFF_GARBAGE;
            cr_expect_eq(nj_sniff((const uint8_t *)r->bytes, n, false), want, "%zu bytes of '%s'",
                         n, r->bytes);
        }
    }
    cr_expect_eq(nj_sniff((const uint8_t *)"", 0, false), NJ_SNIFF_MORE);
}

Test(conn_preface_detect, any_first_byte)
{
    for (unsigned b = 0; b < 256; b++) {
        uint8_t first = (uint8_t)b;
        enum nj_sniff v = nj_sniff(&first, 1, false);
        bool may_go_on = memchr("GHPDOTCM", (int)b, 8) != NULL;
        cr_expect_eq(v, may_go_on ? NJ_SNIFF_MORE : NJ_SNIFF_GARBAGE, "byte %u", b);
    }
}

/* Detection never needs more bytes than the buffer holds. */
Test(conn_preface_detect, always_decided_in_time)
{
    for (size_t i = 0; i < NJ_ARRAY_LEN(rows); i++)
        if (strlen(rows[i].bytes) >= 10)
            cr_expect_neq(nj_sniff((const uint8_t *)rows[i].bytes, 10, false), NJ_SNIFF_MORE);
}
