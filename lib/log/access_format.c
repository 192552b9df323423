/* SPDX-License-Identifier: BSD-3-Clause */
/* Formats a record of the access log: the combined format of Apache httpd and nginx with further
 * fields, a JSON object (RFC 8259), or named fields (logfmt). */
#include "log/access_format.h"

#include <locale.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "base/json_escape_utf8.h"
#include "log/address_text.h"

/* --- fields -------------------------------------------------------------------------------- */

struct text {
    const uint8_t *p;
    size_t n;
};

static char *put_bytes(char *to, const void *from, size_t n)
{
    memcpy(to, from, n);
    return to + n;
}

static char *put(char *to, const char *words)
{
    return put_bytes(to, words, strlen(words));
}

/* At least `n_digits`, padded with zeros. */
static char *put_number(char *to, uint64_t n, unsigned n_digits)
{
    char digit[20];
    unsigned k = 0;

    for (; n > 0 || k < n_digits; n /= 10)
        digit[k++] = (char)('0' + n % 10);
    while (k > 0)
        *to++ = digit[--k];
    return to;
}

/* Nanoseconds in multiples of `unit`, with three decimals, rounded down. */
static char *put_duration(char *to, nj_ns ns, nj_ns unit)
{
    to = put_number(to, ns / unit, 1);
    *to++ = '.';
    return put_number(to, ns % unit / (unit / 1000), 3);
}

/* The next field of the record's text, clamped to the text. */
static struct text next_text(const struct nj_access_record *a, size_t *at, size_t n)
{
    size_t room = sizeof a->text - *at;
    struct text t = {(const uint8_t *)a->text + *at, n < room ? n : room};

    NJ_ASSERT(n <= room);
    *at += t.n;
    return t;
}

struct texts {
    struct text method, path, authority, referer, agent, subject;
};

static struct texts texts_of(const struct nj_access_record *a)
{
    size_t at = 0;
    struct texts t;

    t.method = next_text(a, &at, a->n_method);
    t.path = next_text(a, &at, a->n_path);
    t.authority = next_text(a, &at, a->n_authority);
    t.referer = next_text(a, &at, a->n_referer);
    t.agent = next_text(a, &at, a->n_agent);
    t.subject = next_text(a, &at, a->n_subject);
    return t;
}

static struct text class_of(const struct nj_access_record *a)
{
    return (struct text){(const uint8_t *)a->class_of, strnlen(a->class_of, sizeof a->class_of)};
}

static char *put_address(char *to, const struct nj_addr *addr)
{
    char text[NJ_ADDRESS_TEXT_BYTES];
    return put(to, nj_address_text(addr, text));
}

/* --- times --------------------------------------------------------------------------------- */

static int64_t second_of(int64_t wall_ns)
{
    return wall_ns / (int64_t)NJ_SEC - (wall_ns % (int64_t)NJ_SEC < 0);
}

/* [21/Nov/2026:21:03:18 +0100] in local time, or 2026-11-21T20:03:18 in UTC. */
static char *put_second(char *to, enum nj_access_format format, int64_t second,
                        struct nj_access_time_cache *c)
{
    if (c->n_text == 0 || second != c->second) {
        time_t t = (time_t)second;
        struct tm tm = {0};
        if (format == NJ_ACCESS_COMBINED) {
            locale_t english = newlocale(LC_ALL_MASK, "C", (locale_t)0);
            localtime_r(&t, &tm);
            c->n_text = (uint32_t)strftime_l(c->text, sizeof c->text, "[%d/%b/%Y:%H:%M:%S %z]", &tm,
                                             english);
        } else {
            gmtime_r(&t, &tm);
            c->n_text = (uint32_t)strftime(c->text, sizeof c->text, "%Y-%m-%dT%H:%M:%S", &tm);
        }
        c->second = second;
    }
    return put_bytes(to, c->text, c->n_text);
}

