/* SPDX-License-Identifier: BSD-3-Clause */
/* Heads of responses (RFC 9112 4, 5). More strict than a client has to be: what this server
 * writes has one form only. */
#include <stdlib.h>
#include <string.h>

#include "h1.h"

static bool is_name(const char *name, size_t n, const char *want)
{
    return n == strlen(want) && memcmp(name, want, n) == 0;
}

static bool is_value(const char *value, size_t n, const char *want)
{
    return is_name(value, n, want);
}

/* Each word of a name begins with an upper case letter: "Content-Length", "Etag". */
static bool is_written_well(const char *name, size_t n)
{
    bool begins = true;

    for (size_t i = 0; i < n; i++) {
        bool upper = name[i] >= 'A' && name[i] <= 'Z', lower = name[i] >= 'a' && name[i] <= 'z';
        if (name[i] == '-' ? begins : begins ? !upper : !lower)
            return false;
        begins = name[i] == '-';
    }
    return n > 0 && !begins;
}

static const char *take_length(const char *value, size_t n, struct sim_h1_head *out)
{
    char *end;

    if (out->has_length)
        return "two of Content-Length";
    if (n == 0 || value[0] < '0' || value[0] > '9')
        return "Content-Length is no number";
    out->length = strtoull(value, &end, 10);
    out->has_length = true;
    return end == value + n ? NULL : "Content-Length has more than digits";
}

static const char *take_connection(const char *value, size_t n, struct sim_h1_head *out)
{
    if (out->closes || out->keeps)
        return "two of Connection";
    out->closes = is_value(value, n, "close");
    out->keeps = is_value(value, n, "keep-alive");
    return out->closes || out->keeps ? NULL : "Connection";
}

static const char *take_coding(const char *value, size_t n, struct sim_h1_head *out)
{
    if (out->is_chunked || !is_value(value, n, "chunked"))
        return "Transfer-Encoding";
    out->is_chunked = true;
    return NULL;
}

static const char *take_field(const char *line, size_t n_line, struct sim_h1_head *out)
{
    const char *colon = memchr(line, ':', n_line);

    if (!colon || n_line < (size_t)(colon - line) + 3 || colon[1] != ' ')
        return "a field line without a value";
    const char *value = colon + 2;
    size_t n_name = (size_t)(colon - line), n = n_line - n_name - 2;
    for (size_t i = 0; i < n; i++)
        if ((uint8_t)value[i] < ' ' || value[i] == 0x7f)
            return "a control character in a field";
    if (!is_written_well(line, n_name))
        return "the name of a field";
    if (is_name(line, n_name, "Content-Length"))
        return take_length(value, n, out);
    if (is_name(line, n_name, "Connection"))
        return take_connection(value, n, out);
    if (is_name(line, n_name, "Transfer-Encoding"))
        return take_coding(value, n, out);
    if (is_name(line, n_name, "Last-Modified"))
        out->version = nj_sim_version_of(value, n);
    if (is_name(line, n_name, "Content-Range") && n < sizeof out->range)
        memcpy(out->range, value, n);
    out->has_date |= is_name(line, n_name, "Date");
    return NULL;
}

/* "HTTP/1.1 200 OK" */
static const char *take_status_line(const char *line, size_t n, struct sim_h1_head *out)
{
    static const char version[] = "HTTP/1.1 ";
    char *end;

    if (n < 14 || memcmp(line, version, sizeof version - 1) != 0)
        return "the version of a status line";
    out->status = (uint16_t)strtoul(line + 9, &end, 10);
    return end == line + 12 && *end == ' ' ? NULL : "the status of a status line";
}

const char *nj_sim_h1_parse(const char *head, size_t n, struct sim_h1_head *out)
{
    const char *line = head, *why = NULL;

    *out = (struct sim_h1_head){.version = UINT32_MAX};
    while (!why) {
        const char *end = memchr(line, '\n', n - (size_t)(line - head));
        if (!end || end == line || end[-1] != '\r')
            return "a line without CRLF";
        size_t n_line = (size_t)(end - line) - 1;
        if (n_line == 0)
            return end + 1 == head + n ? NULL : "an empty line in the middle";
        if (memchr(line, '\r', n_line))
            return "a bare CR";
        why = line == head ? take_status_line(line, n_line, out) : take_field(line, n_line, out);
        line = end + 1;
    }
    return why;
}
