/* SPDX-License-Identifier: BSD-3-Clause */
#include "conn/proxy_protocol.h"

#include <arpa/inet.h>
#include <string.h>

#include "base/big_endian.h"
#include "base/compiler.h"
#include "base/str.h"

/* Is the shorter of the two a prefix of the other? */
static bool is_common_prefix(const uint8_t *data, size_t n, const char *word, size_t n_word)
{
    return memcmp(data, word, n < n_word ? n : n_word) == 0;
}

/* --- version 1: a line of text -------------------------------------------------------------- */

#define V1_BYTES_MAX 107u
#define V1_BEGIN     "PROXY "

/* Takes the next word of the line, up to a space or its end. False: it is empty. */
static bool take_word(struct nj_str *line, char *word, size_t n_word)
{
    const char *space = line->n_bytes > 0 ? memchr(line->p, ' ', line->n_bytes) : NULL;
    uint32_t n = space ? (uint32_t)(space - line->p) : line->n_bytes;

    if (n == 0 || n >= n_word || memchr(line->p, '\0', n) || (space && n + 1 == line->n_bytes))
        return false;
    memcpy(word, line->p, n);
    word[n] = '\0';
    *line = (struct nj_str){line->p + n + (space != NULL), line->n_bytes - n - (space != NULL)};
    return true;
}

/* Of that family, as inet_pton(3) reads it: no leading zeros in IPv4. */
static bool take_address(struct nj_str *line, int family, struct nj_addr *out)
{
    char word[INET6_ADDRSTRLEN];
    struct in_addr v4;

    if (!take_word(line, word, sizeof word))
        return false;
    if (family == AF_INET6)
        return inet_pton(AF_INET6, word, out->b) == 1;
    if (inet_pton(AF_INET, word, &v4) != 1)
        return false;
    *out = nj_addr_from_v4(v4.s_addr);
    return true;
}

/* 0 to 65535, without leading zeros. */
static bool take_port(struct nj_str *line, uint16_t *out)
{
    char word[6];
    uint32_t port = 0;

    if (!take_word(line, word, sizeof word) || (word[0] == '0' && word[1]))
        return false;
    for (const char *c = word; *c; c++) {
        if (*c < '0' || *c > '9')
            return false;
        port = 10 * port + (uint32_t)(*c - '0');
    }
    *out = (uint16_t)port;
    return port <= UINT16_MAX;
}

/* `line`: what follows "PROXY ", without CRLF. */
static bool parse_line(struct nj_str line, struct nj_proxy_header *out)
{
    static const struct nj_str unknown = NJ_STR_INIT("UNKNOWN");
    struct nj_addr destination;
    uint16_t port;
    char word[8];

    if (line.n_bytes >= unknown.n_bytes && memcmp(line.p, unknown.p, unknown.n_bytes) == 0)
        return line.n_bytes == unknown.n_bytes || line.p[unknown.n_bytes] == ' ';
    if (!take_word(&line, word, sizeof word))
        return false;
    int family = strcmp(word, "TCP4") == 0 ? AF_INET : strcmp(word, "TCP6") == 0 ? AF_INET6 : 0;
    out->has_source = true;
    return family && take_address(&line, family, &out->source) &&
           take_address(&line, family, &destination) && take_port(&line, &out->port) &&
           take_port(&line, &port) && line.n_bytes == 0;
}

static enum nj_proxy_result parse_v1(const uint8_t *data, size_t n_bytes,
                                     struct nj_proxy_header *out)
{
    const size_t n_begin = strlen(V1_BEGIN), n = n_bytes < V1_BYTES_MAX ? n_bytes : V1_BYTES_MAX;
    const uint8_t *end = memchr(data, '\r', n);
    size_t n_line = end ? (size_t)(end - data) : n;

    if (memchr(data, '\n', n_line))
        return NJ_PROXY_MALFORMED;
    if (!end || n_line + 1 == n)
        return n == V1_BYTES_MAX ? NJ_PROXY_MALFORMED : NJ_PROXY_MORE;
    if (end[1] != '\n' || n_line < n_begin)
        return NJ_PROXY_MALFORMED;
    out->n_bytes = (uint32_t)n_line + 2;
    const struct nj_str line = {(const char *)data + n_begin, (uint32_t)(n_line - n_begin)};
    return parse_line(line, out) ? NJ_PROXY_DONE : NJ_PROXY_MALFORMED;
}

/* --- version 2: binary ---------------------------------------------------------------------- */

#define V2_BEGIN       "\r\n\r\n\0\r\nQUIT\n"
#define V2_BEGIN_BYTES 12u
#define V2_FIXED_BYTES 16u /* with version, command, family and the length of the rest */
#define V2_LOCAL       0x20u
#define V2_PROXY       0x21u

#define TLV_HEAD_BYTES 3u
#define TLV_CRC32C     0x03u