/* 2026-11-21T20:03:18.123Z */
static char *put_when(char *to, int64_t wall_ns, struct nj_access_time_cache *clock)
{
    int64_t rest = wall_ns % (int64_t)NJ_SEC; /* negative before 1970 */

    to = put_second(to, NJ_ACCESS_JSON, second_of(wall_ns), clock);
    *to++ = '.';
    to = put_number(to, (uint64_t)(rest < 0 ? rest + (int64_t)NJ_SEC : rest) / NJ_MS, 3);
    return put(to, "Z");
}

/* --- combined ------------------------------------------------------------------------------ */

/* As nginx: quotes, backslashes, control and non-ASCII bytes become \xHH. */
static char *put_quoted(char *to, struct text t)
{
    static const char hex[] = "0123456789ABCDEF";

    for (size_t i = 0; i < t.n; i++) {
        uint8_t b = t.p[i];
        if (b >= 0x20 && b < 0x7f && b != '"' && b != '\\') {
            *to++ = (char)b;
            continue;
        }
        *to++ = '\\';
        *to++ = 'x';
        *to++ = hex[b >> 4];
        *to++ = hex[b & 15];
    }
    return to;
}

static char *put_or_dash(char *to, struct text t)
{
    *to++ = '"';
    to = t.n > 0 ? put_quoted(to, t) : put(to, "-");
    *to++ = '"';
    return to;
}

/* A malformed request may have neither method nor path. */
static char *put_request(char *to, const struct nj_access_record *a, const struct texts *t)
{
    if (t->method.n == 0 && t->path.n == 0)
        return put(to, "\"-\"");
    *to++ = '"';
    to = put_quoted(to, t->method);
    *to++ = ' ';
    to = put_quoted(to, t->path);
    *to++ = ' ';
    return put(put(to, nj_http_version_text(a->version)), "\"");
}

static char *combined(char *to, const struct nj_access_record *a,
                      struct nj_access_time_cache *clock)
{
    struct texts t = texts_of(a);

    to = put_address(to, &a->remote);
    to = put(to, " - - ");
    to = put_second(to, NJ_ACCESS_COMBINED, second_of(a->wall_ns), clock);
    *to++ = ' ';
    to = put_request(to, a, &t);
    *to++ = ' ';
    to = put_number(to, a->status, 3);
    *to++ = ' ';
    to = put_number(to, a->n_bytes, 1);
    *to++ = ' ';
    to = put_or_dash(to, t.referer);
    *to++ = ' ';
    to = put_or_dash(to, t.agent);
    to = put(to, " rt=");
    to = put_duration(to, a->total, NJ_SEC);
    to = put(to, " ttfb=");
    to = put_duration(to, a->ttfb, NJ_SEC);
    to = put(to, " throttled=");
    to = put_duration(to, a->throttled, NJ_SEC);
    to = put(to, " class=");
    to = put_or_dash(to, class_of(a));
    to = put(to, a->complete ? " complete" : " incomplete");
    if (a->tls_suite)
        to = put(put(to, " tls="), a->tls_suite);
    if (t.subject.n > 0)
        to = put_or_dash(put(to, " client="), t.subject);
    return a->cut ? put(to, " cut") : to;
}

/* --- JSON ---------------------------------------------------------------------------------- */

static char *put_key_number(char *to, const char *key, uint64_t n)
{
    to = put(to, key);
    return put_number(to, n, 1);
}

static char *put_key_string(char *to, const char *key, struct text t)
{
    to = put(to, key);
    *to++ = '"';
    to += nj_json_escape(to, SIZE_MAX, (struct nj_str){(const char *)t.p, (uint32_t)t.n},
                         NJ_JSON_LATIN1);
    *to++ = '"';
    return to;
}

static char *put_key_ms(char *to, const char *key, nj_ns ns)
{
    to = put(to, key);
    return put_duration(to, ns, NJ_MS);
}

