/* SPDX-License-Identifier: BSD-3-Clause */
/* Requirements for a line of the access log, for any record: for tests and fuzzers. Each check
 * returns NULL, or the error. */
#pragma once

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "telem/access_log_record.h"

struct access_reader {
    const uint8_t *p, *end;
};

static inline bool access_skip(struct access_reader *r, const char *words)
{
    size_t n = strlen(words);
    bool ok = (size_t)(r->end - r->p) >= n && memcmp(r->p, words, n) == 0;

    r->p += ok ? n : 0;
    return ok;
}

static inline bool access_skip_number(struct access_reader *r)
{
    const uint8_t *from = r->p;

    while (r->p < r->end && isdigit(*r->p))
        r->p++;
    if (r->p == from)
        return false;
    if (r->p < r->end && *r->p == '.') {
        const uint8_t *point = r->p++;
        while (r->p < r->end && isdigit(*r->p))
            r->p++;
        return r->p > point + 1;
    }
    return true;
}

/* One character as RFC 3629 4 has it, written out case by case. */
static inline bool access_skip_utf8(struct access_reader *r)
{
    const uint8_t *p = r->p;
    size_t n = p[0] < 0x80                    ? 1
               : p[0] >= 0xc2 && p[0] <= 0xdf ? 2
               : (p[0] & 0xf0) == 0xe0        ? 3
               : p[0] >= 0xf0 && p[0] <= 0xf4 ? 4
                                              : 0;
    if (n == 0 || (size_t)(r->end - p) < n)
        return false;
    for (size_t i = 1; i < n; i++)
        if (p[i] < 0x80 || p[i] > 0xbf)
            return false;
    if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
        (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
        return false;
    r->p += n;
    return true;
}

/* RFC 8259 7, and no control character of Unicode either. */
static inline const char *access_skip_string(struct access_reader *r)
{
    if (!access_skip(r, "\""))
        return "no string begins";
    while (r->p < r->end && *r->p != '"') {
        if (*r->p < 0x20 || *r->p == 0x7f)
            return "a control character in a string";
        if (*r->p == 0xc2 && r->end - r->p > 1 && r->p[1] < 0xa0)
            return "a C1 control in a string";
        if (*r->p != '\\') {
            if (!access_skip_utf8(r))
                return "a string is not UTF-8";
            continue;
        }
        r->p++;
        if (r->p < r->end && strchr("\"\\", *r->p)) {
            r->p++;
            continue;
        }
        if (r->end - r->p < 5 || *r->p != 'u')
            return "an escape that is none";
        for (int i = 1; i <= 4; i++)
            if (!isxdigit(r->p[i]))
                return "an escape that is not of four digits";
        r->p += 5;
    }
    return access_skip(r, "\"") ? NULL : "a string does not end";
}

static inline const char *access_check_json(const char *line, size_t n)
{
    static const struct {
        const char *key;
        char kind;
    } want[] = {{"time", 's'},    {"remote", 's'},    {"port", 'n'},         {"method", 's'},
                {"path", 's'},    {"authority", 's'}, {"protocol", 's'},     {"status", 'n'},
                {"bytes", 'n'},   {"referer", 's'},   {"user_agent", 's'},   {"class", 's'},
                {"ttfb_ms", 'n'}, {"total_ms", 'n'},  {"throttled_ms", 'n'}, {"complete", 'b'},
                {"cut", 'b'},     {"shard", 'n'},     {"connection", 'n'},   {"stream", 'n'}};
    struct access_reader r = {(const uint8_t *)line, (const uint8_t *)line + n};

    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        const char *bad = NULL;
        if (!access_skip(&r, i == 0 ? "{\"" : ",\"") || !access_skip(&r, want[i].key) ||
            !access_skip(&r, "\":"))
            return want[i].key;
        if (want[i].kind == 's')
            bad = access_skip_string(&r);
        else if (want[i].kind == 'n')
            bad = access_skip_number(&r) ? NULL : want[i].key;
        else
            bad = access_skip(&r, "true") || access_skip(&r, "false") ? NULL : want[i].key;
        if (bad)
            return bad;
    }
    if (access_skip(&r, ",\"tls\":") && access_skip_string(&r))
        return "tls";
    if (access_skip(&r, ",\"client_subject\":") && access_skip_string(&r))
        return "client_subject";
    return access_skip(&r, "}\n") && r.p == r.end ? NULL : "something behind the object";
}

/* A word without spaces and quotes, of printable ASCII. */
static inline bool access_skip_word(struct access_reader *r)
{
    const uint8_t *from = r->p;

    while (r->p<r->end && * r->p> ' ' && *r->p < 0x7f && *r->p != '"')
        r->p++;
    return r->p > from;
}

