/* SPDX-License-Identifier: BSD-3-Clause */
/* Detects the protocol of a new connection from its first bytes. HTTP/2 begins with the client
 * connection preface (RFC 9113 3.4), HTTP/1.x with a method. */
#include "conn/preface_detect.h"

#include <string.h>

#include "base/compiler.h"

/* "PRI ", the method of the preface, which no other request has (RFC 9113 11.6). */
#define PRI_BYTES 4u

/* Methods an HTTP/1.x client may begin with (RFC 9110 9.1, RFC 5789, WebDAV's common ones). */
static const char *const methods[] = {"GET ",     "HEAD ",  "POST ",     "PUT ",   "DELETE ",
                                      "OPTIONS ", "TRACE ", "CONNECT ",  "PATCH ", "PROPFIND ",
                                      "MKCOL ",   "COPY ",  "PROPPATCH "};

/* Is the shorter of the two a prefix of the other? */
static bool is_common_prefix(const uint8_t *data, size_t n, const char *word)
{
    size_t len = strlen(word);
    return memcmp(data, word, n < len ? n : len) == 0;
}

/* A method is a token (RFC 9110 9.1, 5.6.2). */
static bool may_begin_request(uint8_t c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
           c == '\r' || c == '\n' || (c > 0 && strchr("!#$%&'*+-.^_`|~", c));
}

enum nj_sniff nj_sniff(const uint8_t *data, size_t n_bytes, bool speaks_http1)
{
    if (n_bytes == 0)
        return NJ_SNIFF_MORE;
    /* "PRO" could still become PROPFIND: wait for 4. The rest is the session's to check, so that
     * the result does not depend on how the bytes were divided into segments. */
    if (is_common_prefix(data, n_bytes < PRI_BYTES ? n_bytes : PRI_BYTES, NJ_H2_PREFACE))
        return n_bytes >= PRI_BYTES ? NJ_SNIFF_H2 : NJ_SNIFF_MORE;
    if (speaks_http1)
        return may_begin_request(data[0]) ? NJ_SNIFF_HTTP1 : NJ_SNIFF_GARBAGE;
    for (size_t i = 0; i < NJ_ARRAY_LEN(methods); i++)
        if (is_common_prefix(data, n_bytes, methods[i]))
            return n_bytes >= strlen(methods[i]) ? NJ_SNIFF_HTTP1 : NJ_SNIFF_MORE;
    return NJ_SNIFF_GARBAGE;
}
