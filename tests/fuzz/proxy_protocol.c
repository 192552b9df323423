/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzz target: the first bytes of a connection that should begin with a PROXY header. What a part
 * of them gives, all of them give, too.
 */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "conn/proxy_protocol.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

/* In memory of that size. */
static enum nj_proxy_result parse(const uint8_t *data, size_t n, struct nj_proxy_header *h)
{
    uint8_t *copy = malloc(n > 0 ? n : 1);

    memcpy(copy, data, n);
    enum nj_proxy_result result = nj_proxy_parse(copy, n, h);
    free(copy);
    if (result == NJ_PROXY_DONE)
        NJ_CHECK(h->n_bytes >= 15 && h->n_bytes <= n);
    return result;
}

static void check_parts(const uint8_t *data, size_t n_bytes)
{
    struct nj_proxy_header whole, h;
    enum nj_proxy_result last = parse(data, n_bytes, &whole);
    bool decided = false;

    for (size_t n = 0; n < n_bytes; n++) {
        enum nj_proxy_result result = parse(data, n, &h);
        decided |= result != NJ_PROXY_MORE;
        NJ_CHECK(result == NJ_PROXY_MORE ? !decided : result == last);
        if (result == NJ_PROXY_DONE)
            NJ_CHECK(h.n_bytes == whole.n_bytes && h.has_source == whole.has_source &&
                     h.port == whole.port && nj_addr_eq(&h.source, &whole.source));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    static uint8_t all[NJ_PROXY_HEADER_BYTES_MAX];
    struct nj_proxy_header h;

    check_parts(data, n_bytes < 600 ? n_bytes : 600);
    memset(all, 'x', sizeof all);
    memcpy(all, data, n_bytes < sizeof all ? n_bytes : sizeof all);
    NJ_CHECK(parse(all, sizeof all, &h) != NJ_PROXY_MORE);
    return 0;
}
