/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses the byte ranges of a Range field and clips them to the file. Follows RFC 9110 14.1.1,
 * 14.1.2 and 14.2. */
#include "http/proto/range.h"

#include <stdbool.h>

#include "base/field_list.h"
#include "http/proto/field_value.h"

/* One element: positions of the first and last byte. Either may be missing. */
struct range_spec {
    bool has_first, has_last;
    uint64_t first, last; /* without `first`: length of the suffix */
};

/* Takes digits from the front. A number that does not fit becomes UINT64_MAX. False: no digit. */
static bool take_number(struct nj_str *s, uint64_t *out)
{
    uint64_t v = 0;
    bool any = false;

    while (s->n_bytes > 0 && *s->p >= '0' && *s->p <= '9') {
        uint64_t digit = (uint64_t)(*s->p - '0');
        v = v > (UINT64_MAX - digit) / 10 ? UINT64_MAX : 10 * v + digit;
        nj_str_skip(s, 1);
        any = true;
    }
    *out = v;
    return any;
}

/* RFC 9110 14.1.1: int-range or suffix-range. */
static bool read_spec(struct nj_str s, struct range_spec *out)
{
    out->has_first = take_number(&s, &out->first);
    if (s.n_bytes == 0 || *s.p != '-')
        return false;
    nj_str_skip(&s, 1);
    out->has_last = take_number(&s, &out->last);
    if (s.n_bytes > 0 || (!out->has_first && !out->has_last))
        return false;
    return !(out->has_first && out->has_last && out->last < out->first);
}

/* False: beyond the end (RFC 9110 14.1.2). */
static bool resolve(const struct range_spec *s, uint64_t size, struct nj_range *out)
{
    if (!s->has_first) {
        uint64_t n = s->last < size ? s->last : size;
        *out = (struct nj_range){size - n, n};
        return n > 0;
    }
    if (s->first >= size)
        return false;
    uint64_t last = s->has_last && s->last < size ? s->last : size - 1;
    *out = (struct nj_range){s->first, last - s->first + 1};
    return true;
}

static bool overlaps(const struct nj_ranges *all, const struct nj_range *r)
{
    for (uint32_t i = 0; i < all->n; i++) {
        const struct nj_range *o = &all->range[i];
        if (r->first < o->first + o->n_bytes && o->first < r->first + r->n_bytes)
            return true;
    }
    return false;
}

/* Appends a range. Few ranges are compared with each other; more must ascend, so that one
 * comparison suffices (RFC 9110 14.2). False: the field is to be ignored. */
static bool append(struct nj_ranges *all, struct nj_range r, bool *ascend)
{
    const struct nj_range *last = all->n > 0 ? &all->range[all->n - 1] : NULL;

    if (last && r.first < last->first + last->n_bytes)
        *ascend = false;
    if (!*ascend && (all->n >= NJ_RANGES_UNSORTED_MAX || overlaps(all, &r)))
        return false;
    all->range[all->n++] = r;
    return true;
}

static uint32_t count_digits(uint64_t v)
{
    uint32_t n = 1;

    for (; v >= 10; v /= 10)
        n++;
    return n;
}

/* True if the whole file is shorter than so many ranges with their headers. */
static bool exceed_file(const struct nj_ranges *all, uint64_t size_bytes, uint32_t n_type)
{
    uint64_t n_left = size_bytes;

    for (uint32_t i = 0; i < all->n; i++) {
        const struct nj_range *r = &all->range[i];
        uint32_t n_header = NJ_RANGE_HEADER_BYTES + n_type + count_digits(r->first) +
                            count_digits(r->first + r->n_bytes - 1) + count_digits(size_bytes);
        if (n_left < n_header || r->n_bytes > n_left - n_header)
            return true;
        n_left -= r->n_bytes + n_header;
    }
    return false;
}

enum nj_ranges_result nj_ranges_parse(struct nj_str value, uint64_t size_bytes, uint32_t n_type,
                                      struct nj_ranges *out)
{
    static const char unit[] = "bytes="; /* names of units ignore case (RFC 9110 14.1) */
    struct nj_str element;
    uint32_t n_specs = 0;
    bool ascend = true;

    out->n = 0;
    if (value.n_bytes < sizeof unit - 1 || nj_strncasecmp(value.p, unit, sizeof unit - 1) != 0)
        return NJ_RANGES_IGNORED;
    nj_str_skip(&value, sizeof unit - 1);
    while (nj_list_next(&value, &element)) {
        struct range_spec range_spec;
        struct nj_range range;
        if (!read_spec(element, &range_spec) || ++n_specs > NJ_RANGES_MAX)
            return NJ_RANGES_IGNORED;
        /* A suffix of an empty file is satisfiable, but 206 cannot express it. */
        if (!range_spec.has_first && range_spec.last > 0 && size_bytes == 0)
            return NJ_RANGES_IGNORED;
        if (!resolve(&range_spec, size_bytes, &range))
            continue;
        if (!append(out, range, &ascend))
            return NJ_RANGES_IGNORED;
    }
    if (n_specs == 0 || (out->n > NJ_RANGES_UNSORTED_MAX && exceed_file(out, size_bytes, n_type)))
        return NJ_RANGES_IGNORED;
    return out->n > 0 ? NJ_RANGES_OK : NJ_RANGES_UNSATISFIABLE;
}