static char *json(char *to, const struct nj_access_record *a, struct nj_access_time_cache *clock)
{
    struct texts t = texts_of(a);

    to = put(to, "{\"time\":\"");
    to = put_when(to, a->wall_ns, clock);
    to = put(to, "\",\"remote\":\"");
    to = put_address(to, &a->remote);
    to = put_key_number(to, "\",\"port\":", a->rport);
    to = put_key_string(to, ",\"method\":", t.method);
    to = put_key_string(to, ",\"path\":", t.path);
    to = put_key_string(to, ",\"authority\":", t.authority);
    to = put(put(put(to, ",\"protocol\":\""), nj_http_version_text(a->version)), "\"");
    to = put_key_number(to, ",\"status\":", a->status);
    to = put_key_number(to, ",\"bytes\":", a->n_bytes);
    to = put_key_string(to, ",\"referer\":", t.referer);
    to = put_key_string(to, ",\"user_agent\":", t.agent);
    to = put_key_string(to, ",\"class\":", class_of(a));
    to = put_key_ms(to, ",\"ttfb_ms\":", a->ttfb);
    to = put_key_ms(to, ",\"total_ms\":", a->total);
    to = put_key_ms(to, ",\"throttled_ms\":", a->throttled);
    to = put(to, a->complete ? ",\"complete\":true" : ",\"complete\":false");
    to = put(to, a->cut ? ",\"cut\":true" : ",\"cut\":false");
    to = put_key_number(to, ",\"shard\":", a->shard);
    to = put_key_number(to, ",\"connection\":", a->conn);
    to = put_key_number(to, ",\"stream\":", a->stream_id);
    if (a->tls_suite)
        to = put(put(put(to, ",\"tls\":\""), a->tls_suite), "\"");
    if (t.subject.n > 0)
        to = put_key_string(to, ",\"client_subject\":", t.subject);
    return put(to, "}");
}

/* --- logfmt -------------------------------------------------------------------------------- */

static char *put_key_address(char *to, const char *key, const struct nj_addr *addr)
{
    return put_address(put(to, key), addr);
}

static char *put_scheme(char *to, enum nj_scheme scheme)
{
    struct nj_str text = nj_scheme_text(scheme);
    return text.n_bytes > 0 ? put_bytes(to, text.p, text.n_bytes) : put(to, "-");
}

/* Always all fields. Quoted texts have the escapes of JSON. */
static char *logfmt(char *to, const struct nj_access_record *a, struct nj_access_time_cache *clock)
{
    struct texts t = texts_of(a);

    to = put_when(put(to, "time="), a->wall_ns, clock);
    to = put_key_address(to, " client=", &a->client);
    to = put_key_address(to, " remote=", &a->remote);
    to = put_key_number(to, " port=", a->rport);
    to = put_key_address(to, " peer=", &a->peer);
    to = put_key_string(to, " host=", t.authority);
    to = put_scheme(put(to, " scheme="), (enum nj_scheme)a->scheme);
    to = put(put(to, " protocol="), nj_http_version_text(a->version));
    to = put(put(to, " tls="), a->tls_suite ? a->tls_suite : "-");
    to = put_key_string(to, " method=", t.method);
    to = put_key_string(to, " path=", t.path);
    to = put_key_number(to, " status=", a->status);
    to = put_key_number(to, " bytes=", a->n_bytes);
    to = put_key_string(to, " referer=", t.referer);
    to = put_key_string(to, " user_agent=", t.agent);
    to = put_key_string(to, " client_subject=", t.subject);
    to = put_key_string(to, " class=", class_of(a));
    to = put_key_ms(to, " ttfb_ms=", a->ttfb);
    to = put_key_ms(to, " total_ms=", a->total);
    to = put_key_ms(to, " throttled_ms=", a->throttled);
    to = put(to, a->complete ? " complete=true" : " complete=false");
    to = put(to, a->cut ? " cut=true" : " cut=false");
    to = put_key_number(to, " shard=", a->shard);
    to = put_key_number(to, " connection=", a->conn);
    return put_key_number(to, " stream=", a->stream_id);
}

size_t nj_access_format_line(enum nj_access_format format, const struct nj_access_record *a,
                             struct nj_access_time_cache *clock, char *out)
{
    char *end = format == NJ_ACCESS_JSON     ? json(out, a, clock)
                : format == NJ_ACCESS_LOGFMT ? logfmt(out, a, clock)
                                             : combined(out, a, clock);

    *end++ = '\n';
    return (size_t)(end - out);
}
