/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes entity tags and dates of files, and evaluates the preconditions of a request in the order
 * of RFC 9110 13.2.2. Tag comparison follows RFC 9110 8.8.3.2. */
#include "http/proto/preconditions.h"

#include <string.h>

#include "base/assert.h"
#include "http/proto/date.h"

/* An mtime below this one is that of a package, not of the file (Nix: 1; OSTree: 0). */
#define FIRST_MTIME_NS 2000000000
/* Shards look at a file once in a second: a change is known to all of them after this time. */
#define SETTLED_S      2

static uint32_t put_hex(char *out, uint64_t v)
{
    uint32_t n = 1;

    while (n < 16 && v >> 4 * n)
        n++;
    for (uint32_t i = n; i-- > 0; v >>= 4)
        out[i] = "0123456789abcdef"[v & 15];
    return n;
}

static void set_date(const struct nj_file_version *version, int64_t current_at_ns,
                     struct nj_validators *out)
{
    int64_t changed_s = nj_file_time_s(version->ctime_ns);

    out->has_date = true;
    out->modified_s = nj_file_time_s(version->mtime_ns);
    out->changed_s = changed_s > out->modified_s ? changed_s : out->modified_s;
    out->is_date_sent = out->changed_s < nj_file_time_s(current_at_ns) - SETTLED_S;
}

void nj_validators_of_object(const struct nj_file_object *object, int64_t current_at_ns,
                             struct nj_validators *out)
{
    const struct nj_file_version *version = &object->version;
    bool is_package_time = version->mtime_ns >= 0 && version->mtime_ns < FIRST_MTIME_NS;
    char *p = out->etag;

    *out = (struct nj_validators){0};
    if (object->is_racy || !nj_file_version_has_times(version))
        return;
    if (is_package_time) {
        *p++ = 'W';
        *p++ = '/';
    } else {
        set_date(version, current_at_ns, out);
    }
    *p++ = '"';
    p += put_hex(p, nj_file_version_hash(version));
    *p++ = '-';
    p += put_hex(p, version->size_bytes);
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
        nj_str_skip(s, 2);
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
    nj_str_skip(s, n + 1);
    return true;
}

/* RFC 9110 8.8.3.2 */
static bool same_tag(struct nj_str tag, bool weak, const struct nj_validators *v, bool strongly)
{
    struct nj_str own = {v->etag, v->n_etag};
    bool own_weak = own.n_bytes > 0 && own.p[0] == 'W';

    if (own_weak)
        nj_str_skip(&own, 2);
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
            nj_str_skip(&list, 1);
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

/* A date is compared with two times of the file. Before its mtime it was modified for certain. It
 * was not modified since its ctime. Between them is a file that was replaced by one with an older
 * mtime (rsync -t, cp -p), or whose permissions changed; neither is known, and only the date that
 * was sent with the file counts, where a weak comparison is enough. */

/* A client without last-modified sends the Date of its response (RFC 9110 13.1.3). A shard may have
 * sent a former version for SETTLED_S after the change, so a Date must be later than that. An
 * earlier date is that of the version only if it is its last-modified. */

/* True if the field is present and a valid date, and the file has a date to compare with. */
static bool usable_date(struct nj_str value, const struct nj_validators *v, int64_t now_s,
                        int64_t *out)
{
    return value.p && v->has_date && nj_date_parse(nj_str_trim(value), now_s, out);
}

/* Weak (RFC 9110 8.8.2.2): a former version may have had the same mtime. */
static bool is_last_modified(const struct nj_validators *v, int64_t date)
{
    return v->is_date_sent && date == v->modified_s;
}

/* Strong: a later version would have a later ctime. */
static bool is_strong_last_modified(const struct nj_validators *v, int64_t date)
{
    return is_last_modified(v, date) && date == v->changed_s;
}

/* Was each response that has this last-modified or Date of this version, or of a later one? No
 * response has a date in the future: that is of a client's clock. */
static bool is_unmodified_since(const struct nj_validators *v, int64_t date, int64_t now_s)
{
    return (date > v->changed_s + SETTLED_S && date <= now_s) || is_strong_last_modified(v, date);
}

/* Steps 1 to 4 of RFC 9110 13.2.2. */
static enum nj_precond_result eval_without_range(const struct nj_preconditions *c,
                                                 const struct nj_validators *v, int64_t now_s)
{
    int64_t date;

    if (c->if_match.p) {
        if (!lists_tag(c->if_match, v, true))
            return NJ_PRECOND_FAILED;
    } else if (usable_date(c->if_unmodified_since, v, now_s, &date)) {
        if (v->modified_s > date)
            return NJ_PRECOND_FAILED;
    }
    if (c->if_none_match.p) {
        if (lists_tag(c->if_none_match, v, false))
            return NJ_PRECOND_NOT_MODIFIED;
    } else if (usable_date(c->if_modified_since, v, now_s, &date)) {
        if (is_unmodified_since(v, date, now_s) || is_last_modified(v, date))
            return NJ_PRECOND_NOT_MODIFIED;
    }
    return NJ_PRECOND_PASSED;
}

/* An entity-tag, rather than a date: "Wed, 09 Nov" begins as W/"..." does. */
static bool is_tag(struct nj_str value)
{
    return (value.n_bytes >= 1 && value.p[0] == '"') ||
           (value.n_bytes >= 2 && value.p[0] == 'W' && value.p[1] == '/');
}

/* Step 5: is If-Range absent, or does it match (RFC 9110 13.1.5)? */
static bool if_range_holds(const struct nj_preconditions *c, const struct nj_validators *v,
                           int64_t now_s)
{
    struct nj_str value = nj_str_trim(c->if_range), tag;
    int64_t date;
    bool weak;

    if (!c->if_range.p)
        return true;
    if (is_tag(value) && read_tag(&value, &tag, &weak))
        return value.n_bytes == 0 && same_tag(tag, weak, v, true);
    return usable_date(c->if_range, v, now_s, &date) && is_strong_last_modified(v, date);
}

/* Is the range to be of the version of a date, not of an entity tag? */
static bool range_is_by_date(const struct nj_preconditions *c)
{
    if (c->if_range.p)
        return !is_tag(nj_str_trim(c->if_range));
    return c->if_unmodified_since.p && !c->if_match.p;
}

/* False if the request has If-Unmodified-Since, and its file may have changed since that date while
 * its mtime was set back, or so shortly before that date that a shard may have sent a former
 * version then. eval_without_range() lets such a request pass, because there is no date to compare
 * with; a range of it could be of another version than the client's. */
static bool if_unmodified_since_is_certain(const struct nj_preconditions *c,
                                           const struct nj_validators *v, int64_t now_s)
{
    int64_t date;

    if (c->if_match.p || !c->if_unmodified_since.p ||
        !nj_date_parse(nj_str_trim(c->if_unmodified_since), now_s, &date))
        return true;
    return v->has_date && is_unmodified_since(v, date, now_s);
}

enum nj_precond_result nj_preconditions_eval(const struct nj_preconditions *c,
                                             const struct nj_validators *v, int64_t now_s,
                                             bool accepts_codings)
{
    enum nj_precond_result result = eval_without_range(c, v, now_s);

    if (result != NJ_PRECOND_PASSED || !c->range.p || !if_range_holds(c, v, now_s))
        return result;
    bool continues =
        !range_is_by_date(c) || (!accepts_codings && if_unmodified_since_is_certain(c, v, now_s));
    return continues ? NJ_PRECOND_RANGE : NJ_PRECOND_PASSED;
}
