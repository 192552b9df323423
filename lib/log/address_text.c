/* SPDX-License-Identifier: BSD-3-Clause */
/* Formats and parses IP addresses and prefixes (inet_ntop(3), inet_pton(3)). */
#include "log/address_text.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"

const char *nj_address_text(const struct nj_addr *ip, char out[NJ_ADDRESS_TEXT_BYTES])
{
    bool v4 = nj_addr_is_v4(ip);
    return inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? &ip->b[12] : ip->b, out, NJ_ADDRESS_TEXT_BYTES);
}

const char *nj_network_text(const struct nj_addr *ip, unsigned bits,
                            char out[NJ_NETWORK_TEXT_BYTES])
{
    nj_address_text(ip, out);
    sprintf(out + strlen(out), "/%u", nj_addr_is_v4(ip) ? bits - 96 : bits);
    return out;
}

bool nj_address_parse(const char *text, size_t n_bytes, struct nj_addr *out)
{
    char buf[INET6_ADDRSTRLEN];
    struct in_addr v4;

    if (n_bytes >= sizeof buf)
        return false;
    memcpy(buf, text, n_bytes);
    buf[n_bytes] = '\0';
    if (inet_pton(AF_INET, buf, &v4) == 1) {
        *out = nj_addr_from_v4(v4.s_addr);
        return true;
    }
    return inet_pton(AF_INET6, buf, out->b) == 1 && !nj_addr_is_v4(out);
}

bool nj_prefix_parse(const char *text, size_t n_bytes, struct nj_addr *out, unsigned *bits)
{
    const char *slash = memchr(text, '/', n_bytes), *end = text + n_bytes;
    char digits[20] = "";
    uint64_t n;

    if (!nj_address_parse(text, (size_t)((slash ? slash : end) - text), out))
        return false;
    *bits = nj_addr_is_v4(out) ? 32 : 128;
    if (!slash)
        return true;
    if ((size_t)(end - slash) > sizeof digits)
        return false;
    memcpy(digits, slash + 1, (size_t)(end - slash) - 1);
    if (!nj_parse_decimal(digits, &n) || n > *bits)
        return false;
    *bits = (unsigned)n;
    return true;
}