/* Addresses of a family of protocols: source, destination, and their ports. */
static const struct v2_family {
    uint8_t code; /* address family, and transport */
    uint8_t n_bytes, port_at;
    int family; /* AF_INET or AF_INET6: the source is a client of TCP */
} families[] = {
    {0x11, 12, 8, AF_INET},
    {0x21, 36, 32, AF_INET6},
    {0x31, 216, 0, AF_UNIX},
};

/* CRC-32C (RFC 9260 A) of the bytes as if the four at `zeros` were 0, four bits at a time. */
static uint32_t crc32c(const uint8_t *data, size_t n_bytes, size_t zeros)
{
    static const uint32_t of_nibble[16] = {
        0x00000000u, 0x105ec76fu, 0x20bd8edeu, 0x30e349b1u, 0x417b1dbcu, 0x5125dad3u,
        0x61c69362u, 0x7198540du, 0x82f63b78u, 0x92a8fc17u, 0xa24bb5a6u, 0xb21572c9u,
        0xc38d26c4u, 0xd3d3e1abu, 0xe330a81au, 0xf36e6f75u,
    };
    uint32_t crc = UINT32_MAX;

    for (size_t i = 0; i < n_bytes; i++) {
        crc ^= i >= zeros && i < zeros + 4 ? 0 : data[i];
        crc = of_nibble[crc & 15] ^ crc >> 4;
        crc = of_nibble[crc & 15] ^ crc >> 4;
    }
    return ~crc;
}

/* Are the fields from `at` to the end of the header whole, and is a checksum among them right? */
static bool check_tlvs(const uint8_t *data, size_t n_bytes, size_t at)
{
    bool has_checksum = false;

    while (at < n_bytes) {
        if (n_bytes - at < TLV_HEAD_BYTES)
            return false;
        size_t n = nj_get_be16(data + at + 1), value = at + TLV_HEAD_BYTES;
        if (n > n_bytes - value)
            return false;
        if (data[at] == TLV_CRC32C) {
            if (n != 4 || has_checksum || nj_get_be32(data + value) != crc32c(data, n_bytes, value))
                return false;
            has_checksum = true;
        }
        at = value + n;
    }
    return true;
}

/* The family must be one of a stream, since the connection is one. */
static bool parse_addresses(const uint8_t *data, struct nj_proxy_header *out)
{
    const uint8_t code = data[13], *at = data + V2_FIXED_BYTES;
    uint32_t v4;

    if (code == 0) /* AF_UNSPEC: nothing is known of what follows */
        return true;
    for (size_t i = 0; i < NJ_ARRAY_LEN(families); i++) {
        const struct v2_family *f = &families[i];
        if (f->code != code)
            continue;
        if (out->n_bytes < V2_FIXED_BYTES + f->n_bytes)
            return false;
        out->has_source = f->family != AF_UNIX;
        if (f->family == AF_INET) {
            memcpy(&v4, at, sizeof v4);
            out->source = nj_addr_from_v4(v4);
        } else if (f->family == AF_INET6) {
            memcpy(out->source.b, at, sizeof out->source.b);
        }
        if (out->has_source)
            out->port = nj_get_be16(at + f->port_at);
        return check_tlvs(data, out->n_bytes, V2_FIXED_BYTES + f->n_bytes);
    }
    return false;
}

static enum nj_proxy_result parse_v2(const uint8_t *data, size_t n_bytes,
                                     struct nj_proxy_header *out)
{
    if (n_bytes > V2_BEGIN_BYTES && data[12] != V2_LOCAL && data[12] != V2_PROXY)
        return NJ_PROXY_MALFORMED;
    if (n_bytes < V2_FIXED_BYTES)
        return NJ_PROXY_MORE;
    out->n_bytes = V2_FIXED_BYTES + nj_get_be16(data + 14);
    if (out->n_bytes > NJ_PROXY_HEADER_BYTES_MAX)
        return NJ_PROXY_MALFORMED;
    if (n_bytes < out->n_bytes)
        return NJ_PROXY_MORE;
    bool ok = data[12] == V2_LOCAL || parse_addresses(data, out);
    return ok ? NJ_PROXY_DONE : NJ_PROXY_MALFORMED;
}

enum nj_proxy_result nj_proxy_parse(const uint8_t *data, size_t n_bytes,
                                    struct nj_proxy_header *out)
{
    *out = (struct nj_proxy_header){0};
    if (n_bytes == 0)
        return NJ_PROXY_MORE;
    if (is_common_prefix(data, n_bytes, V1_BEGIN, strlen(V1_BEGIN)))
        return parse_v1(data, n_bytes, out);
    if (is_common_prefix(data, n_bytes, V2_BEGIN, V2_BEGIN_BYTES))
        return parse_v2(data, n_bytes, out);
    return NJ_PROXY_MISSING;
}
