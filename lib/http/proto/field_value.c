/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses the common parts of field values: numbers, weights and percent-encoding. Follows RFC 9110
 * 12.4.2. */
#include "http/proto/field_value.h"

#include <string.h>

#include "base/field_list.h"

/* qvalue: "0" or "1", then up to three decimals. */
static bool read_q(struct nj_str s, uint16_t *q)
{
    if (s.n_bytes == 0 || s.n_bytes > 5 || (s.p[0] != '0' && s.p[0] != '1') ||
        (s.n_bytes > 1 && s.p[1] != '.'))
        return false;
    uint32_t v = s.p[0] == '1' ? 1000 : 0, unit = 100;
    for (uint32_t i = 2; i < s.n_bytes; i++, unit /= 10) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
        v += (uint32_t)(s.p[i] - '0') * unit;
    }
    *q = (uint16_t)v;
    return v <= 1000;
}

bool nj__parse_weighted(struct nj_str element, struct nj_str *name, uint16_t *q)
{
    uint32_t n = nj_list_span_to(element, ';');

    *name = nj_str_trim((struct nj_str){element.p, n});
    *q = 1000;
    while (n < element.n_bytes) {
        nj_str_skip(&element, n + 1);
        n = nj_list_span_to(element, ';');
        struct nj_str p = nj_str_trim((struct nj_str){element.p, n});
        if (p.n_bytes >= 2 && (p.p[0] == 'q' || p.p[0] == 'Q') && p.p[1] == '=')
            return read_q((struct nj_str){p.p + 2, p.n_bytes - 2}, q);
    }
    return true;
}

bool nj_field_value_is_valid(const char *value)
{
    size_t n = strlen(value);

    for (size_t i = 0; i < n; i++)
        if (((uint8_t)value[i] < ' ' && value[i] != '\t') || value[i] == 0x7f)
            return false;
    return n == 0 || (!strchr(" \t", value[0]) && !strchr(" \t", value[n - 1]));
}

int nj__percent_decode_byte(const char *p, size_t n)
{
    int high = n > 2 && p[0] == '%' ? nj_hex_value(p[1]) : -1;
    int low = high >= 0 ? nj_hex_value(p[2]) : -1;

    return low >= 0 ? high << 4 | low : -1;
}
