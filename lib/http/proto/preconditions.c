/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes entity tags and dates of files, and evaluates the preconditions of a request in the order
 * of RFC 9110 13.2.2. Tag comparison follows RFC 9110 8.8.3.2. */
#include "http/proto/preconditions.h"

#include <string.h>

#include "base/assert.h"
#include "http/proto/date.h"
#include "http/proto/field_value.h"

#define NS_PER_S 1000000000

static uint32_t put_hex(char *out, uint64_t v)
{
    uint32_t n = 1;

    while (n < 16 && v >> 4 * n)
        n++;
    for (uint32_t i = n; i-- > 0; v >>= 4)
        out[i] = "0123456789abcdef"[v & 15];
    return n;
}

void nj_validators_of_object(const struct nj_file_object *object, struct nj_validators *out)
{
    int64_t ns = object->mtime_ns;
    char *p = out->etag;

    *out = (struct nj_validators){0};
    if (ns == NJ_OBJECT_NO_TIME)
        return;
    out->has_date = true;
    out->modified_s = ns / NS_PER_S - (ns % NS_PER_S < 0);
    if (object->is_racy) {
        *p++ = 'W';
        *p++ = '/';
    }
    *p++ = '"';
    p += put_hex(p, (uint64_t)ns);
    *p++ = '-';
    p += put_hex(p, object->size_bytes);
    *p++ = '"';
    out->n_etag = (uint32_t)(p - out->etag);
}

void nj_validators_add_coding(struct nj_validators *v, struct nj_str mark)
{
    if (v->n_etag == 0)
        return;
    NJ_ASSERT(v->n_etag + 1 + mark.n_bytes <= NJ_ETAG_MAX);
    char *quote = v->etag + v->n_etag - 1;
    *quote++ = '-';
    memcpy(quote, mark.p, mark.n_bytes);
    quote[mark.n_bytes] = '"';
    v->n_etag += 1 + mark.n_bytes;
}

/* --- entity tags --- */

/* Takes an entity-tag (RFC 9110 8.8.3) from the front of `s`. *tag is without "W/". */
static bool read_tag(struct nj_str *s, struct nj_str *tag, bool *weak)
{
    *weak = s->n_bytes >= 2 && s->p[0] == 'W' && s->p[1] == '/';
    if (*weak)
        nj__str_skip(s, 2);
    if (s->n_bytes < 2 || s->p[0] != '"')
        return false;
    uint32_t n = 1;
    while (n < s->n_bytes && s->p[n] != '"') {
        uint8_t c = (uint8_t)s->p[n];
        if (c <= ' ' || c == 0x7f)
            return false;
        n++;
    }
    if (n == s->n_bytes)
        return false;
    *tag = (struct nj_str){s->p, n + 1};
    nj__str_skip(s, n + 1);
    return true;
}

/* RFC 9110 8.8.3.2 */
static bool same_tag(struct nj_str tag, bool weak, const struct nj_validators *v, bool strongly)
{
    struct nj_str own = {v->etag, v->n_etag};
    bool own_weak = own.n_bytes > 0 && own.p[0] == 'W';

    if (own_weak)
        nj__str_skip(&own, 2);
    if (strongly && (weak || own_weak))
        return false;
    return nj_str_eq(tag, own);
}

/* True if the list has our tag or is "*". A malformed element ends the list: after an unclosed
 * quote the start of the next element is unknown. */
static bool lists_tag(struct nj_str list, const struct nj_validators *v, bool strongly)
{
    list = nj_str_trim(list);
    if (list.n_bytes == 1 && *list.p == '*')
        return true;
    while (list.n_bytes > 0) {
        struct nj_str tag;
        bool weak;
        if (*list.p == ',') {
            nj__str_skip(&list, 1);
        } else if (!read_tag(&list, &tag, &weak)) {
            return false;
        } else if (same_tag(tag, weak, v, strongly)) {
            return true;
        } else {
            list = nj_str_trim(list);
            if (list.n_bytes > 0 && *list.p != ',')
                return false;
        }
        list = nj_str_trim(list);
    }
    return false;
}

/* --- dates --- */

/* RFC 9110 8.8.2.1: never later than now. */
static int64_t modified(const struct nj_validators *v, int64_t now_s)
{
    return v->modified_s < now_s ? v->modified_s : now_s;
}

/* True if the field is present and a valid date, and the file has a date to compare with. */
static bool usable_date(struct nj_str value, const struct nj_validators *v, int64_t now_s,
                        int64_t *out)
{
    return value.p && v->has_date && nj_date_parse(nj_str_trim(value), now_s, out);
}

enum nj_precond_result nj_preconditions_eval(const struct nj_preconditions *c,
                                             const struct nj_validators *v, int64_t now_s)
{
    int64_t date;

    if (c->if_match.p) {
        if (!lists_tag(c->if_match, v, true))
            return NJ_PRECOND_FAILED;
    } else if (usable_date(c->if_unmodified_since, v, now_s, &date)) {
        if (modified(v, now_s) > date)
            return NJ_PRECOND_FAILED;
    }
    if (c->if_none_match.p) {
        if (lists_tag(c->if_none_match, v, false))
            return NJ_PRECOND_NOT_MODIFIED;
    } else if (usable_date(c->if_modified_since, v, now_s, &date)) {
        if (modified(v, now_s) <= date)
            return NJ_PRECOND_NOT_MODIFIED;
    }
    return NJ_PRECOND_PASSED;
}

/* RFC 9110 13.1.5. A date must equal ours and be in the past (8.8.2.2): responses within that
 * second may be of different versions. */
bool nj_if_range_holds(const struct nj_preconditions *c, const struct nj_validators *v,
                       int64_t now_s)
{
    struct nj_str value = nj_str_trim(c->if_range), tag;
    int64_t date;
    bool weak;

    if (!c->if_range.p)
        return true;
    if (value.n_bytes > 0 && (value.p[0] == '"' || value.p[0] == 'W') &&
        read_tag(&value, &tag, &weak))
        return value.n_bytes == 0 && same_tag(tag, weak, v, true);
    return usable_date(c->if_range, v, now_s, &date) && date == v->modified_s && date < now_s;
}