static inline const char *access_check_logfmt(const char *line, size_t n)
{
    static const struct {
        const char *key;
        char kind; /* w: a word */
    } want[] = {{"time", 'w'},     {"client", 'w'},  {"remote", 'w'},     {"port", 'n'},
                {"peer", 'w'},     {"host", 's'},    {"scheme", 'w'},     {"protocol", 'w'},
                {"tls", 'w'},      {"method", 's'},  {"path", 's'},       {"status", 'n'},
                {"bytes", 'n'},    {"referer", 's'}, {"user_agent", 's'}, {"client_subject", 's'},
                {"class", 's'},    {"ttfb_ms", 'n'}, {"total_ms", 'n'},   {"throttled_ms", 'n'},
                {"complete", 'w'}, {"cut", 'w'},     {"shard", 'n'},      {"connection", 'n'},
                {"stream", 'n'}};
    struct access_reader r = {(const uint8_t *)line, (const uint8_t *)line + n};

    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        if (!access_skip(&r, i == 0 ? "" : " ") || !access_skip(&r, want[i].key) ||
            !access_skip(&r, "="))
            return want[i].key;
        const char *bad = want[i].kind == 's' ? access_skip_string(&r) : NULL;
        if (bad)
            return bad;
        if ((want[i].kind == 'n' && !access_skip_number(&r)) ||
            (want[i].kind == 'w' && !access_skip_word(&r)))
            return want[i].key;
    }
    return access_skip(&r, "\n") && r.p == r.end ? NULL : "something behind the fields";
}

/* Check a field in quotes: unescaped, it must equal `want`. */
static inline const char *access_skip_quoted(struct access_reader *r, const void *want, size_t n)
{
    static const char hex[] = "0123456789ABCDEF";
    const uint8_t *byte = want;

    for (size_t i = 0; i < n; i++) {
        if (r->p == r->end)
            return "a field is too short";
        uint8_t got = *r->p++;
        if (got < 0x20 || got > 0x7e || got == '"')
            return "a byte that should have been escaped";
        if (got == '\\') {
            if (r->end - r->p < 3 || r->p[0] != 'x' || !strchr(hex, r->p[1]) ||
                !strchr(hex, r->p[2]))
                return "an escape that is none";
            got = (uint8_t)((strchr(hex, r->p[1]) - hex) * 16 + (strchr(hex, r->p[2]) - hex));
            r->p += 3;
        }
        if (got != byte[i])
            return "a field has another value";
    }
    return NULL;
}

static inline const char *access_skip_field(struct access_reader *r, const char *what, size_t n)
{
    if (!access_skip(r, "\""))
        return "no field begins";
    const char *bad = n > 0 ? access_skip_quoted(r, what, n) : access_skip(r, "-") ? NULL : "no -";
    return bad ? bad : access_skip(r, "\"") ? NULL : "a field does not end";
}

static inline const char *access_check_rest(struct access_reader *r,
                                            const struct nj_access_record *a)
{
    if (!access_skip(r, " rt=") || !access_skip_number(r) || !access_skip(r, " ttfb=") ||
        !access_skip_number(r) || !access_skip(r, " throttled=") || !access_skip_number(r) ||
        !access_skip(r, " class="))
        return "not the times";
    const char *bad = access_skip_field(r, a->class_of, strnlen(a->class_of, sizeof a->class_of));
    if (bad)
        return bad;
    const char *subject =
        a->text + a->n_method + a->n_path + a->n_authority + a->n_referer + a->n_agent;
    bool ok = access_skip(r, a->complete ? " complete" : " incomplete") &&
              (!a->tls_suite || (access_skip(r, " tls=") && access_skip(r, a->tls_suite))) &&
              (!a->n_subject ||
               (access_skip(r, " client=") && !access_skip_field(r, subject, a->n_subject))) &&
              (!a->cut || access_skip(r, " cut")) && access_skip(r, "\n") && r->p == r->end;
    return ok ? NULL : "not the end";
}

/* The lengths in the record have to be within its text. */
static inline const char *access_check_combined(const struct nj_access_record *a, const char *line,
                                                size_t n)
{
    struct access_reader r = {(const uint8_t *)line, (const uint8_t *)line + n};
    const char *path = a->text + a->n_method, *referer = path + a->n_path + a->n_authority;
    const char *bad = NULL;

    while (r.p < r.end && *r.p != '"') {
        if (*r.p < 0x20 || *r.p > 0x7e)
            return "a byte before the request";
        r.p++;
    }
    if (a->n_method + a->n_path == 0) {
        bad = access_skip_field(&r, NULL, 0);
    } else {
        access_skip(&r, "\"");
        bad = access_skip_quoted(&r, a->text, a->n_method);
        if (!bad && !access_skip(&r, " "))
            bad = "nothing between method and path";
        if (!bad)
            bad = access_skip_quoted(&r, path, a->n_path);
        if (!bad && !(access_skip(&r, " ") && access_skip(&r, nj_http_version_text(a->version)) &&
                      access_skip(&r, "\"")))
            bad = "not the end of a request";
    }
    if (bad)
        return bad;
    if (!access_skip(&r, " ") || !access_skip_number(&r) || !access_skip(&r, " ") ||
        !access_skip_number(&r) || !access_skip(&r, " "))
        return "not status and bytes";
    bad = access_skip_field(&r, referer, a->n_referer);
    if (!bad && !access_skip(&r, " "))
        bad = "nothing behind the referer";
    if (!bad)
        bad = access_skip_field(&r, referer + a->n_referer, a->n_agent);
    return bad ? bad : access_check_rest(&r, a);
}
